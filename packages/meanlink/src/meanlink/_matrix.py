"""Trees out of a distance matrix of a few thousand points, compiled, for all linkages.

**Near points first.** Below some height, only points are merged that a chain of shorter distances connects: all
linkages here are reducible. So groups of connected points are merged on their own, in matrices that fit the cache, and
only the clusters that are left meet in a matrix of all. In an embedding most points have somebody very near.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from meanlink._chains import AVERAGE, COMPLETE, SINGLE, STEP, WARD, chain_merges, least, smallest, union_distance
from meanlink._compile import compiled
from meanlink._dendrogram import Trees, linkage_matrix, numbered, root_of
from meanlink._level_scores import best_threshold
from meanlink._neighbours import dot, equal
from meanlink._types import Float64, Int64

STRIP = 64
"""Rows whose products are made at a time: they stay in the fast memory until they are distances."""

LOOKED_AT = 100
"""Points whose nearest neighbours say what is near."""

NEAR = 0.85
"""Share of these points that have somebody near."""


# --- distances ---


def square_distances(rows: Float64, memory: Float64 | None = None) -> Float64:
    """Cosine distances (m, m) of unit rows (m, d), symmetric to the last bit, at least 0, 0 on the diagonal.

    memory: at least m * m numbers that the distances may take
    """
    m = len(rows)
    distances = (np.empty(m * m) if memory is None else memory)[: m * m].reshape(m, m)
    strip = np.empty(min(STRIP, m) * m)  # one for all strips: fresh pages cost more than sums
    for start in range(0, m, STRIP):
        stop = min(start + STRIP, m)
        products = strip[: (stop - start) * stop].reshape(stop - start, stop)
        np.dot(rows[start:stop], rows[:stop].T, out=products)
        _mirror(products, start, distances)
    return distances


@compiled()
def _mirror(products: Float64, start: int, distances: Float64) -> None:
    """Products of the rows from `start` on with all rows up to them, as distances on both sides of the diagonal."""
    number, stop = products.shape
    for i in range(number):
        for j in range(start + i):
            products[i, j] = max(1.0 - products[i, j], 0.0)
            distances[start + i, j] = products[i, j]
        products[i, start + i] = 0.0
    for j in range(stop):
        for i in range(max(j - start, 0), number):
            distances[j, start + i] = products[i, j]


@compiled()
def _distances(rows: Float64) -> Float64:
    """Cosine distances (n, n) of a few unit rows; exactly 0 between equal rows."""
    n = len(rows)
    distances = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            if not equal(rows[i], rows[j]):
                distances[i, j] = max(1.0 - dot(rows[i], rows[j]), 0.0)
                distances[j, i] = distances[i, j]
    return distances


@compiled()
def _selected(D: Float64, names: Int64) -> Float64:
    """The distances of some points, a copy."""
    m = len(names)
    found = np.empty((m, m))
    for i in range(m):
        for j in range(m):
            found[i, j] = D[names[i], names[j]]
    return found


# --- trees ---


class Groups(NamedTuple):
    """Points in groups: between two groups no distance is below `near`."""

    near: float
    members: Int64  # (m,) group after group
    offsets: Int64  # (groups + 1,)


@compiled()
def near_groups(D: Float64) -> Groups:
    """Groups of points for `tree_of`, which all linkages share; D (m, m): distances."""
    near = _near(D) if len(D) > 1 else 0.0
    members, offsets = _connected(D, near)
    return Groups(near, members, offsets)


@compiled()
def tree_of(D: Float64, weight: Float64, groups: Groups, method: int) -> Float64:
    """Linkage matrix (m-1, 4) of leaves that stand for `weight` (m,) equal points each; D (m, m): their distances."""
    m = len(D)
    if m < 2:
        return np.empty((0, 4))
    members, offsets = groups.members, groups.offsets
    limit = np.sqrt(2.0 * groups.near) if method == WARD else groups.near  # Ward's heights are Euclidean
    pairs, heights = np.empty((m - 1, 2), dtype=np.int64), np.empty(m - 1)
    parent, made = np.arange(m), 0
    for g in range(len(offsets) - 1):
        names = members[offsets[g] : offsets[g + 1]]
        if len(names) < 2:
            continue
        joined, far = chain_merges(_selected(D, names), weight[names], method)
        for t in range(len(far)):
            if far[t] < limit or len(names) == m:
                a, b = names[joined[t, 0]], names[joined[t, 1]]
                pairs[made, 0], pairs[made, 1], heights[made] = a, b, far[t]
                parent[root_of(parent, b)] = root_of(parent, a)
                made += 1
    if made < m - 1:
        first, between, size = _clusters(D, weight, parent, method)
        joined, far = chain_merges(between, size, method)
        for t in range(len(far)):
            pairs[made, 0], pairs[made, 1], heights[made] = first[joined[t, 0]], first[joined[t, 1]], far[t]
            made += 1
    return linkage_matrix(pairs, heights)


@compiled()
def _near(D: Float64) -> float:
    """A distance within which most points have a neighbour; any number would do, this one saves work."""
    m = len(D)
    looked = min(m, LOOKED_AT)
    nearest = np.empty(looked)
    for k in range(looked):
        i = k * m // looked
        before = smallest(D[i, :i])[1] if i else np.inf
        nearest[k] = min(before, smallest(D[i, i + 1 :])[1] if i < m - 1 else np.inf)
    return np.sort(nearest)[int(NEAR * (looked - 1))]


@compiled()
def _connected(D: Float64, near: float) -> tuple[Int64, Int64]:
    """Groups of points that distances below `near` connect: their members one after the other, and offsets."""
    m = len(D)
    parent = np.arange(m)
    for i in range(m):
        for start in range(0, i, STEP):
            stop = min(start + STEP, i)
            if least(D[i], start, stop) < near:
                for j in range(start, stop):
                    if D[i, j] < near:
                        a, b = root_of(parent, i), root_of(parent, j)
                        parent[max(a, b)] = min(a, b)
    top = np.empty(m, dtype=np.int64)
    for i in range(m):
        top[i] = root_of(parent, i)
    members = np.argsort(top, kind="mergesort")
    offsets, groups = np.zeros(m + 1, dtype=np.int64), 0
    for k in range(1, m + 1):
        if k == m or top[members[k]] != top[members[k - 1]]:
            groups += 1
            offsets[groups] = k
    return members, offsets[: groups + 1]


@compiled()
def _clusters(D: Float64, weight: Float64, parent: Int64, method: int) -> tuple[Int64, Float64, Float64]:
    """What is left after some merges: a point of each cluster (k,), their distances (k, k), their sizes (k,).

    Mean distances for average linkage and Ward's, the diagonal within clusters; the largest for complete linkage, the
    smallest for single.
    """
    m = len(D)
    name, first, number = np.full(m, -1, dtype=np.int64), np.empty(m, dtype=np.int64), 0
    own = np.empty(m, dtype=np.int64)
    for i in range(m):
        top = root_of(parent, i)
        if name[top] < 0:
            name[top], first[number] = number, i
            number += 1
        own[i] = name[top]
    size = np.zeros(number)
    for i in range(m):
        size[own[i]] += weight[i]
    between = np.full((number, number), np.inf if method == SINGLE else 0.0)
    for i in range(m):
        into = between[own[i]]
        if method in (AVERAGE, WARD):
            for j in range(i):
                into[own[j]] += D[i, j] * (weight[i] * weight[j])
        elif method == COMPLETE:
            for j in range(i):
                into[own[j]] = max(into[own[j]], D[i, j])
        else:
            for j in range(i):
                into[own[j]] = min(into[own[j]], D[i, j])
    for a in range(number):  # each pair of points was seen once, from either side
        for b in range(a + 1):
            if method in (AVERAGE, WARD):
                both = (between[a, b] + between[b, a]) / (size[a] * size[b])
            else:
                both = union_distance(method, between[a, b], between[b, a], 0.0, 1.0, 1.0, 1.0)
            between[a, b] = between[b, a] = both
    return first[:number], between, size


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


# --- many clusters at once ---


@compiled(parallel=True)
def small_trees(rows: Float64, begin: Int64, first: Int64, method: int, merges: Float64) -> None:
    """Trees of small clusters: cluster c is the unit rows begin[c]..begin[c+1], its merges start at first[c]."""
    for c in prange(len(first)):
        D = _distances(rows[begin[c] : begin[c + 1]])
        merges[first[c] : first[c] + len(D) - 1] = tree_of(D, np.ones(len(D)), near_groups(D), method)


@compiled(parallel=True)
def small_cuts(rows: Float64, begin: Int64, which: Int64, t: Trees) -> Float64:
    """Silhouette thresholds of the ascending trees `which` of a forest; the unit rows of tree which[c], at least two,
    are rows[begin[c] : begin[c+1]].
    """
    thresholds = np.empty(len(which))
    for c in prange(len(which)):
        thresholds[c] = _small_cut(rows[begin[c] : begin[c + 1]], which[c], t)
    return thresholds


@compiled()
def _small_cut(rows: Float64, tree: int, t: Trees) -> float:
    n, start = len(rows), t.offsets[tree]
    first = start - tree
    Z = np.empty((n - 1, 4))
    for m in range(n - 1):
        Z[m, 2] = t.height[first + m]
        for side in range(2):
            node = t.children[first + m, side]
            inner = node - t.offsets[-1]
            Z[m, side] = node - start if inner < 0 else n + inner - first
    return best_threshold(_distances(rows), np.ones(n), Z)
