"""Distances and trees out of one matrix, compiled.

**Near points first.** Below some height, only points are merged that a chain of shorter distances connects: all three
linkages are reducible. So groups of connected points are merged on their own, in matrices that fit the cache, and only
the clusters that are left meet in a matrix of all. In an embedding most points have somebody very near.

**Chains.** Nearest-neighbour chains need fresh rows only where they look. So a merge updates one row, and every other
row catches up with the merges it missed when the chain comes to it: all work runs along rows, never down a column.

Points that are equal are one leaf of a weight.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from btcnb.cluster._compile import compiled
from btcnb.cluster._gate import Float64, Int64
from btcnb.cluster._one_matrix_levels import best_thresholds
from btcnb.cluster._order import _root, numbered, raise_to_children
from btcnb.cluster._small import _update

STEP = 32
"""Entries of a row that are compared at once."""
STRIP = 64
"""Rows whose products are made at a time: they stay in the fast memory until they are distances."""
LOOKED_AT = 100
"""Points whose nearest neighbours say what is near."""
NEAR = 0.85
"""Share of these points that have somebody near."""


def fill_distances(rows: Float64, distances: Float64) -> None:
    """Cosine distances (m, m) of unit rows (m, d), symmetric to the last bit, at least 0, 0 on the diagonal."""
    m = len(rows)
    memory = np.empty(min(STRIP, m) * m)  # one for all strips: fresh pages cost more than sums
    for start in range(0, m, STRIP):
        stop = min(start + STRIP, m)
        products = memory[: (stop - start) * stop].reshape(stop - start, stop)
        np.dot(rows[start:stop], rows[:stop].T, out=products)
        _mirror(products, start, distances)


@compiled()
def _mirror(products: Float64, start: int, distances: Float64) -> None:
    """Products of the rows start.. with all rows up to them, as distances on both sides of the diagonal."""
    number, stop = products.shape
    for i in range(number):
        for j in range(start + i):
            products[i, j] = max(1.0 - products[i, j], 0.0)
            distances[start + i, j] = products[i, j]
        products[i, start + i] = 0.0
    for j in range(stop):
        for i in range(max(j - start, 0), number):
            distances[j, start + i] = products[i, j]


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
    elif method == 2:
        for k in range(len(into)):
            into[k] = _update(2, into[k], gone[k], low, a, b, 1.0)
    else:
        for k in range(len(into)):
            into[k] = _update(3, into[k], gone[k], low, a, b, 1.0)


@compiled()
def _catch_up(
    row: Float64, known: int, made: int, pairs: Int64, heights: Float64, sizes: Float64, own: float, method: int
) -> None:
    for t in range(known, made):
        a, b = pairs[t, 0], pairs[t, 1]
        row[a] = _update(method, row[a], row[b], heights[t], sizes[t, 0], sizes[t, 1], own)
        row[b] = np.inf


class Groups(NamedTuple):
    """Points in groups: between two groups no distance is below `near`."""

    near: float
    members: Int64  # (m,) group after group
    offsets: Int64  # (groups + 1,)


@compiled()
def near_groups(D: Float64) -> Groups:
    """Groups of points for `grown`; D (m, m): distances."""
    near = _near(D) if len(D) > 1 else 0.0
    members, offsets = _connected(D, near)
    return Groups(near, members, offsets)


@compiled()
def grown(D: Float64, weight: Float64, groups: Groups, method: int) -> Float64:
    """Linkage matrix (m-1, 4) of leaves with weights; D (m, m): their cosine distances, 0 on the diagonal."""
    m = len(D)
    if m < 2:
        return np.empty((0, 4))
    limit = np.sqrt(2.0 * groups.near) if method == 1 else groups.near  # Ward's heights are Euclidean
    pairs, heights = np.empty((m - 1, 2), dtype=np.int64), np.empty(m - 1)
    parent, made = np.arange(m), 0
    for g in range(len(groups.offsets) - 1):
        names = groups.members[groups.offsets[g] : groups.offsets[g + 1]]
        if len(names) < 2:
            continue
        joined, far = _chained(_selected(D, names), weight[names], method)
        for t in range(len(far)):
            if far[t] < limit or len(names) == m:
                a, b = names[joined[t, 0]], names[joined[t, 1]]
                pairs[made, 0], pairs[made, 1], heights[made] = a, b, far[t]
                parent[_root(parent, b)] = _root(parent, a)
                made += 1
    if made < m - 1:
        first, between, size = _clusters(D, weight, parent, method)
        joined, far = _chained(between, size, method)
        for t in range(len(far)):
            pairs[made, 0], pairs[made, 1], heights[made] = first[joined[t, 0]], first[joined[t, 1]], far[t]
            made += 1
    raise_to_children(pairs, heights, m)
    order = np.argsort(heights, kind="mergesort")
    return numbered(pairs[order], heights[order], m)


@compiled()
def _near(D: Float64) -> float:
    """A distance within which most points have a neighbour; any number would do, this one saves work."""
    m = len(D)
    looked = min(m, LOOKED_AT)
    nearest = np.empty(looked)
    for k in range(looked):
        i = k * m // looked
        nearest[k] = min(_smallest(D[i, :i])[1] if i else np.inf, _smallest(D[i, i + 1 :])[1] if i < m - 1 else np.inf)
    return np.sort(nearest)[int(NEAR * (looked - 1))]


@compiled()
def _connected(D: Float64, near: float) -> tuple[Int64, Int64]:
    """Groups of points that distances below `near` connect: their members one after the other, and offsets."""
    m = len(D)
    parent = np.arange(m)
    for i in range(m):
        for start in range(0, i, STEP):
            stop = min(start + STEP, i)
            if _least(D[i], start, stop) < near:
                for j in range(start, stop):
                    if D[i, j] < near:
                        a, b = _root(parent, i), _root(parent, j)
                        parent[max(a, b)] = min(a, b)
    top = np.empty(m, dtype=np.int64)
    for i in range(m):
        top[i] = _root(parent, i)
    members = np.argsort(top, kind="mergesort")
    offsets, groups = np.zeros(m + 1, dtype=np.int64), 0
    for k in range(1, m + 1):
        if k == m or top[members[k]] != top[members[k - 1]]:
            groups += 1
            offsets[groups] = k
    return members, offsets[: groups + 1]


@compiled(fastmath={"nnan", "nsz"})
def _least(row: Float64, start: int, stop: int) -> float:
    least = row[start]
    for j in range(start, stop):
        least = min(least, row[j])
    return least


@compiled()
def _selected(D: Float64, names: Int64) -> Float64:
    """The distances of some points, a copy."""
    m = len(names)
    found = np.empty((m, m))
    for i in range(m):
        for j in range(m):
            found[i, j] = D[names[i], names[j]]
    return found


@compiled()
def _clusters(D: Float64, weight: Float64, parent: Int64, method: int) -> tuple[Int64, Float64, Float64]:
    """What is left after some merges: a point of each cluster (k,), their distances (k, k), their sizes (k,).

    Mean distances for average linkage and Ward's, the diagonal within clusters; the largest for complete linkage, the
    smallest for single.
    """
    m = len(D)
    name, first, number = np.full(m, -1, dtype=np.int64), np.empty(m, dtype=np.int64), 0
    for i in range(m):
        top = _root(parent, i)
        if name[top] < 0:
            name[top], first[number] = number, i
            number += 1
    own = np.empty(m, dtype=np.int64)
    for i in range(m):
        own[i] = name[_root(parent, i)]
    size = np.zeros(number)
    for i in range(m):
        size[own[i]] += weight[i]
    between = np.full((number, number), np.inf if method == 3 else 0.0)
    for i in range(m):
        into = between[own[i]]
        if method < 2:
            for j in range(i):
                into[own[j]] += D[i, j] * (weight[i] * weight[j])
        elif method == 2:
            for j in range(i):
                into[own[j]] = max(into[own[j]], D[i, j])
        else:
            for j in range(i):
                into[own[j]] = min(into[own[j]], D[i, j])
    for a in range(number):  # each pair of points was seen once, from either side
        for b in range(a + 1):
            if method < 2:
                both = (between[a, b] + between[b, a]) / (size[a] * size[b])
            else:
                both = max(between[a, b], between[b, a]) if method == 2 else min(between[a, b], between[b, a])
            between[a, b] = between[b, a] = both
    return first[:number], between, size


@compiled()
def _chained(D: Float64, size: Float64, method: int) -> tuple[Int64, Float64]:
    """Merges (m-1, 2) by any leaf of each side and heights, a merge after those it contains; D (m, m) is used up.

    D: mean (complete, single: largest, smallest) cosine distances of leaves, which may be clusters; on the diagonal
       those within
    """
    m = len(D)
    if method == 1:  # |c - c'|² of two centres on or in the unit sphere, times what Ward weighs it with
        within = np.diag(D).copy()
        for i in range(m):
            for j in range(m):
                apart = max(2.0 * D[i, j] - within[i] - within[j], 0.0)
                D[i, j] = 2.0 * size[i] * size[j] / (size[i] + size[j]) * apart
    for i in range(m):
        D[i, i] = np.inf
    pairs, heights = chain_merges(D, size, method)
    if method == 1:
        heights = np.sqrt(heights)
    raise_to_children(pairs, heights, m)
    return pairs, heights


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
        for i in range(m):
            place[names[i]] = -1
        inside = _selected(D, names[:m])
        Z = grown(inside, weight[:m], near_groups(inside), method)
        merges[start - c : stop - c - 1] = with_copies(Z, own)
        if cut and n >= n_min:
            thresholds[c] = best_thresholds(inside, weight[:m], Z.reshape(1, len(Z), 4))[0]
    return merges, thresholds
