"""Merges of leaves out of their distance matrix by nearest-neighbour chains, compiled, for all linkages.

A chain needs fresh rows only where it looks. So a merge updates one row, and every other row catches up with the merges
it missed when the chain comes to it: all work runs along rows, never down a column.
"""

from __future__ import annotations

import numpy as np

from meanlink._compile import compiled
from meanlink._dendrogram import raise_to_children
from meanlink._types import Float64, Int64

AVERAGE, WARD, COMPLETE, SINGLE = range(4)
"""The linkages, as numba sees them."""

STEP = 32
"""Entries of a row that are compared at once."""


@compiled(fastmath={"nnan", "nsz"})
def least(row: Float64, start: int, stop: int) -> float:
    least = row[start]
    for j in range(start, stop):
        least = min(least, row[j])
    return least


@compiled()
def smallest(row: Float64) -> tuple[int, float]:
    """Position and value of the smallest entry, the first of equal ones."""
    low, block = np.inf, 0
    for start in range(0, len(row), STEP):
        here = least(row, start, min(start + STEP, len(row)))
        if here < low:
            low, block = here, start
    at = block
    while row[at] > low:
        at += 1
    return at, row[at]


@compiled()
def chain_merges(D: Float64, size: Float64, method: int) -> tuple[Int64, Float64]:
    """Merges (m-1, 2) by any leaf of each side and heights, a merge after those it contains; D (m, m) is used up.

    D: mean (complete, single: largest, smallest) cosine distances of leaves, which may be clusters; on the diagonal
       those within
    """
    m = len(D)
    if method == WARD:  # |c - c'|² of two centres on or in the unit sphere, times what Ward weighs it with
        within = np.diag(D).copy()
        for i in range(m):
            for j in range(m):
                apart = max(2.0 * D[i, j] - within[i] - within[j], 0.0)
                D[i, j] = 2.0 * size[i] * size[j] / (size[i] + size[j]) * apart
    for i in range(m):
        D[i, i] = np.inf
    pairs, heights = _chain(D, size, method)
    if method == WARD:
        heights = np.sqrt(heights)
    raise_to_children(pairs, heights, m)
    return pairs, heights


@compiled()
def _chain(D: Float64, weight: Float64, method: int) -> tuple[Int64, Float64]:
    """Merges (m-1, 2) by any leaf of each side and their heights, in the order they were made; D (m, m) is used up.

    D: distances with +inf on the diagonal (Ward: squared, weights included)
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
        j, low = smallest(D[i])
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
    """Distances to the union of two clusters of sizes a and b, in the first one's row; a loop without branches each."""
    if method == AVERAGE:
        for k in range(len(into)):
            into[k] = union_distance(AVERAGE, into[k], gone[k], low, a, b, 1.0)
    elif method == WARD:
        for k in range(len(into)):
            into[k] = union_distance(WARD, into[k], gone[k], low, a, b, size[k])
    elif method == COMPLETE:
        for k in range(len(into)):
            into[k] = union_distance(COMPLETE, into[k], gone[k], low, a, b, 1.0)
    else:
        for k in range(len(into)):
            into[k] = union_distance(SINGLE, into[k], gone[k], low, a, b, 1.0)


@compiled()
def union_distance(method: int, to_a: float, to_b: float, between: float, a: float, b: float, x: float) -> float:
    """Lance-Williams: distance of x to the union of a and b (of sizes a, b, x; Ward on squares)."""
    if method == AVERAGE:
        return (a * to_a + b * to_b) / (a + b)
    if method == WARD:
        return ((a + x) * to_a + (b + x) * to_b - x * between) / (a + b + x)
    return max(to_a, to_b) if method == COMPLETE else min(to_a, to_b)


@compiled()
def _catch_up(
    row: Float64, known: int, made: int, pairs: Int64, heights: Float64, sizes: Float64, own: float, method: int
) -> None:
    """Tell a row of the merges known..made-1."""
    for t in range(known, made):
        a, b = pairs[t, 0], pairs[t, 1]
        row[a] = union_distance(method, row[a], row[b], heights[t], sizes[t, 0], sizes[t, 1], own)
        row[b] = np.inf
