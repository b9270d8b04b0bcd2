"""Short lists of nearest clusters, with a bound on everything that is not listed.

Row i of a `Lists` holds up to K clusters sorted by exact distance and `bound[i]`, a distance below which no unlisted
cluster lies. Products come from float32 matrix products; whatever they cannot rule out is measured again in
float64, so lists are exact. Because the distances are reducible, a bound stays true however the unlisted clusters are
merged: as long as the first entry is within the bound, a cluster's nearest neighbour is known without a search.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from btcnb.cluster._compile import compiled
from btcnb.cluster._distance import Real, Table, cluster_distance
from btcnb.cluster._gate import Bool, Float64, Int32

LENGTH = 12
"""Entries a list can hold. More entries mean fewer searches and longer upkeep; 8 to 16 measure alike."""

PATIENCE = 160
"""Columns of one block that a row measures in float64 before it asks for a float64 product instead. A list that starts
empty measures about K (1 + ln(columns / K)), some 80; only ties and near-duplicates come near 160."""

STRIP = 64
"""Columns compared with the threshold at once: four cache lines of float32."""


class Lists(NamedTuple):
    """Nearest-neighbour lists of n rows."""

    ids: Int32  # (n, K)
    distances: Float64  # (n, K)
    filled: Int32  # (n,) entries in use
    bound: Float64  # (n,)


class Block(NamedTuple):
    """Lower bounds (R, C) of the distances, plus `offset`, of some rows to some columns.

    Columns with id -1 are dead; row r skips cluster own[r].
    """

    values: Real
    rows: Int32
    own: Int32
    cols: Int32
    offset: float


def empty_lists(n: int, length: int = LENGTH) -> Lists:
    return Lists(
        np.zeros((n, length), dtype=np.int32),
        np.full((n, length), np.inf),
        np.zeros(n, dtype=np.int32),
        np.full(n, np.inf),
    )


@compiled()
def push(lists: Lists, i: int, j: int, distance: float) -> None:
    """Insert (j, distance) into the sorted list of row i; the last entry falls off a full list. Ties keep the
    smaller id.
    """
    ids, distances = lists.ids[i], lists.distances[i]
    at = lists.filled[i]
    if at == len(ids):
        if distance >= distances[at - 1]:
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
def threshold(values: Real, lists: Lists, i: int, offset: float) -> float:
    """Value of a block row below which a column belongs into list i: float32 rounded up, float64 ties left out."""
    last = lists.distances[i, -1]
    if np.isinf(last):
        return values.dtype.type(np.inf)
    slack = 4e-7 if values.itemsize == 4 else -1e-15
    return values.dtype.type(last + offset + slack * (1.0 + abs(last)))


@compiled(fastmath={"nnan", "reassoc", "nsz"})
def smallest(values: Real, start: int, stop: int) -> float:
    low = values[start]
    for c in range(start + 1, stop):
        low = min(low, values[c])
    return low


@compiled(parallel=True)
def scan_rows(block: Block, give_up: bool, kind: int, left: Table, right: Table, lists: Lists) -> Bool:
    """Offer to each row's list every column that the block cannot rule out.

    With `give_up`, a row that would measure more than `PATIENCE` columns is left, its list as it was, and
    returned as True.
    """
    ids, distances, count, _ = lists
    cols = block.cols
    crowded = np.zeros(len(block.rows), dtype=np.bool_)
    for r in prange(len(block.rows)):
        i, own = block.rows[r], block.own[r]
        values = block.values[r]
        measured = 0
        if give_up:
            old = (ids[i].copy(), distances[i].copy(), count[i])
        limit = threshold(values, lists, i, block.offset)
        for start in range(0, len(cols), STRIP):
            stop = min(start + STRIP, len(cols))
            if crowded[r] or smallest(values, start, stop) >= limit:
                continue
            for c in range(start, stop):
                j = cols[c]
                if values[c] < limit and j >= 0 and j != own:
                    push(lists, i, j, cluster_distance(kind, left, i, right, j))
                    limit = threshold(values, lists, i, block.offset)
                    measured += 1
            if give_up and measured > PATIENCE:
                crowded[r] = True
        if crowded[r]:
            ids[i], distances[i], count[i] = old[0], old[1], old[2]
    return crowded


@compiled()
def _any_below(values: Real, limits: Real) -> bool:
    hit = np.int32(0)
    for c in range(len(limits)):
        hit |= np.int32(1) if values[c] < limits[c] else np.int32(0)
    return hit != 0


@compiled(parallel=True)
def scan_columns(block: Block, kind: int, table: Table, lists: Lists) -> Bool:
    """The same block read the other way, rows offered to the columns' lists; rows and columns are disjoint and alive.

    Returns which columns gave up, their lists as they were.
    """
    ids, distances, count, _ = lists
    rows, cols = block.rows, block.cols
    crowded = np.zeros(len(cols), dtype=np.bool_)
    for s in prange((len(cols) + STRIP - 1) // STRIP):
        start, stop = s * STRIP, min((s + 1) * STRIP, len(cols))
        limits = np.empty(stop - start, dtype=np.float32)
        measured = np.zeros(stop - start, dtype=np.int64)
        old_ids = np.empty((stop - start, ids.shape[1]), dtype=ids.dtype)
        old_distances = np.empty((stop - start, ids.shape[1]))
        old_count = np.empty(stop - start, dtype=count.dtype)
        for c in range(stop - start):
            j = cols[start + c]
            limits[c] = threshold(block.values[0], lists, j, block.offset)
            old_ids[c], old_distances[c], old_count[c] = ids[j], distances[j], count[j]
        for r in range(len(rows)):
            values = block.values[r, start:stop]
            if not _any_below(values, limits):
                continue
            i = rows[r]
            for c in range(stop - start):
                if values[c] >= limits[c]:
                    continue
                j = cols[start + c]
                push(lists, j, i, cluster_distance(kind, table, j, table, i))
                measured[c] += 1
                limits[c] = threshold(values, lists, j, block.offset)
                if measured[c] > PATIENCE:
                    crowded[start + c] = True
                    limits[c] = -np.inf
                    ids[j], distances[j], count[j] = old_ids[c], old_distances[c], old_count[c]
    return crowded


@compiled()
def close_lists(rows: Int32, others: int, lists: Lists) -> None:
    """After a full search over `others` clusters: what a full list left out is no nearer than its last entry."""
    for i in rows:
        full = lists.filled[i] == lists.ids.shape[1] and lists.filled[i] < others
        lists.bound[i] = lists.distances[i, -1] if full else np.inf


@compiled()
def reopen_lists(rows: Int32, lists: Lists) -> None:
    """Empty the lists of `rows` before a search."""
    for i in rows:
        lists.filled[i] = 0
        lists.distances[i, :] = np.inf
