"""One dendrogram per cluster of a partition, kept in four flat arrays: a forest of a million leaves is four arrays,
not a million.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from btcnb.cluster._rows import Float64, Int64, compact_labels, unit_rows
from btcnb.cluster._small import METHOD_CODE, SMALL, small_cuts, small_trees
from btcnb.cluster.cuts import N_MIN, cut_silhouette, flatten, inconsistency, largest_below
from btcnb.cluster.linkage import linkage
from btcnb.errors import DataError, ParameterError

BATCH_ROWS = 2**15
"""Points of small clusters handled at a time: their float64 rows take 32 MB at 128 dimensions."""

CUTS = ("silhouette", "gap", "inconsistency")


@dataclass(frozen=True)
class Forest:
    """Dendrograms of the clusters of a partition of n points.

    clusters (k,): the partition's own labels; tree t has leaves members[offsets[t] : offsets[t+1]] (positions of
    points, ascending) and its linkage matrix is tree(t). A cluster of one point has a tree without merges.
    """

    clusters: Any
    members: Int64
    offsets: Int64
    merges: Float64

    def __len__(self) -> int:
        return len(self.clusters)

    @property
    def sizes(self) -> Int64:
        return np.diff(self.offsets)

    def leaves(self, t: int) -> Int64:
        return self.members[self.offsets[t] : self.offsets[t + 1]]

    def tree(self, t: int) -> Float64:
        """SciPy's linkage matrix (n_t - 1, 4); leaf i of it is point leaves(t)[i]."""
        return self.merges[self.offsets[t] - t : self.offsets[t + 1] - t - 1]

    def __iter__(self) -> Iterator[tuple[Any, Int64, Float64]]:
        """(cluster label, positions of its points, linkage matrix) of every tree."""
        for t in range(len(self)):
            yield self.clusters[t], self.leaves(t), self.tree(t)

    def tree_of_merge(self) -> Int64:
        """For every row of `merges` the tree it belongs to."""
        return np.repeat(np.arange(len(self)), self.sizes - 1)

    def labelled(self, labels: Any, mask: Any = None) -> Iterator[tuple[Float64, Any, Any]]:
        """(Z, labels, mask) of every tree with at least two leaves, as `forest_purity` takes them."""
        values = np.asarray(labels)
        for t in np.flatnonzero(self.sizes > 1):
            leaves = self.leaves(int(t))
            yield self.tree(int(t)), values[leaves], None if mask is None else np.asarray(mask)[leaves]


def dendrograms(
    X: Any,
    partition: Any,
    method: str = "average",
    *,
    memory_limit: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Forest:
    """A dendrogram inside each cluster of a partition (n,) of the rows of X (n, d); see `linkage` for methods and
    limits.

    progress: function of (points done, points in all), called after every large cluster
    """
    if method not in METHOD_CODE:
        raise ParameterError(f"method is {method!r}; choose one of {', '.join(METHOD_CODE)}.")
    rows = np.asarray(X)
    labels = compact_labels(partition, len(rows), "partition")
    members = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    clusters = np.asarray(partition)[members[offsets[:-1]]]
    forest = Forest(clusters, members, offsets, np.empty((len(rows) - len(sizes), 4)))
    done = 0
    for some, unit, begin in _batches(rows, forest, sizes <= SMALL):
        done += len(unit)
        small_trees(unit, begin, offsets[some] - some, METHOD_CODE[method], forest.merges)
    for t in np.flatnonzero(sizes > SMALL):
        Z = linkage(_unit_of(rows, forest.leaves(int(t))), method, memory_limit=memory_limit, progress=False)
        forest.tree(int(t))[:] = Z
        done += int(sizes[t])
        if progress is not None:
            progress(done, len(rows))
    return forest


def _batches(X: Any, forest: Forest, wanted: Any) -> Iterator[tuple[Int64, Float64, Int64]]:
    """The wanted trees in groups of some `BATCH_ROWS` points: tree numbers, their unit rows, where each begins."""
    trees = np.flatnonzero(wanted)
    ends = np.cumsum(forest.sizes[trees])
    group = (ends - 1) // BATCH_ROWS
    for chosen in np.split(trees, np.flatnonzero(np.diff(group)) + 1):
        sizes = forest.sizes[chosen]
        if len(chosen):
            points = np.concatenate([forest.leaves(int(t)) for t in chosen])
            yield chosen, _unit_of(X, points), np.concatenate([[0], np.cumsum(sizes)])


def _unit_of(X: Any, points: Int64) -> Float64:
    """Unit rows of some points; an error names the point's position in X."""
    try:
        return unit_rows(X[points])
    except DataError as error:
        row = int(error.field.removeprefix("row ")) if error.field.startswith("row ") else -1
        field = f"row {points[row]}" if row >= 0 else error.field
        raise DataError(error.source, field, error.problem, error.remedy) from None


def local_thresholds(
    X: Any, forest: Forest, cut: str = "silhouette", *, n_min: int = N_MIN, alpha: float = 1.0, depth: int = 2
) -> Float64:
    """Threshold t_k of every tree of the forest by one of the paper's rules, float64 (k,); NaN below `n_min` points."""
    if cut not in CUTS:
        raise ParameterError(f"cut is {cut!r}; choose one of {', '.join(CUTS)}.")
    if n_min < 2:
        raise ParameterError(f"n_min is {n_min}; a cluster that can be cut has at least 2 points.")
    thresholds = np.full(len(forest), np.nan)
    large = forest.sizes >= n_min
    if cut == "silhouette":
        rows = np.asarray(X)
        for some, unit, begin in _batches(rows, forest, large & (forest.sizes <= SMALL)):
            thresholds[some] = small_cuts(unit, begin, forest.offsets[some] - some, forest.merges)
        for t in np.flatnonzero(large & (forest.sizes > SMALL)):
            thresholds[t] = cut_silhouette(_unit_of(rows, forest.leaves(int(t))), forest.tree(int(t)))
    elif cut == "gap":
        _gaps(forest.offsets, forest.merges, np.flatnonzero(large), thresholds)
    else:
        values = merge_values(forest, "inconsistent", depth)
        for t in np.flatnonzero(large):
            here = values[forest.offsets[t] - t : forest.offsets[t + 1] - t - 1]
            thresholds[t] = here.mean() + alpha * here.std()
    return thresholds


def merge_values(forest: Forest, criterion: str, depth: int = 2) -> Float64:
    """What a threshold is compared with, for every merge: its height, or its inconsistency coefficient."""
    if criterion == "distance":
        return forest.merges[:, 2]
    values = np.empty(len(forest.merges))
    for t in np.flatnonzero(forest.sizes > 1):
        first = forest.offsets[t] - t
        values[first : first + forest.sizes[t] - 1] = inconsistency(forest.tree(int(t)), depth)
    return values


def cut_forest(forest: Forest, values: Float64, threshold: float) -> Int64:
    """Partition of all points: a merge is kept where its value and those below it are less than the threshold."""
    return np.asarray(_cut_all(forest.members, forest.offsets, forest.merges, values, threshold))


@njit(cache=True)
def _cut_all(members: Any, offsets: Any, merges: Any, values: Any, threshold: float) -> Any:
    labels = np.empty(len(members), dtype=np.int64)
    used = 0
    for t in range(len(offsets) - 1):
        first, n = offsets[t], offsets[t + 1] - offsets[t]
        Z = merges[first - t : first - t + n - 1]
        inside = flatten(Z, largest_below(Z, values[first - t : first - t + n - 1]) < threshold)
        for i in range(n):
            labels[members[first + i]] = used + inside[i]
        used += inside.max() + 1
    return labels


@njit(cache=True)
def _gaps(offsets: Any, merges: Any, which: Any, thresholds: Any) -> None:
    """`cut_gap` of many trees whose merges are sorted by height."""
    for t in which:
        first = offsets[t] - t
        heights = merges[first : offsets[t + 1] - t - 1, 2]
        widest, at = 0.0, -1
        for m in range(len(heights) - 1):
            if heights[m + 1] - heights[m] > widest:
                widest, at = heights[m + 1] - heights[m], m
        thresholds[t] = heights[at] + widest / 2 if at >= 0 else np.nextafter(heights[-1], np.inf)
