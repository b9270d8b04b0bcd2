"""Short lists of nearest clusters, with a bound on everything that is not listed.

Row i of a `Lists` holds up to K clusters sorted by exact distance and `bound[i]`, a distance below which no unlisted
cluster lies. Products come from float32 matrix products; whatever they cannot rule out is measured again in
float64, so lists are exact. Because the distances are reducible, a bound stays true however the unlisted clusters are
merged: as long as the first entry is within the bound, a cluster's nearest neighbour is known without a search.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit, prange

from btcnb.cluster._distance import cluster_distance

LENGTH = 12
"""Entries a list can hold. More entries mean fewer searches and longer upkeep; 8 to 16 measure alike."""

PATIENCE = 160
"""Columns of one block that a row measures in float64 before it asks for a float64 product instead. A list that starts
empty measures about K (1 + ln(columns / K)), some 80; only ties and near-duplicates come near 160."""

STRIP = 64
"""Columns compared with the threshold at once: four cache lines of float32."""


@dataclass
class Lists:
    """Nearest-neighbour lists of n rows: ids (n, K) int32, distances (n, K), count (n,), bound (n,)."""

    ids: npt.NDArray[np.int32]
    distances: npt.NDArray[np.float64]
    count: npt.NDArray[np.int32]
    bound: npt.NDArray[np.float64]

    @classmethod
    def empty(cls, n: int, length: int = LENGTH) -> Lists:
        return cls(
            np.zeros((n, length), dtype=np.int32),
            np.full((n, length), np.inf),
            np.zeros(n, dtype=np.int32),
            np.full(n, np.inf),
        )

    def arrays(self) -> tuple[Any, ...]:
        return self.ids, self.distances, self.count, self.bound


@njit(cache=True)
def push(ids: Any, distances: Any, count: Any, i: int, j: int, distance: float) -> None:
    """Insert (j, distance) into the sorted list of row i; the last entry falls off a full list. Ties keep the
    smaller id.
    """
    length = ids.shape[1]
    at = count[i]
    if at == length:
        if distance >= distances[i, length - 1]:
            return
        at -= 1
    else:
        count[i] += 1
    while at > 0 and (distances[i, at - 1] > distance or (distances[i, at - 1] == distance and ids[i, at - 1] > j)):
        ids[i, at] = ids[i, at - 1]
        distances[i, at] = distances[i, at - 1]
        at -= 1
    ids[i, at] = j
    distances[i, at] = distance


@njit(cache=True)
def threshold(values: Any, distances: Any, i: int, offset: float) -> Any:
    """Value of a block row below which a column belongs into list i: float32 rounded up, float64 ties left out."""
    last = distances[i, distances.shape[1] - 1]
    if np.isinf(last):
        return values.dtype.type(np.inf)
    slack = 4e-7 if values.itemsize == 4 else -1e-15
    return values.dtype.type(last + offset + slack * (1.0 + abs(last)))


@njit(cache=True, fastmath={"nnan", "reassoc", "nsz"})
def smallest(values: Any, start: int, stop: int) -> Any:
    low = values[start]
    for c in range(start + 1, stop):
        low = min(low, values[c])
    return low


@njit(cache=True, parallel=True)
def scan_rows(
    block: Any,
    rows: Any,
    own: Any,
    cols: Any,
    offset: float,
    give_up: bool,
    kind: int,
    left: Any,
    left_size: Any,
    right: Any,
    right_size: Any,
    ids: Any,
    distances: Any,
    count: Any,
) -> Any:
    """Offer to each row's list every column that the block (R, C) of lower bounds cannot rule out.

    A block value is a lower bound of the distance plus `offset`. Columns with id -1 are dead; row r skips cluster
    own[r]. With `give_up`, a row that would measure more than `PATIENCE` columns is left, its list as it was, and
    returned as True.
    """
    crowded = np.zeros(len(rows), dtype=np.bool_)
    for r in prange(len(rows)):
        i = rows[r]
        values = block[r]
        measured = 0
        if give_up:
            old = (ids[i].copy(), distances[i].copy(), count[i])
        limit = threshold(values, distances, i, offset)
        for start in range(0, len(cols), STRIP):
            stop = min(start + STRIP, len(cols))
            if crowded[r] or smallest(values, start, stop) >= limit:
                continue
            for c in range(start, stop):
                j = cols[c]
                if values[c] < limit and j >= 0 and j != own[r]:
                    push(ids, distances, count, i, j, cluster_distance(kind, left, left_size, i, right, right_size, j))
                    limit = threshold(values, distances, i, offset)
                    measured += 1
            if give_up and measured > PATIENCE:
                crowded[r] = True
        if crowded[r]:
            ids[i], distances[i], count[i] = old[0], old[1], old[2]
    return crowded


@njit(cache=True)
def _any_below(values: Any, limits: Any) -> bool:
    hit = np.int32(0)
    for c in range(len(limits)):
        hit |= np.int32(1) if values[c] < limits[c] else np.int32(0)
    return hit != 0


@njit(cache=True, parallel=True)
def scan_columns(
    block: Any,
    rows: Any,
    cols: Any,
    offset: float,
    kind: int,
    sums: Any,
    size: Any,
    ids: Any,
    distances: Any,
    count: Any,
) -> Any:
    """The same block read the other way, rows offered to the columns' lists; rows and columns are disjoint.

    Returns which columns gave up, their lists as they were.
    """
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
            limits[c] = threshold(block[0], distances, j, offset)
            old_ids[c], old_distances[c], old_count[c] = ids[j], distances[j], count[j]
        for r in range(len(rows)):
            values = block[r, start:stop]
            if not _any_below(values, limits):
                continue
            i = rows[r]
            for c in range(stop - start):
                if values[c] >= limits[c]:
                    continue
                j = cols[start + c]
                push(ids, distances, count, j, i, cluster_distance(kind, sums, size, j, sums, size, i))
                measured[c] += 1
                limits[c] = threshold(values, distances, j, offset)
                if measured[c] > PATIENCE:
                    crowded[start + c] = True
                    limits[c] = -np.inf
                    ids[j], distances[j], count[j] = old_ids[c], old_distances[c], old_count[c]
    return crowded


@njit(cache=True)
def close_lists(rows: Any, others: int, ids: Any, distances: Any, count: Any, bound: Any) -> None:
    """After a full search over `others` clusters: what a full list left out is no nearer than its last entry."""
    for i in rows:
        full = count[i] == ids.shape[1] and count[i] < others
        bound[i] = distances[i, ids.shape[1] - 1] if full else np.inf


@njit(cache=True)
def reopen_lists(rows: Any, distances: Any, count: Any) -> None:
    """Empty the lists of `rows` before a search."""
    for i in rows:
        count[i] = 0
        distances[i, :] = np.inf
