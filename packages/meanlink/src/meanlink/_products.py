"""Nearest-cluster search by blocked matrix products: float32 first, float64 where float32 cannot tell.

It looks at every pair of row and cluster, which is fastest for few clusters and for data without structure. Products
rule out most pairs; what they cannot rule out is measured in float64, so lists are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import prange

from meanlink._compile import compiled
from meanlink._neighbours import Lists, Table, close_lists, cluster_distance, insert, open_lists
from meanlink._types import Array, Bool, Float64, Int32, Int64

BLOCK_CELLS = 2**22
"""Products of one block: small enough to be read back from the cache, large enough for BLAS."""

HIGH, WIDE = 8192, 4096
"""Most rows of a block, and the columns it has if there are enough rows."""

STEP = 128
"""Rows copied at a time."""

PATIENCE = 160
"""Columns of one block that a row measures in float64 before it asks for a float64 product instead. A list that starts
empty measures about K (1 + ln(columns / K)), some 80; only ties and near-duplicates come near 160."""

STRIP = 64
"""Columns compared with the threshold at once: four cache lines of float32."""


class Block(NamedTuple):
    """Negative products (R, C) of some rows with some columns; columns with id -1 are dead, row r skips own[r]."""

    values: Array
    rows: Int32
    own: Int32
    cols: Int32
    offset: float  # added to a distance before it is compared with a value


class ProductSearch:
    """The centres of the live clusters of a table as one packed float32 matrix."""

    def __init__(self, table: Table, active: Int32) -> None:
        self.table, self.live = table, 0
        self.cols = np.empty(0, dtype=np.int32)
        self._pack(active)

    def rebuild(self, active: Int32, share: float = 1.0) -> None:
        if len(active) < share * len(self.cols):
            self._pack(active)

    def _pack(self, active: Int32) -> None:
        self.cols, self.live = active.copy(), len(active)
        self.position = np.full(len(self.table.size), -1, dtype=np.int32)
        self.position[active] = np.arange(len(active), dtype=np.int32)
        self.centres = np.empty((len(active), self.table.sums.shape[1]), dtype=np.float32)
        for start in range(0, len(active), STEP):
            self.centres[start : start + STEP] = _centres(self.table, active[start : start + STEP])

    def moved(self, pairs: Int64) -> None:
        into, gone = self.position[pairs[:, 0]], self.position[pairs[:, 1]]
        self.cols[gone] = -1
        self.live -= len(pairs)
        for start in range(0, len(pairs), STEP):
            part = slice(start, start + STEP)
            self.centres[into[part]] = _centres(self.table, pairs[part, 0])

    def order(self, own: Int32) -> Int64:
        return np.arange(len(own))

    def next_radius(self, radius: float) -> float:
        return float("inf")

    def search(
        self, left: Table, rows: Int32, own: Int32, radius: float, lists: Lists, heard: Callable[[int], None]
    ) -> None:
        """See `Search`. The radius only closes the lists: a product of everything finds all there is."""
        if left is self.table and np.array_equal(rows, self.cols):
            self._search_each_other(radius, lists, heard)
            return
        height = max(1, min(len(rows), HIGH, max(BLOCK_CELLS // WIDE, BLOCK_CELLS // max(len(self.cols), 1))))
        width = min(max(1, BLOCK_CELLS // height), max(1, len(self.cols)))
        out = np.empty(height * width, dtype=np.float32)
        for top in range(0, len(rows), height):
            part, mine = rows[top : top + height], own[top : top + height]
            open_lists(part, lists)
            centre = -_centres(left, part).astype(np.float32)
            for first in range(0, len(self.cols), width):
                cols = self.cols[first : first + width]
                cells = out[: len(part) * len(cols)].reshape(len(part), len(cols))
                np.matmul(centre, self.centres[first : first + width].T, out=cells)
                self._offer(Block(cells, part, mine, cols, self._offset(2.0**-24)), left, lists)
                heard(0)
            close_lists(part, radius, self.live - 1, lists)
            heard(len(part))

    def _search_each_other(self, radius: float, lists: Lists, heard: Callable[[int], None]) -> None:
        """Lists of all clusters of a freshly packed table: each block serves its rows and its columns."""
        n = len(self.cols)
        height = min(n, max(BLOCK_CELLS // WIDE, min(BLOCK_CELLS // n, HIGH)))
        width = min(BLOCK_CELLS // height, n)
        out = np.empty(max(width, height) * height, dtype=np.float32)
        open_lists(self.cols, lists)
        for top in range(0, n, height):
            rows, bottom = self.cols[top : top + height], min(top + height, n)
            for first, last in [(top, bottom), *((at, min(at + width, n)) for at in range(bottom, n, width))]:
                others = self.cols[first:last]
                cells = out[: len(rows) * len(others)].reshape(len(rows), len(others))
                np.matmul(-self.centres[top:bottom], self.centres[first:last].T, out=cells)
                block = Block(cells, rows, rows, others, self._offset(2.0**-24))
                self._offer(block, self.table, lists)
                if first > top:
                    self._offer_columns(block, lists)
                heard(0)
            close_lists(rows, radius, n - 1, lists)
            heard(len(rows))

    def _offer_columns(self, block: Block, lists: Lists) -> None:
        """The same block read the other way; columns with too many undecided rows are scanned again in float64."""
        few = block.cols[scan_columns(block, self.table, lists)]
        if len(few):
            precise = -_centres(self.table, few) @ _centres(self.table, block.rows).T
            fine = Block(precise, few, few, block.rows, self._offset(-(2.0**-53)))
            scan(fine, False, self.table, self.table, lists)

    def _offset(self, unit: float) -> float:
        """What to add to a distance before comparing it with a negative product, whose operations round by `unit`."""
        return (self.table.sums.shape[1] + 8) * unit - 1.0

    def _offer(self, block: Block, left: Table, lists: Lists) -> None:
        """Scan a float32 block into the lists; rows with too many undecided columns are scanned again in float64.

        In float32 the rounding makes a value a lower bound. In float64 it is counted the other way: a column must be
        nearer by more than rounding, or thousands of exact ties would all be measured.
        """
        again = np.flatnonzero(scan(block, True, left, self.table, lists))
        if len(again):
            few, some = block.rows[again], block.cols[block.cols >= 0]
            precise = -_centres(left, few) @ _centres(self.table, some).T
            scan(Block(precise, few, block.own[again], some, self._offset(-(2.0**-53))), False, left, self.table, lists)


def _centres(table: Table, rows: Int32 | Int64) -> Float64:
    centres: Float64 = table.sums[rows] / table.size[rows, None]
    return centres


@compiled()
def _threshold(values: Array, lists: Lists, i: int, offset: float) -> float:
    """Value of a block row below which a column belongs into list i: float32 rounded up, float64 ties left out."""
    last = lists.distances[i, -1]
    if np.isinf(last):
        return values.dtype.type(np.inf)
    slack = 4e-7 if values.itemsize == 4 else -1e-15
    return values.dtype.type(last + offset + slack * (1.0 + abs(last)))


@compiled(fastmath={"nnan", "reassoc", "nsz"})
def _smallest(values: Array, start: int, stop: int) -> float:
    low = values[start]
    for c in range(start + 1, stop):
        low = min(low, values[c])
    return low


@compiled(parallel=True)
def scan(block: Block, give_up: bool, left: Table, right: Table, lists: Lists) -> Bool:
    """Offer to each row's list every column that the block cannot rule out.

    With `give_up`, a row that would measure more than `PATIENCE` columns is left, its list as it was, and returned as
    True.
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
        limit = _threshold(values, lists, i, block.offset)
        for start in range(0, len(cols), STRIP):
            stop = min(start + STRIP, len(cols))
            if crowded[r] or _smallest(values, start, stop) >= limit:
                continue
            for c in range(start, stop):
                j = cols[c]
                if values[c] < limit and j >= 0 and j != own:
                    insert(lists, i, j, cluster_distance(left, i, right, j))
                    limit = _threshold(values, lists, i, block.offset)
                    measured += 1
            if give_up and measured > PATIENCE:
                crowded[r] = True
        if crowded[r]:
            ids[i], distances[i], count[i] = old[0], old[1], old[2]
    return crowded


@compiled()
def _any_below(values: Array, limits: Array) -> bool:
    hit = np.int32(0)
    for c in range(len(limits)):
        hit |= np.int32(1) if values[c] < limits[c] else np.int32(0)
    return hit != 0


@compiled(parallel=True)
def scan_columns(block: Block, table: Table, lists: Lists) -> Bool:
    """Offer the rows of a block to the lists of its columns; rows and columns are disjoint and alive.

    Returns which columns gave up, their lists as they were.
    """
    ids, distances, count, _ = lists
    rows, cols = block.rows, block.cols
    crowded = np.zeros(len(cols), dtype=np.bool_)
    for s in prange((len(cols) + STRIP - 1) // STRIP):
        start, stop = s * STRIP, min((s + 1) * STRIP, len(cols))
        limits = np.empty(stop - start, dtype=np.float32)
        measured = np.zeros(stop - start, dtype=np.int64)
        some = cols[start:stop]
        old_ids, old_distances, old_count = ids[some], distances[some], count[some]
        for c in range(stop - start):
            limits[c] = _threshold(block.values[0], lists, some[c], block.offset)
        for r in range(len(rows)):
            values = block.values[r, start:stop]
            if not _any_below(values, limits):
                continue
            for c in range(stop - start):
                if values[c] >= limits[c]:
                    continue
                j = some[c]
                insert(lists, j, rows[r], cluster_distance(table, j, table, rows[r]))
                measured[c] += 1
                limits[c] = _threshold(values, lists, j, block.offset)
                if measured[c] > PATIENCE:
                    crowded[start + c] = True
                    limits[c] = -np.inf
                    ids[j], distances[j], count[j] = old_ids[c], old_distances[c], old_count[c]
    return crowded
