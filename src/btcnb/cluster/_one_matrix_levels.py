"""Silhouettes of all levels of a tree out of one distance matrix, compiled.

Seen from the root, a point's distance b to the nearest other cluster is a running minimum: when a cluster is split, one
of its parts is no farther than the whole was. One walk down the tree therefore gives b(i) on every level for one
comparison a merge, and the distances to all clusters come from one walk up.

A point alone scores 0 and none scores more than 1. So a level is never better than the share of points that have
company there, and the walk down may end where that share is below a score already found.

Points that are equal are one leaf of a weight.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from btcnb.cluster._climb import ROUNDING
from btcnb.cluster._compile import compiled
from btcnb.cluster._gate import Bool, Float64, Int64

LANES = 8
"""Points whose walk is taken side by side: eight doubles are a line of the cache."""
EQUAL = 1e-12
"""Silhouettes closer than this are equal: rounding must not choose between levels."""
TILE = 64
"""Entries of eight rows that are turned at a time."""
FAR = 1e300
"""Beyond every distance."""
HOPED = 0.65
"""A score that the best level of an embedding usually exceeds; where it does not, the walk is taken again."""


@compiled()
def best_thresholds(D: Float64, weight: Float64, trees: Float64) -> Float64:
    """Threshold of the level with the largest silhouette, as `cut_silhouette`, for every tree; (k,).

    trees (k, m-1, 4): linkage matrices of the distinct leaves, with D and weight as in `level_scores`
    """
    k, m = len(trees), len(D)
    found, lowest = np.empty(k), np.zeros(k, dtype=np.int64)
    if m < 2:
        found[:] = np.nextafter(0.0, np.inf)
        return found
    for which in range(k):
        lowest[which] = first_of(in_company(weight, trees[which]), HOPED)
    scores = level_scores(D, weight, trees, lowest)
    for which in range(k):
        Z, score, low = trees[which], scores[which], lowest[which]
        best = _best(weight, Z, score, low)
        if best < HOPED and low > 0:  # levels further down may be better than what was found
            low = first_of(in_company(weight, Z), best)
            score = level_scores(D, weight, trees[which : which + 1], np.full(1, low))[0]
            best = _best(weight, Z, score, low)
        found[which] = _threshold(weight, Z, score, low, best)
    return found


@compiled()
def _first(weight: Float64, lowest: int) -> int:
    """The lowest level that counts: without equal points, level 0 has everybody alone."""
    return max(lowest, 0 if weight.sum() > len(weight) else 1)


@compiled()
def _threshold(weight: Float64, Z: Float64, score: Float64, lowest: int, best: float) -> float:
    """The middle of the lowest level with the best score; above the root where there is none."""
    heights = Z[:, 2]
    for t in range(_first(weight, lowest), len(heights)):
        low = heights[t - 1] if t else 0.0
        if heights[t] > low and score[t] >= best - EQUAL:
            middle = low + (heights[t] - low) / 2
            return middle if middle > low else heights[t]
    return np.nextafter(heights[-1], np.inf)


@compiled()
def _best(weight: Float64, Z: Float64, score: Float64, lowest: int) -> float:
    """The largest score of the levels from `lowest` on that a threshold can reach."""
    best = -np.inf
    for t in range(_first(weight, lowest), len(score)):
        if Z[t, 2] > (Z[t - 1, 2] if t else 0.0):
            best = max(best, score[t])
    return best


@compiled()
def in_company(weight: Float64, Z: Float64) -> Float64:
    """Share of points that are not alone after the first t merges, t = 0..m-2; (m-1,), ascending."""
    m = len(weight)
    share, together = np.empty(m - 1), 0.0
    for i in range(m):
        together += weight[i] if weight[i] > 1.0 else 0.0
    for t in range(m - 1):
        share[t] = together / weight.sum()
        for side in range(2):
            if Z[t, side] < m and weight[int(Z[t, side])] == 1.0:
                together += 1.0
    return share


@compiled()
def first_of(company: Float64, score: float) -> int:
    """The lowest level that may have this score, or one within rounding of it."""
    return int(np.searchsorted(company, score - 1e-9))


class Tree(NamedTuple):
    """A tree of m leaves with weights, as a walk needs it. Node m + t is made by merge t."""

    left: Int64  # (m-1,) the two parts of a merge
    right: Int64
    share: Float64  # (m-1,) of the left part's points in the merge
    parent: Int64  # (2m-1,) -1 above the root
    size: Float64  # (2m-1,) points


@compiled()
def _read(weight: Float64, Z: Float64) -> Tree:
    m = len(weight)
    left, right = Z[:, 0].astype(np.int64), Z[:, 1].astype(np.int64)
    share, parent, size = np.empty(m - 1), np.full(2 * m - 1, -1, dtype=np.int64), np.empty(2 * m - 1)
    size[:m] = weight
    for t in range(m - 1):
        size[m + t] = size[left[t]] + size[right[t]]
        share[t] = size[left[t]] / size[m + t]
        parent[left[t]] = parent[right[t]] = m + t
    return Tree(left, right, share, parent, size)


class Lanes(NamedTuple):
    """Points that walk side by side."""

    weight: Float64  # 0 for a lane without a point
    own: Int64  # the cluster that holds the point
    within: Float64  # a: its mean distance to the others there, -1 where it is alone
    near: Float64  # b: its mean distance to the nearest other cluster
    score: Float64


@compiled()
def level_scores(D: Float64, weight: Float64, trees: Float64, lowest: Int64) -> Float64:
    """Mean silhouette of the partitions that the first t merges of trees make, t = lowest..m-2; (k, m-1), 0 below.

    D (m, m): cosine distances, symmetric, 0 on the diagonal; weight (m,): points in a leaf
    trees (k, m-1, 4): linkage matrices, ascending; lowest (k,): a level for each
    """
    k, m = len(trees), len(D)
    nodes = 2 * m - 1
    read = [_read(weight, trees[which]) for which in range(k)]
    change = np.zeros((k, m - 1))
    mean, inner = np.zeros((nodes, LANES)), np.empty((nodes, LANES))
    holds = np.zeros(nodes, dtype=np.bool_)  # clusters that hold one of the lanes' points
    w = Lanes(np.empty(LANES), np.empty(LANES, dtype=np.int64), np.empty(LANES), np.empty(LANES), np.empty(LANES))
    for start in range(0, m, LANES):
        lanes = min(LANES, m - start)
        _turn(D, start, lanes, mean)
        for which in range(k):
            _means(m, read[which], mean)
            _begin(start, lanes, weight, read[which], mean, inner, holds, w)
            _walk(read[which], lowest[which], lanes, mean, inner, holds, w, change[which])
            _end(start, lanes, read[which], mean, holds)
    for which in range(k):
        for t in range(m - 3, lowest[which] - 1, -1):
            change[which, t] += change[which, t + 1]
    return change / weight.sum()


@compiled()
def _turn(D: Float64, start: int, lanes: int, mean: Float64) -> None:
    """Distances of the points start..start+lanes-1 to every leaf, into `mean` (nodes, LANES).

    Rows of D become columns: by tiles, which stay in the fastest memory.
    """
    for begin in range(0, len(D), TILE):
        for lane in range(lanes):
            for j in range(begin, min(begin + TILE, len(D))):
                mean[j, lane] = D[start + lane, j]


@compiled(fastmath=True)
def _means(m: int, tree: Tree, mean: Float64) -> None:
    """Mean distances to the clusters, out of those to the leaves."""
    for t in range(m - 1):
        a, b, left = tree.left[t], tree.right[t], tree.share[t]
        right = 1.0 - left
        for lane in range(LANES):
            mean[m + t, lane] = left * mean[a, lane] + right * mean[b, lane]


@compiled()
def _begin(
    start: int, lanes: int, weight: Float64, tree: Tree, mean: Float64, inner: Float64, holds: Bool, w: Lanes
) -> None:
    """All points in one cluster. `inner` is a of a lane's point in those clusters that hold it; they are nobody's
    neighbours.
    """
    for lane in range(LANES):
        w.weight[lane] = weight[start + lane] if lane < lanes else 0.0
        w.own[lane], w.within[lane], w.near[lane], w.score[lane] = len(mean) - 1, 0.0, FAR, 0.0
        node = start + lane if lane < lanes else -1
        while node >= 0:
            n = tree.size[node]
            inner[node, lane] = mean[node, lane] * n / (n - 1.0) if n > 1.0 else -1.0
            mean[node, lane] = FAR
            holds[node] = True
            node = tree.parent[node]


@compiled()
def _end(start: int, lanes: int, tree: Tree, mean: Float64, holds: Bool) -> None:
    """Ready for another tree: a leaf is at no distance from itself."""
    for lane in range(lanes):
        mean[start + lane, lane] = 0.0
        node = start + lane
        while node >= 0 and holds[node]:
            holds[node] = False
            node = tree.parent[node]


@compiled()
def _walk(
    tree: Tree, lowest: int, lanes: int, mean: Float64, inner: Float64, holds: Bool, w: Lanes, change: Float64
) -> None:
    """Undo merges from the root down to `lowest`, and add to `change` (m-1,) what scores gain by it."""
    m = len(change) + 1
    for t in range(m - 2, lowest - 1, -1):
        a, b = tree.left[t], tree.right[t]
        nearer = _nearer(mean, a, b, w.near)
        if holds[m + t]:
            _descend(m + t, a, b, lanes, mean, inner, w)
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


@compiled()
def _descend(node: int, a: int, b: int, lanes: int, mean: Float64, inner: Float64, w: Lanes) -> None:
    """The points of a cluster go to the part, a or b, that holds them."""
    for lane in range(lanes):
        if w.own[lane] == node:
            w.own[lane] = a if mean[a, lane] == FAR else b
            w.within[lane] = inner[w.own[lane], lane]


@compiled(fastmath=True)
def _gain(w: Lanes) -> float:
    """What the lanes' silhouettes gain together, by weight; their scores are brought up to date."""
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
