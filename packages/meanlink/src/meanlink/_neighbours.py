"""Clusters as sums and sizes, and short lists of the nearest clusters.

For unit rows, with S the sum of a cluster's rows and n its size, the mean cosine distance over all pairs of A and B is

    d(A, B) = mean over a in A, b in B of (1 - a.b) = 1 - S_A.S_B / (n_A n_B).

It is *reducible*: a union is never nearer to a third cluster than the nearer of its two parts. Everything here rests on
that. Row i of `Lists` holds up to K clusters sorted by exact distance, and `bound[i]`, a distance below which no
unlisted cluster lies. The bound stays true however the unlisted clusters are merged: as long as the first entry is
within the bound, the nearest neighbour of a cluster is known without a search.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meanlink._compile import compiled
from meanlink._types import Float64, Int32

LENGTH = 12
"""Entries of a list. More entries mean fewer searches and longer upkeep; 8 to 16 measure alike."""

TIE = 2e-15
"""Difference of two distances that rounding alone can make."""


class Table(NamedTuple):
    """The sum of the rows of each cluster (n, d), and its size (n,). A point is a cluster of size 1."""

    sums: Float64
    size: Float64


class Lists(NamedTuple):
    """Nearest-neighbour lists of n rows."""

    ids: Int32  # (n, K)
    distances: Float64  # (n, K)
    filled: Int32  # (n,) entries in use
    bound: Float64  # (n,)


def empty_lists(n: int, length: int = LENGTH) -> Lists:
    """Lists of n rows without entries."""
    ids, distances = np.zeros((n, length), dtype=np.int32), np.full((n, length), np.inf)
    return Lists(ids, distances, np.zeros(n, dtype=np.int32), np.full(n, np.inf))


@compiled(fastmath=True)
def dot(a: Float64, b: Float64) -> float:
    """a.b in float64; the same bits for (a, b) and (b, a)."""
    total = 0.0
    for k in range(len(a)):
        total += a[k] * b[k]
    return total


@compiled()
def equal(a: Float64, b: Float64) -> bool:
    """Whether two rows are the same."""
    k = 0
    while k < len(a) and a[k] == b[k]:
        k += 1
    return k == len(a)


@compiled()
def cluster_distance(left: Table, i: int, right: Table, j: int) -> float:
    """Mean cosine distance of cluster i of one table and cluster j of another, at least 0."""
    return max(1.0 - dot(left.sums[i], right.sums[j]) / (left.size[i] * right.size[j]), 0.0)


@compiled()
def insert(lists: Lists, i: int, j: int, distance: float) -> None:
    """Insert (j, distance) into the list of row i, ordered by distance, then by number; the last one falls off."""
    ids, distances = lists.ids[i], lists.distances[i]
    at = lists.filled[i]
    if at == len(ids):
        if distance > distances[at - 1] or (distance == distances[at - 1] and j > ids[at - 1]):
            return
        at -= 1
    else:
        lists.filled[i] += 1
    while at > 0 and (distances[at - 1] > distance or (distances[at - 1] == distance and ids[at - 1] > j)):
        ids[at] = ids[at - 1]
        distances[at] = distances[at - 1]
        at -= 1
    ids[at] = j
    distances[at] = distance


@compiled()
def open_lists(rows: Int32, lists: Lists) -> None:
    """Empty the lists of `rows` before a search."""
    for i in rows:
        lists.filled[i] = 0
        lists.distances[i, :] = np.inf


@compiled()
def close_lists(rows: Int32, radius: float, others: int, lists: Lists) -> None:
    """After a search over `others` clusters: what is not listed is no nearer than the radius, nor than the last entry
    of a full list.
    """
    for i in rows:
        full = lists.filled[i] == lists.ids.shape[1] and lists.filled[i] < others
        lists.bound[i] = min(lists.distances[i, -1], radius) if full else radius
