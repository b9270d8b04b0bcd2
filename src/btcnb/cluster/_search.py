"""Nearest-cluster search by blocked matrix products: float32 first, float64 where float32 cannot tell.

`Centres` holds the live clusters' centres as one packed float32 matrix. `search` fills the lists of any rows
(clusters or single points) against all of them; `search_each_other` fills the lists of the clusters themselves at
half the products.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from btcnb.cluster._distance import AVERAGE, WARD, Real, Table, ward_block
from btcnb.cluster._gate import Float32, Int32
from btcnb.cluster._neighbours import Block, Lists, close_lists, reopen_lists, scan_columns, scan_rows
from btcnb.cluster._progress import nobody

UNIT = {np.dtype(np.float32): 2.0**-24, np.dtype(np.float64): 2.0**-53}
"""Relative rounding of one operation."""

BLOCK_BYTES = 16 * 2**20
"""Size of one block of float32 products: small enough to be read back from the cache, large enough for BLAS."""

STEP = 128
"""Rows copied at a time."""

COMPACT_BELOW = 0.75
"""Share of live columns below which the matrix of centres is packed again before a search."""


class Packed(NamedTuple):
    """Centres of the live clusters, one below the other."""

    cols: Int32  # cluster in each row of `centres`, -1 if it has died since
    position: Int32  # row of each cluster, -1 for none
    centres: Float32


class Centres:
    """The packed centres of the live clusters of a table, and how they are multiplied."""

    def __init__(self, table: Table, active: Int32, kind: int, block_bytes: int = BLOCK_BYTES) -> None:
        self.table, self.kind, self.block_bytes = table, kind, block_bytes
        centres = np.empty((len(active), table.sums.shape[1]), dtype=np.float32)
        for start in range(0, len(active), STEP):
            centres[start : start + STEP] = self.exact(active[start : start + STEP])
        position = np.full(len(table.size), -1, dtype=np.int32)
        position[active] = np.arange(len(active), dtype=np.int32)
        self.packed = Packed(active.copy(), position, centres)

    def pack_if_sparse(self, active: Int32) -> None:
        """Move the centres of the living to the front, in place: a second table would not fit a memory limit."""
        _, position, centres = self.packed
        if len(active) >= COMPACT_BELOW * len(centres):
            return
        for start in range(0, len(active), STEP):  # clusters stand in ascending order, so every move is forward
            part = active[start : start + STEP]
            centres[start : start + len(part)] = centres[position[part]]
        position[:] = -1
        position[active] = np.arange(len(active), dtype=np.int32)
        self.packed = Packed(active.copy(), position, centres[: len(active)])

    def exact(self, clusters: Int32) -> Any:
        return self.table.sums[clusters] / self.table.size[clusters, None]

    def shape(self, rows: int) -> tuple[int, int]:
        """Rows and columns of a block within the byte limit: about four times wider than high, if there are as many."""
        cells, width = max(self.block_bytes // 4, 1), max(1, len(self.packed.cols))
        side = int(np.sqrt(cells / 4))
        high = 8 * side if self.block_bytes >= BLOCK_BYTES else side  # rows are copied: not under a memory limit
        height = max(1, min(rows, max(side, min(cells // width, high))))
        return height, min(max(1, cells // height), width)

    def bounds(self, left: Real, left_size: Any, right: Real, right_size: Any, out: Any = None) -> Real:
        """Lower bounds (R, C) of the distances between two sets of centres of one dtype; average: plus `offset`."""
        block: Real = np.matmul(-left, right.T, out=out)
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
        error = (self.table.sums.shape[1] + 8) * UNIT[np.dtype(dtype)]
        return error if np.dtype(dtype) == np.float32 else -error

    def offset(self, dtype: npt.DTypeLike) -> float:
        """What to add to a distance before comparing it with a block value."""
        return self._error(dtype) - 1.0 if self.kind == AVERAGE else 0.0


def offer(lists: Lists, block: Block, left: Table, c: Centres) -> None:
    """Scan a float32 block into the lists; rows with too many undecided columns are measured again by a float64
    product.
    """
    again = np.flatnonzero(scan_rows(block, True, c.kind, left, c.table, lists))
    if len(again):
        few, some = block.rows[again], block.cols[block.cols >= 0]
        rows = left.sums[few] / left.size[few, None]
        precise = c.bounds(rows, left.size[few], c.exact(some), c.table.size[some])
        fine = Block(precise, few, block.own[again], some, c.offset(np.float64))
        scan_rows(fine, False, c.kind, left, c.table, lists)


def search(
    lists: Lists,
    rows: Int32,
    own: Int32,
    left: Table,
    c: Centres,
    others: int,
    beat: Callable[[], None] = nobody,
) -> None:
    """New lists for `rows` of the table `left`: their nearest live clusters except own[r].

    others: how many clusters there are to find, so that a list which holds all of them is known to be complete.
    beat: called after every block
    """
    height, width = c.shape(len(rows))
    out = np.empty(height * width, dtype=np.float32)
    reopen_lists(rows, lists)
    for top in range(0, len(rows), height):
        part = rows[top : top + height]
        centre = (left.sums[part] / left.size[part, None]).astype(np.float32)
        for first in range(0, len(c.packed.cols), width):
            cols = c.packed.cols[first : first + width]
            right_size = np.where(cols >= 0, c.table.size[cols], 1.0)
            cells = out[: len(part) * len(cols)].reshape(len(part), len(cols))
            right = c.packed.centres[first : first + width]
            block = c.bounds(centre, left.size[part], right, right_size, cells)
            offer(lists, Block(block, part, own[top : top + height], cols, c.offset(np.float32)), left, c)
            beat()
    close_lists(rows, others, lists)


def search_each_other(lists: Lists, c: Centres, report: Callable[[int], None]) -> None:
    """Lists of all clusters of a freshly packed table among each other: each block serves its rows and its columns.

    report: hears how many rows are through
    """
    cols, size = c.packed.cols, c.table.size
    n = len(cols)
    height, width = c.shape(n)
    out = np.empty(max(height * width, height * height), dtype=np.float32)
    for top in range(0, n, height):
        rows = cols[top : top + height]
        bottom = top + len(rows)
        for first, last in [(top, bottom), *((f, min(f + width, n)) for f in range(bottom, n, width))]:
            others = cols[first:last]
            cells = out[: len(rows) * len(others)].reshape(len(rows), len(others))
            left, right = c.packed.centres[top:bottom], c.packed.centres[first:last]
            block = Block(
                c.bounds(left, size[rows], right, size[others], cells), rows, rows, others, c.offset(np.float32)
            )
            offer(lists, block, c.table, c)
            if first > top:
                crowded = np.flatnonzero(scan_columns(block, c.kind, c.table, lists))
                if len(crowded):
                    few = others[crowded]
                    precise = c.bounds(c.exact(few), size[few], c.exact(rows), size[rows])
                    fine = Block(precise, few, few, rows, c.offset(np.float64))
                    scan_rows(fine, False, c.kind, c.table, c.table, lists)
            report(0)
        report(len(rows))
    close_lists(cols, n - 1, lists)
