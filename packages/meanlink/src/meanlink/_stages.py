"""Exact average linkage of many rows by rounds of reciprocal nearest neighbours, in stages of growing radius.

One round merges every pair of clusters that are each other's nearest neighbour. Average linkage is reducible, so the
one-at-a-time algorithm makes these merges too, in some order; sorting all merges by height gives its dendrogram. Only
clusters whose neighbour was merged look again, and most of them find the answer in their list (`_neighbours`).

A merge at height h concerns only clusters that have a neighbour within h, and nothing comes nearer by merging. So a
stage looks for neighbours within a small radius only, which leaves out most of the clusters (`_search`), merges all
there is below it, mostly without another search, and hands the clusters that are left to the next stage. The last stage
has no radius. Rows without structure have one stage.

Lists and merges do not depend on tiles, threads or interruptions: a run that goes on from a `State` ends with the bits
of one that was never stopped. Memory: one float64 and up to two float32 matrices (n, d), and lists of n short rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from meanlink import _rounds
from meanlink._neighbours import TIE, Lists, Table, empty_lists
from meanlink._rounds import Clusters
from meanlink._search import Search
from meanlink._types import Bool, Float64, Int32, Int64

REBUILD_BELOW = 0.7
"""Share of live clusters below which they are indexed again before a search."""

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
    merges: int = 0
    turn: int = 0
    radius: float = 0.0  # 0 before the first stage
    fresh: Int32 = field(default_factory=lambda: np.empty(0, dtype=np.int32))  # slots that looked again since then
    todo: Int32 = field(default_factory=lambda: np.empty(0, dtype=np.int32))  # slots that still have to

    @classmethod
    def new(cls, n: int) -> State:
        seen, turns = np.zeros(n, dtype=np.int32), np.zeros(n - 1, dtype=np.int32)
        return cls(empty_lists(n), seen, np.zeros((n - 1, 2), np.int64), np.zeros(n - 1), turns)


def agglomerate(
    table: Table,
    state: State,
    searched: Callable[[int], None],
    merged: Callable[[int], None],
    save: Callable[[State], None],
) -> tuple[Int64, Float64]:
    """Merge distinct unit rows (n, d), n >= 2, each standing for as many points as its size says; `table` is used up.

    All n-1 merges in the order made: slots (n-1, 2) and heights (n-1,). The run goes on from `state`, whose merges have
    not been made in `table` yet.
    searched: hears the rows of the first search; merged: hears the merges of each round, and often 0
    save: called between any two steps with the state, from which a run can go on
    """
    n = len(table.size)
    clusters = _replayed(table, state)
    active = _rounds.survivors(np.arange(n, dtype=np.int32), clusters.forward)
    index = Search(table, active)
    merged(state.merges)
    if state.turn == 0:
        searched(n - len(state.todo) if state.radius else 0)  # a run that goes on has searched some
    while state.merges < n - 1:
        if len(state.todo):
            index.rebuild(REBUILD_BELOW)
            _search(index, table, state, searched if state.turn == 0 else lambda _: merged(0), save)
        joined = _pairs(state.fresh, state)
        if not len(joined):
            joined = _pairs(active, state)
        if not len(joined):
            index.rebuild()
            state.radius = index.next_radius(state.radius)
            state.todo = active[_unknown(active, state.radius, state.lists)]
            state.todo = state.todo[index.order(state.todo)]
            state.seen[state.todo] = state.turn
            state.fresh = active
            save(state)
            continue
        _merge(joined, state, clusters)
        index.moved(joined)
        merged(len(joined))
        active = _rounds.survivors(active, clusters.forward)
        state.fresh = _rounds.affected(active, state.turn, clusters, state.lists)
        unsure = state.fresh[_rounds.renew(state.fresh, state.turn, clusters, state.lists)]
        state.todo = unsure[_unknown(unsure, state.radius, state.lists)] if len(active) > 1 else unsure[:0]
        save(state)
    return state.pairs, state.heights


def _search(
    index: Search, table: Table, state: State, heard: Callable[[int], None], save: Callable[[State], None]
) -> None:
    """Search for all of `todo`; rows that are done are taken out of it."""
    state.todo = state.todo[index.order(state.todo)]

    def done(rows: int) -> None:
        state.todo = state.todo[rows:]
        heard(rows)
        save(state)

    index.search(table, state.todo, state.todo, state.radius, state.lists, done)


def _merge(joined: Int64, state: State, clusters: Clusters) -> None:
    state.turn += 1
    done = slice(state.merges, state.merges + len(joined))
    state.heights[done] = _rounds.join(joined, state.turn, clusters, state.lists)
    state.pairs[done], state.turns[done] = joined, state.turn
    state.merges += len(joined)


def _pairs(fresh: Int32, state: State) -> Int64:
    return _rounds.reciprocal_pairs(fresh, state.lists) if state.radius else np.empty((0, 2), dtype=np.int64)


def _unknown(rows: Int32, radius: float, lists: Lists) -> Bool:
    """Which rows may have their nearest neighbour within the radius without knowing it."""
    nearest = np.where(lists.filled[rows] > 0, lists.distances[rows, 0], np.inf)
    bound = lists.bound[rows]
    never = (lists.filled[rows] == 0) & np.isinf(bound)  # no list yet
    return never | ((nearest > bound + TIE) & (bound < radius * ROUNDED))


def _replayed(table: Table, state: State) -> Clusters:
    """The clusters as they were when `state` was saved: the same sums to the bit."""
    n = len(table.size)
    slots, none = np.arange(n, dtype=np.int32), np.full(n, -1, dtype=np.int32)
    clusters = Clusters(*table, forward=slots, stamp=np.zeros(n, dtype=np.int32), seen=state.seen, partner=none)
    _rounds.replay(state.pairs[: state.merges], state.turns, clusters)
    return clusters
