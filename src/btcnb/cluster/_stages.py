"""Exact average linkage of very many rows: reciprocal merging (`_reciprocal`) in stages of growing radius, in tiles.

A merge at height h concerns only clusters that have a neighbour within h, and for reducible distances nothing comes
nearer by merging. So a stage looks for neighbours within a small radius only, which leaves most of the tree of balls
out; merges all there is below it, mostly without another search, since its lists name *everything* within the radius;
and hands what is left, far fewer clusters, to the next stage. The last stage has no radius.

Lists and merges do not depend on tiles, threads or interruptions: a run that goes on from a `State` ends with the bits
of one that was never stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from btcnb.cluster import _rounds
from btcnb.cluster._compile import compiled
from btcnb.cluster._distance import AVERAGE, Table, union_bound
from btcnb.cluster._gate import Bool, Float64, Int32, Int64
from btcnb.cluster._ground import Ground
from btcnb.cluster._neighbours import Lists, empty_lists
from btcnb.cluster._rounds import Clusters

FEW = 2_000
"""Clusters below which a stage takes all that is left."""

NEAR = 4
"""The radius of a stage is what half of the clusters find this many neighbours in, about."""

WIDE = 0.3
"""A radius above which a stage takes all that is left: little would be left out."""

ROUNDED = 1.0 - 1e-12
"""Means of equal bounds, rounded."""


@dataclass
class State:
    """Where a run stands: enough to go on, given the rows it began with."""

    lists: Lists
    seen: Int32  # slot -> turn in which its list was last measured
    pairs: Int64  # (n-1, 2) merges made so far: the slot that lives on, the slot that is gone
    heights: Float64  # (n-1,)
    turns: Int32  # (n-1,) turn of each merge
    merges: int
    turn: int
    radius: float  # 0 before the first stage
    fresh: Int32  # slots that have looked again since the last merges
    todo: Int32  # slots that still have to

    @classmethod
    def new(cls, n: int) -> State:
        none = np.empty(0, dtype=np.int32)
        seen, turns = np.zeros(n, dtype=np.int32), np.zeros(n - 1, dtype=np.int32)
        return cls(empty_lists(n), seen, np.zeros((n - 1, 2), np.int64), np.zeros(n - 1), turns, 0, 0, 0.0, none, none)


def nobody_saves(state: State) -> None:
    """For runs that are not kept."""


def agglomerate_in_stages(
    table: Table,
    state: State,
    first: Callable[[int], None],
    report: Callable[[int], None],
    save: Callable[[State], None],
) -> tuple[Int64, Float64] | None:
    """As `agglomerate` for average linkage; goes on from `state`, whose merges have not been made in `table` yet.
    None, and nothing done, where the rows have too little structure for tiles to pay.

    first: hears the rows of the first stage's search; report: the merges of each round, and often nothing
    save: called between any two steps with the state, from which a run can go on
    """
    n = len(table.size)
    clusters = _replayed(table, state)
    active = _rounds.survivors(np.arange(n, dtype=np.int32), clusters.forward)
    ground = Ground(table, active)
    if not state.radius and ground.hopeless(_next_radius(ground, 0.0, n), state.lists):
        return None
    report(state.merges)
    if state.turn == 0:
        first(n - len(state.todo) if state.radius else 0)  # of a run that goes on, some are done
    while state.merges < n - 1:
        if len(state.todo):
            ground.lay_if_sparse(active)
            _look(ground, state, len(active) - 1, first if state.turn == 0 else lambda _: report(0), save)
        joined = _pairs(state.fresh, state)
        if not len(joined):
            joined = _pairs(active, state)
        if not len(joined):
            ground.lay(active)
            state.radius = _next_radius(ground, state.radius, len(active))
            state.todo = ground.in_order(active[_unknown(active, state.radius, state.lists)])
            state.seen[state.todo] = state.turn
            state.fresh = active
            save(state)
            continue
        _merge(joined, state, clusters)
        ground.move(joined)
        report(len(joined))
        active = _rounds.survivors(active, clusters.forward)
        state.fresh = _rounds.affected(active, state.turn, clusters, state.lists)
        unsure = state.fresh[_rounds.renew(state.fresh, state.turn, AVERAGE, clusters, state.lists)]
        state.todo = unsure[_unknown(unsure, state.radius, state.lists)] if len(active) > 1 else unsure[:0]
        save(state)
    return state.pairs, state.heights


def _look(
    ground: Ground, state: State, others: int, heard: Callable[[int], None], save: Callable[[State], None]
) -> None:
    """Search for all of `todo`; whatever is done is no longer in it."""
    state.todo = ground.in_order(state.todo)

    def done(rows: int) -> None:
        state.todo = state.todo[rows:]
        heard(rows)
        save(state)

    ground.search(state.todo, state.radius, others, state.lists, done)


def _merge(joined: Int64, state: State, clusters: Clusters) -> None:
    state.turn += 1
    done = slice(state.merges, state.merges + len(joined))
    state.heights[done] = join(joined, state.turn, clusters, state.lists)
    state.pairs[done], state.turns[done] = joined, state.turn
    state.merges += len(joined)


def _pairs(fresh: Int32, state: State) -> Int64:
    return known_pairs(fresh, state.lists) if state.radius else np.empty((0, 2), dtype=np.int64)


def _unknown(rows: Int32, radius: float, lists: Lists) -> Bool:
    """Whose nearest neighbour may lie within the radius without being known."""
    nearest = np.where(lists.filled[rows] > 0, lists.distances[rows, 0], np.inf)
    bound = lists.bound[rows]
    never = (lists.filled[rows] == 0) & np.isinf(bound)  # no list yet
    return never | ((nearest > bound + _rounds.tie(AVERAGE, 0.0)) & (bound < radius * ROUNDED))


def _next_radius(ground: Ground, radius: float, clusters: int) -> float:
    """A radius that is worth a stage, from what clusters find in their own tile: larger than the last, or infinite."""
    if clusters < FEW:
        return np.inf
    near = float(np.median(ground.own_tile(NEAR)))
    wanted = max(near, 2.0 * radius)
    return wanted if wanted < WIDE else np.inf


def _replayed(table: Table, state: State) -> Clusters:
    """The clusters as they were when `state` was: the same sums to the bit."""
    n = len(table.size)
    clusters = Clusters(
        *table,
        forward=np.arange(n, dtype=np.int32),
        stamp=np.zeros(n, dtype=np.int32),
        seen=state.seen,
        partner=np.full(n, -1, dtype=np.int32),
    )
    replay(state.pairs[: state.merges], state.turns, clusters)
    return clusters


@compiled()
def replay(pairs: Int64, turns: Int32, c: Clusters) -> None:
    """Make recorded merges again."""
    for p in range(len(pairs)):
        _unite(pairs[p, 0], pairs[p, 1], turns[p], c)


@compiled()
def _unite(a: int, b: int, turn: int, c: Clusters) -> None:
    c.size[a] += c.size[b]
    c.forward[b] = a
    c.partner[a] = b
    c.stamp[a] = turn
    for k in range(c.sums.shape[1]):
        c.sums[a, k] += c.sums[b, k]


@compiled()
def join(pairs: Int64, turn: int, c: Clusters, lists: Lists) -> Float64:
    """Merge the pairs; column 0 becomes the slot that lives on, that of the larger part. Returns heights."""
    heights = np.empty(len(pairs))
    for p in range(len(pairs)):
        a, b = pairs[p]
        heights[p] = lists.distances[a, 0]
        if c.size[b] > c.size[a]:
            a, b = b, a
            pairs[p, 0] = a
            pairs[p, 1] = b
        lists.bound[a] = union_bound(AVERAGE, lists.bound[a], lists.bound[b], c.size[a], c.size[b], heights[p])
        _unite(a, b, turn, c)
    return heights


@compiled()
def _knows(i: int, lists: Lists) -> bool:
    """Whether the first entry of a list is the nearest neighbour."""
    return lists.filled[i] > 0 and lists.distances[i, 0] <= lists.bound[i] + _rounds.tie(AVERAGE, lists.distances[i, 0])


@compiled()
def known_pairs(fresh: Int32, lists: Lists) -> Int64:
    """As `reciprocal_pairs`, among clusters that know their nearest neighbour."""
    ids, distances = lists.ids, lists.distances
    taken = np.zeros(len(ids), dtype=np.bool_)
    pairs = np.empty((len(fresh), 2), dtype=np.int64)
    found = 0
    for i in fresh:
        if taken[i] or not _knows(i, lists):
            continue
        j = ids[i, 0]
        if taken[j] or not _knows(j, lists):
            continue
        if ids[j, 0] == i or distances[i, 0] <= distances[j, 0] + _rounds.tie(AVERAGE, distances[i, 0]):
            taken[i] = True
            taken[j] = True
            pairs[found, 0] = i
            pairs[found, 1] = j
            found += 1
    return pairs[:found]
