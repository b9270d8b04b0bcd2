"""Mean silhouettes of all levels of a tree, from the distances of points to its leaves, compiled.

Seen from the root, the distance b of a point to the nearest other cluster is a running minimum: when a cluster is
split, one of its parts is no farther than the whole was. One walk down the tree therefore gives b(i) on every level for
one comparison per merge; the distances to all clusters come from one walk up.

A leaf of the tree may be a point, several equal points, or a cluster. A point alone scores 0 and none scores more than
1. So a level is never better than the share of points that have company there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from meanlink._compile import compiled
from meanlink._types import Bool, Float64, Int64

ROUNDING = 1e-13
"""Distances below this are rounding noise of equal points, and count as 0."""

EQUAL = 1e-12
"""Silhouettes closer than this are equal: rounding must not choose between levels."""

LANES = 8
"""Points whose walk is taken side by side: eight doubles are a line of the cache."""

TILE = 64
"""Entries of eight rows that are transposed at a time."""

FAR = 1e300
"""Beyond every distance."""

HOPED = 0.65
"""A score that the best level of an embedding usually exceeds; where it does not, the walk is taken again."""


class Walk(NamedTuple):
    """A tree of m leaves as a walk needs it. Node m + t is made by merge t."""

    left: Int64  # (m-1,) the two parts of a merge
    right: Int64
    share: Float64  # (m-1,) of the left part's points in the merge
    parent: Int64  # (2m-1,) -1 above the root
    size: Float64  # (2m-1,) points


class Lanes(NamedTuple):
    """Points that walk side by side."""

    weight: Float64  # 0 for a lane without a point
    own: Int64  # the cluster that holds the point
    within: Float64  # a: its mean distance to the others there, -1 where it is alone
    near: Float64  # b: its mean distance to the nearest other cluster
    score: Float64


@compiled()
def walk_of(size: Float64, left: Int64, right: Int64) -> Walk:
    """The tree whose leaves have `size` (m,) points and whose merges join left (m-1,) and right (m-1,)."""
    m = len(size)
    share, parent, sizes = np.empty(m - 1), np.full(2 * m - 1, -1, dtype=np.int64), np.empty(2 * m - 1)
    sizes[:m] = size
    for t in range(m - 1):
        sizes[m + t] = sizes[left[t]] + sizes[right[t]]
        share[t] = sizes[left[t]] / sizes[m + t]
        parent[left[t]] = parent[right[t]] = m + t
    return Walk(left, right, share, parent, sizes)


@compiled()
def in_company(size: Float64, left: Int64, right: Int64) -> Float64:
    """Share of points that are not alone after the first t merges, t = 0..m-2; (m-1,), ascending."""
    m = len(size)
    share, together = np.empty(m - 1), 0.0
    for i in range(m):
        together += size[i] if size[i] > 1.0 else 0.0
    for t in range(m - 1):
        share[t] = together / size.sum()
        for child in (left[t], right[t]):
            if child < m and size[child] == 1.0:
                together += 1.0
    return share


@compiled(parallel=True)
def add_scores(D: Float64, leaf: Int64, tree: Walk, change: Float64) -> None:
    """Add to `change` (parts, m-1) what splitting each merge adds to the scores of some points; see `_add_scores`."""
    parts = len(change)
    for p in prange(parts):
        a, b = p * len(D) // parts, (p + 1) * len(D) // parts
        _add_scores(D[a:b], leaf[a:b], np.ones(b - a), tree, 0, change[p])


@compiled()
def _add_scores(D: Float64, leaf: Int64, weight: Float64, tree: Walk, lowest: int, change: Float64) -> None:
    """Add to change[t], t >= lowest, what the scores of points gain, by weight, when merge t is undone.

    D (n, m): mean cosine distances of the points to the leaves; leaf (n,): the leaf that holds each point. The sum of
    change from t on is the total score after the first t merges.
    """
    nodes = len(tree.size)
    mean, inner = np.zeros((nodes, LANES)), np.empty((nodes, LANES))
    holds = np.zeros(nodes, dtype=np.bool_)  # clusters that hold one of the points
    w = Lanes(np.empty(LANES), np.empty(LANES, dtype=np.int64), np.empty(LANES), np.empty(LANES), np.empty(LANES))
    for start in range(0, len(D), LANES):
        stop = min(start + LANES, len(D))
        _transpose(D[start:stop], mean)
        _means(tree, mean)
        _begin(leaf[start:stop], weight[start:stop], tree, mean, inner, holds, w)
        _walk_down(tree, lowest, mean, inner, holds, w, change)
        for i in range(start, stop):
            node = leaf[i]
            while node >= 0 and holds[node]:
                holds[node] = False
                node = tree.parent[node]


@compiled()
def _transpose(D: Float64, mean: Float64) -> None:
    """Distances of a few points (lanes, m) to every leaf, as columns; by tiles, which stay in the fastest memory."""
    for begin in range(0, D.shape[1], TILE):
        for lane in range(len(D)):
            for j in range(begin, min(begin + TILE, D.shape[1])):
                mean[j, lane] = D[lane, j]


@compiled(fastmath=True)
def _means(tree: Walk, mean: Float64) -> None:
    """Mean distances to the clusters, out of those to the leaves."""
    m = len(tree.left) + 1
    for t in range(m - 1):
        a, b, left = tree.left[t], tree.right[t], tree.share[t]
        right = 1.0 - left
        for lane in range(LANES):
            mean[m + t, lane] = left * mean[a, lane] + right * mean[b, lane]


@compiled()
def _begin(leaf: Int64, weight: Float64, tree: Walk, mean: Float64, inner: Float64, holds: Bool, w: Lanes) -> None:
    """All points in one cluster. `inner` is a of a point in the clusters that hold it; these are no neighbours."""
    for lane in range(LANES):
        w.weight[lane] = weight[lane] if lane < len(leaf) else 0.0
        w.own[lane], w.within[lane], w.near[lane], w.score[lane] = len(mean) - 1, 0.0, FAR, 0.0
        node = leaf[lane] if lane < len(leaf) else -1
        while node >= 0:
            n = tree.size[node]
            inner[node, lane] = mean[node, lane] * n / (n - 1.0) if n > 1.0 else -1.0
            mean[node, lane] = FAR
            holds[node] = True
            node = tree.parent[node]


@compiled()
def _walk_down(tree: Walk, lowest: int, mean: Float64, inner: Float64, holds: Bool, w: Lanes, change: Float64) -> None:
    """Undo merges from the root down to `lowest`, and add to `change` (m-1,) what scores gain by it."""
    m = len(tree.left) + 1
    for t in range(m - 2, lowest - 1, -1):
        a, b = tree.left[t], tree.right[t]
        nearer = _nearer(mean, a, b, w.near)
        if holds[m + t]:
            for lane in range(LANES):
                if w.own[lane] == m + t and w.weight[lane] > 0.0:
                    w.own[lane] = a if mean[a, lane] == FAR else b
                    w.within[lane] = inner[w.own[lane], lane]
        elif not nearer:
            continue
        change[t] += _gain(w)


@compiled(fastmath=True)
def _nearer(mean: Float64, a: int, b: int, near: Float64) -> bool:
    """Take what is nearer into `near`, one of two clusters or what is there; whether anything was."""
    gain = 0.0
    for lane in range(LANES):
        low = min(near[lane], min(mean[a, lane], mean[b, lane]))
        gain += near[lane] - low
        near[lane] = low
    return gain > 0.0


@compiled(fastmath=True)
def _gain(w: Lanes) -> float:
    """What the silhouettes of the lanes gain together, by weight; their scores are brought up to date."""
    gain = 0.0
    for lane in range(LANES):
        within, near = w.within[lane], w.near[lane]
        a, b = 0.0 if within < ROUNDING else within, 0.0 if near < ROUNDING else near
        larger = max(a, b)
        now = (b - a) / (larger if larger > 0.0 else 1.0)
        now = 0.0 if within < -0.5 else now  # alone
        gain += w.weight[lane] * (now - w.score[lane])
        w.score[lane] = now
    return gain


# --- the best level of a tree whose distance matrix is there ---


@compiled()
def best_threshold(D: Float64, weight: Float64, Z: Float64) -> float:
    """Threshold of the level with the largest silhouette, as `cut_silhouette` gives it.

    D (m, m): cosine distances of the leaves, 0 on the diagonal; weight (m,): equal points in each leaf
    Z (m-1, 4): linkage matrix of the leaves, ascending
    """
    m = len(D)
    if m < 2:
        return np.nextafter(0.0, np.inf)
    left, right = Z[:, 0].astype(np.int64), Z[:, 1].astype(np.int64)
    tree, company = walk_of(weight, left, right), in_company(weight, left, right)
    lowest = int(np.searchsorted(company, HOPED - 1e-9))
    score = _scores(D, weight, tree, lowest)
    best = _best(weight, Z[:, 2], score, lowest)
    if best < HOPED and lowest > 0:  # levels further down may be better than what was found
        lowest = int(np.searchsorted(company, best - 1e-9))
        score = _scores(D, weight, tree, lowest)
        best = _best(weight, Z[:, 2], score, lowest)
    for t in range(_first(weight, lowest), m - 1):
        low, high = Z[t - 1, 2] if t else 0.0, Z[t, 2]
        if high > low and score[t] >= best - EQUAL:
            middle = low + (high - low) / 2
            return middle if middle > low else high
    return np.nextafter(Z[-1, 2], np.inf)


@compiled()
def _scores(D: Float64, weight: Float64, tree: Walk, lowest: int) -> Float64:
    """Mean silhouettes after the first t merges, t = lowest..m-2; (m-1,), 0 below."""
    change = np.zeros(len(D) - 1)
    _add_scores(D, np.arange(len(D)), weight, tree, lowest, change)
    for t in range(len(D) - 3, lowest - 1, -1):
        change[t] += change[t + 1]
    return change / weight.sum()


@compiled()
def _first(weight: Float64, lowest: int) -> int:
    """The lowest level that counts: without equal points, everybody is alone on level 0."""
    return max(lowest, 0 if weight.sum() > len(weight) else 1)


@compiled()
def _best(weight: Float64, heights: Float64, score: Float64, lowest: int) -> float:
    """The largest score of the levels from `lowest` on that a threshold can reach."""
    best = -np.inf
    for t in range(_first(weight, lowest), len(score)):
        if heights[t] > (heights[t - 1] if t else 0.0):
            best = max(best, score[t])
    return best
