"""Where to cut a dendrogram: three rules, the threshold that clusters share, and the flat partition of a cut.

Everywhere, a cut at a threshold joins two points when the height of their lowest common ancestor is strictly below it;
a merge at the threshold or above is undone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from meanlink import _validate
from meanlink._compile import compiled
from meanlink._dendrogram import Trees, ascending, below, inconsistency, one_of
from meanlink._matrix import small_cuts
from meanlink._types import Float64, Int64, UnitRows
from meanlink.levels import levels_of
from meanlink.progress import nobody

N_MIN = 3
"""Default smallest cluster that takes part in the global threshold: two points have nothing to choose."""

SMALL = 160
"""Largest cluster whose tree is made and cut in one compiled loop over clusters, each with its own matrix."""

BATCH_ROWS = 2**15
"""Points of small clusters handled at a time: their float64 rows take 32 MB at 128 dimensions."""

CRITERIA: dict[str, Callable[[Trees, int], Float64]] = {
    "distance": lambda trees, depth: trees.height,
    "inconsistent": inconsistency,
}
"""What a threshold can be compared with: a value of every merge."""


class Work(NamedTuple):
    """What a rule may use: unit rows of any leaves, trees, the numbers of those to cut, and the settings."""

    rows: Callable[[Int64], UnitRows]
    trees: Trees
    which: Int64
    alpha: float = 1.0
    depth: int = 2
    report: Callable[[int], None] = nobody  # hears how many points are done


class Rule(NamedTuple):
    """criterion: what its thresholds are compared with; thresholds: one for each of the wanted trees."""

    criterion: str
    thresholds: Callable[[Work], Float64]


def cut(Z: Any, threshold: float) -> Int64:
    """Partition of the n leaves of a dendrogram at a height.

    Parameters
    ----------
    Z : array_like, shape (n - 1, 4)
        Linkage matrix.
    threshold : float
        Merges at this height or above are undone.

    Returns
    -------
    ndarray of int64, shape (n,)
        Labels 0..k-1 in order of first appearance.

    Examples
    --------
    >>> cut([[0, 1, 0.1, 2], [2, 3, 0.8, 3]], 0.5)
    array([0, 0, 1])
    """
    return flat(Z, threshold)


def flat(Z: Any, threshold: float, criterion: str = "distance", depth: int = 2) -> Int64:
    """Partition of the leaves under a threshold of either kind.

    Parameters
    ----------
    Z : array_like, shape (n - 1, 4)
        Linkage matrix.
    threshold : float
        A subtree stays whole if every merge in it has a value below the threshold.
    criterion : {"distance", "inconsistent"}
        The value of a merge: its height, or its inconsistency coefficient.
    depth : int
        Levels below a merge that its inconsistency coefficient looks at.

    Returns
    -------
    ndarray of int64, shape (n,)

    Examples
    --------
    >>> flat([[0, 1, 0.1, 2], [2, 3, 0.8, 3]], 0.5, "inconsistent")
    array([0, 0, 1])
    """
    values = CRITERIA[_validate.choice("criterion", criterion, CRITERIA)]
    threshold = _validate.number("threshold", threshold, infinite=True)
    tree, depth = _validate.tree(Z), _validate.whole("depth", depth, 1)
    return below(tree, values(tree, depth), threshold)


def cut_silhouette(X: Any, Z: Any) -> float:
    """Threshold whose partition has the largest silhouette, over every level of the dendrogram Z of the rows of X.

    The score of a level is exact (see `silhouette_levels`); the lowest of equally good levels wins. The threshold is
    the middle between the heights on either side. Where no level has 2 to n-1 clusters (two points, or all heights
    equal) the threshold is just above the root, and nothing is split.

    Parameters
    ----------
    X : array_like, shape (n, d)
        Points, compared by direction.
    Z : array_like, shape (n - 1, 4)
        Linkage matrix of any linkage of these points.

    Returns
    -------
    float

    Examples
    --------
    >>> from meanlink import linkage
    >>> X = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
    >>> cut_silhouette(X, linkage(X))
    0.5
    """
    tree = _validate.tree(Z, len(_validate.points(X)))
    return _best_level(_validate.unit_rows(X), ascending(tree))


def cut_gap(Z: Any) -> float:
    """Middle of the largest gap between consecutive merge heights; the lowest of equal gaps wins.

    A tree with fewer than two merges, or with all merges at one height, has no gap: the threshold is just above the
    root.

    Parameters
    ----------
    Z : array_like, shape (n - 1, 4)
        Linkage matrix.

    Returns
    -------
    float

    Examples
    --------
    >>> cut_gap([[0, 1, 0.25, 2], [2, 3, 0.75, 3]])
    0.5
    """
    return float(_gaps(_validate.tree(Z), np.zeros(1, dtype=np.int64))[0])


def cut_inconsistency(Z: Any, alpha: float = 1.0, depth: int = 2) -> float:
    """Adaptive threshold μ + ασ: mean and population deviation of the inconsistency coefficients of the merges.

    It has two readings: a threshold on coefficients, `flat(Z, threshold, "inconsistent")`, the rule "inconsistency" of
    `CUTS`; or on heights, `cut(Z, threshold)`, the rule "inconsistency-height".

    Parameters
    ----------
    Z : array_like, shape (n - 1, 4)
        Linkage matrix.
    alpha : float
        Deviations above the mean, more than 0.
    depth : int
        Levels of the tree that a coefficient takes into account.

    Returns
    -------
    float

    Examples
    --------
    >>> round(cut_inconsistency([[0, 1, 0.25, 2], [2, 3, 0.75, 3]]), 4)
    0.7071
    """
    alpha, depth = _validate.number("alpha", alpha, 0.0), _validate.whole("depth", depth, 1)
    tree = _validate.tree(Z)
    if not len(tree.height):
        return _above_root(tree.height)
    return float(_adaptive(Work(_no_rows, tree, np.zeros(1, dtype=np.int64), alpha, depth))[0])


def global_threshold(sizes: Any, thresholds: Any, n_min: int = N_MIN) -> float:
    """Mean of local thresholds weighted by cluster size, over clusters of at least `n_min` points.

    Parameters
    ----------
    sizes, thresholds : array_like, shape (k,)
        Points and threshold of each cluster.
    n_min : int
        Smallest cluster that counts.

    Returns
    -------
    float
        NaN if no cluster counts.

    Examples
    --------
    >>> global_threshold([10, 30, 2], [0.2, 0.4, 9.0])
    0.35
    """
    n_min = _validate.whole("n_min", n_min, 1)
    n, t = _validate.reals("sizes", sizes), _validate.reals("thresholds", thresholds, nan=True)
    if n.shape != t.shape:
        raise ValueError(f"There are {n.size} sizes and {t.size} thresholds; pass one of each per cluster.")
    large = n >= n_min
    if np.isnan(t[large]).any():
        raise ValueError("thresholds hold NaN for a cluster of at least n_min points.")
    return float((n[large] * t[large]).sum() / n[large].sum()) if large.any() else float("nan")


def batches(sizes: Int64) -> list[Int64]:
    """Positions of clusters in groups of some `BATCH_ROWS` points."""
    group = (np.cumsum(sizes) - 1) // BATCH_ROWS
    parts = np.split(np.arange(len(sizes)), np.flatnonzero(np.diff(group)) + 1)
    return [part for part in parts if len(part)]


def _above_root(heights: Float64) -> float:
    """Threshold that undoes nothing."""
    return float(np.nextafter(heights.max(initial=0.0), np.inf))


def _no_rows(leaves: Int64) -> UnitRows:
    raise ValueError("This rule does not use points.")


def _best_level(rows: UnitRows, tree: Trees, beat: Callable[[], None] = nobody) -> float:
    levels = levels_of(rows, tree, best_only=True, beat=beat)
    return float(levels.threshold[levels.best]) if len(levels.score) else _above_root(tree.height)


def _silhouettes(work: Work) -> Float64:
    trees = ascending(work.trees)
    sizes = np.diff(trees.offsets)[work.which]
    found = np.empty(len(sizes))
    small = np.flatnonzero(sizes <= SMALL)
    for part in batches(sizes[small]):
        chosen = small[part]
        which, begin = work.which[chosen], np.concatenate([[0], np.cumsum(sizes[chosen])])
        leaves = np.repeat(trees.offsets[which] - begin[:-1], sizes[chosen]) + np.arange(begin[-1])
        found[chosen] = small_cuts(work.rows(leaves), begin, which, trees)
        work.report(len(leaves))
    for at in np.flatnonzero(sizes > SMALL):
        tree = int(work.which[at])
        rows = work.rows(np.arange(trees.offsets[tree], trees.offsets[tree + 1]))
        found[at] = _best_level(rows, one_of(trees, tree), lambda: work.report(0))
        work.report(int(sizes[at]))
    return found


@compiled()
def _gaps(t: Trees, which: Int64) -> Float64:
    found = np.empty(len(which))
    for k in range(len(which)):
        tree = which[k]
        heights = np.sort(t.height[t.offsets[tree] - tree : t.offsets[tree + 1] - tree - 1])
        widest, at = 0.0, -1
        for m in range(len(heights) - 1):
            if heights[m + 1] - heights[m] > widest:
                widest, at = heights[m + 1] - heights[m], m
        top = max(heights[-1], 0.0) if len(heights) else 0.0
        found[k] = heights[at] + widest / 2 if at >= 0 else np.nextafter(top, np.inf)
    return found


def _adaptive(work: Work) -> Float64:
    coefficient, offsets = inconsistency(work.trees, work.depth), work.trees.offsets
    found = np.empty(len(work.which))
    for k, tree in enumerate(work.which):
        here = coefficient[offsets[tree] - tree : offsets[tree + 1] - tree - 1]
        found[k] = here.mean() + work.alpha * here.std()
    return found


CUTS = {
    "silhouette": Rule("distance", _silhouettes),
    "gap": Rule("distance", lambda work: _gaps(work.trees, work.which)),
    "inconsistency": Rule("inconsistent", _adaptive),
    "inconsistency-height": Rule("distance", _adaptive),
}
"""Every rule: what its thresholds are compared with, and how it finds them. A new rule is a new entry."""
