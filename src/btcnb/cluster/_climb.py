"""The steps of a walk up a dendrogram with all silhouettes kept current, compiled. See `levels` for the story.

Merge m joins two nodes; a cluster's slot is the position of its first point in drawing order, with the larger child
first, so the slot of a merge is that of its larger child. `done` counts the merges made so far.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from btcnb.cluster._distance import AVERAGE, cluster_distance, dot
from btcnb.cluster._neighbours import push, threshold
from btcnb.cluster._rounds import find

ROUNDING = 1e-13
"""Distances below this are rounding noise of equal points, and count as 0."""


class Watch(NamedTuple):
    """Which points have which slot as nearest other cluster: doubly linked lists, -1 ends."""

    head: Any  # slot -> first watching point
    after: Any  # point -> next point watching the same slot
    before: Any  # point -> previous one
    target: Any  # point -> slot it watches, -1 for none


@njit(cache=True)
def drawing_order(Z: Any) -> Any:
    """First position of every node and the leaves in drawing order, larger child first."""
    n = len(Z) + 1
    start = np.zeros(2 * n - 1, dtype=np.int64)
    for m in range(n - 2, -1, -1):
        a, b = int(Z[m, 0]), int(Z[m, 1])
        span_a = 1 if a < n else int(Z[a - n, 3])
        span_b = int(Z[m, 3]) - span_a
        if span_b > span_a:
            a, b = b, a
            span_a = span_b
        start[a] = start[n + m]
        start[b] = start[n + m] + span_a
    leaves = np.empty(n, dtype=np.int64)
    for leaf in range(n):
        leaves[start[leaf]] = leaf
    return start, leaves


@njit(cache=True)
def first_merge(Z: Any, start: Any) -> Any:
    """For every point in drawing order the merge that takes it out of its solitude."""
    n = len(Z) + 1
    out = np.empty(n, dtype=np.int64)
    for m in range(n - 1):
        for side in range(2):
            if Z[m, side] < n:
                out[start[int(Z[m, side])]] = m
    return out


@njit(cache=True)
def labels_after(Z: Any, merges: int) -> Any:
    """Partition of the leaves after the first `merges` merges, labels 0..k-1."""
    n = len(Z) + 1
    label = np.full(2 * n - 1, -1, dtype=np.int64)
    k = 0
    for node in range(n + merges - 1, -1, -1):
        if label[node] < 0:
            label[node] = k
            k += 1
        if node >= n:
            label[int(Z[node - n, 0])] = label[node]
            label[int(Z[node - n, 1])] = label[node]
    return label[:n]


@njit(cache=True)
def _join(m: int, Z: Any, start: Any, sums: Any, size: Any, own: Any, forward: Any, stamp: Any) -> Any:
    """Make merge m; returns the surviving and the swallowed slot."""
    left, right = start[int(Z[m, 0])], start[int(Z[m, 1])]
    if left > right:
        left, right = right, left
    for i in range(right, right + int(size[right])):
        own[i] = left
    sums[left] += sums[right]
    size[left] += size[right]
    forward[right] = left
    stamp[left] = m + 1
    return left, right


@njit(cache=True)
def skip(Z: Any, start: Any, merges: int, sums: Any, size: Any, own: Any, forward: Any, stamp: Any) -> int:
    for m in range(merges):
        _join(m, Z, start, sums, size, own, forward, stamp)
    return merges


@njit(cache=True)
def _look_at(watch: Any, i: int, slot: int) -> None:
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


@njit(cache=True)
def rewatch(points: Any, size: Any, own: Any, ids: Any, watch: Any) -> None:
    for i in points:
        if size[own[i]] > 1.0:
            _look_at(watch, i, ids[i, 0])


@njit(cache=True)
def _coefficient(i: int, rows: Any, sums: Any, size: Any, own: Any, distances: Any) -> float:
    n = size[own[i]]
    if n <= 1.0:
        return 0.0
    a = (n - dot(rows[i], sums[own[i]])) / (n - 1.0)
    b = distances[i, 0]
    a = 0.0 if a < ROUNDING else a
    b = 0.0 if b < ROUNDING else b
    larger = max(a, b)
    return (b - a) / larger if larger > 0.0 else 0.0


@njit(cache=True)
def score_all(rows: Any, sums: Any, size: Any, own: Any, lists: Any, watch: Any, score: Any) -> float:
    total = 0.0
    for i in range(len(rows)):
        score[i] = _coefficient(i, rows, sums, size, own, lists[1])
        total += score[i]
    return total


@njit(cache=True, fastmath=True)
def _product(a: Any, b: Any) -> Any:
    total = np.float32(0.0)
    for k in range(len(a)):
        total += a[k] * b[k]
    return total


@njit(cache=True)
def _search_point(
    i: int, rows: Any, sums: Any, size: Any, own: Any, lists: Any, cols: Any, table: Any, offset: float, others: int
) -> None:
    """A new list for one point, by running through all centres."""
    ids, distances, count, bound = lists
    count[i] = 0
    distances[i, :] = np.inf
    one = np.ones(1)
    point = rows[i : i + 1]
    single = rows[i].astype(np.float32)
    limit = threshold(single, distances, i, offset)
    for c in range(len(cols)):
        j = cols[c]
        if j >= 0 and j != own[i] and -_product(single, table[c]) < limit:
            push(ids, distances, count, i, j, cluster_distance(AVERAGE, point, one, 0, sums, size, j))
            limit = threshold(single, distances, i, offset)
    full = count[i] == ids.shape[1] and count[i] < others
    bound[i] = distances[i, ids.shape[1] - 1] if full else np.inf


@njit(cache=True)
def _renew(i: int, rows: Any, sums: Any, size: Any, own: Any, forward: Any, stamp: Any, seen: Any, lists: Any) -> bool:
    """Bring a point's list up to date; whether it still tells the nearest other cluster."""
    ids, distances, count, bound = lists
    names, values = ids[i].copy(), distances[i].copy()
    entries = count[i]
    count[i] = 0
    distances[i, :] = np.inf
    one = np.ones(1)
    for e in range(entries):
        j = find(forward, names[e])
        known = j == own[i]
        for k in range(count[i]):
            known = known or ids[i, k] == j
        if known:
            continue
        if j != names[e] or stamp[j] > seen[i]:
            values[e] = cluster_distance(AVERAGE, rows[i : i + 1], one, 0, sums, size, j)
        push(ids, distances, count, i, j, values[e])
    return count[i] > 0 and distances[i, 0] <= bound[i] + 2e-15


@njit(cache=True)
def climb(
    done: int,
    goal: int,
    total: float,
    patience: int,
    Z: Any,
    start: Any,
    rows: Any,
    sums: Any,
    size: Any,
    own: Any,
    forward: Any,
    stamp: Any,
    seen: Any,
    watch: Any,
    lists: Any,
    score: Any,
    cols: Any,
    position: Any,
    table: Any,
    offset: float,
    scores: Any,
) -> Any:
    """Make merges done..goal-1 and write the sum of all silhouettes after each; stop early after `patience` searches.

    Returns merges made and the sum. Who must be looked at after a merge: its members (their a changed), those who
    watched one of its parts (their b may have), and parts of size one, which begin to count.
    """
    n = len(rows)
    waiting = np.empty(n, dtype=np.int64)
    failures = 0
    while done < goal and failures < patience:
        left, right = _join(done, Z, start, sums, size, own, forward, stamp)
        grown = int(size[left])
        at = position[left]
        for k in range(rows.shape[1]):
            table[at, k] = sums[left, k] / size[left]
        cols[position[right]] = -1
        number = 0
        for slot in (left, right):
            i = watch.head[slot]
            while i >= 0:
                waiting[number] = i
                number += 1
                i = watch.after[i]
        if Z[done, 0] < n:
            waiting[number] = start[int(Z[done, 0])]
            number += 1
        if Z[done, 1] < n:
            waiting[number] = start[int(Z[done, 1])]
            number += 1
        done += 1
        for w in range(number):
            i = waiting[w]
            if seen[i] < 0 or not _renew(i, rows, sums, size, own, forward, stamp, seen, lists):
                _search_point(i, rows, sums, size, own, lists, cols, table, offset, n - done - 1)
                failures += 1
            seen[i] = done
            _look_at(watch, i, lists[0][i, 0])
            if own[i] != left:
                fresh = _coefficient(i, rows, sums, size, own, lists[1])
                total += fresh - score[i]
                score[i] = fresh
        for i in range(left, left + grown):
            fresh = _coefficient(i, rows, sums, size, own, lists[1])
            total += fresh - score[i]
            score[i] = fresh
        scores[done - 1] = total
    return done, total
