"""The silhouette at every level of a dendrogram, or at some of them.

All levels are measured together, in one pass over the points: the distances of a block of points to the leaves of the
tree come from a matrix product, and a walk over the tree (`_level_scores`) gives their silhouettes on every level. If
only the best level is wanted, clusters of a level that is certainly below it are the leaves. Some levels of a large
tree are measured one by one, from the leaves up: the lists of nearest clusters that the lowest one needs serve the
levels above it, because a union is never nearer than the nearer of its parts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numba import prange

from meanlink import _validate
from meanlink._compile import compiled
from meanlink._dendrogram import Trees, ascending, flatten, layout
from meanlink._level_scores import EQUAL, add_scores, in_company, walk_of
from meanlink._neighbours import LENGTH, TIE, Lists, Table, cluster_distance
from meanlink._types import Float64, Int32, Int64, UnitRows
from meanlink.progress import nobody
from meanlink.silhouette import coefficients, inner, nearest

CELLS = 2**22
"""Distances made at a time: 32 MB."""

PROBED = 1024
"""Clusters up to which levels are measured first, to learn what the best level must exceed."""

PRUNED_FROM = 256
"""Points from which leaving out levels pays."""

LISTED_FROM = 512
"""Clusters from which a search costs more than keeping lists."""


@dataclass(frozen=True)
class Levels:
    """Levels of a dendrogram that leave 2 to n - 1 clusters, from the leaves up.

    Attributes
    ----------
    threshold : ndarray
        A cut between the last merge of the level and the next one.
    clusters : ndarray
        The number of clusters that the cut leaves.
    score : ndarray
        The mean silhouette of that partition; NaN where `best_only` proved that it is not the largest.
    """

    threshold: Float64
    clusters: Int64
    score: Float64

    @property
    def best(self) -> int:
        """Position of the largest score, the lowest level among equals."""
        return int(np.flatnonzero(self.score >= np.nanmax(self.score) - EQUAL)[0])


def silhouette_levels(X: Any, Z: Any, best_only: bool = False, clusters: Any = None) -> Levels:
    """Exact silhouettes of the flat partitions of a dendrogram, under cosine distance.

    Parameters
    ----------
    X : array_like, shape (n, d)
        Points, compared by direction.
    Z : array_like, shape (n - 1, 4)
        Linkage matrix of any linkage of these points.
    best_only : bool
        Leave out levels that certainly are not the best one.
    clusters : array_like of int, optional
        Measure only the levels that leave so many clusters, 2 to n - 1. Where merges of equal height make a number
        impossible, the level with the next larger number is taken, and where there is none, none. Meant for some
        levels of very large trees.

    Returns
    -------
    Levels

    Examples
    --------
    >>> from meanlink import linkage
    >>> X = [[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0]]
    >>> levels = silhouette_levels(X, linkage(X))
    >>> levels.clusters
    array([2])
    >>> levels.score.round(2)
    array([0.99])
    """
    n = len(_validate.points(X))
    tree = ascending(_validate.tree(Z, n))
    best_only = _validate.flag("best_only", best_only)
    if clusters is None:
        return levels_of(_validate.unit_rows(X), tree, best_only)
    wanted = np.atleast_1d(_validate.integers("clusters", clusters))
    if not ((wanted >= 2) & (wanted < n)).all():
        raise ValueError(f"clusters must be numbers from 2 to {n - 1} for {n} points.")
    last, threshold = _thresholds(tree)
    chosen = np.unique(np.searchsorted(last + 1 - n, -wanted, side="right") - 1)
    chosen = chosen[chosen >= 0]
    ladder = _Ladder(_validate.unit_rows(X), tree)
    score = np.array([ladder.score(int(last[level])) for level in chosen])
    return Levels(threshold[chosen], n - 1 - last[chosen], score)


def levels_of(rows: UnitRows, tree: Trees, best_only: bool, beat: Callable[[], None] = nobody) -> Levels:
    """`silhouette_levels` of one tree in ascending order; `beat` is called every second or so."""
    n = len(rows)
    last, threshold = _thresholds(tree)
    if not len(last):
        return Levels(threshold, last, np.empty(0))
    skipped = _certainly_worse(rows, tree, last) if best_only and n > PRUNED_FROM else 0
    left, right, leaf = _upper_tree(tree, skipped)
    size = np.bincount(leaf, minlength=n - skipped).astype(np.float64)
    order = np.argsort(leaf, kind="stable")
    begins = np.concatenate([[0], np.cumsum(size[:-1])]).astype(np.int64)
    centres = np.add.reduceat(rows[order], begins, axis=0) / size[:, None]
    walk, change = walk_of(size, left, right), np.zeros((numba.get_num_threads(), len(left)))
    height = max(64, CELLS // len(size))
    for start in range(0, n, height):
        distances = rows[start : start + height] @ centres.T
        np.subtract(1.0, distances, out=distances)
        np.maximum(distances, 0.0, out=distances)
        add_scores(distances, leaf[start : start + height], walk, change)
        beat()
    scores = np.cumsum(change.sum(axis=0)[::-1])[::-1] / n  # after the first `skipped`, `skipped` + 1, ... merges
    found = np.full(len(last), np.nan)
    found[last + 1 >= skipped] = scores[last[last + 1 >= skipped] + 1 - skipped]
    return Levels(threshold, n - 1 - last, found)


def _thresholds(tree: Trees) -> tuple[Int64, Float64]:
    """The last merge of every level, and a cut above it: merge m closes a level if the next one is higher."""
    heights = tree.height
    last = np.flatnonzero(heights[1:] > heights[:-1])
    middle = heights[last] + (heights[last + 1] - heights[last]) / 2
    return last, np.where(middle > heights[last], middle, heights[last + 1])


def _certainly_worse(rows: UnitRows, tree: Trees, last: Int64) -> int:
    """Merges after which the first level comes that may be the best: below, too many points are alone."""
    n = len(rows)
    probes = np.unique(np.searchsorted(last + 1 - n, -(2 ** np.arange(1, PROBED.bit_length())), side="right") - 1)
    ladder = _Ladder(rows, tree)
    bar = max((ladder.score(int(last[level])) for level in probes if level >= 0), default=-1.0)
    company = in_company(np.ones(n), tree.children[:, 0].copy(), tree.children[:, 1].copy())
    return int(np.searchsorted(company, bar - 1e-9))


def _upper_tree(tree: Trees, skipped: int) -> tuple[Int64, Int64, Int64]:
    """The tree over the clusters of the first `skipped` merges: both parts of merges, and the leaf of each point."""
    n = len(tree.height) + 1
    start, order = layout(tree)
    leaf = flatten(tree, np.arange(n - 1) < skipped)
    name = leaf[order[start]]  # the leaf that a node lies in; later merges have numbers of their own
    name[n + skipped :] = n - skipped + np.arange(n - 1 - skipped)
    children = name[tree.children[skipped:]]
    return children[:, 0].copy(), children[:, 1].copy(), leaf


class _Ladder:
    """Scores of single levels of one dendrogram. Points stand in drawing order, so that every cluster is a run."""

    def __init__(self, rows: UnitRows, tree: Trees) -> None:
        self.tree, (_, self.order) = tree, layout(tree)
        self.points = Table(rows[self.order], np.ones(len(rows)))
        self.known: Lists | None = None  # the nearest clusters of every point on some lower level

    def score(self, last: int) -> float:
        """Mean silhouette after the merges up to `last`; levels are asked for in ascending order to use lists."""
        n = len(self.order)
        made = flatten(self.tree, np.arange(n - 1) <= last)[self.order]
        begins = np.flatnonzero(np.concatenate([[True], made[1:] != made[:-1]]))
        size = np.diff(begins, append=n)
        own = np.repeat(np.arange(len(begins), dtype=np.int32), size)
        table = Table(np.add.reduceat(self.points.sums, begins, axis=0), size.astype(np.float64))
        b = self._nearest(own, begins, table)
        return float(coefficients(inner(self.points, own, table), b, table.size[own] < 2.0).mean())

    def _nearest(self, own: Int32, begins: Int64, table: Table) -> Float64:
        """b of every point: from its list where that tells, else by a search among the level's clusters."""
        every = np.arange(len(own), dtype=np.int32)
        if self.known is not None:
            b = _nearest_listed(self.points, own, table, self.known)
            unsure = np.flatnonzero((b > self.known.bound + TIE) | np.isinf(b)).astype(np.int32)
            if len(unsure) < len(own) // 2:
                b[unsure] = nearest(self.points, unsure, own, table, 1).distances[unsure, 0]
                return b
        lists = nearest(self.points, every, own, table, LENGTH if len(begins) >= LISTED_FROM else 1)
        if len(begins) >= LISTED_FROM:
            lists.ids[:] = begins[lists.ids]  # named by their first point, which stays theirs on every level
            self.known = lists
        return lists.distances[:, 0].copy()


@compiled()
def _listed(i: int, points: Table, own: Int32, table: Table, lists: Lists) -> float:
    near = np.inf
    for e in range(lists.filled[i]):
        j = own[lists.ids[i, e]]
        known = j == own[i]
        for k in range(e):
            known = known or own[lists.ids[i, k]] == j
        if not known:
            near = min(near, cluster_distance(points, i, table, j))
    return near


@compiled(parallel=True)
def _nearest_listed(points: Table, own: Int32, table: Table, lists: Lists) -> Float64:
    """Distance of every point to the nearest other cluster among those in its list of a level further down.

    It is the nearest of all if it is within the list's bound. Lists name clusters by their first points; `own` says
    which cluster a point is in today.
    """
    found = np.empty(len(own))
    for i in prange(len(own)):
        found[i] = _listed(i, points, own, table, lists)
    return found
