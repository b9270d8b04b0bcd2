"""Laplacians of a graph and of the ideal cluster graph (paper, section 4).

In the *ideal cluster graph* two nodes are joined if and only if they belong to the same cluster: a disjoint union of
cliques. Its Laplacian L° has as many non-zeros as there are pairs inside clusters, far too many to store when a
cluster has thousands of nodes. It is therefore an operator made from the labels alone: a product L°x costs O(n),
whatever the cluster sizes.

Three Laplacians are at hand, and which one is meant matters for the constant of the lemma:

- unnormalised, D − A: λ_{k+1}(L°) is the size of the smallest cluster with at least two nodes;
- normalised, I − D^-1/2 A D^-1/2: λ_{k+1}(L°) = S_max / (S_max − 1). The row of an isolated node is zero, a convention;
- normalised with self-loops, the same on A + I, as in GCN: λ_{k+1}(L°) = 1, and no convention is needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from btcnb import gates
from btcnb.errors import DataError, ParameterError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def adjacency(edge_index: npt.ArrayLike, num_nodes: int) -> sp.csr_array:
    """Symmetric 0/1 adjacency of a directed multigraph, without self-loops; `edge_index` has shape (2, E)."""
    num_nodes = gates.whole("num_nodes", num_nodes, f"[1, {gates.LARGEST}]")
    edges = as_edge_index(edge_index, num_nodes)
    a, b = edges[:, edges[0] != edges[1]]
    ones = np.ones(2 * len(a))
    A = sp.csr_array((ones, (np.concatenate([a, b]), np.concatenate([b, a]))), shape=(num_nodes, num_nodes))
    A.sum_duplicates()
    A.data[:] = 1.0
    return A


def as_edge_index(edge_index: npt.ArrayLike, num_nodes: int) -> IntArray:
    """`edge_index` as an int64 array of shape (2, E) whose entries are node positions; `DataError` otherwise."""
    edges = gates.array("edge_index", edge_index, 2, "iu")
    if edges.shape[0] != 2:
        raise DataError("edge_index", "shape", f"got {edges.shape}", "pass integers of shape (2, edges)")
    if edges.size and (edges.min() < 0 or edges.max() >= num_nodes):
        raise DataError(
            "edge_index", "nodes", f"positions run from {edges.min()} to {edges.max()}", f"there are {num_nodes} nodes"
        )
    return edges.astype(np.int64, copy=False)


def as_labels(labels: npt.ArrayLike, num_nodes: int | None = None) -> tuple[IntArray, IntArray]:
    """Labels (numbers or text) renumbered 0..k-1 (shape (n,)) and the size of each cluster (shape (k,))."""
    given = gates.array("labels", labels, 1, "fiubUT")
    if not len(given):
        raise DataError("labels", "shape", f"got {given.shape}", "pass one label per node")
    if num_nodes is not None and len(given) != num_nodes:
        raise DataError("labels", "length", f"{len(given)} labels for {num_nodes} nodes", "pass one label per node")
    _, codes, sizes = np.unique(given, return_inverse=True, return_counts=True)
    return codes.astype(np.int64), sizes.astype(np.int64)


def laplacian(A: Any, normalised: bool = False, *, self_loops: bool = False) -> sp.csr_array:
    """Laplacian of a symmetric, non-negative adjacency matrix (dense or sparse), as a sparse matrix of shape (n, n).

    `normalised` gives the symmetric I − D^-1/2 A D^-1/2, in which the row and column of an isolated node are zero, so
    that an isolated node is a connected component of its own in the spectrum too. `self_loops` adds I to A first, as
    GCN does; the unnormalised Laplacian does not see self-loops.
    """
    A = _checked_adjacency(A)
    normalised, self_loops = gates.flag("normalised", normalised), gates.flag("self_loops", self_loops)
    n = A.shape[0]
    if self_loops:
        A = sp.csr_array(A + sp.eye_array(n, format="csr"))
    degree = np.asarray(A.sum(axis=1)).ravel()
    if not normalised:
        return sp.csr_array(sp.diags_array(degree, format="csr") - A)
    scale = np.zeros(n)
    np.divide(1.0, np.sqrt(degree), out=scale, where=degree > 0)
    D = sp.diags_array(scale, format="csr")
    return sp.csr_array(sp.diags_array((degree > 0).astype(float), format="csr") - D @ A @ D)


def _checked_adjacency(A: Any) -> sp.csr_array:
    A = sp.csr_array(as_square(A, "adjacency", symmetric=True), dtype=np.float64)
    if A.nnz and A.data.min() < 0:
        raise DataError("adjacency", "weights", "negative or not finite", "edge weights are finite and at least 0")
    return A


def as_square(L: Any, name: str = "L", *, symmetric: bool = False) -> Any:
    """L if it is an operator, or a square matrix (dense or sparse) of finite numbers; `DataError` otherwise.

    `symmetric` is asked of matrices; an operator is taken at its word.
    """
    if not isinstance(L, LinearOperator) and not sp.issparse(L):
        L = gates.array(name, L, 2)
    if len(L.shape) != 2 or L.shape[0] != L.shape[1] or not L.shape[0]:
        raise DataError(name, "shape", f"got {L.shape}", "pass a square matrix with at least one node")
    if isinstance(L, LinearOperator):
        return L
    L = sp.csr_array(L) if sp.issparse(L) else L
    if sp.issparse(L) and (L.dtype.kind not in "fiub" or not np.isfinite(L.data).all()):
        raise DataError(name, "values", "not numbers or not finite", "pass finite real numbers")
    if symmetric:
        asymmetry, size = (float(abs(value).max()) for value in (L.astype(np.float64) - L.T, L))
        if asymmetry > 1e-12 * max(1.0, size):
            raise DataError(name, "symmetry", "differs from its transpose", "use (A + A.T) or `adjacency`")
    return L


class IdealLaplacian(LinearOperator):  # type: ignore[misc]
    """L° as an operator of shape (n, n), made from the labels; `toarray()` and `numpy.asarray` give the dense matrix
    (small n only)."""

    def __init__(self, labels: npt.ArrayLike, normalised: bool = False, *, self_loops: bool = False) -> None:
        self.labels, self.sizes = as_labels(labels)
        self.normalised = gates.flag("normalised", normalised)
        self.self_loops = gates.flag("self_loops", self_loops)
        n = len(self.labels)
        # On the vectors that sum to zero inside a cluster, L° multiplies by this number; on cluster indicators, by 0.
        self.scale = _clique_eigenvalue(self.sizes, normalised, self_loops)
        self._sums = sp.csr_array((np.ones(n), (self.labels, np.arange(n))), shape=(len(self.sizes), n))
        super().__init__(dtype=np.float64, shape=(n, n))

    @property
    def num_clusters(self) -> int:
        """k, the number of clusters, which is the multiplicity of the eigenvalue 0."""
        return len(self.sizes)

    @property
    def eigengap(self) -> float:
        """λ_{k+1}(L°), the smallest non-zero eigenvalue; infinity when every cluster has one node (there is none)."""
        grown = self.sizes >= 2
        return float(self.scale[grown].min()) if grown.any() else float("inf")

    def eigenvalues(self) -> FloatArray:
        """All n eigenvalues, ascending: 0 once per cluster, then each cluster's own value |C| − 1 times."""
        own = np.repeat(self.scale, self.sizes - 1)
        return np.sort(np.concatenate([np.zeros(self.num_clusters), own]))

    def kernel(self) -> sp.csr_array:
        """U°, the orthonormal basis of the kernel, shape (n, k): column c is the indicator of cluster c over √|C_c|."""
        return sp.csr_array((self._sums / np.sqrt(self.sizes)[:, None]).T)

    def toarray(self) -> FloatArray:
        """The dense matrix; refused above 10,000 nodes."""
        if self.shape[0] > 10_000:
            raise ParameterError(f"L° of {self.shape[0]} nodes is not made dense; use it as an operator.")
        return np.asarray(self @ np.eye(self.shape[0]))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return self.toarray().astype(dtype or np.float64)

    def _matvec(self, x: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return self._matmat(np.asarray(x).reshape(-1, 1)).ravel()

    def _matmat(self, X: npt.NDArray[Any]) -> npt.NDArray[Any]:
        means = (self._sums @ X) / self.sizes[:, None]  # (k, columns)
        return self.scale[self.labels, None] * (X - means[self.labels])

    def _adjoint(self) -> IdealLaplacian:
        return self


def _clique_eigenvalue(sizes: IntArray, normalised: bool, self_loops: bool) -> FloatArray:
    """The only non-zero Laplacian eigenvalue of a clique of each size; 0 for one node, whose Laplacian is the zero
    matrix."""
    size = sizes.astype(np.float64)
    if not normalised:
        value = size
    elif self_loops:
        value = np.ones(len(size))
    else:
        value = size / np.maximum(size - 1, 1)
    return np.where(sizes >= 2, value, 0.0)


def ideal_laplacian(labels: npt.ArrayLike, normalised: bool = False, *, self_loops: bool = False) -> IdealLaplacian:
    """L°, the Laplacian of the ideal cluster graph of `labels` (one label per node), as a linear operator."""
    return IdealLaplacian(labels, normalised, self_loops=self_loops)


def ideal_adjacency(labels: npt.ArrayLike) -> FloatArray:
    """Dense 0/1 adjacency of the ideal cluster graph, shape (n, n); for the small graphs that one draws."""
    codes, _ = as_labels(labels)
    if len(codes) > 10_000:
        raise ParameterError(f"the ideal graph of {len(codes)} nodes is not made dense; use `ideal_laplacian`.")
    A = (codes[:, None] == codes[None, :]).astype(np.float64)
    np.fill_diagonal(A, 0.0)
    return A
