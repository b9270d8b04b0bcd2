"""Nearest-cluster search that leaves out what is provably too far, for rows and columns in a coherent order.

Columns that stand together are put into balls: a middle m and a radius r around some `RUN` centres c. For a row a,

    1 - a.c = (|a - c|² + 1 - |a|² + 1 - |c|²) / 2   and   |a - c| >= |a - m| - r,

so one product with the middles bounds the distance to every centre. Rows that stand together are searched together, the
nearest balls first; a ball is left out when it is beyond the last list entry of all of them. Drawing order, in which a
dendrogram's clusters are runs, keeps balls small; of trained embeddings some three fifths are never multiplied.
The lists are those of `search`, but for which of several equal last entries they hold.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from btcnb.cluster._distance import AVERAGE, Table
from btcnb.cluster._gate import Float32, Int32, Int64
from btcnb.cluster._neighbours import Block, Lists, close_lists, reopen_lists
from btcnb.cluster._progress import nobody
from btcnb.cluster._search import BLOCK_BYTES, Centres, offer, search

RUN = 32
"""Columns of a ball."""

ROWS = 512
"""Rows searched together."""

FIRST = 1024
"""Columns of the nearest balls, which fill the lists."""

WIDE = 8192
"""Columns of a later product."""

FROM = 6000
"""Columns from which balls pay."""

HOPELESS = 0.7
"""Share of the columns that had to be multiplied above which the rest is searched without balls."""

ROUNDED = 4e-5
"""More than float32 rounds |a - m|² and its parts wrong by, for vectors no longer than 1 in up to 1,000 dimensions."""


def search_near(
    lists: Lists, rows: Int32, own: Int32, left: Table, c: Centres, others: int, beat: Callable[[], None] = nobody
) -> None:
    """`search` for rows and columns whose neighbours in order are often neighbours in space."""
    whole = len(c.packed.cols)
    plain = c.kind != AVERAGE or c.block_bytes < BLOCK_BYTES or left.sums.shape[1] > 1000
    if plain or whole < FROM or len(rows) < ROWS // 2:
        search(lists, rows, own, left, c, others, beat)
        return
    begin, middles, radius, length = _balls(c.packed.centres)
    size = np.diff(begin, append=whole)
    reopen_lists(rows, lists)
    multiplied = 0
    for top in range(0, len(rows), ROWS):
        if top >= 4 * ROWS and multiplied > HOPELESS * top * whole:
            search(lists, rows[top:], own[top:], left, c, others, beat)
            rows = rows[:top]
            break
        part, mine = rows[top : top + ROWS], own[top : top + ROWS]
        centre = (left.sums[part] / left.size[part, None]).astype(np.float32)
        far = _least_distance(centre, middles, radius, length)
        nearest = np.argsort(far.min(axis=0), kind="stable")
        stop = int(np.searchsorted(np.cumsum(size[nearest]), FIRST)) + 1
        chosen, rest = nearest[:stop], nearest[stop:]
        while len(chosen):
            wanted = np.zeros(len(begin), dtype=bool)
            wanted[chosen] = True
            at = np.flatnonzero(np.repeat(wanted, size))
            block = -centre @ c.packed.centres[at].T
            offer(lists, Block(block, part, mine, c.packed.cols[at], c.offset(np.float32)), left, c)
            multiplied += block.size
            beat()
            rest = rest[(far[:, rest] < lists.distances[part, -1:]).any(axis=0)]
            stop = int(np.searchsorted(np.cumsum(size[rest]), WIDE)) + 1
            chosen, rest = rest[:stop], rest[stop:]
    close_lists(rows, others, lists)


def _balls(centres: Float32) -> tuple[Int64, Float32, Float32, Float32]:
    """First column, middle, radius and longest centre of every ball."""
    begin = np.arange(0, len(centres), RUN)
    size = np.diff(begin, append=len(centres))
    middles = np.add.reduceat(centres, begin, axis=0) / size[:, None].astype(np.float32)
    away = centres - np.repeat(middles, size, axis=0)
    radius = np.sqrt(np.maximum.reduceat(np.einsum("ij,ij->i", away, away), begin) + ROUNDED**2)
    length = np.maximum.reduceat(np.einsum("ij,ij->i", centres, centres), begin)
    return begin.astype(np.int64), middles.astype(np.float32), radius.astype(np.float32), length


def _least_distance(rows: Float32, middles: Float32, radius: Float32, length: Float32) -> Float32:
    """What the distances (R, B) of rows to the centres in each ball cannot be below."""
    squares = np.einsum("ij,ij->i", rows, rows)
    apart = rows @ middles.T
    apart *= -2.0
    apart += squares[:, None] + np.einsum("ij,ij->i", middles, middles) - np.float32(ROUNDED)
    np.sqrt(np.maximum(apart, 0.0, out=apart), out=apart)
    apart -= radius * np.float32(1.0 + 1e-5)
    np.maximum(apart, 0.0, out=apart)
    apart *= apart
    apart += (1.0 - squares)[:, None] + (1.0 - length)
    apart *= 0.5
    apart -= np.float32(ROUNDED)
    return apart
