"""Nearest-cluster search by blocked matrix products: float32 first, float64 where float32 cannot tell.

`Centres` holds the live clusters' centres as one packed float32 matrix. `search` fills the lists of any rows
(clusters or single points) against all of them; `search_each_other` fills the lists of the clusters themselves at
half the products.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from btcnb.cluster._distance import AVERAGE, WARD, ward_block
from btcnb.cluster._neighbours import Lists, close_lists, reopen_lists, scan_columns, scan_rows
from btcnb.cluster._rows import Float64

Int32 = npt.NDArray[np.int32]

UNIT = {np.dtype(np.float32): 2.0**-24, np.dtype(np.float64): 2.0**-53}
"""Relative rounding of one operation."""

BLOCK_BYTES = 16 * 2**20
"""Size of one block of float32 products: small enough to be read back from the cache, large enough for BLAS."""

COMPACT_BELOW = 0.75
"""Share of live columns below which the matrix of centres is packed again before a search."""


class Centres:
    """Centres of the live clusters of a table of sums (n, d) and sizes (n,). Slots in `cols` that are -1 are dead."""

    def __init__(self, sums: Float64, size: Float64, active: Int32, kind: int, block_bytes: int = BLOCK_BYTES) -> None:
        self.sums, self.size, self.kind, self.block_bytes = sums, size, kind, block_bytes
        self.pack(active)

    def pack(self, active: Int32) -> None:
        self.cols = active.copy()
        self.position = np.full(len(self.sums), -1, dtype=np.int32)
        self.position[self.cols] = np.arange(len(self.cols), dtype=np.int32)
        self.table = np.empty((len(self.cols), self.sums.shape[1]), dtype=np.float32)
        for start in range(0, len(self.cols), 8192):
            part = self.cols[start : start + 8192]
            self.table[start : start + 8192] = self.sums[part] / self.size[part, None]

    def pack_if_sparse(self, active: Int32) -> None:
        if len(active) < COMPACT_BELOW * len(self.cols):
            self.pack(active)

    def shape(self, rows: int) -> tuple[int, int]:
        """Rows and columns of a block within the byte limit: about four times wider than high."""
        cells = max(self.block_bytes // 4, 1)
        height = int(max(1, min(rows, np.sqrt(cells / 4))))
        return height, max(1, min(cells // height, len(self.cols)))

    def bounds(self, left: Any, left_size: Float64, right: Any, right_size: Float64, out: Any = None) -> Any:
        """Lower bounds (R, C) of the distances between two tables of centres of one dtype; average: plus `offset`."""
        block = np.matmul(-left, right.T, out=out)
        if self.kind == WARD:
            slack = 5 * self._error(block.dtype)  # four products' worth, and the arithmetic in `ward_block`
            squares = [np.einsum("ij,ij->i", side, side) for side in (left, right)]
            sizes = [side.astype(block.dtype) for side in (left_size, right_size)]
            ward_block(block, sizes[0], squares[0], sizes[1], squares[1], slack)
        return block

    def _error(self, dtype: npt.DTypeLike) -> float:
        """Rounding of a product of two vectors no longer than 1, inputs rounded as well.

        In float32 it makes a value a lower bound, and what it cannot rule out is measured. In float64 it is counted
        the other way: a column must be nearer by more than rounding, or thousands of exact ties would all be measured.
        """
        error = (self.sums.shape[1] + 8) * UNIT[np.dtype(dtype)]
        return error if np.dtype(dtype) == np.float32 else -error

    def offset(self, dtype: npt.DTypeLike) -> float:
        """What to add to a distance before comparing it with a block value."""
        return self._error(dtype) - 1.0 if self.kind == AVERAGE else 0.0


def _offer(
    lists: Lists, block: Any, rows: Int32, own: Any, left: Float64, left_size: Float64, c: Centres, cols: Any
) -> None:
    """Scan a float32 block into the lists; rows with too many undecided columns are measured again by a float64
    product.
    """
    ids, distances, count, _ = lists.arrays()
    tables = (c.kind, left, left_size, c.sums, c.size, ids, distances, count)
    crowded = scan_rows(block, rows, own, cols, c.offset(np.float32), True, *tables)
    if crowded.any():
        again = np.flatnonzero(crowded)
        live = np.flatnonzero(cols >= 0)
        few, some = rows[again], cols[live]
        precise = c.bounds(
            left[few] / left_size[few, None], left_size[few], c.sums[some] / c.size[some, None], c.size[some]
        )
        scan_rows(precise, few, own[again], some, c.offset(np.float64), False, *tables)


def search(lists: Lists, rows: Int32, own: Any, left: Float64, left_size: Float64, c: Centres, others: int) -> None:
    """New lists for `rows` of the table (left, left_size): their nearest live clusters except own[r].

    others: how many clusters there are to find, so that a list which holds all of them is known to be complete.
    """
    height, width = c.shape(len(rows))
    out = np.empty(height * width, dtype=np.float32)
    reopen_lists(rows, lists.distances, lists.count)
    for top in range(0, len(rows), height):
        part = rows[top : top + height]
        centre = (left[part] / left_size[part, None]).astype(np.float32)
        for first in range(0, len(c.cols), width):
            cols = c.cols[first : first + width]
            right_size = np.where(cols >= 0, c.size[cols], 1.0)
            cells = out[: len(part) * len(cols)].reshape(len(part), len(cols))
            block = c.bounds(centre, left_size[part], c.table[first : first + width], right_size, cells)
            _offer(lists, block, part, own[top : top + height], left, left_size, c, cols)
    close_lists(rows, others, *lists.arrays())


def search_each_other(lists: Lists, c: Centres) -> None:
    """Lists of all clusters of a freshly packed table among each other: each block serves its rows and its columns."""
    n = len(c.cols)
    height, width = c.shape(n)
    ids, distances, count, bound = lists.arrays()
    out = np.empty(max(height * width, height * height), dtype=np.float32)
    for top in range(0, n, height):
        rows = c.cols[top : top + height]
        bottom = top + len(rows)
        for first, last in [(top, bottom), *((f, min(f + width, n)) for f in range(bottom, n, width))]:
            cols = c.cols[first:last]
            cells = out[: len(rows) * len(cols)].reshape(len(rows), len(cols))
            block = c.bounds(c.table[top:bottom], c.size[rows], c.table[first:last], c.size[cols], cells)
            _offer(lists, block, rows, rows, c.sums, c.size, c, cols)
            if first == top:
                continue
            tables = (c.kind, c.sums, c.size, ids, distances, count)
            crowded = np.flatnonzero(scan_columns(block, rows, cols, c.offset(np.float32), *tables))
            if len(crowded):
                few = cols[crowded]
                precise = c.bounds(
                    c.sums[few] / c.size[few, None], c.size[few], c.sums[rows] / c.size[rows, None], c.size[rows]
                )
                scan_rows(precise, few, few, rows, c.offset(np.float64), False, c.kind, c.sums, c.size, *tables[1:])
    close_lists(c.cols, n - 1, ids, distances, count, bound)
