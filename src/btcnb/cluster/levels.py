"""The silhouette at every level of a dendrogram, for little more than the price of one; the best one for less.

Walking up the merges, a point's a(i) changes only when its own cluster grows, and its b(i) only when the cluster it
has as nearest other one is merged. Mean distances to clusters are reducible, so the short lists of `_neighbours`
work for points as they do for clusters: most points whose nearest cluster was merged find the next one in their list.

Who wants only the best level need not walk. Towards the root, b(i) never falls (unions are no nearer than their parts,
and what joins the point's own cluster leaves the others), and a(i) never falls below min(a, b) of any earlier level
(what joins is at distance b or more). So two levels measured in full bound every level between them,

    s(i) <= 1 - min(a, b of the lower level) / (b of the upper level),

and most of the tree is ruled out by some twenty measurements; only what is left is walked through.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from btcnb import gates
from btcnb.cluster import _climb, _gate
from btcnb.cluster._climb import ROUNDING
from btcnb.cluster._distance import AVERAGE, Table
from btcnb.cluster._gate import Bool, Float64, Int64, Trees, UnitRows
from btcnb.cluster._neighbours import LENGTH, empty_lists
from btcnb.cluster._progress import nobody
from btcnb.cluster._search import Centres
from btcnb.cluster._search import search as search_lists
from btcnb.cluster._trees import ascending, flatten, layout
from btcnb.cluster.silhouette import coefficients, distances

EQUAL = 1e-12
"""Silhouettes closer than this are equal: rounding must not choose between levels."""

SLACK = 1e-9
"""How far a bound must lie below the best silhouette to rule a level out."""

WALK_FROM = 256
"""Points from which ruling levels out pays."""


@dataclass(frozen=True)
class Levels:
    """One entry per level of a dendrogram that leaves 2 to n-1 clusters, from the leaves up.

    threshold: cut between the level's last merge and the next one; clusters: how many the cut leaves;
    score: mean silhouette of that partition, or NaN where `best_only` proved that it cannot be the largest
    """

    threshold: Float64
    clusters: Int64
    score: Float64

    @property
    def best(self) -> int:
        """Position of the largest score, the lowest level among equals."""
        return int(np.flatnonzero(self.score >= np.nanmax(self.score) - EQUAL)[0])


def silhouette_levels(X: Any, Z: Any, best_only: bool = False) -> Levels:
    """Exact silhouettes of all flat partitions of a dendrogram Z (n-1, 4) over the rows of X (n, d), cosine distance.

    best_only: leave out levels that provably are not the best; the best level stays exact
    """
    tree = _gate.tree(Z, len(_gate.embedding(X)))
    return levels_of(_gate.unit_rows(X), ascending(tree), gates.flag("best_only", best_only))


def levels_of(rows: UnitRows, tree: Trees, best_only: bool, beat: Callable[[], None] = nobody) -> Levels:
    """`silhouette_levels` of one tree in ascending order; `beat` is called every second or so."""
    heights = tree.height
    last = np.flatnonzero(heights[1:] > heights[:-1])  # merge m closes a level if the next one is higher
    if not len(last):
        return Levels(np.empty(0), np.empty(0, dtype=np.int64), np.empty(0))
    middle = heights[last] + (heights[last + 1] - heights[last]) / 2
    threshold = np.where(middle > heights[last], middle, heights[last + 1])
    search = _Search(rows, tree, last, beat)
    if best_only and len(rows) > WALK_FROM:
        search.find_best()
    else:
        search.walk(0, len(last))
    return Levels(threshold, search.clusters, search.scores)


class Probe(NamedTuple):
    """One level measured in full."""

    level: int
    score: float
    low: Float64  # what a point's distance to its own cluster never falls below, from here to the root
    near: Float64  # its distance to the nearest other cluster, which never falls
    alone: Bool


def ceiling(lower: Probe, upper: Probe) -> float:
    """No level between the two has a larger silhouette."""
    low, near = np.where(lower.low < 10 * ROUNDING, 0.0, lower.low), upper.near
    larger = np.maximum(np.maximum(low, near), ROUNDING)
    most = (near - low) / larger
    most = np.where(lower.alone, np.maximum(most, 0.0), most)
    return float(np.where(upper.alone, 0.0, most).mean())


class _Search:
    """Scores of the levels of one dendrogram. Points stand in drawing order, so that every cluster is a run of rows."""

    def __init__(self, rows: UnitRows, tree: Trees, last: Int64, beat: Callable[[], None]) -> None:
        self.n, self.tree, self.last, self.beat = len(rows), tree, last, beat
        self.start, self.order = layout(tree)
        self.points = Table(rows[self.order], np.ones(self.n))
        self.paired_at = _climb.first_merge(tree, self.start)
        self.clusters = self.n - 1 - last
        self.scores = np.full(len(last), np.nan)

    @property
    def best(self) -> float:
        return float(np.nanmax(self.scores))

    def find_best(self) -> None:
        """Scores of all levels that may be the best; the others stay NaN."""
        paired = np.searchsorted(np.sort(self.paired_at), self.last, side="right") / self.n
        upper = self.probe(len(self.last) - 1)
        waiting: list[tuple[Probe, Probe]] = []
        walks: list[tuple[int, int]] = []
        hopeless = 0
        while True:  # down the tree, clusters doubling; a point alone scores 0, so near the leaves there is no best
            floor = int(np.searchsorted(paired, self.best - SLACK))
            if upper.level <= floor:
                break
            if hopeless == 2:
                walks.append((floor, upper.level))
                break
            double = int(np.searchsorted(-self.clusters, -2 * self.clusters[upper.level]))
            lower = self.probe(max(floor, min(double, upper.level - 1)))
            waiting.append((lower, upper))
            hopeless = 0 if self._promising(lower, upper) else hopeless + 1
            upper = lower
        while waiting:
            lower, upper = waiting.pop(0)
            if upper.level - lower.level < 2 or ceiling(lower, upper) < self.best - SLACK:
                continue
            if self._promising(lower, upper):
                middle = self.probe((lower.level + upper.level) // 2)
                waiting += [(lower, middle), (middle, upper)]
            else:
                walks.append((lower.level, upper.level))
        for first, stop in _joined(walks):
            self.walk(first, stop)

    def _promising(self, lower: Probe, upper: Probe) -> bool:
        """Whether measuring in between beats walking: a bound's excess over its ends halves with every halving."""
        between = upper.level - lower.level - 1
        excess = ceiling(lower, upper) - max(lower.score, upper.score)
        lead = self.best - max(lower.score, upper.score)
        beside_best = lead < 0.05 * excess
        wide = self.clusters[lower.level] > 1.2 * self.clusters[upper.level]
        return between <= 8 or (wide if beside_best else excess < 4 * lead)

    def probe(self, level: int) -> Probe:
        """Measure one level in full: one product of all points with the level's centres."""
        made = flatten(self.tree, np.arange(self.n - 1) <= self.last[level])[self.order]
        begins = np.flatnonzero(np.concatenate([[True], made[1:] != made[:-1]]))
        size = np.diff(begins, append=self.n).astype(np.float64)
        table = Table(np.add.reduceat(self.points.sums, begins, axis=0), size)
        own = np.repeat(np.arange(len(begins), dtype=np.int32), size.astype(np.int64))
        a, b = distances(self.points, own, table, self.beat)
        alone = size[own] < 2.0
        self.scores[level] = coefficients(a, b, alone).mean()
        return Probe(level, self.scores[level], np.where(alone, b, np.minimum(a, b)), b, alone)

    def walk(self, first: int, stop: int) -> None:
        """Scores of the levels first..stop-1, merge by merge."""
        n = self.n
        slots, none = np.arange(n, dtype=np.int32), np.full(n, -1, dtype=np.int32)
        w = _climb.Walk(
            tree=self.tree,
            start=self.start,
            points=self.points,
            table=Table(self.points.sums.copy(), np.ones(n)),
            own=slots.copy(),
            forward=slots.copy(),
            stamp=np.zeros(n, dtype=np.int32),
            seen=none.copy(),
            lists=empty_lists(n),
            watch=_climb.Watch(none.copy(), none.copy(), none.copy(), none.copy()),
            score=np.zeros(n),
        )
        done, end = int(self.last[first]), int(self.last[stop - 1]) + 1
        _climb.skip(done, w)
        active = np.flatnonzero(w.forward == slots).astype(np.int32)
        centres = Centres(w.table, active, AVERAGE)
        self._refresh(done, w, centres, len(active))
        totals = np.empty(n - 1)
        total, goal = _climb.score_all(w), done
        while done < end:
            if done == goal:
                goal = min(end, done + max(1, (n - done) // 2))
            patience = max(256, n // 8)
            offset = centres.offset(np.float32)
            done, total, stale = _climb.climb(done, goal, total, patience, w, centres.packed, offset, totals)
            self.beat()
            if stale and done < end:
                active = np.flatnonzero(w.forward == slots).astype(np.int32)
                centres.pack_if_sparse(active)
                self._refresh(done, w, centres, len(active))
        self.scores[first:stop] = totals[self.last[first:stop]] / n

    def _refresh(self, done: int, w: _climb.Walk, centres: Centres, clusters: int) -> None:
        """New lists for points that have a short one or none and will be in a cluster before the clusters have
        halved.
        """
        soon = self.paired_at < done + max(1, (self.n - done) // 2)
        short = (w.seen < 0) | (w.lists.filled < LENGTH // 2) & ~np.isinf(w.lists.bound)
        rows = np.flatnonzero(soon & short).astype(np.int32)
        if len(rows):
            search_lists(w.lists, rows, w.own[rows], self.points, centres, clusters - 1, self.beat)
            w.seen[rows] = done
            _climb.rewatch(rows, w)


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans in order, those that touch made one."""
    found: list[tuple[int, int]] = []
    for first, stop in sorted(spans):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(stop, found[-1][1]))
        else:
            found.append((first, stop))
    return found
