"""Dendrograms and silhouette cuts of many small clusters at once: one compiled loop over clusters, each with its own
matrix.

A cluster of up to `SMALL` points has a distance matrix that fits the cache; for these the textbook algorithms win,
and the price of calling anything 100,000 times would dominate. Results are those of `linkage` and `cut_silhouette`.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from btcnb.cluster._climb import ROUNDING
from btcnb.cluster._compile import compiled
from btcnb.cluster._distance import dot
from btcnb.cluster._gate import Float64, Int64, Trees
from btcnb.cluster._order import numbered, raise_to_children

SMALL = 160
"""Largest cluster treated here; above it, `linkage` and `silhouette_levels` are as fast and need no matrix."""


@compiled()
def _cosine(rows: Float64) -> Float64:
    """Cosine distances (n, n); exactly 0 between equal rows."""
    n = len(rows)
    distances = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            equal = True
            for k in range(rows.shape[1]):
                if rows[i, k] != rows[j, k]:
                    equal = False
                    break
            if not equal:
                distances[i, j] = max(1.0 - dot(rows[i], rows[j]), 0.0)
                distances[j, i] = distances[i, j]
    return distances


@compiled()
def _update(method: int, to_a: float, to_b: float, between: float, a: float, b: float, x: float) -> float:
    """Lance-Williams: distance of x to the union of a and b (of sizes a, b, x; Ward on squares), by code."""
    if method == 0:
        return (a * to_a + b * to_b) / (a + b)
    if method == 1:
        return ((a + x) * to_a + (b + x) * to_b - x * between) / (a + b + x)
    return max(to_a, to_b) if method == 2 else min(to_a, to_b)


@compiled()
def _chain(distances: Float64, method: int) -> tuple[Int64, Float64]:
    """Merges (n-1, 2) by any leaf of each side and heights, by nearest-neighbour chains; `distances` is used up."""
    n = len(distances)
    size = np.ones(n)
    alive = np.ones(n, dtype=np.bool_)
    chain = np.empty(n, dtype=np.int64)
    length = 0
    pairs = np.empty((n - 1, 2), dtype=np.int64)
    heights = np.empty(n - 1)
    first = 0
    for m in range(n - 1):
        if length == 0:
            while not alive[first]:
                first += 1
            chain[0] = first
            length = 1
        while True:
            i = chain[length - 1]
            j = chain[length - 2] if length > 1 else -1
            low = distances[i, j] if length > 1 else np.inf
            for k in range(n):
                if alive[k] and k != i and distances[i, k] < low:
                    low = distances[i, k]
                    j = k
            if length > 1 and j == chain[length - 2]:
                break
            chain[length] = j
            length += 1
        length -= 2
        pairs[m, 0], pairs[m, 1], heights[m] = i, j, low
        for k in range(n):
            if alive[k] and k != i and k != j:
                distances[i, k] = _update(method, distances[i, k], distances[j, k], low, size[i], size[j], size[k])
                distances[k, i] = distances[i, k]
        size[i] += size[j]
        alive[j] = False
    return pairs, heights


@compiled(parallel=True)
def small_trees(rows: Float64, begin: Int64, first: Int64, method: int, merges: Float64) -> None:
    """Linkage matrices of several clusters: cluster c is the unit rows begin[c]..begin[c+1], its merges go to
    first[c] on.
    """
    for c in prange(len(first)):
        distances = _cosine(rows[begin[c] : begin[c + 1]])
        n = len(distances)
        if method == 1:
            distances *= 2.0  # squared Euclidean distance of unit vectors
        pairs, heights = _chain(distances, method)
        if method == 1:
            heights = np.sqrt(heights)
        # a chain makes a merge after those it contains, but not in order of height
        raise_to_children(pairs, heights, n)
        order = np.argsort(heights, kind="mergesort")
        merges[first[c] : first[c] + n - 1] = numbered(pairs[order], heights[order], n)


@compiled()
def _nearest(totals: Float64, i: int, own: int, size: Float64, alive: Int64) -> tuple[int, float]:
    """The live cluster other than its own that point i is nearest to, and its distance."""
    at, b = -1, np.inf
    for c in alive:
        if c != own and totals[i, c] / size[c] < b:
            at, b = c, totals[i, c] / size[c]
    return at, b


@compiled()
def _best_cut(totals: Float64, children: Int64, heights: Float64) -> float:
    """Threshold of the level with the largest silhouette; `totals` begins as the distance matrix and is used up.

    totals[i, c] is the sum of distances of point i to cluster c. Towards the root a point's nearest other cluster stays
    the nearest until it is merged, so only those that watched one of the two parts look again.
    """
    n = len(totals)
    own = np.arange(n)
    slot = np.arange(2 * n - 1)
    size = np.ones(n)
    alive = np.arange(n)
    watched = np.full(n, -1)
    b = np.zeros(n)
    best, threshold = -np.inf, np.nextafter(heights[n - 2], np.inf)
    for m in range(n - 2):
        into, gone = slot[children[m, 0]], slot[children[m, 1]]
        slot[n + m] = into
        size[into] += size[gone]
        alive = alive[alive != gone]
        for i in range(n):
            totals[i, into] += totals[i, gone]
            if own[i] == gone:
                own[i] = into
        score = 0.0
        for i in range(n):
            mine = own[i]
            if size[mine] < 2.0:
                continue
            if watched[i] < 0 or watched[i] == into or watched[i] == gone:
                watched[i], b[i] = _nearest(totals, i, mine, size, alive)
            a = totals[i, mine] / (size[mine] - 1.0)
            a = 0.0 if a < ROUNDING else a
            near = 0.0 if b[i] < ROUNDING else b[i]
            if max(a, near) > 0.0:
                score += (near - a) / max(a, near)
        low, high = heights[m], heights[m + 1]
        if high > low and score / n > best + 1e-12:
            best = score / n
            middle = low + (high - low) / 2
            threshold = middle if middle > low else high
    return threshold


@compiled(parallel=True)
def small_cuts(rows: Float64, begin: Int64, which: Int64, t: Trees) -> Float64:
    """Silhouette thresholds of the trees `which`, of at least two leaves and in ascending order; the unit rows of tree
    which[c] are rows[begin[c] : begin[c+1]].
    """
    thresholds = np.empty(len(which))
    for c in prange(len(which)):
        thresholds[c] = _cut_one(rows[begin[c] : begin[c + 1]], which[c], t)
    return thresholds


@compiled()
def _cut_one(rows: Float64, tree: int, t: Trees) -> float:
    n, start = len(rows), t.offsets[tree]
    first = start - tree
    children = t.children[first : first + n - 1].copy()
    for m in range(n - 1):
        for side in range(2):
            node = children[m, side]
            inner = node - t.offsets[-1]
            children[m, side] = node - start if inner < 0 else n + inner - first
    return _best_cut(_cosine(rows), children, t.height[first : first + n - 1])
