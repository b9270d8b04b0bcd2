"""Nearest clusters by matrix products of rows with tiles of nearby clusters; what is certainly too far is left out.

The clusters are put into an order in which neighbours stand together: groups are split in two again and again, along
the line between their two means. A tile is a run of this order, with a ball around its members. For two centres a and c
with |a|, |c| <= 1 the distance of average linkage is

    1 - a.c = |a - c|² / 2 + (1 - |a|²) / 2 + (1 - |c|²) / 2,

so the ball around some c bounds it from below. A block of rows that stand together looks at the nearest tiles first. It
leaves out tiles that lie beyond the radius or beyond the last entries of its lists. Products are made in float32. Their
rounding is added to the limit, and what they cannot rule out is measured in float64. So lists are exact: they do not
depend on the tiles, on the order of the search or on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numba import prange

from meanlink._compile import compiled
from meanlink._neighbours import Lists, Table, close_lists, cluster_distance, insert, open_lists
from meanlink._types import Array, Bool, Float32, Float64, Int32, Int64

HEIGHT = 256
"""Rows that are searched together."""

TILE = 32
"""Most members of a tile."""

CELLS = 2**21
"""Most products of one block: small enough to be read back from the cache, large enough for BLAS."""

FIRST = 1024
"""Columns of the first block of a search, which fills the lists."""

SAMPLE = 32
"""Members that decide where a group is split."""

STEP = 4096
"""Rows copied at a time."""

FEW = 2_000
"""Clusters below which the next radius is infinite."""

NEAR = 4
"""The next radius is what half of the clusters find this many neighbours in, about."""

GROWTH = 4.0
"""A radius over the one before."""

WIDE = 0.3
"""A radius from which on the next is infinite: little would be left out."""

LOOKED_AT = 256
"""Tiles whose distances say what the next radius is."""

TINY = 1e-6
"""More than the float32 rounding of a radius, and of a bound."""

PATIENCE = 160
"""Columns of one block that a row measures in float64 before it asks for a float64 product instead. A list that starts
empty measures about K (1 + ln(columns / K)), some 80; only ties and near-duplicates come near 160."""

STRIP = 64
"""Columns compared with the threshold at once: four cache lines of float32."""


class Block(NamedTuple):
    """Negative products (R, C) of some rows with some columns; columns with id -1 are gone, row r skips own[r]."""

    values: Array
    rows: Int32
    own: Int32
    cols: Int32
    radius: float  # what is farther is not listed
    offset: float  # added to a distance before it is compared with a value


class Tiles(NamedTuple):
    """Runs of the order."""

    begin: Int64  # (tiles + 1,) positions
    middle: Float32  # (tiles, d)
    radius: Float32  # (tiles,) of a ball that holds the members
    spread: Float32  # (tiles,) least (1 - |c|²) / 2 of the members, a part of every distance to them


class Search:
    """The live clusters of a table in tiles, kept up to date as clusters merge."""

    def __init__(self, table: Table, active: Int32) -> None:
        self.table = table
        order, begin = _tiled(_packed(table, active))
        self._index(active[order], begin)

    def rebuild(self, share: float = 1.0) -> None:
        """Index the live clusters again, in the same order, if fewer than a share of those indexed are alive."""
        if self.live < share * len(self.cols):
            alive = np.concatenate([[0], np.cumsum(self.cols >= 0)])[self.tiles.begin]
            begin = [0]
            for this, following in pairwise(alive[1:]):
                if following - begin[-1] > TILE and this > begin[-1]:
                    begin.append(int(this))
            self._index(self.cols[self.cols >= 0], np.array([*begin, self.live]))

    def _index(self, cols: Int32, begin: Int64) -> None:
        self.cols, self.live = cols, len(cols)
        self.position = np.full(len(self.table.size), -1, dtype=np.int32)
        self.position[cols] = np.arange(len(cols), dtype=np.int32)
        self.packed = _packed(self.table, cols)
        self.tile = np.repeat(np.arange(len(begin) - 1), np.diff(begin))
        middle = np.add.reduceat(self.packed, begin[:-1], axis=0) / np.diff(begin).astype(np.float32)[:, None]
        radius = np.zeros(len(middle), dtype=np.float32)
        self.tiles = Tiles(begin, middle.astype(np.float32), radius, np.full_like(radius, np.inf))
        for start in range(0, len(cols), STEP):
            self._enclose(np.arange(start, min(start + STEP, len(cols)), dtype=np.int64))

    def _enclose(self, position: Int64) -> None:
        """Let the balls hold the clusters at these positions."""
        rows, tile = _centres(self.table, self.cols[position]), self.tile[position]
        away = np.linalg.norm(rows - self.tiles.middle[tile], axis=1)
        np.maximum.at(self.tiles.radius, tile, (away + TINY).astype(np.float32))
        np.minimum.at(self.tiles.spread, tile, _half(rows).astype(np.float32))
        self.packed[position] = rows

    def moved(self, pairs: Int64) -> None:
        """Clusters merged: column 1 of `pairs` (P, 2) into column 0, whose sums and sizes the table has."""
        self.cols[self.position[pairs[:, 1]]] = -1
        self.live -= len(pairs)
        for start in range(0, len(pairs), STEP):
            self._enclose(self.position[pairs[start : start + STEP, 0]].astype(np.int64))

    def order(self, own: Int32) -> Int64:
        """Positions that bring rows into the order of the search; own: a cluster near each row."""
        return np.argsort(self.position[own], kind="stable")

    def next_radius(self, radius: float) -> float:
        """A radius for the next stage of merging, larger than the last or infinite; it depends on nothing else but the
        clusters that are there at the beginning.
        """
        if self.live < FEW:
            return float("inf")
        begin, found = self.tiles.begin, []
        for t in range(0, len(begin) - 1 if radius == 0.0 else 0, max(1, (len(begin) - 1) // LOOKED_AT)):
            rows = self.packed[begin[t] : begin[t + 1]]
            found.append(np.sort(1.0 - rows @ rows.T, axis=1)[:, min(NEAR, len(rows) - 1)])
        wanted = GROWTH * radius if radius else max(float(np.median(np.concatenate(found))), TINY)
        return wanted if wanted < WIDE else float("inf")

    def search(
        self, left: Table, rows: Int32, own: Int32, radius: float, lists: Lists, heard: Callable[[int], None]
    ) -> None:
        """New lists for some `rows` of the table `left`: the nearest live clusters within a radius, but for own[r].

        rows stand in the order of `order`. `heard` is told the number of rows that are done, often. An exception that
        it raises ends the search; the rows it was told of are done.
        """
        for top in range(0, len(rows), HEIGHT):
            part = rows[top : top + HEIGHT]
            open_lists(part, lists)
            self._search_block(left, part, own[top : top + HEIGHT], radius, lists)
            close_lists(part, radius, self.live - 1, lists)
            heard(len(part))

    def _search_block(self, left: Table, rows: Int32, own: Int32, radius: float, lists: Lists) -> None:
        centres = _centres(left, rows)
        packed = centres.astype(np.float32)
        tiles, low = self._bounds(packed, _half(centres).astype(np.float32), radius)
        np.negative(packed, out=packed)
        begin, width = 0, FIRST
        while begin < len(tiles):
            limit = np.minimum(lists.distances[rows, -1], radius)
            needed = low[:, begin:] <= limit[:, None]
            wanted = np.flatnonzero(needed.any(axis=0))
            if not len(wanted):
                break
            sizes = self.tiles.begin[tiles[begin + wanted] + 1] - self.tiles.begin[tiles[begin + wanted]]
            wanted = wanted[: max(1, int(np.searchsorted(np.cumsum(sizes), width)))]
            some = np.flatnonzero(needed[:, wanted].any(axis=1))
            runs = [slice(*self.tiles.begin[t : t + 2]) for t in tiles[begin + wanted]]
            cells = packed[some] @ np.concatenate([self.packed[run] for run in runs]).T
            cols = np.concatenate([self.cols[run] for run in runs])
            block = Block(cells, rows[some], own[some], cols, radius, self._offset(2.0**-24))
            self._offer(block, left, lists)
            begin += int(wanted[-1]) + 1
            width = CELLS // HEIGHT

    def _bounds(self, packed: Float32, half: Float32, radius: float) -> tuple[Int64, Float32]:
        """Tiles that may hold something within a radius, nearest first, and least distances of the rows to them."""
        tiles = self.tiles
        square = np.einsum("ij,ij->i", packed, packed)[:, None] + np.einsum("ij,ij->i", tiles.middle, tiles.middle)
        square -= 2.0 * (packed @ tiles.middle.T)
        square -= (packed.shape[1] + 8) * 2.0**-22  # more than its rounding
        away = np.sqrt(np.maximum(square, 0.0, out=square), out=square)
        nearest = away.min(axis=0)
        gap = np.maximum(away - tiles.radius, 0.0)
        low = 0.5 * gap * gap + (half[:, None] + (tiles.spread - TINY))
        chosen = np.flatnonzero(low.min(axis=0) <= radius)
        chosen = chosen[np.argsort(nearest[chosen], kind="stable")]
        return chosen, low[:, chosen]

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
            offset = self._offset(-(2.0**-53))
            fine = block._replace(values=precise, rows=few, own=block.own[again], cols=some, offset=offset)
            scan(fine, False, left, self.table, lists)


def _centres(table: Table, rows: Int32 | Int64) -> Float64:
    centres: Float64 = table.sums[rows] / table.size[rows, None]
    return centres


def _packed(table: Table, rows: Int32) -> Float32:
    """Centres of some clusters in float32, made without a float64 copy of all."""
    packed = np.empty((len(rows), table.sums.shape[1]), dtype=np.float32)
    for start in range(0, len(rows), STEP):
        packed[start : start + STEP] = _centres(table, rows[start : start + STEP])
    return packed


def _half(centres: Float64) -> Float64:
    """(1 - |c|²) / 2."""
    return 0.5 * (1.0 - np.einsum("ij,ij->i", centres, centres))


def _tiled(rows: Float32) -> tuple[Int64, Int64]:
    """An order of the rows (n,) in which neighbours stand together, and where its tiles begin (tiles + 1,)."""
    order, begins, waiting = np.arange(len(rows)), [], [(0, len(rows))]
    while waiting:
        begin, end = waiting.pop()
        number = end - begin
        if number <= TILE:
            begins.append(begin)
            continue
        members = order[begin:end]
        direction, limit = _between(rows[members[:: max(1, number // SAMPLE)]])
        along = np.concatenate([rows[members[at : at + STEP]] @ direction for at in range(0, number, STEP)])
        half = int(np.clip((along < limit).sum(), number // 8, number - number // 8))
        order[begin:end] = members[np.argpartition(along, half)]
        waiting += [(begin + half, end), (begin, begin + half)]
    return order, np.append(begins, len(rows))


def _between(some: Float32) -> tuple[Float32, float]:
    """Direction from one half of a group to the other, and the value along it half way, by 2-means of some members."""
    ends = some[[0, 0]]
    for side in (0, 1, 0):
        ends[side] = some[np.square(some - ends[1 - side]).sum(axis=1).argmax()]
    for _ in range(2):
        nearer = np.square(some - ends[0]).sum(axis=1) <= np.square(some - ends[1]).sum(axis=1)
        if nearer.all() or not nearer.any():
            break
        ends = np.stack([some[nearer].mean(axis=0), some[~nearer].mean(axis=0)])
    direction = ends[1] - ends[0]
    return direction, float(direction @ (ends[0] + ends[1]) / 2)


@compiled()
def _threshold(block: Block, lists: Lists, i: int) -> float:
    """Value of a block row below which a column belongs into list i: float32 rounded up, float64 ties left out."""
    last = min(lists.distances[i, -1], block.radius)
    if np.isinf(last):
        return block.values.dtype.type(np.inf)
    slack = 4e-7 if block.values.itemsize == 4 else -1e-15
    return block.values.dtype.type(last + block.offset + slack * (1.0 + abs(last)))


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
        limit = _threshold(block, lists, i)
        for start in range(0, len(cols), STRIP):
            stop = min(start + STRIP, len(cols))
            if crowded[r] or _smallest(values, start, stop) >= limit:
                continue
            for c in range(start, stop):
                j = cols[c]
                if values[c] < limit and j >= 0 and j != own:
                    distance = cluster_distance(left, i, right, j)
                    if distance < block.radius:
                        insert(lists, i, j, distance)
                    limit = _threshold(block, lists, i)
                    measured += 1
            if give_up and measured > PATIENCE:
                crowded[r] = True
        if crowded[r]:
            ids[i], distances[i], count[i] = old[0], old[1], old[2]
    return crowded
