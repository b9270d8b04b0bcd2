"""Dendrograms and silhouette cuts of many small clusters at once: one compiled loop over clusters, each with its own
matrix.

A cluster of up to `SMALL` points has a distance matrix that fits the cache; for these the textbook algorithms win,
and the price of calling anything 100,000 times would dominate. Results are those of `linkage` and `cut_silhouette`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange

from btcnb.cluster._climb import ROUNDING
from btcnb.cluster._distance import dot
from btcnb.cluster._order import _number, _raise_to_children

SMALL = 160
"""Largest cluster treated here; above it, `linkage` and `silhouette_levels` are as fast and need no matrix."""

METHOD_CODE = {"average": 0, "ward": 1, "complete": 2, "single": 3}


@njit(cache=True)
def _cosine(rows: Any) -> Any:
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


@njit(cache=True)
def _update(method: int, to_a: float, to_b: float, between: float, a: float, b: float, x: float) -> float:
    """Lance-Williams: distance of x to the union of a and b (sizes a, b, x; Ward on squares)."""
    if method == 0:
        return (a * to_a + b * to_b) / (a + b)
    if method == 1:
        return ((a + x) * to_a + (b + x) * to_b - x * between) / (a + b + x)
    return max(to_a, to_b) if method == 2 else min(to_a, to_b)


@njit(cache=True)
def _chain(distances: Any, method: int) -> Any:
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


@njit(cache=True, parallel=True)
def small_trees(rows: Any, begin: Any, first: Any, method: int, merges: Any) -> None:
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
        _raise_to_children(pairs, heights, n)
        order = np.argsort(heights, kind="mergesort")
        merges[first[c] : first[c] + n - 1] = _number(pairs[order], heights[order], n)


@njit(cache=True)
def _mean_silhouette(totals: Any, own: Any, size: Any) -> float:
    """Silhouette from the summed distances of every point to every cluster; size 0 marks a dead cluster."""
    n = len(totals)
    score = 0.0
    for i in range(n):
        if size[own[i]] < 2.0:
            continue
        a = totals[i, own[i]] / (size[own[i]] - 1.0)
        b = np.inf
        for c in range(n):
            if size[c] > 0.0 and c != own[i]:
                b = min(b, totals[i, c] / size[c])
        a = 0.0 if a < ROUNDING else a
        b = 0.0 if b < ROUNDING else b
        if max(a, b) > 0.0:
            score += (b - a) / max(a, b)
    return score / n


@njit(cache=True)
def _best_cut(totals: Any, Z: Any) -> float:
    """Threshold of the level with the largest silhouette; `totals` begins as the distance matrix and is used up."""
    n = len(totals)
    own = np.arange(n)
    slot = np.arange(2 * n - 1)
    size = np.ones(n)
    best, threshold = -np.inf, np.nextafter(Z[n - 2, 2], np.inf)
    for m in range(n - 2):
        a, b = slot[int(Z[m, 0])], slot[int(Z[m, 1])]
        slot[n + m] = a
        for i in range(n):
            totals[i, a] += totals[i, b]
            if own[i] == b:
                own[i] = a
        size[a] += size[b]
        size[b] = 0.0
        low, high = Z[m, 2], Z[m + 1, 2]
        if high > low:
            score = _mean_silhouette(totals, own, size)
            if score > best + 1e-12:
                best = score
                middle = low + (high - low) / 2
                threshold = middle if middle > low else high
    return threshold


@njit(cache=True, parallel=True)
def small_cuts(rows: Any, begin: Any, first: Any, merges: Any) -> Any:
    """Silhouette thresholds of several clusters of at least two points; see `small_trees` for the layout."""
    thresholds = np.empty(len(first))
    for c in prange(len(first)):
        totals = _cosine(rows[begin[c] : begin[c + 1]])
        thresholds[c] = _best_cut(totals, merges[first[c] : first[c] + len(totals) - 1])
    return thresholds
