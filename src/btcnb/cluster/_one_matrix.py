"""Trees and silhouettes of all their levels out of one distance matrix, compiled.

**Trees.** Nearest-neighbour chains need fresh rows only where they look. So a merge updates one row, and every other row
catches up with the merges it missed when the chain comes to it: all work runs along rows, never down a column.

**Silhouettes.** Seen from the root, a point's distance b to the nearest other cluster is a running minimum: when a
cluster is split, one of its parts is no farther than the whole was. One walk down the tree therefore gives b(i) on
every level for one comparison a merge, and the distances to all clusters come from one walk up.

Points that are equal are one leaf of a weight.
"""

from __future__ import annotations

import numpy as np

from btcnb.cluster._climb import ROUNDING
from btcnb.cluster._compile import compiled
from btcnb.cluster._gate import Float64, Int64
from btcnb.cluster._order import numbered, raise_to_children
from btcnb.cluster._small import _update

LANES = 8
"""Points whose walk is taken side by side: eight doubles are a line of the cache."""
EQUAL = 1e-12
"""Silhouettes closer than this are equal: rounding must not choose between levels."""
STEP = 32
"""Entries of a row whose minimum is taken at once."""
FAR = 1e300
"""Beyond every distance."""


@compiled(fastmath={"nnan", "nsz"})
def _smallest(row: Float64) -> tuple[int, float]:
    """Position and value of the smallest entry, the first of equal ones."""
    n, low, block = len(row), np.inf, 0
    for start in range(0, n - STEP + 1, STEP):
        here = row[start]
        for k in range(start, start + STEP):
            here = min(here, row[k])
        if here < low:
            low, block = here, start
    for k in range(n - n % STEP, n):
        if row[k] < low:
            return _first(row, k, n)
    return _first(row, block, min(block + STEP, n))


@compiled()
def _first(row: Float64, start: int, stop: int) -> tuple[int, float]:
    at, low = start, row[start]
    for k in range(start + 1, stop):
        if row[k] < low:
            at, low = k, row[k]
    return at, low


@compiled()
def chain_merges(D: Float64, weight: Float64, method: int) -> tuple[Int64, Float64]:
    """Merges (m-1, 2) by any leaf of each side and their heights, in the order they were made; D (m, m) is used up.

    D: distances with +inf on the diagonal (Ward: squared, weights included); method: code of the linkage
    """
    m = len(D)
    size, alive = weight.copy(), np.ones(m, dtype=np.bool_)
    pairs, heights, sizes = np.empty((m - 1, 2), dtype=np.int64), np.empty(m - 1), np.empty((m - 1, 2))
    seen = np.zeros(m, dtype=np.int64)  # merges that a row knows of
    chain = np.empty(m + 1, dtype=np.int64)
    length, first, made = 0, 0, 0
    while made < m - 1:
        if length == 0:
            while not alive[first]:
                first += 1
            chain[0], length = first, 1
        i = chain[length - 1]
        _catch_up(D[i], seen[i], made, pairs, heights, sizes, size[i], method)
        seen[i] = made
        j, low = _smallest(D[i])
        if length > 1 and D[i, chain[length - 2]] <= low:
            j, low = chain[length - 2], D[i, chain[length - 2]]
        if length < 2 or j != chain[length - 2]:
            chain[length] = j
            length += 1
            continue
        length -= 2
        _catch_up(D[j], seen[j], made, pairs, heights, sizes, size[j], method)
        _join_rows(D[i], D[j], low, size[i], size[j], size, method)
        D[i, i] = D[i, j] = np.inf
        pairs[made, 0], pairs[made, 1], heights[made] = i, j, low
        sizes[made, 0], sizes[made, 1] = size[i], size[j]
        size[i] += size[j]
        alive[j] = False
        made += 1
        seen[i] = made
    return pairs, heights


@compiled()
def _join_rows(into: Float64, gone: Float64, low: float, a: float, b: float, size: Float64, method: int) -> None:
    """Distances to the union of two clusters of sizes a and b, in the first one's row."""
    if method == 0:
        for k in range(len(into)):
            into[k] = _update(0, into[k], gone[k], low, a, b, 1.0)
    elif method == 1:
        for k in range(len(into)):
            into[k] = _update(1, into[k], gone[k], low, a, b, size[k])
    else:
        for k in range(len(into)):
            into[k] = _update(2, into[k], gone[k], low, a, b, 1.0)


@compiled()
def _catch_up(
    row: Float64, known: int, made: int, pairs: Int64, heights: Float64, sizes: Float64, own: float, method: int
) -> None:
    for t in range(known, made):
        a, b = pairs[t, 0], pairs[t, 1]
        row[a] = _update(method, row[a], row[b], heights[t], sizes[t, 0], sizes[t, 1], own)
        row[b] = np.inf


@compiled(fastmath=True)
def level_scores(D: Float64, weight: Float64, Z: Float64) -> Float64:
    """Mean silhouette of the partition that the first t merges of a tree make, t = 0..m-2; (m-1,).

    D (m, m): cosine distances, 0 on the diagonal; weight (m,): points in a leaf; Z (m-1, 4): ascending
    """
    m, nodes = len(D), 2 * len(D) - 1
    children = np.empty((m - 1, 2), dtype=np.int64)
    parent, size = np.full(nodes, -1, dtype=np.int64), np.empty(nodes)
    size[:m] = weight
    for t in range(m - 1):
        for side in range(2):
            children[t, side] = int(Z[t, side])
            parent[children[t, side]] = m + t
        size[m + t] = size[children[t, 0]] + size[children[t, 1]]
    change = np.zeros(m - 1)
    mean, inner = np.zeros((nodes, LANES)), np.empty((nodes, LANES))
    near, score, own = np.empty(LANES), np.empty(LANES), np.empty(LANES, dtype=np.int64)
    event = np.zeros(nodes, dtype=np.bool_)  # clusters that hold one of the lanes' points
    for start in range(0, m, LANES):
        lanes = min(LANES, m - start)
        _means(D, start, lanes, children, size, mean)
        event[:] = False
        for lane in range(LANES):
            near[lane], score[lane], own[lane] = FAR, 0.0, nodes - 1
            node = start + lane if lane < lanes else -1
            while node >= 0:  # a of the lane's point in those clusters that hold it, which are nobody's neighbours
                several = size[node] > 1.0
                inner[node, lane] = mean[node, lane] * size[node] / (size[node] - 1.0) if several else -1.0
                mean[node, lane] = FAR
                event[node] = True
                node = parent[node]
        for t in range(m - 2, -1, -1):
            if not (_nearer(mean[children[t, 0]], mean[children[t, 1]], near) or event[m + t]):
                continue
            for lane in range(lanes):
                if own[lane] == m + t:
                    own[lane] = children[t, 0] if mean[children[t, 0], lane] == FAR else children[t, 1]
                now = _coefficient(inner[own[lane], lane], near[lane])
                change[t] += weight[start + lane] * (now - score[lane])
                score[lane] = now
    for t in range(m - 3, -1, -1):
        change[t] += change[t + 1]
    return change / weight.sum()


@compiled(fastmath=True)
def _means(D: Float64, start: int, lanes: int, children: Int64, size: Float64, mean: Float64) -> None:
    """Mean distance of the points start..start+lanes-1 to every cluster of a tree, into `mean` (nodes, LANES)."""
    m = len(D)
    for j in range(m):
        for lane in range(lanes):
            mean[j, lane] = D[j, start + lane]
    for t in range(m - 1):
        a, b = children[t, 0], children[t, 1]
        left, right = size[a] / size[m + t], size[b] / size[m + t]
        for lane in range(LANES):
            mean[m + t, lane] = left * mean[a, lane] + right * mean[b, lane]


@compiled(fastmath=True)
def _nearer(left: Float64, right: Float64, near: Float64) -> bool:
    """Take what is nearer into `near`; whether anything was."""
    gain = 0.0
    for lane in range(LANES):
        low = min(near[lane], min(left[lane], right[lane]))
        gain += near[lane] - low
        near[lane] = low
    return gain > 0.0


@compiled()
def _coefficient(a: float, b: float) -> float:
    if a < -0.5:  # alone
        return 0.0
    a = 0.0 if a < ROUNDING else a
    b = 0.0 if b < ROUNDING else b
    larger = max(a, b)
    return (b - a) / larger if larger > 0.0 else 0.0


@compiled()
def best_threshold(D: Float64, weight: Float64, Z: Float64) -> float:
    """Threshold of the level with the largest silhouette, as `cut_silhouette`; Z: the tree of distinct leaves."""
    m = len(D)
    heights = Z[:, 2]
    if m < 2:
        return np.nextafter(0.0, np.inf)
    score = level_scores(D, weight, Z)
    copies = weight.sum() > m
    best, threshold = -np.inf, np.nextafter(heights[m - 2], np.inf)
    for once in range(2):  # first the largest score, then the lowest level that has it
        for t in range(0 if copies else 1, m - 1):
            low = heights[t - 1] if t else 0.0
            if heights[t] <= low:
                continue
            if once == 0:
                best = max(best, score[t])
            elif score[t] >= best - EQUAL:
                middle = low + (heights[t] - low) / 2
                return middle if middle > low else heights[t]
    return threshold


@compiled()
def grown(D: Float64, weight: Float64, method: int, work: Float64) -> Float64:
    """Linkage matrix (m-1, 4) of leaves with weights; D (m, m), cosine distances, is left alone, `work` is not."""
    m = len(D)
    work[:] = D
    if method == 1:
        for i in range(m):
            for j in range(m):
                work[i, j] *= 4.0 * weight[i] * weight[j] / (weight[i] + weight[j])
    for i in range(m):
        work[i, i] = np.inf
    pairs, heights = chain_merges(work, weight, method)
    if method == 1:
        heights = np.sqrt(heights)
    raise_to_children(pairs, heights, m)
    order = np.argsort(heights, kind="mergesort")
    return numbered(pairs[order], heights[order], m)


@compiled()
def with_copies(Z: Float64, copies: Int64) -> Float64:
    """The tree of n points whose distinct ones have the tree Z (m-1, 4): equal points are merged first, at height 0.

    copies (n,): the distinct leaf of every point, numbered by first appearance
    """
    n, m = len(copies), len(Z) + 1
    pairs, heights = np.empty((n - 1, 2), dtype=np.int64), np.zeros(n - 1)
    first = np.full(m, -1, dtype=np.int64)
    made = 0
    for i in range(n):
        if first[copies[i]] < 0:
            first[copies[i]] = i
        else:
            pairs[made, 0], pairs[made, 1] = first[copies[i]], i
            made += 1
    leaf = np.empty(2 * m - 1, dtype=np.int64)  # any point below each node of Z
    leaf[:m] = first
    for t in range(m - 1):
        a, b = int(Z[t, 0]), int(Z[t, 1])
        pairs[made, 0], pairs[made, 1], heights[made] = leaf[a], leaf[b], Z[t, 2]
        leaf[m + t] = leaf[a]
        made += 1
    return numbered(pairs, heights, n)


@compiled()
def forest_trees(
    D: Float64, copies: Int64, members: Int64, offsets: Int64, method: int, n_min: int, cut: bool
) -> tuple[Float64, Float64]:
    """A tree for each cluster of a partition, merges (n-k, 4) in a forest's order, and silhouette thresholds (k,).

    D (m, m): distances of distinct points; copies (n,): the distinct one of every point; thresholds are NaN below
    `n_min` points, and everywhere unless `cut`
    """
    k = len(offsets) - 1
    merges, thresholds = np.empty((len(members) - k, 4)), np.full(k, np.nan)
    place = np.full(len(D), -1, dtype=np.int64)
    for c in range(k):
        start, stop = offsets[c], offsets[c + 1]
        n = stop - start
        if n < 2:
            continue
        own, names, weight, m = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.zeros(n), 0
        for i in range(n):
            point = copies[members[start + i]]
            if place[point] < 0:
                place[point], names[m] = m, point
                m += 1
            own[i] = place[point]
            weight[own[i]] += 1.0
        inside = np.empty((m, m))
        for i in range(m):
            for j in range(m):
                inside[i, j] = D[names[i], names[j]]
        for i in range(m):
            place[names[i]] = -1
        Z = grown(inside, weight[:m], method, inside.copy()) if m > 1 else np.empty((0, 4))
        merges[start - c : stop - c - 1] = with_copies(Z, own)
        if cut and n >= n_min:
            thresholds[c] = best_threshold(inside, weight[:m], Z)
    return merges, thresholds
