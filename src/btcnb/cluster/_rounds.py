"""The steps of one round of reciprocal merging, compiled. See `_reciprocal` for the story."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange

from btcnb.cluster._distance import AVERAGE, cluster_distance, union_bound
from btcnb.cluster._neighbours import push


@njit(cache=True)
def tie(kind: int, distance: float) -> float:
    """How far two distances may differ by rounding alone: average linkage subtracts from 1, Ward's squares do not."""
    return 2e-15 if kind == AVERAGE else 1e-14 * distance


@njit(cache=True)
def find(forward: Any, slot: int) -> int:
    """The live slot that holds what `slot` once held; the larger part keeps its slot, so the walk is short."""
    while forward[slot] != slot:
        slot = forward[slot]
    return slot


@njit(cache=True)
def reciprocal_pairs(fresh: Any, kind: int, ids: Any, distances: Any, count: Any, bound: Any) -> Any:
    """Disjoint pairs (P, 2) of mutual nearest neighbours; one of the two must be in `fresh`, the slots that looked
    again.

    With ties, nearest-neighbour pointers can run in a circle; a pair also counts when the neighbour's own nearest
    distance is no smaller, so the closest pair of all always qualifies and every round makes progress.
    """
    taken = np.zeros(len(count), dtype=np.bool_)
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


@njit(cache=True)
def join(
    pairs: Any,
    turn: int,
    kind: int,
    sums: Any,
    size: Any,
    forward: Any,
    stamp: Any,
    partner: Any,
    position: Any,
    cols: Any,
    centres: Any,
    ids: Any,
    distances: Any,
    count: Any,
    bound: Any,
) -> Any:
    """Merge the pairs: sums, sizes, centres, bounds. Column 0 of `pairs` becomes the slot that lives on. Returns
    heights.
    """
    heights = np.empty(len(pairs))
    for p in range(len(pairs)):
        a, b = pairs[p]
        heights[p] = distances[a, 0]
        if size[b] > size[a]:
            a, b = b, a
            pairs[p, 0] = a
            pairs[p, 1] = b
        bound[a] = union_bound(kind, bound[a], bound[b], size[a], size[b], heights[p])
        size[a] += size[b]
        forward[b] = a
        partner[a] = b
        stamp[a] = turn
        at = position[a]
        for k in range(sums.shape[1]):
            sums[a, k] += sums[b, k]
            centres[at, k] = sums[a, k] / size[a]
        cols[position[b]] = -1
    return heights


@njit(cache=True)
def survivors(active: Any, forward: Any) -> Any:
    """The slots that still hold a cluster, in order."""
    kept = np.empty(len(active), dtype=np.int32)
    n = 0
    for slot in active:
        if forward[slot] == slot:
            kept[n] = slot
            n += 1
    return kept[:n]


@njit(cache=True)
def affected(active: Any, turn: int, forward: Any, stamp: Any, ids: Any) -> Any:
    """Slots that must look again: those merged this turn, and those whose nearest neighbour was."""
    again = np.empty(len(active), dtype=np.int32)
    n = 0
    for i in active:
        j = ids[i, 0]
        if stamp[i] == turn or forward[j] != j or stamp[j] == turn:
            again[n] = i
            n += 1
    return again[:n]


@njit(cache=True)
def _gather(
    i: int, source: int, old: int, kind: int, sums: Any, size: Any, forward: Any, stamp: Any, lists: Any, out: Any
) -> int:
    """Append to out[0] (ids) and out[1] (distances) what list `source` names today, measured from i; return the new
    length.

    old: turn of the last measurement whose distances still hold for unchanged clusters, or -1 if i itself has changed.
    """
    ids, distances, count, n = lists[0], lists[1], lists[2], int(out[1][-1])
    for e in range(count[source]):
        j = find(forward, ids[source, e])
        known = j == i
        for k in range(n):
            known = known or out[0][k] == j
        if not known:
            still = old >= 0 and j == ids[source, e] and stamp[j] <= old
            out[0][n] = j
            if still:
                out[1][n] = distances[source, e]
            else:
                out[1][n] = cluster_distance(kind, sums, size, i, sums, size, j)
            n += 1
    out[1][-1] = n
    return n


@njit(cache=True, parallel=True)
def renew(
    again: Any,
    turn: int,
    kind: int,
    sums: Any,
    size: Any,
    forward: Any,
    stamp: Any,
    seen: Any,
    partner: Any,
    ids: Any,
    distances: Any,
    count: Any,
    bound: Any,
) -> Any:
    """Bring the lists of `again` up to date; returns for which of them the list cannot tell the nearest neighbour.

    A merged cluster inherits the lists of both its parts; what fell out of the joint list lowers its bound.
    """
    length = ids.shape[1]
    unsure = np.zeros(len(again), dtype=np.bool_)
    lists = (ids, distances, count)
    for r in prange(len(again)):
        i = again[r]
        merged = stamp[i] == turn
        out = (np.empty(2 * length, dtype=np.int32), np.empty(2 * length + 1))
        out[1][-1] = 0
        n = _gather(i, i, -1 if merged else seen[i], kind, sums, size, forward, stamp, lists, out)
        if merged:
            n = _gather(i, partner[i], -1, kind, sums, size, forward, stamp, lists, out)
        count[i] = 0
        distances[i, :] = np.inf
        dropped = np.inf
        for k in range(n):
            last = distances[i, length - 1]
            push(ids, distances, count, i, out[0][k], out[1][k])
            if not np.isinf(last):
                dropped = min(dropped, max(last, out[1][k]))
        bound[i] = min(bound[i], dropped)
        seen[i] = turn
        unsure[r] = count[i] == 0 or distances[i, 0] > bound[i] + tie(kind, distances[i, 0])
    return unsure
