"""Distances inside and between clusters, and the best horizontal cut of a dendrogram (paper, section 4, the
perfect-cut criterion).

Separation: some r < s with every distance inside a cluster at most r and every distance between clusters at least s.
Then single, average and complete linkage all recover the clusters at any cut in (r, s): the linkage distance of two
groups lies between the least and the greatest of their pairwise distances, so groups of one cluster always merge
before groups of two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from btcnb import gates
from btcnb.errors import DataError
from btcnb.theory.laplacians import FloatArray, IntArray, as_labels

Metric = Literal["euclidean", "cosine"]


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


def separation(
    X: npt.ArrayLike, labels: npt.ArrayLike, *, metric: Metric = "euclidean", block: int = 1024
) -> Separation:
    """The greatest distance inside a cluster and the least between clusters, over all pairs of rows of X (n, d),
    exactly.

    O(n²·d) time, O(block·n) memory. A zero row has no direction: its cosine distance to every other row is 1.
    """
    intra, inter = 0.0, np.inf
    for distance, same in _blocks(X, labels, metric, block):
        if same.any():
            intra = max(intra, float(distance[same].max()))
        if not same.all():
            inter = min(inter, float(distance[~same].min()))
    return Separation(intra, inter)


def pair_distances(
    X: npt.ArrayLike, labels: npt.ArrayLike, *, metric: Metric = "euclidean", block: int = 1024
) -> tuple[FloatArray, FloatArray]:
    """All distances inside clusters and all distances between clusters, each unordered pair once; n²/2 numbers, so
    for small n."""
    same_pairs, other_pairs, start = [], [], 0
    for distance, same in _blocks(X, labels, metric, block):
        upper = np.arange(distance.shape[1])[None, :] > np.arange(start, start + len(distance))[:, None]
        same_pairs.append(distance[upper & same])
        other_pairs.append(distance[upper & ~same])
        start += len(distance)
    return np.concatenate(same_pairs), np.concatenate(other_pairs)


def sample_pair_distances(
    X: npt.ArrayLike, labels: npt.ArrayLike, pairs: int, *, metric: Metric = "cosine", seed: int = 0
) -> tuple[FloatArray, FloatArray]:
    """`pairs` distances inside clusters and `pairs` between clusters, for graphs of any size.

    A node is drawn uniformly (for inside pairs among the nodes that have company), then its partner uniformly among
    the other nodes of its cluster, or among the nodes of other clusters.
    """
    gates.choice("metric", metric, get_args(Metric))
    pairs, seed = gates.whole("pairs", pairs, "[1, 100000000]"), gates.whole("seed", seed, "[0, inf)")
    X = _matrix(X)
    codes, sizes = as_labels(labels, len(X))
    if len(sizes) < 2 or sizes.max() < 2:
        raise DataError(
            "labels",
            "clusters",
            f"{len(sizes)} clusters, the largest of {sizes.max()}",
            "both kinds of pair must exist",
        )
    rng = np.random.default_rng(seed)
    order = np.argsort(codes, kind="stable")  # nodes grouped by cluster
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    rank = np.empty(len(X), dtype=np.int64)
    rank[order] = np.arange(len(X))

    a = rng.choice(np.flatnonzero(sizes[codes] > 1), pairs)
    own = codes[a]
    step = rng.integers(1, sizes[own])  # 1 .. |C|-1 places further inside the cluster, cyclically
    partner = order[first[own] + (rank[a] - first[own] + step) % sizes[own]]
    c = rng.integers(0, len(X), pairs)
    own = codes[c]
    skip = rng.integers(0, len(X) - sizes[own])  # the same trick on the complement of the cluster
    other = order[(first[own] + sizes[own] + skip) % len(X)]
    return _row_distance(X[a], X[partner], metric), _row_distance(X[c], X[other], metric)


@dataclass(frozen=True)
class Cut:
    """The best horizontal cut: every merge of height at most `threshold` is kept."""

    threshold: float
    rand_index: float
    """adjusted Rand index of the cut against the labels"""
    perfect: bool
    """whether the cut is exactly the given partition"""


def best_cut(Z: npt.ArrayLike, labels: npt.ArrayLike) -> Cut:
    """The cut of a SciPy linkage matrix (n−1, 4) that agrees best with `labels`, over all distinct merge heights, in
    O(n log n).

    The threshold lies halfway between the heights it separates (half the first height for no merge, the last for all).
    """
    Z = _tree(Z)
    codes, sizes = as_labels(labels, len(Z) + 1)
    n, truth_pairs = len(codes), _pairs(sizes)
    counts: list[dict[int, int]] = [{int(code): 1} for code in codes]
    made = together = 0.0
    best = (_adjusted_rand(0.0, 0.0, truth_pairs, n), 0)
    for step, (left, right) in enumerate(Z[:, :2].astype(np.int64)):
        small, large = sorted((counts[left], counts[right]), key=len)
        made += float(sum(small.values())) * float(sum(large.values()))
        for code, number in small.items():
            together += float(number) * large.get(code, 0)
            large[code] = large.get(code, 0) + number
        counts.append(large)
        if step + 1 == len(Z) or Z[step + 1, 2] > Z[step, 2]:
            best = max(best, (_adjusted_rand(together, made, truth_pairs, n), step + 1), key=lambda entry: entry[0])
    score, merges = best
    heights = np.concatenate([[0.0], Z[:, 2], [np.inf]])
    below, above = float(heights[merges]), float(heights[merges + 1])
    middle = (below + above) / 2 if np.isfinite(above) else below
    # Two heights that differ by rounding have no number between them: then the lower one is the cut.
    return Cut(middle if middle < above else below, score, bool(score == 1.0))


def _adjusted_rand(together: float, made: float, truth: float, n: int) -> float:
    """Adjusted Rand index from counts of pairs: in both partitions, in the cut, in the truth. 1 only for equal
    partitions."""
    if together == made == truth:
        return 1.0
    expected = made * truth / (n * (n - 1) / 2)
    return float((together - expected) / ((made + truth) / 2 - expected))


def _pairs(sizes: IntArray) -> float:
    return float((sizes * (sizes - 1) // 2).sum())


def _tree(Z: npt.ArrayLike) -> FloatArray:
    """Z as a linkage matrix whose merges join, once each, what exists, at heights that never fall."""
    given = gates.array("Z", Z, 2).astype(np.float64)
    merges = len(given)
    if given.shape[1:] != (4,):
        raise DataError("Z", "shape", f"got {given.shape}", "pass a SciPy linkage matrix of shape (n − 1, 4)")
    joined, height = given[:, :2], given[:, 2]
    made = merges + 1 + np.arange(merges)[:, None]  # what exists before each merge has a smaller number
    if (joined < 0).any() or (joined >= made).any() or len(np.unique(joined.astype(np.int64))) < 2 * merges:
        raise DataError("Z", "merges", "join what does not exist, or twice", "pass a SciPy linkage matrix")
    if merges and (height[0] < 0 or (np.diff(height) < 0).any()):
        raise DataError("Z", "heights", "fall", "pass a linkage without inversions (single, average, complete)")
    return given


def _matrix(X: npt.ArrayLike) -> npt.NDArray[np.floating]:
    X = gates.array("embeddings", X, 2)
    if not X.size:
        raise DataError("embeddings", "shape", f"got {X.shape}", "pass one row per node")
    return X if np.issubdtype(X.dtype, np.floating) else X.astype(np.float64)


def _blocks(
    X: npt.ArrayLike, labels: npt.ArrayLike, metric: Metric, block: int
) -> Iterator[tuple[FloatArray, npt.NDArray[np.bool_]]]:
    """Blocks of rows of the distance matrix and of the same-cluster matrix, the diagonal counted as distance 0."""
    gates.choice("metric", metric, get_args(Metric))
    block = gates.whole("block", block, "[1, inf)")
    X = _matrix(X).astype(np.float64)
    codes, _ = as_labels(labels, len(X))
    zero = np.flatnonzero(~X.any(axis=1)) if metric == "cosine" else np.empty(0, dtype=np.int64)
    for start in range(0, len(X), block):
        rows = np.arange(start, min(start + block, len(X)))
        distance = cdist(X[rows], X, metric)
        if len(zero):
            distance[:, zero] = 1.0
            distance[np.isin(rows, zero)] = 1.0
        distance[rows - start, rows] = 0.0
        yield distance, codes[rows, None] == codes[None, :]


def _row_distance(X: npt.NDArray[np.floating], Y: npt.NDArray[np.floating], metric: Metric) -> FloatArray:
    X, Y = X.astype(np.float64), Y.astype(np.float64)
    if metric == "euclidean":
        return np.asarray(np.linalg.norm(X - Y, axis=1))
    norms = np.linalg.norm(X, axis=1) * np.linalg.norm(Y, axis=1)
    return np.asarray(1 - (X * Y).sum(axis=1) / np.where(norms > 0, norms, 1.0))
