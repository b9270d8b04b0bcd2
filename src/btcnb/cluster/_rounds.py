"""The steps of one round of reciprocal merging, compiled. See `_reciprocal` for the story."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from btcnb.cluster._compile import compiled
from btcnb.cluster._distance import AVERAGE, Table, cluster_distance, union_bound
from btcnb.cluster._gate import Bool, Float64, Int32, Int64
from btcnb.cluster._neighbours import Lists, push
from btcnb.cluster._search import Packed


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
def tie(kind: int, distance: float) -> float:
    """How far two distances may differ by rounding alone: average linkage subtracts from 1, Ward's squares do not."""
    return 2e-15 if kind == AVERAGE else 1e-14 * distance


@compiled()
def find(forward: Int32, slot: int) -> int:
    """The live slot that holds what `slot` once held; the larger part keeps its slot, so the walk is short."""
    while forward[slot] != slot:
        slot = forward[slot]
    return slot


@compiled()
def reciprocal_pairs(fresh: Int32, kind: int, lists: Lists) -> Int64:
    """Disjoint pairs (P, 2) of mutual nearest neighbours; one of the two must be in `fresh`, the slots that looked
    again.

    With ties, nearest-neighbour pointers can run in a circle; a pair also counts when the neighbour's own nearest
    distance is no smaller, so the closest pair of all always qualifies and every round makes progress.
    """
    ids, distances = lists.ids, lists.distances
    taken = np.zeros(len(ids), dtype=np.bool_)
    pairs = np.empty((len(fresh), 2), dtype=np.int64)
    found = 0
    for i in fresh:
        j = ids[i, 0]
        if taken[i] or taken[j]:
            continue
        if ids[j, 0] == i or distances[i, 0] <= distances[j, 0] + tie(kind, distances[i, 0]):
            taken[i] = True
            taken[j] = True
            pairs[found, 0] = i
            pairs[found, 1] = j
            found += 1
    return pairs[:found]


@compiled()
def join(pairs: Int64, turn: int, kind: int, c: Clusters, packed: Packed, lists: Lists) -> Float64:
    """Merge the pairs: sums, sizes, centres, bounds. Column 0 of `pairs` becomes the slot that lives on. Returns
    heights.
    """
    heights = np.empty(len(pairs))
    sums, size = c.sums, c.size
    for p in range(len(pairs)):
        a, b = pairs[p]
        heights[p] = lists.distances[a, 0]
        if size[b] > size[a]:
            a, b = b, a
            pairs[p, 0] = a
            pairs[p, 1] = b
        lists.bound[a] = union_bound(kind, lists.bound[a], lists.bound[b], size[a], size[b], heights[p])
        size[a] += size[b]
        c.forward[b] = a
        c.partner[a] = b
        c.stamp[a] = turn
        at = packed.position[a]
        for k in range(sums.shape[1]):
            sums[a, k] += sums[b, k]
            packed.centres[at, k] = sums[a, k] / size[a]
        packed.cols[packed.position[b]] = -1
    return heights


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
def _gather(i: int, source: int, old: int, kind: int, c: Clusters, lists: Lists, found: Found, n: int) -> int:
    """Append to `found`, from entry n on, what list `source` names today, measured from i; return the new length.

    old: turn of the last measurement whose distances still hold for unchanged clusters, or -1 if i itself has changed.
    """
    table = Table(c.sums, c.size)
    for e in range(lists.filled[source]):
        j = find(c.forward, lists.ids[source, e])
        known = j == i
        for k in range(n):
            known = known or found.ids[k] == j
        if not known:
            found.ids[n] = j
            if old >= 0 and j == lists.ids[source, e] and c.stamp[j] <= old:
                found.distances[n] = lists.distances[source, e]
            else:
                found.distances[n] = cluster_distance(kind, table, i, table, j)
            n += 1
    return n


@compiled()
def _renewed(i: int, turn: int, kind: int, c: Clusters, lists: Lists) -> bool:
    """Bring one list up to date; whether it still tells the nearest neighbour."""
    length = lists.ids.shape[1]
    merged = c.stamp[i] == turn
    found = Found(np.empty(2 * length, dtype=np.int32), np.empty(2 * length))
    n = _gather(i, i, -1 if merged else c.seen[i], kind, c, lists, found, 0)
    if merged:
        n = _gather(i, c.partner[i], -1, kind, c, lists, found, n)
    lists.filled[i] = 0
    lists.distances[i, :] = np.inf
    dropped = np.inf
    for k in range(n):
        last = lists.distances[i, length - 1]
        push(lists, i, found.ids[k], found.distances[k])
        if not np.isinf(last):
            dropped = min(dropped, max(last, found.distances[k]))
    lists.bound[i] = min(lists.bound[i], dropped)
    c.seen[i] = turn
    nearest = lists.distances[i, 0]
    return lists.filled[i] > 0 and nearest <= lists.bound[i] + tie(kind, nearest)


@compiled(parallel=True)
def renew(again: Int32, turn: int, kind: int, c: Clusters, lists: Lists) -> Bool:
    """Bring the lists of `again` up to date; returns for which of them the list cannot tell the nearest neighbour.

    A merged cluster inherits the lists of both its parts; what fell out of the joint list lowers its bound.
    """
    unsure = np.zeros(len(again), dtype=np.bool_)
    for r in prange(len(again)):
        unsure[r] = not _renewed(again[r], turn, kind, c, lists)
    return unsure
