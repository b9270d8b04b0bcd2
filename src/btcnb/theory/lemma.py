"""The perfect cut and the spectral lemma (paper, section 4): distances of embeddings, and what the lemma promises.

*Separation*: some r < s with every distance inside a cluster at most r and every distance between clusters at least
s. Then single, average and complete linkage all recover the clusters at any cut in (r, s): the linkage distance of two
groups lies between the least and the greatest of their pairwise distances, so groups of one cluster always merge
before groups of two.

*Lemma*: with ε = ‖L − L°‖_op, g = λₖ₊₁(L°), and S₁ ≥ S₂ the sizes of the two largest clusters, the spectral
embeddings are separated whenever

- printed: M = 4√(2k)·(1 − 1/S_max)·ε < 1/√(2·S_max), the paper's statement, with 1/g of the normalised Laplacian;
- proof: M = 4√(2k)·ε/g < 1/√(2·S_max), the paper's proof with the eigenvalue of the Laplacian in use;
- sharp: 2ε/g < √((1/S₁ + 1/S₂)/2), by Davis and Kahan's sin 2Θ theorem instead of sin Θ, without the factor √k.

The sharp form rests on two facts, derived in chapter 04. First, rows of U_k differ by ‖e_i − e_j‖ = ‖P(δ_i − δ_j)‖
with P = U_k U_kᵀ, so no rotation Q is needed. Second, with θ the largest angle between the spans of U_k and U°, sin
2θ ≤ 2ε/g and θ < π/4 whenever ε < g/2. Then distances inside a cluster are at most √2·sin θ, and distances between
clusters a and b at least √2·cos(φ + θ), where cos φ = √((1/|C_a| + 1/|C_b|)/2).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import asin, cos, inf, pi, sin, sqrt
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from btcnb.theory.laplacian import FloatArray, IdealLaplacian, IntArray, cluster_codes, laplacian, laplacian_stack
from btcnb.theory.spectral import laplacian_distance

Metric = Literal["euclidean", "cosine"]
LemmaForm = Literal["printed", "proof", "sharp"]
FORMS: tuple[LemmaForm, ...] = ("printed", "proof", "sharp")

BLOCK = 1024
"""Rows of the distance matrix that are in memory at a time."""


@dataclass(frozen=True)
class Separation:
    """intra_max = r and inter_min = s; 0 and ∞ where there is no such pair."""

    intra_max: float
    inter_min: float

    @property
    def separable(self) -> bool:
        return self.intra_max < self.inter_min

    @property
    def gap(self) -> float:
        """s − r: positive when a perfect cut exists."""
        return self.inter_min - self.intra_max


def separation(X: npt.ArrayLike, labels: npt.ArrayLike, *, metric: Metric = "euclidean") -> Separation:
    """The greatest distance inside a cluster and the least between clusters, over all pairs of rows of X (n, d).

    O(n²·d) time, O(BLOCK·n) memory. A zero row has no direction: its cosine distance to every other row is 1.
    """
    X = np.asarray(X, dtype=np.float64)
    codes, _ = cluster_codes(labels)
    intra, inter = 0.0, inf
    for start in range(0, len(X), BLOCK):
        rows = np.arange(start, min(start + BLOCK, len(X)))
        distance = np.nan_to_num(cdist(X[rows], X, metric), copy=False, nan=1.0)  # NaN: cosine of a zero row
        distance[rows - start, rows] = 0.0
        same = codes[rows, None] == codes[None, :]
        intra = max(intra, float(distance.max(where=same, initial=0.0)))
        inter = min(inter, float(distance.min(where=~same, initial=inf)))
    return Separation(intra, inter)


def separation_stack(H: FloatArray, labels: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """The same two Euclidean distances, each of shape (batch,), for many small embeddings (batch, n, d)."""
    codes, _ = cluster_codes(labels)
    same = codes[:, None] == codes[None, :]
    distance = np.linalg.norm(H[:, :, None, :] - H[:, None, :, :], axis=-1)  # (batch, n, n)
    intra = np.where(same, distance, 0.0).max(axis=(1, 2))
    inter = np.where(same, np.inf, distance).min(axis=(1, 2))
    return intra, inter


def sample_pair_distances(
    X: npt.ArrayLike, labels: npt.ArrayLike, pairs: int, *, seed: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Cosine distances of `pairs` random pairs inside clusters and of `pairs` between clusters, for any n.

    A node is drawn uniformly (for inside pairs among the nodes of clusters with two or more), then its partner
    uniformly among the other nodes of its cluster, or among the nodes of other clusters.
    """
    X = np.asarray(X)
    codes, sizes = cluster_codes(labels)
    rng = np.random.default_rng(seed)
    order = np.argsort(codes, kind="stable")  # nodes grouped by cluster
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    rank = np.empty(len(X), dtype=np.int64)
    rank[order] = np.arange(len(X))

    a = rng.choice(np.flatnonzero(sizes[codes] > 1), pairs)
    own = codes[a]
    step = rng.integers(1, sizes[own])  # 1 … |C|−1 places further inside the cluster, cyclically
    partner = order[first[own] + (rank[a] - first[own] + step) % sizes[own]]
    c = rng.integers(0, len(X), pairs)
    own = codes[c]
    skip = rng.integers(0, len(X) - sizes[own])  # places further in the complement of the cluster
    other = order[(first[own] + sizes[own] + skip) % len(X)]
    return _cosine_distance(X[a], X[partner]), _cosine_distance(X[c], X[other])


def _cosine_distance(X: npt.NDArray[Any], Y: npt.NDArray[Any]) -> FloatArray:
    """Row by row; 1 where a row is zero."""
    X, Y = X.astype(np.float64), Y.astype(np.float64)
    norms = np.linalg.norm(X, axis=1) * np.linalg.norm(Y, axis=1)
    return np.asarray(1 - (X * Y).sum(axis=1) / np.where(norms > 0, norms, 1.0))


@dataclass(frozen=True)
class Cut:
    """The best horizontal cut: every merge of height at most `threshold` is kept."""

    threshold: float
    rand_index: float
    """adjusted Rand index of the cut against the labels"""
    perfect: bool
    """whether the cut is exactly the given partition"""


def best_cut(Z: npt.ArrayLike, labels: npt.ArrayLike) -> Cut:
    """The cut of a SciPy linkage matrix Z (n−1, 4) that agrees best with `labels`, over all distinct merge heights.

    O(n log n): each merge moves the label counts of the side with fewer labels. Heights must not fall from row to row
    (single, average, complete and Ward linkage). The threshold lies halfway between the heights it separates: half
    the first height for no merge, the last height for all.
    """
    Z = np.asarray(Z, dtype=np.float64)
    codes, sizes = cluster_codes(labels)
    n = len(codes)
    left, right = Z[:, :2].astype(np.int64).T
    points = np.concatenate([np.ones(n), Z[:, 3]])
    # Pairs of points, after 0, 1, … n−1 merges: joined by the cut, and joined by the cut and the labels.
    joined = np.concatenate([[0.0], np.cumsum(points[left] * points[right])])
    agreed = np.concatenate([[0.0], np.cumsum(_equal_pairs(left, right, codes))])
    score = _adjusted_rand(agreed, joined, float((sizes * (sizes - 1) // 2).sum()), n)

    height = np.concatenate([[0.0], Z[:, 2], [inf]])
    possible = np.append(0, 1 + np.flatnonzero(height[2:] > height[1:-1]))  # no cut lies between equal heights
    merges = possible[np.argmax(score[possible])]
    below, above = float(height[merges]), float(height[merges + 1])
    middle = (below + above) / 2 if above < inf else below
    # Two heights that differ by rounding have no number between them: then the lower one is the cut.
    return Cut(middle if middle < above else below, float(score[merges]), bool(score[merges] == 1.0))


def _equal_pairs(left: IntArray, right: IntArray, codes: IntArray) -> list[float]:
    """Per merge, the pairs of points with equal labels that it joins."""
    counts = [Counter({code: 1}) for code in codes.tolist()]
    found = []
    for a, b in zip(left.tolist(), right.tolist(), strict=True):
        few, many = sorted((counts[a], counts[b]), key=len)
        found.append(float(sum(number * many[code] for code, number in few.items())))
        many.update(few)
        counts.append(many)
    return found


def _adjusted_rand(agreed: FloatArray, joined: FloatArray, truth: float, n: int) -> FloatArray:
    """Adjusted Rand index from numbers of pairs in both partitions, in the cut, in the labels; 1 only if all agree."""
    equal = (agreed == joined) & (joined == truth)
    expected = joined * truth / max(n * (n - 1) / 2, 1)
    return np.divide(agreed - expected, (joined + truth) / 2 - expected, out=np.ones(len(joined)), where=~equal)


def same_partition(p: npt.ArrayLike, q: npt.ArrayLike) -> bool:
    """Whether two labellings of the same points are equal up to the names of the clusters."""
    both = np.stack([np.asarray(p), np.asarray(q)])
    pairs = np.unique(both, axis=1).shape[1]
    return bool(pairs == len(np.unique(both[0])) == len(np.unique(both[1])))


@dataclass(frozen=True)
class LemmaMargin:
    """Both sides of the lemma's inequality `left < right`, and every quantity in it."""

    form: LemmaForm
    k: int
    """number of clusters"""
    S_max: int
    """size of the largest cluster"""
    distance: float
    """ε = ‖L − L°‖_op"""
    eigengap: float
    """g = λₖ₊₁(L°); infinity when every cluster has one node"""
    M: float
    """4√(2k)·ε times the form's reading of 1/g; the form `sharp` does not use it and has the proof's value"""
    left: float
    right: float
    intra_bound: float
    """promise of the form: no distance inside a cluster exceeds this (√2 where it promises nothing)"""
    inter_bound: float
    """promise of the form: no distance between clusters is below this (0 where it promises nothing, ∞ for k = 1)"""

    @property
    def holds(self) -> bool:
        """Whether the sufficient condition is met; the embeddings may be separable when it is not."""
        return self.left < self.right


def lemma_margin(
    A: Any, labels: npt.ArrayLike, *, normalised: bool = False, self_loops: bool = False, form: LemmaForm = "printed"
) -> LemmaMargin:
    """The lemma's inequality for a symmetric adjacency matrix (n, n) and one label per node.

    `normalised` and `self_loops` choose the Laplacian (see `laplacian`), `form` the statement (see the module).
    """
    L = laplacian(A, normalised, self_loops=self_loops)
    ideal = IdealLaplacian(labels, normalised, self_loops=self_loops)
    return lemma_margin_at(laplacian_distance(L, ideal), ideal, form)


def lemma_margin_at(distance: float, ideal: IdealLaplacian, form: LemmaForm = "printed") -> LemmaMargin:
    """The same for a distance ε = ‖L − L°‖_op that is already known."""
    sizes = np.sort(ideal.sizes)[::-1]
    k, largest, gap = len(sizes), int(sizes[0]), ideal.eigengap
    inverse_gap = 1 - 1 / largest if form == "printed" else 1 / gap
    M = 4 * sqrt(2 * k) * inverse_gap * distance
    left, right = M, 1 / sqrt(2 * largest)
    intra, inter = min(M, sqrt(2)), max(sqrt(2 / largest) - M, 0.0)
    if form == "sharp":
        left, right = 2 * distance / gap, cos_phi(sizes)
        angle, phi = subspace_angle(left), np.arccos(min(right, 1.0))
        intra, inter = sqrt(2) * sin(angle), sqrt(2) * cos(min(phi + angle, pi / 2))
    return LemmaMargin(
        form=form,
        k=k,
        S_max=largest,
        distance=distance,
        eigengap=gap,
        M=M,
        left=left,
        right=right,
        intra_bound=intra,
        inter_bound=inter if k > 1 else inf,
    )


def condition_end(ideal: IdealLaplacian, form: LemmaForm) -> float:
    """The ‖L − L°‖_op at which a form of the lemma stops holding (each is linear in it); infinity if never."""
    unit = lemma_margin_at(1.0, ideal, form)
    return unit.right / unit.left if unit.left > 0 else inf


def cos_phi(sizes: IntArray) -> float:
    """√((1/S₁ + 1/S₂)/2) for the two largest clusters: the smallest ideal distance between clusters, over √2.

    Infinity for a single cluster: there is no pair to keep apart, so no perturbation is too large.
    """
    if len(sizes) < 2:
        return inf
    second, largest = np.sort(sizes)[-2:]
    return sqrt((1 / largest + 1 / second) / 2)


def subspace_angle(ratio: float) -> float:
    """θ = ½ arcsin(2ε/g), the largest angle between U_k and U° for 2ε/g = `ratio`; π/2 from ratio 1 on."""
    return 0.5 * asin(ratio) if ratio < 1 else pi / 2


@dataclass(frozen=True)
class LemmaBatch:
    """Truth and bound for a stack of graphs that share their labels; all arrays have shape (batch,)."""

    distance: FloatArray
    """ε = ‖L − L°‖_op"""
    intra: FloatArray
    """greatest distance inside a cluster"""
    inter: FloatArray
    """least distance between clusters"""
    ratio: dict[LemmaForm, FloatArray]
    """left over right of the inequality, per form"""

    @property
    def holds(self) -> dict[LemmaForm, npt.NDArray[np.bool_]]:
        return {form: ratio < 1 for form, ratio in self.ratio.items()}

    def violations(self, form: LemmaForm) -> int:
        """Graphs for which the condition holds and the embeddings are not separable: none, if the form is a theorem."""
        return int((self.holds[form] & (self.intra >= self.inter)).sum())


def lemma_batch(
    A: FloatArray, labels: npt.ArrayLike, *, normalised: bool = False, self_loops: bool = False
) -> LemmaBatch:
    """The three forms of the lemma on every graph of the stack A (batch, n, n), of a few dozen nodes each."""
    ideal = IdealLaplacian(labels, normalised, self_loops=self_loops)
    L = laplacian_stack(A, normalised, self_loops=self_loops)
    distance = np.abs(np.linalg.eigvalsh(L - ideal.toarray())).max(axis=1)
    intra, inter = separation_stack(np.linalg.eigh(L)[1][:, :, : ideal.num_clusters], labels)
    return LemmaBatch(distance, intra, inter, {form: distance / condition_end(ideal, form) for form in FORMS})
