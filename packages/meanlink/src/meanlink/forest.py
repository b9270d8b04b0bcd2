"""One dendrogram per cluster of a partition, kept in four flat arrays: a forest of a million leaves is four arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanlink import _validate
from meanlink._dendrogram import Trees, below, first_leaf, layout
from meanlink._matrix import small_trees
from meanlink._types import Array, Float64, Int64, UnitRows
from meanlink.cuts import CRITERIA, CUTS, N_MIN, SMALL, Work, batches
from meanlink.linkage import LINKAGES, tree_of_rows
from meanlink.progress import Progress, Reporter

__all__ = [
    "Forest", "Trees", "cut_forest", "dendrograms", "first_leaf", "grouped", "layout", "local_thresholds",
    "merge_values",
]  # fmt: skip


@dataclass(frozen=True)
class Forest:
    """Dendrograms of the clusters of a partition of n points.

    Tree t has the leaves members[offsets[t] : offsets[t+1]] (positions of points, ascending) and the linkage matrix
    tree(t). A cluster of one point has a tree without merges.

    Attributes
    ----------
    clusters : ndarray, shape (k,)
        The labels of the partition.
    members : ndarray of int64, shape (n,)
    offsets : ndarray of int64, shape (k + 1,)
    merges : ndarray, shape (n - k, 4)
        The linkage matrices, one below the other.
    """

    clusters: Any
    members: Int64
    offsets: Int64
    merges: Float64

    def __len__(self) -> int:
        return len(self.clusters)

    @property
    def sizes(self) -> Int64:
        """Points of each tree, (k,)."""
        return np.diff(self.offsets)

    def leaves(self, t: int) -> Int64:
        """Positions of the points of tree t."""
        return self.members[self.offsets[t] : self.offsets[t + 1]]

    def tree(self, t: int) -> Float64:
        """Linkage matrix (n_t - 1, 4); its leaf i is the point leaves(t)[i]."""
        return self.merges[self.offsets[t] - t : self.offsets[t + 1] - t - 1]

    def __iter__(self) -> Iterator[tuple[Any, Int64, Float64]]:
        """(cluster label, positions of its points, linkage matrix) of every tree."""
        for t in range(len(self)):
            yield self.clusters[t], self.leaves(t), self.tree(t)

    def trees(self) -> Trees:
        """All trees in one numbering; raises ValueError if the arrays do not fit each other."""
        members, offsets = (_validate.integers("forest", part) for part in (self.members, self.offsets))
        merges, clusters = _validate.array("forest", self.merges), _validate.array("forest", self.clusters)
        sizes = np.diff(offsets) if offsets.ndim == 1 and len(offsets) else np.zeros(1, dtype=np.int64)
        n = int(sizes.sum())
        fits = (sizes >= 1).all() and offsets[0] == 0 and clusters.shape == sizes.shape and members.shape == (n,)
        if not fits or merges.shape != (n - len(sizes), 4) or not np.array_equal(np.sort(members), np.arange(n)):
            raise ValueError("The arrays of the forest do not fit each other; pass the result of dendrograms.")
        return _validate.trees(merges, offsets, "forest")


def grouped(partition: Any, n: int) -> tuple[Array, Int64, Int64]:
    """The clusters of a partition (n,): their labels (k,), their points one after the other (n,), offsets (k + 1,)."""
    labels = _validate.classes("partition", partition, n)
    members = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels, minlength=1)[:n]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return _validate.array("partition", partition)[members[offsets[:-1]]], members, offsets


def dendrograms(X: Any, partition: Any, method: str = "average", *, progress: Progress = None) -> Forest:
    """A dendrogram inside each cluster of a partition.

    Parameters
    ----------
    X : array_like, shape (n, d)
        Points, compared by direction.
    partition : array_like, shape (n,)
        One label per point, number or text.
    method : {"average", "ward", "complete", "single"}
        See `linkage`.
    progress : bool, callable or None
        As in `linkage`, in points.

    Returns
    -------
    Forest

    Examples
    --------
    >>> forest = dendrograms([[1.0, 0.0], [0.0, 1.0], [3.0, 4.0]], ["a", "a", "b"])
    >>> [(str(label), leaves.tolist(), tree[:, 2].tolist()) for label, leaves, tree in forest]
    [('a', [0, 1], [1.0]), ('b', [2], [])]
    """
    code = LINKAGES[_validate.choice("method", method, LINKAGES)]
    rows = _validate.points(X)
    clusters, members, offsets = grouped(partition, len(rows))
    forest = Forest(clusters, members, offsets, np.empty((len(rows) - len(clusters), 4)))
    sizes = forest.sizes
    with Reporter(progress, len(rows), "linkage") as reporter:
        small = np.flatnonzero(sizes <= SMALL)
        for part in batches(sizes[small]):
            some = small[part]
            points = np.concatenate([forest.leaves(int(t)) for t in some])
            begin = np.concatenate([[0], np.cumsum(sizes[some])])
            small_trees(_validate.unit_rows(rows[points], points), begin, offsets[some] - some, code, forest.merges)
            reporter.add(len(points))
        for t in np.flatnonzero(sizes > SMALL):
            points = forest.leaves(int(t))
            unit = _validate.unit_rows(rows[points], points)
            forest.tree(int(t))[:] = tree_of_rows(unit, method, lambda *_: reporter.add())
            reporter.add(len(points))
    return forest


def local_thresholds(
    X: Any,
    forest: Forest,
    cut: str = "silhouette",
    *,
    n_min: int = N_MIN,
    alpha: float = 1.0,
    depth: int = 2,
    progress: Progress = None,
) -> Float64:
    """Threshold of every tree of a forest by one of the rules in `CUTS`.

    Parameters
    ----------
    X : array_like, shape (n, d), or None
        The points that the forest was made of; only "silhouette" needs them.
    forest : Forest
    cut : {"silhouette", "gap", "inconsistency", "inconsistency-height"}
    n_min : int
        Trees with fewer points have no threshold.
    alpha, depth : float, int
        See `cut_inconsistency`.
    progress : bool, callable or None
        As in `dendrograms`.

    Returns
    -------
    ndarray, shape (k,)
        NaN for trees of fewer than `n_min` points.

    Examples
    --------
    >>> X = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [3.0, 4.0]]
    >>> local_thresholds(X, dendrograms(X, ["a", "a", "a", "b"]))
    array([0.5, nan])
    """
    rule = CUTS[_validate.choice("cut", cut, CUTS)]
    n_min, depth = _validate.whole("n_min", n_min, 2), _validate.whole("depth", depth, 1)
    alpha = _validate.number("alpha", alpha, 0.0)
    trees = checked(forest)
    rows = np.empty((len(forest.members), 0)) if X is None and cut != "silhouette" else _validate.points(X)
    if len(rows) != len(forest.members):
        raise ValueError(f"X has {len(rows)} rows for a forest of {len(forest.members)} points.")
    which = np.flatnonzero(forest.sizes >= n_min)
    found = np.full(len(forest), np.nan)
    with Reporter(progress, int(forest.sizes[which].sum()), "cut") as reporter:

        def unit(leaves: Int64) -> UnitRows:
            points = forest.members[leaves]
            return _validate.unit_rows(rows[points], points)

        found[which] = rule.thresholds(Work(unit, trees, which, alpha, depth, reporter.add))
        reporter.add(reporter.total - reporter.done)  # a rule that is done at once reports nothing on its way
    return found


def merge_values(forest: Forest, criterion: str, depth: int = 2) -> Float64:
    """What a threshold is compared with, for every merge (n - k,): its height ("distance") or its inconsistency
    coefficient ("inconsistent"); see `flat`.
    """
    values = CRITERIA[_validate.choice("criterion", criterion, CRITERIA)]
    return values(checked(forest), _validate.whole("depth", depth, 1))


def cut_forest(forest: Forest, values: Any, threshold: float) -> Int64:
    """Partition of all points: a merge is kept where its value and those below it are less than the threshold.

    Parameters
    ----------
    forest : Forest
    values : array_like, shape (n - k,)
        A value of every merge, see `merge_values`.
    threshold : float

    Returns
    -------
    ndarray of int64, shape (n,)

    Examples
    --------
    >>> forest = dendrograms([[1.0, 0.0], [0.0, 1.0], [3.0, 4.0]], ["a", "a", "b"])
    >>> cut_forest(forest, merge_values(forest, "distance"), 0.5)
    array([0, 1, 2])
    """
    trees = checked(forest)
    threshold = _validate.number("threshold", threshold, infinite=True)
    labels = np.empty(len(forest.members), dtype=np.int64)
    labels[forest.members] = below(trees, _validate.reals("values", values, len(trees.height)), threshold)
    return labels


def checked(forest: Any) -> Trees:
    if not isinstance(forest, Forest):
        raise TypeError(f"forest must be a Forest, not a {type(forest).__name__}.")
    return forest.trees()
