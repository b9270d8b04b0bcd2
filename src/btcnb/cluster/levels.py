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
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from btcnb import gates
from btcnb.cluster import _climb, _gate
from btcnb.cluster._climb import ROUNDING
from btcnb.cluster._distance import AVERAGE, Table
from btcnb.cluster._gate import Bool, Float64, Int32, Int64, Trees, UnitRows
from btcnb.cluster._near import search_near as search_lists
from btcnb.cluster._neighbours import LENGTH, Lists, empty_lists
from btcnb.cluster._progress import nobody
from btcnb.cluster._search import Centres
from btcnb.cluster._trees import ascending, flatten, layout
from btcnb.cluster.silhouette import coefficients, inner, nearest

EQUAL = 1e-12
"""Silhouettes closer than this are equal: rounding must not choose between levels."""

SLACK = 1e-9
"""How far a bound must lie below the best silhouette to rule a level out."""

LISTED_FROM = 512
"""Clusters from which a full search costs more than keeping lists."""

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
    """One level measured, in full or (score and near from above, low from below) as far as need be."""

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
        self.listed: dict[int, Lists] = {}  # level -> every point's nearest other clusters there

    @property
    def best(self) -> float:
        return float(np.nanmax(self.scores))

    def find_best(self) -> None:
        """Scores of all levels that may be the best; the others stay NaN."""
        paired = np.searchsorted(np.sort(self.paired_at), self.last, side="right") / self.n
        measured = [self.probe(len(self.last) - 1)]
        while self.clusters[measured[-1].level] < LISTED_FROM and measured[-1].level > self._floor(paired):
            measured.append(self.probe(self._doubled(measured[-1].level, paired)))
        waiting = [(lower, upper) for upper, lower in pairwise(measured)]
        walks: list[tuple[int, int]] = []
        floor, top = self._floor(paired), measured[-1]
        if floor < top.level and any(self._promising(*pair) for pair in waiting[-2:]):
            steps = [top.level]
            while steps[-1] > floor:
                steps.append(self._doubled(steps[-1], paired))
            rising = [self.probe(level) for level in steps[:0:-1]]  # upwards: lists serve the levels above them
            waiting += pairwise([*rising, top])
        elif floor < top.level:
            walks.append((floor, top.level))
        while waiting:
            lower, upper = waiting.pop(0)
            if self._settled(lower, upper, paired):
                continue
            if not self._promising(lower, upper):
                walks.append((lower.level, upper.level))
                continue
            middle = self.estimate((lower.level + upper.level) // 2, upper)
            if middle is None or not (self._settled(lower, middle, paired) or self._settled(middle, upper, paired)):
                middle = self.probe((lower.level + upper.level) // 2)
            waiting += [(lower, middle), (middle, upper)]
        for first, stop in _joined(walks):
            self.walk(first, stop)

    @property
    def bar(self) -> float:
        """What a level must reach to be the best."""
        return self.best - SLACK

    def _settled(self, lower: Probe, upper: Probe, paired: Float64) -> bool:
        """Whether no level strictly between the two can be the best."""
        near = upper.level - lower.level < 2 or upper.level <= self._floor(paired)
        return near or ceiling(lower, upper) < self.bar

    def _floor(self, paired: Float64) -> int:
        """The lowest level that can be the best: a point alone scores 0, so near the leaves there is none."""
        return int(np.searchsorted(paired, self.bar))

    def _doubled(self, level: int, paired: Float64) -> int:
        """The level further down with about twice the clusters; the floor, if it is not much further."""
        clusters, floor = 2 * self.clusters[level], self._floor(paired)
        if self.clusters[floor] < 1.5 * clusters:
            return floor
        return min(int(np.searchsorted(-self.clusters, -clusters)), level - 1)

    def _promising(self, lower: Probe, upper: Probe) -> bool:
        """Whether measuring in between beats walking: a bound's excess over its ends halves with every halving."""
        between = upper.level - lower.level - 1
        excess = ceiling(lower, upper) - max(lower.score, upper.score)
        lead = self.best - max(lower.score, upper.score)
        beside_best = lead < 0.05 * excess
        wide = self.clusters[lower.level] > 1.2 * self.clusters[upper.level]
        return between <= 8 or (wide if beside_best else excess < 4 * lead)

    def probe(self, level: int) -> Probe:
        """Measure one level in full."""
        own, begins, table = self._clusters(level)
        a, alone = inner(self.points, own, table), table.size[own] < 2.0
        b = self._nearest(level, own, begins, table)
        self.scores[level] = coefficients(a, b, alone).mean()
        return Probe(level, self.scores[level], np.where(alone, b, np.minimum(a, b)), b, alone)

    def estimate(self, level: int, upper: Probe) -> Probe | None:
        """Measure one level as far as lists of a level below can tell; None if it may be the best.

        What is not listed lies beyond the bound, what is listed is no nearer than the nearest: b lies in between.
        """
        known = self._known(level)
        if known is None:
            return None
        own, _, table = self._clusters(level)
        a, alone = inner(self.points, own, table), table.size[own] < 2.0
        high = np.minimum(_climb.nearest_listed(self.points, own, table, known), upper.near)
        low = np.minimum(high, known.bound)
        score = float(coefficients(a, high, alone).mean())
        return Probe(level, score, np.where(alone, low, np.minimum(a, low)), high, alone) if score < self.bar else None

    def _clusters(self, level: int) -> tuple[Int32, Int64, Table]:
        """Cluster of every point, first point of every cluster, and the clusters' sums and sizes."""
        made = flatten(self.tree, np.arange(self.n - 1) <= self.last[level])[self.order]
        begins = np.flatnonzero(np.concatenate([[True], made[1:] != made[:-1]]))
        size = np.diff(begins, append=self.n)
        own = np.repeat(np.arange(len(begins), dtype=np.int32), size)
        return own, begins, Table(np.add.reduceat(self.points.sums, begins, axis=0), size.astype(np.float64))

    def _known(self, level: int) -> Lists | None:
        """The lists of the nearest level below that has some."""
        at = max((at for at in self.listed if at <= level), default=None)
        return None if at is None else self.listed[at]

    def _nearest(self, level: int, own: Int32, begins: Int64, table: Table) -> Float64:
        """b of every point: from its list where that tells, else by one product with the level's centres."""
        every = np.arange(self.n, dtype=np.int32)
        if len(begins) < LISTED_FROM:
            return nearest(self.points, every, own, table, 1, self.beat).distances[:, 0]
        known = self._known(level)
        if known is not None:
            b = _climb.nearest_listed(self.points, own, table, known)
            unsure = np.flatnonzero((b > known.bound + 2e-15) | np.isinf(b)).astype(np.int32)
            if len(unsure) < self.n // 2:
                b[unsure] = nearest(self.points, unsure, own, table, 1, self.beat).distances[unsure, 0]
                return b
        lists = nearest(self.points, every, own, table, LENGTH, self.beat)
        lists.ids[:] = begins[lists.ids]  # named by their first point, which is theirs on every level
        self.listed[level] = lists
        return lists.distances[:, 0].copy()

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
