"""The steps of one round of merging, compiled. See `_stages` for the whole."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from meanlink._compile import compiled
from meanlink._neighbours import TIE, Lists, Table, cluster_distance, insert
from meanlink._types import Bool, Float64, Int32, Int64


class Clusters(NamedTuple):
    """The clusters of a run. They live in slots 0..n-1; a merge keeps the slot of the larger part."""

    sums: Float64  # a `Table` written out: numba's parallel loops take no tuple inside a tuple
    size: Float64
    forward: Int32  # slot -> slot that swallowed it
    stamp: Int32  # round in which a slot last changed
    seen: Int32  # round in which a slot's list was last measured
    partner: Int32  # what a slot swallowed last


class Found(NamedTuple):
    """Neighbours gathered from one or two lists."""

    ids: Int32
    distances: Float64


@compiled()
def _knows(i: int, lists: Lists) -> bool:
    """Whether the first entry of a list is the nearest neighbour."""
    return lists.filled[i] > 0 and lists.distances[i, 0] <= lists.bound[i] + TIE


@compiled()
def reciprocal_pairs(fresh: Int32, lists: Lists) -> Int64:
    """Disjoint pairs (P, 2) of mutual nearest neighbours that know each other; one of each pair is in `fresh`, the
    slots that looked again.

    With ties, nearest-neighbour pointers can run in a circle. A pair therefore also counts when the neighbour's own
    nearest distance is no smaller: the closest pair of all always qualifies, and every round makes progress.
    """
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
        if ids[j, 0] == i or distances[i, 0] <= distances[j, 0] + TIE:
            taken[i] = True
            taken[j] = True
            pairs[found, 0] = i
            pairs[found, 1] = j
            found += 1
    return pairs[:found]


@compiled()
def _unite(a: int, b: int, turn: int, c: Clusters) -> None:
    """Cluster a swallows cluster b."""
    c.size[a] += c.size[b]
    c.forward[b] = a
    c.partner[a] = b
    c.stamp[a] = turn
    for k in range(c.sums.shape[1]):
        c.sums[a, k] += c.sums[b, k]


@compiled()
def join(pairs: Int64, turn: int, c: Clusters, lists: Lists) -> Float64:
    """Merge the pairs; column 0 becomes the slot that lives on, that of the larger part. Returns heights.

    What is no nearer than some distance to both parts is no nearer than their size-weighted mean to the union.
    """
    heights = np.empty(len(pairs))
    for p in range(len(pairs)):
        a, b = pairs[p]
        heights[p] = lists.distances[a, 0]
        if c.size[b] > c.size[a]:
            a, b = b, a
            pairs[p, 0] = a
            pairs[p, 1] = b
        if np.isinf(lists.bound[a]) or np.isinf(lists.bound[b]):
            lists.bound[a] = np.inf
        else:
            weighted = c.size[a] * lists.bound[a] + c.size[b] * lists.bound[b]
            lists.bound[a] = weighted / (c.size[a] + c.size[b])
        _unite(a, b, turn, c)
    return heights


@compiled()
def replay(pairs: Int64, turns: Int32, c: Clusters) -> None:
    """Make recorded merges again."""
    for p in range(len(pairs)):
        _unite(pairs[p, 0], pairs[p, 1], turns[p], c)


@compiled()
def survivors(active: Int32, forward: Int32) -> Int32:
    """The slots that still hold a cluster, in order."""
    kept = np.empty(len(active), dtype=np.int32)
    n = 0
    for slot in active:
        if forward[slot] == slot:
            kept[n] = slot
            n += 1
    return kept[:n]


@compiled()
def affected(active: Int32, turn: int, c: Clusters, lists: Lists) -> Int32:
    """Slots that must look again: those merged this turn, and those whose nearest neighbour was."""
    again = np.empty(len(active), dtype=np.int32)
    n = 0
    for i in active:
        j = lists.ids[i, 0]
        if c.stamp[i] == turn or c.forward[j] != j or c.stamp[j] == turn:
            again[n] = i
            n += 1
    return again[:n]


@compiled()
def _gather(i: int, source: int, old: int, c: Clusters, lists: Lists, found: Found, n: int) -> int:
    """Append to `found`, from entry n on, what list `source` names today, measured from i; return the new length.

    old: turn of the last measurement whose distances still hold for unchanged clusters, or -1 if i itself has changed
    """
    table = Table(c.sums, c.size)
    for e in range(lists.filled[source]):
        j = lists.ids[source, e]
        while c.forward[j] != j:  # the larger part keeps its slot, so the walk is short
            j = c.forward[j]
        known = j == i
        for k in range(n):
            known = known or found.ids[k] == j
        if not known:
            found.ids[n] = j
            if old >= 0 and j == lists.ids[source, e] and c.stamp[j] <= old:
                found.distances[n] = lists.distances[source, e]
            else:
                found.distances[n] = cluster_distance(table, i, table, j)
            n += 1
    return n


@compiled()
def _renewed(i: int, turn: int, c: Clusters, lists: Lists) -> bool:
    """Bring one list up to date; whether it still tells the nearest neighbour."""
    length = lists.ids.shape[1]
    merged = c.stamp[i] == turn
    found = Found(np.empty(2 * length, dtype=np.int32), np.empty(2 * length))
    n = _gather(i, i, -1 if merged else c.seen[i], c, lists, found, 0)
    if merged:
        n = _gather(i, c.partner[i], -1, c, lists, found, n)
    lists.filled[i] = 0
    lists.distances[i, :] = np.inf
    dropped = np.inf
    for k in range(n):
        last = lists.distances[i, length - 1]
        insert(lists, i, found.ids[k], found.distances[k])
        if not np.isinf(last):
            dropped = min(dropped, max(last, found.distances[k]))
    lists.bound[i] = min(lists.bound[i], dropped)
    c.seen[i] = turn
    return _knows(i, lists)


@compiled(parallel=True)
def renew(again: Int32, turn: int, c: Clusters, lists: Lists) -> Bool:
    """Bring the lists of `again` up to date; returns which of them cannot tell the nearest neighbour.

    A merged cluster inherits the lists of both its parts; what fell out of the joint list lowers its bound.
    """
    unsure = np.zeros(len(again), dtype=np.bool_)
    for r in prange(len(again)):
        unsure[r] = not _renewed(again[r], turn, c, lists)
    return unsure
