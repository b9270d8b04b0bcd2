"""The silhouette at every level of a dendrogram, for little more than the price of one.

Walking up the merges, a point's a(i) changes only when its own cluster grows, and its b(i) only when the cluster it
has as nearest other one is merged. Mean distances to clusters are reducible, so the short lists of `_neighbours`
work for points as they do for clusters: most points whose nearest cluster was merged find the next one in their list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from btcnb.cluster import _climb
from btcnb.cluster._distance import AVERAGE
from btcnb.cluster._neighbours import LENGTH, Lists
from btcnb.cluster._rows import Float64, Int64, check_tree, unit_rows
from btcnb.cluster._search import Centres, search
from btcnb.cluster.silhouette import silhouette_of
from btcnb.errors import DataError

PROBES = (0.06, 0.03, 0.015, 0.007, 0.003, 0.001)
"""Numbers of clusters, as shares of n, at which `best_only` looks first; each costs one product with few columns."""


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
        return int(np.nanargmax(self.score))


def silhouette_levels(X: Any, Z: Any, best_only: bool = False) -> Levels:
    """Exact silhouettes of all flat partitions of a dendrogram Z (n-1, 4) over the rows of X (n, d), cosine distance.

    best_only: skip levels where so many points are still alone (they score 0) that a level already seen must be better;
        the best level stays exact
    """
    rows, tree = unit_rows(X), check_tree(Z)
    n = len(tree) + 1
    if len(rows) != n:
        raise DataError("Z", "leaves", f"there are {n} for {len(rows)} points", "pass the dendrogram of these points")
    heights = tree[:, 2]
    last = np.flatnonzero(heights[1:] > heights[:-1])  # merge m closes a level if the next one is higher
    if not len(last):
        return Levels(np.empty(0), np.empty(0, dtype=np.int64), np.empty(0))
    middle = heights[last] + (heights[last + 1] - heights[last]) / 2
    threshold = np.where(middle > heights[last], middle, heights[last + 1])
    first = _first_worth_it(rows, tree, last) if best_only and n > 256 else 0
    scores = Climb(rows, tree).run(first, int(last[-1]) + 1)
    return Levels(threshold, n - 1 - last, scores[last])


def _first_worth_it(rows: Float64, tree: Float64, last: Int64) -> int:
    """First merge after which a level can beat the best of a few probed ones: Sil is at most the share of paired
    points.
    """
    n = len(rows)
    merges = [n - 1 - max(2, int(share * n)) for share in PROBES]
    wanted = np.unique(np.searchsorted(last, merges).clip(0, len(last) - 1))
    seen = max(silhouette_of(rows, _climb.labels_after(tree, int(last[at]) + 1)) for at in wanted)
    paired = np.cumsum((tree[:, 0] < n).astype(np.int64) + (tree[:, 1] < n)) / n
    worth = np.flatnonzero(paired[last] >= seen)
    return int(last[worth[0]]) if len(worth) else int(last[-1])


class Climb:
    """State of a walk up a dendrogram. Points stand in drawing order, so that every cluster is a run of rows."""

    def __init__(self, rows: Float64, tree: Float64) -> None:
        n = len(rows)
        self.n, self.tree = n, tree
        self.start, leaves = _climb.drawing_order(tree)
        self.rows = rows[leaves]
        self.sums, self.size = self.rows.copy(), np.ones(n)
        self.own = np.arange(n, dtype=np.int32)  # slot of a point's cluster: its first row
        self.forward = np.arange(n, dtype=np.int32)
        self.stamp = np.zeros(n, dtype=np.int32)  # merge after which a slot last changed
        self.seen = np.full(n, -1, dtype=np.int32)  # merge after which a point's list was measured; -1: no list
        self.paired_at = _climb.first_merge(tree, self.start)
        self.watch = _climb.Watch(
            np.full(n, -1, dtype=np.int32),
            np.full(n, -1, dtype=np.int32),
            np.full(n, -1, dtype=np.int32),
            np.full(n, -1, dtype=np.int32),
        )
        self.lists = Lists.empty(n)
        self.score = np.zeros(n)

    def run(self, first: int, stop: int) -> Float64:
        """Mean silhouette after each merge; merges before `first` are made without scoring and give NaN."""
        scores = np.full(len(self.tree), np.nan)
        done = _climb.skip(self.tree, self.start, first, self.sums, self.size, self.own, self.forward, self.stamp)
        active = np.flatnonzero(self.forward == np.arange(self.n)).astype(np.int32)
        centres = Centres(self.sums, self.size, active, AVERAGE)
        self._refresh(done, centres, active)
        total = _climb.score_all(self.rows, self.sums, self.size, self.own, self.lists.arrays(), self.watch, self.score)
        while done < stop:
            goal = min(stop, done + max(1, (self.n - done) // 2))
            done, total = _climb.climb(
                done,
                goal,
                total,
                max(256, self.n // 8),
                self.tree,
                self.start,
                self.rows,
                self.sums,
                self.size,
                self.own,
                self.forward,
                self.stamp,
                self.seen,
                self.watch,
                self.lists.arrays(),
                self.score,
                centres.cols,
                centres.position,
                centres.table,
                centres.offset(np.float32),
                scores,
            )
            if done < stop:
                active = np.flatnonzero(self.forward == np.arange(self.n)).astype(np.int32)
                centres.pack_if_sparse(active)
                self._refresh(done, centres, active)
        return scores / self.n

    def _refresh(self, done: int, centres: Centres, active: Any) -> None:
        """New lists for points that have a short one or none and will be in a cluster before the clusters have
        halved.
        """
        soon = self.paired_at < done + max(1, (self.n - done) // 2)
        short = (self.seen < 0) | (self.lists.count < LENGTH // 2) & ~np.isinf(self.lists.bound)
        rows = np.flatnonzero(soon & short).astype(np.int32)
        if len(rows):
            search(self.lists, rows, self.own[rows], self.rows, np.ones(self.n), centres, len(active) - 1)
            self.seen[rows] = done
            _climb.rewatch(rows, self.size, self.own, self.lists.ids, self.watch)
