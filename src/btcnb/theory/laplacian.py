"""Laplacians of a graph and of the ideal cluster graph (paper, section 4).

In the *ideal cluster graph* two nodes are joined if and only if they belong to the same cluster: it is a disjoint
union of cliques. Its Laplacian L° has one non-zero per pair inside a cluster, too many to store when a cluster has
thousands of nodes. L° is therefore an operator that is made from the labels: a product L°x costs O(n) for any sizes.

The constant of the lemma depends on which of three Laplacians is meant:

- unnormalised, D − A: λₖ₊₁(L°) is the size of the smallest cluster with at least two nodes;
- normalised, I − D^-1/2 A D^-1/2: λₖ₊₁(L°) = S_max / (S_max − 1). By convention the row of an isolated node is zero;
- normalised with self-loops, the same on A + I, as in GCN: λₖ₊₁(L°) = 1, and no convention is needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def adjacency(edge_index: npt.ArrayLike, num_nodes: int) -> sp.csr_array:
    """Symmetric 0/1 adjacency of a directed multigraph, without self-loops; `edge_index` has shape (2, E)."""
    edges = np.asarray(edge_index, dtype=np.int64)
    a, b = edges[:, edges[0] != edges[1]]
    ones = np.ones(2 * len(a))
    A = sp.csr_array((ones, (np.concatenate([a, b]), np.concatenate([b, a]))), shape=(num_nodes, num_nodes))
    A.sum_duplicates()
    A.data[:] = 1.0
    return A


def cluster_codes(labels: npt.ArrayLike) -> tuple[IntArray, IntArray]:
    """Labels (numbers or text) renumbered 0 … k−1, shape (n,), and the size of each cluster, shape (k,)."""
    _, codes, sizes = np.unique(np.asarray(labels), return_inverse=True, return_counts=True)
    return codes.astype(np.int64), sizes.astype(np.int64)


def laplacian(A: Any, normalised: bool = False, *, self_loops: bool = False) -> sp.csr_array:
    """Laplacian of a symmetric, non-negative adjacency matrix (dense or sparse), as a sparse matrix of shape (n, n).

    `normalised` gives the symmetric I − D^-1/2 A D^-1/2, in which the row and column of an isolated node are zero, so
    that an isolated node is a connected component of its own in the spectrum too. `self_loops` adds I to A first, as
    GCN does; the unnormalised Laplacian does not see self-loops. (SciPy's `csgraph.laplacian` leaves self-loops out
    of the degrees, so it cannot make the third kind.)
    """
    A = sp.csr_array(A, dtype=np.float64)
    if self_loops:
        A = sp.csr_array(A + sp.eye_array(A.shape[0], format="csr"))
    degree = np.asarray(A.sum(axis=1)).ravel()
    if not normalised:
        return sp.csr_array(sp.diags_array(degree, format="csr") - A)
    scale = np.zeros(len(degree))
    np.divide(1.0, np.sqrt(degree), out=scale, where=degree > 0)
    D = sp.diags_array(scale, format="csr")
    return sp.csr_array(sp.diags_array((degree > 0).astype(float), format="csr") - D @ A @ D)


def laplacian_stack(A: FloatArray, normalised: bool = False, *, self_loops: bool = False) -> FloatArray:
    """Dense Laplacians (batch, n, n) of adjacencies (batch, n, n), by the conventions of `laplacian`."""
    identity = np.eye(A.shape[-1])
    if self_loops:
        A = A + identity
    degree = A.sum(axis=-1)
    if not normalised:
        return degree[..., None] * identity - A
    scale = np.zeros_like(degree)
    np.divide(1.0, np.sqrt(degree), out=scale, where=degree > 1e-12)
    return (scale > 0)[..., None] * identity - scale[..., :, None] * A * scale[..., None, :]


class IdealLaplacian(LinearOperator):  # type: ignore[misc]
    """L° as an operator of shape (n, n), made from one label per node.

    `toarray()` and `numpy.asarray` give the dense matrix, for small n only.
    """

    def __init__(self, labels: npt.ArrayLike, normalised: bool = False, *, self_loops: bool = False) -> None:
        self.labels, self.sizes = cluster_codes(labels)
        n = len(self.labels)
        # L° multiplies vectors that sum to zero inside a cluster by this number, and cluster indicators by 0.
        self.scale = _clique_eigenvalue(self.sizes, normalised, self_loops)
        self._sums = sp.csr_array((np.ones(n), (self.labels, np.arange(n))), shape=(len(self.sizes), n))
        super().__init__(dtype=np.float64, shape=(n, n))

    @property
    def num_clusters(self) -> int:
        """k, the number of clusters, which is the multiplicity of the eigenvalue 0."""
        return len(self.sizes)

    @property
    def eigengap(self) -> float:
        """λₖ₊₁(L°), the smallest non-zero eigenvalue; infinity when every cluster has one node (there is none)."""
        grown = self.sizes >= 2
        return float(self.scale[grown].min()) if grown.any() else float("inf")

    def toarray(self) -> FloatArray:
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
    """The only non-zero Laplacian eigenvalue of a clique of each size; 0 for one node, whose Laplacian is zero."""
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
    """Dense 0/1 adjacency of the ideal cluster graph, shape (n, n), for small graphs."""
    codes, _ = cluster_codes(labels)
    A = (codes[:, None] == codes[None, :]).astype(np.float64)
    np.fill_diagonal(A, 0.0)
    return A
