"""The steps of a walk up a dendrogram with all silhouettes kept current, compiled. See `levels` for the story.

Merge m joins two nodes; points stand in drawing order, and a cluster's slot is the position of its first point, so the
slot of a merge is that of its larger child. `done` counts the merges made so far.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from btcnb.cluster._compile import compiled
from btcnb.cluster._distance import AVERAGE, Table, cluster_distance, dot
from btcnb.cluster._gate import Float32, Float64, Int32, Int64, Trees
from btcnb.cluster._neighbours import Lists, push, threshold
from btcnb.cluster._rounds import find
from btcnb.cluster._search import Packed

ROUNDING = 1e-13
"""Distances below this are rounding noise of equal points, and count as 0."""

WORK = 200_000_000
"""Multiplications after which `climb` returns, so that Python can hear an interrupt: some tenths of a second."""


class Watch(NamedTuple):
    """Which points have which slot as nearest other cluster: doubly linked lists, -1 ends."""

    head: Int32  # slot -> first watching point
    after: Int32  # point -> next point watching the same slot
    before: Int32  # point -> previous one
    target: Int32  # point -> slot it watches, -1 for none


class Walk(NamedTuple):
    """State of a walk up one dendrogram of n points."""

    tree: Trees
    start: Int64  # node -> its first point
    points: Table  # unit rows, in drawing order
    table: Table  # slot -> sum and size of its cluster
    own: Int32  # point -> slot of its cluster
    forward: Int32  # slot -> slot that swallowed it
    stamp: Int32  # slot -> merge after which it last changed
    seen: Int32  # point -> merge after which its list was measured; -1: no list
    lists: Lists  # point -> nearest other clusters
    watch: Watch
    score: Float64  # point -> its silhouette


@compiled()
def first_merge(tree: Trees, start: Int64) -> Int64:
    """For every point in drawing order the merge that takes it out of its solitude."""
    n = tree.offsets[-1]
    out = np.empty(n, dtype=np.int64)
    for m in range(n - 1):
        for child in tree.children[m]:
            if child < n:
                out[start[child]] = m
    return out


@compiled()
def _join(m: int, w: Walk) -> tuple[int, int]:
    """Make merge m; returns the surviving and the swallowed slot."""
    left, right = w.start[w.tree.children[m, 0]], w.start[w.tree.children[m, 1]]
    if left > right:
        left, right = right, left
    sums, size = w.table
    for i in range(right, right + int(size[right])):
        w.own[i] = left
    sums[left] += sums[right]
    size[left] += size[right]
    w.forward[right] = left
    w.stamp[left] = m + 1
    return left, right


@compiled()
def skip(merges: int, w: Walk) -> None:
    for m in range(merges):
        _join(m, w)


@compiled()
def _look_at(watch: Watch, i: int, slot: int) -> None:
    """Let point i watch `slot` (-1: nothing) instead of what it watches now."""
    head, after, before, target = watch
    if target[i] >= 0:
        if before[i] >= 0:
            after[before[i]] = after[i]
        else:
            head[target[i]] = after[i]
        if after[i] >= 0:
            before[after[i]] = before[i]
    target[i] = slot
    if slot >= 0:
        after[i], before[i] = head[slot], -1
        if head[slot] >= 0:
            before[head[slot]] = i
        head[slot] = i


@compiled()
def rewatch(points: Int32, w: Walk) -> None:
    for i in points:
        if w.table.size[w.own[i]] > 1.0:
            _look_at(w.watch, i, w.lists.ids[i, 0])


@compiled()
def _coefficient(i: int, w: Walk) -> float:
    sums, size = w.table
    n = size[w.own[i]]
    if n <= 1.0:
        return 0.0
    a = (n - dot(w.points.sums[i], sums[w.own[i]])) / (n - 1.0)
    b = w.lists.distances[i, 0]
    a = 0.0 if a < ROUNDING else a
    b = 0.0 if b < ROUNDING else b
    larger = max(a, b)
    return (b - a) / larger if larger > 0.0 else 0.0


@compiled()
def score_all(w: Walk) -> float:
    total = 0.0
    for i in range(len(w.own)):
        w.score[i] = _coefficient(i, w)
        total += w.score[i]
    return total


@compiled(fastmath=True)
def _product(a: Float32, b: Float32) -> Any:
    total = np.float32(0.0)
    for k in range(len(a)):
        total += a[k] * b[k]
    return total


@compiled()
def _search_point(i: int, w: Walk, packed: Packed, offset: float, others: int) -> None:
    """A new list for one point, by running through all centres."""
    lists = w.lists
    lists.filled[i] = 0
    lists.distances[i, :] = np.inf
    single = w.points.sums[i].astype(np.float32)
    limit = threshold(single, lists, i, offset)
    for c in range(len(packed.cols)):
        j = packed.cols[c]
        if j >= 0 and j != w.own[i] and -_product(single, packed.centres[c]) < limit:
            push(lists, i, j, cluster_distance(AVERAGE, w.points, i, w.table, j))
            limit = threshold(single, lists, i, offset)
    full = lists.filled[i] == lists.ids.shape[1] and lists.filled[i] < others
    lists.bound[i] = lists.distances[i, -1] if full else np.inf


@compiled()
def _renew(i: int, w: Walk) -> bool:
    """Bring a point's list up to date; whether it still tells the nearest other cluster."""
    ids, distances, count, bound = w.lists
    names, values = ids[i].copy(), distances[i].copy()
    entries = count[i]
    count[i] = 0
    distances[i, :] = np.inf
    for e in range(entries):
        j = find(w.forward, names[e])
        known = j == w.own[i]
        for k in range(count[i]):
            known = known or ids[i, k] == j
        if known:
            continue
        if j != names[e] or w.stamp[j] > w.seen[i]:
            values[e] = cluster_distance(AVERAGE, w.points, i, w.table, j)
        push(w.lists, i, j, values[e])
    return count[i] > 0 and distances[i, 0] <= bound[i] + 2e-15


@compiled()
def climb(
    done: int, goal: int, total: float, patience: int, w: Walk, packed: Packed, offset: float, scores: Float64
) -> tuple[int, float, bool]:
    """Make merges done..goal-1 and write the sum of all silhouettes after each; stop early after `patience` searches,
    or after a while.

    Returns merges made, the sum, and whether new lists are wanted. Who must be looked at after a merge: its members
    (their a changed), those who watched one of its parts (their b may have), and parts of size one, which begin to
    count.
    """
    n, d = w.points.sums.shape
    waiting = np.empty(n, dtype=np.int64)
    failures, work = 0, 0
    while done < goal and failures < patience and work < WORK:
        left, right = _join(done, w)
        grown = int(w.table.size[left])
        at = packed.position[left]
        for k in range(d):
            packed.centres[at, k] = w.table.sums[left, k] / w.table.size[left]
        packed.cols[packed.position[right]] = -1
        number = 0
        for slot in (left, right):
            i = w.watch.head[slot]
            while i >= 0:
                waiting[number] = i
                number += 1
                i = w.watch.after[i]
        for child in w.tree.children[done]:
            if child < n:
                waiting[number] = w.start[child]
                number += 1
        done += 1
        for p in range(number):
            i = waiting[p]
            if w.seen[i] < 0 or not _renew(i, w):
                _search_point(i, w, packed, offset, n - done - 1)
                failures += 1
                work += len(packed.cols) * d
            w.seen[i] = done
            _look_at(w.watch, i, w.lists.ids[i, 0])
            if w.own[i] != left:
                fresh = _coefficient(i, w)
                total += fresh - w.score[i]
                w.score[i] = fresh
        for i in range(left, left + grown):
            fresh = _coefficient(i, w)
            total += fresh - w.score[i]
            w.score[i] = fresh
        work += (grown + 4 * number) * d
        scores[done - 1] = total
    return done, total, done == goal or failures >= patience
