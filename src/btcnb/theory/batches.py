"""Thousands of small perturbed graphs at once: the statements of the lemma and the theorem, tested on stacks of dense
matrices.

Every array starts with the axis of graphs, shape (batch, …). Meant for graphs of a few dozen nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from btcnb import gates
from btcnb.errors import DataError, ParameterError
from btcnb.theory.laplacians import FloatArray, IdealLaplacian, as_labels, as_square, ideal_adjacency
from btcnb.theory.lemma import LemmaForm, cos_phi
from btcnb.theory.spectral import dense, spectrum

BoolArray = npt.NDArray[np.bool_]


def perturbed_graphs(
    labels: npt.ArrayLike, flips: int, batch: int, *, weight: float = 1.0, rng: np.random.Generator
) -> FloatArray:
    """Adjacencies (batch, n, n) of the ideal graph after `flips` random pairs of nodes were flipped in each.

    A flip takes `weight` away from an edge inside a cluster, or adds an edge of that weight between clusters; 1
    deletes and creates.
    """
    weight = gates.real("weight", weight, "[0, 1]")  # an edge cannot lose more than it has
    batch = gates.whole("batch", batch, "[0, 10000000]")
    gates.instance("rng", rng, np.random.Generator)
    ideal = ideal_adjacency(labels)
    row, column = np.triu_indices(len(ideal), 1)
    flips = gates.whole("flips, the number of pairs of nodes flipped,", flips, f"[0, {len(row)}]")
    picked = np.argsort(rng.random((batch, len(row))), axis=1)[:, :flips]  # (batch, flips) distinct pairs
    graph = np.repeat(np.arange(batch), flips)
    i, j = row[picked].ravel(), column[picked].ravel()
    sign = 1 - 2 * ideal[i, j]
    A = np.repeat(ideal[None], batch, axis=0)
    A[graph, i, j] += weight * sign
    A[graph, j, i] = A[graph, i, j]
    return A


def laplacian_stack(A: FloatArray, normalised: bool = False, *, self_loops: bool = False) -> FloatArray:
    """Dense Laplacians (batch, n, n) of adjacencies (batch, n, n), by the conventions of `laplacians.laplacian`."""
    A = _stack(A, "adjacencies", square=True)
    normalised, self_loops = gates.flag("normalised", normalised), gates.flag("self_loops", self_loops)
    if A.size and (A.min() < 0 or np.abs(A - A.transpose(0, 2, 1)).max() > 1e-12 * max(1.0, A.max())):
        raise DataError("adjacencies", "weights", "negative or not symmetric", "pass symmetric weights of at least 0")
    identity = np.eye(A.shape[-1])
    if self_loops:
        A = A + identity
    degree = A.sum(axis=-1)
    if not normalised:
        return degree[..., None] * identity - A
    scale = np.zeros_like(degree)
    np.divide(1.0, np.sqrt(degree), out=scale, where=degree > 1e-12)
    return (scale > 0)[..., None] * identity - scale[..., :, None] * A * scale[..., None, :]


def separation_stack(H: FloatArray, labels: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Greatest Euclidean distance inside clusters and least between them, each (batch,), for embeddings (batch, n,
    d)."""
    H = _stack(H, "embeddings")
    codes, _ = as_labels(labels, H.shape[1])
    same = codes[:, None] == codes[None, :]
    distance = np.linalg.norm(H[:, :, None, :] - H[:, None, :, :], axis=-1)  # (batch, n, n)
    intra = np.where(same, distance, 0.0).max(axis=(1, 2))
    inter = np.where(same, np.inf, distance).min(axis=(1, 2))
    return intra, inter


def _stack(values: FloatArray, name: str, square: bool = False) -> FloatArray:
    given = gates.array(name, values, 3).astype(np.float64, copy=False)
    if not given.shape[1] or not given.shape[2] or (square and given.shape[1] != given.shape[2]):
        wanted = "(batch, n, n)" if square else "(batch, n, d)"
        raise DataError(name, "shape", f"got {given.shape}", f"pass an array of shape {wanted}")
    return given


@dataclass(frozen=True)
class LemmaBatch:
    """Truth and bound for a stack of graphs that share their labels; all arrays have shape (batch,)."""

    distance: FloatArray
    """ε = ‖L − L°‖_op"""
    angle: FloatArray
    """largest principal angle between the spans of U_k and U°, in radians"""
    intra: FloatArray
    """greatest distance inside a cluster"""
    inter: FloatArray
    """least distance between clusters"""
    holds: dict[LemmaForm, BoolArray]
    ratio: dict[LemmaForm, FloatArray]
    """left over right of the inequality: the condition holds below 1"""

    @property
    def separable(self) -> BoolArray:
        return self.intra < self.inter

    def violations(self, form: LemmaForm) -> int:
        """Graphs for which the condition holds and the embeddings are not separable: none, if the form is a theorem."""
        return int((self.holds[form] & ~self.separable).sum())


def lemma_batch(
    A: FloatArray, labels: npt.ArrayLike, *, normalised: bool = False, self_loops: bool = False
) -> LemmaBatch:
    """Evaluate the three forms of the lemma on every graph of the stack A (batch, n, n)."""
    ideal = IdealLaplacian(labels, normalised, self_loops=self_loops)
    k, largest = ideal.num_clusters, int(ideal.sizes.max())
    L = laplacian_stack(A, normalised, self_loops=self_loops)
    if L.shape[1:] != ideal.shape:
        raise DataError(
            "labels", "length", f"{ideal.shape[0]} labels for {L.shape[1]} nodes", "pass one label per node"
        )
    distance = np.abs(np.linalg.eigvalsh(L - ideal.toarray())).max(axis=1)
    U = np.linalg.eigh(L)[1][:, :, :k]
    intra, inter = separation_stack(U, labels)
    kernel = ideal.kernel().toarray()
    outside = U - kernel @ (kernel.T @ U)
    angle = np.arcsin(np.clip(np.linalg.norm(outside, 2, axis=(1, 2)), 0, 1))
    scale = 4 * np.sqrt(2 * k) * np.sqrt(2 * largest)
    ratio: dict[LemmaForm, FloatArray] = {
        "printed": scale * (1 - 1 / largest) * distance,
        "proof": scale * distance / ideal.eigengap,
        "sharp": 2 * distance / ideal.eigengap / cos_phi(ideal.sizes),
    }
    holds: dict[LemmaForm, BoolArray] = {form: value < 1 for form, value in ratio.items()}
    return LemmaBatch(distance, angle, intra, inter, holds, ratio)


@dataclass(frozen=True)
class TheoremBatch:
    """A stack of feature matrices on one graph; all arrays have shape (batch,)."""

    intra: FloatArray
    inter: FloatArray
    ratio: FloatArray
    """γσ(√(2/S_max) − M) − αM‖XW‖, over β‖XW‖: the largest factor in front of β for which the inequality holds"""

    @property
    def separable(self) -> BoolArray:
        return self.intra < self.inter

    def violations(self, leakage: float) -> int:
        """Feature matrices for which the inequality with `leakage`·β holds and the embeddings are not separable."""
        return int(((self.ratio > leakage) & ~self.separable).sum())


def theorem_batch(
    L: FloatArray, labels: npt.ArrayLike, XW: FloatArray, response: npt.ArrayLike, M: float = 0.0
) -> TheoremBatch:
    """The theorem in the paper's shape for one Laplacian (n, n), features (batch, n, m), and p at its n eigenvalues,
    ascending.

    `M` is the lemma's quantity for this graph (0 for the ideal graph). β must not be 0.
    """
    L = dense(as_square(L, symmetric=True))
    _, sizes = as_labels(labels, len(L))
    k = len(sizes)
    XW, M = _stack(XW, "features"), gates.real("M", M, "[0, inf)")
    gain = gates.array("response", response, 1).astype(np.float64)
    if XW.shape[1] != len(L) or len(gain) != len(L) or k == len(L):
        problem = f"{XW.shape} features, {len(gain)} values of p and {k} clusters for {len(L)} nodes"
        raise DataError("theorem", "shapes", problem, "pass a row and a value for each node, and fewer clusters")
    vectors = spectrum(L)[1]
    coefficients = vectors.T @ XW  # (batch, n, m)
    intra, inter = separation_stack(vectors @ (gain[:, None] * coefficients), labels)
    size = np.abs(gain)
    alpha, beta, gamma = size[:k].max(), size[k:].max(), size[:k].min()
    norm = np.linalg.norm(XW, 2, axis=(1, 2))
    if beta == 0 or not norm.all():
        raise ParameterError("the filter leaks nothing (β = 0, or features of zero): no factor in front of β matters.")
    singular = np.linalg.svd(coefficients[:, :k], compute_uv=False)
    sigma = singular[:, -1] if XW.shape[2] >= k else np.zeros(len(XW))
    right = gamma * sigma * (np.sqrt(2 / sizes.max()) - M)
    return TheoremBatch(intra, inter, (right - alpha * M * norm) / (beta * norm))
