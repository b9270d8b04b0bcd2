"""The tiles of the live clusters, kept as they merge, and searches in them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from btcnb.cluster._distance import Table
from btcnb.cluster._gate import Float64, Int32, Int64
from btcnb.cluster._neighbours import Lists, reopen_lists
from btcnb.cluster._tiles import lay_out, moved, principal_axes
from btcnb.cluster._within import close_within, own_tile, search_tiles

AT_ONCE = 64
"""Tiles searched before anybody hears of it: some tenths of a second at most."""

NEW_BELOW = 0.7
"""Share of live lanes below which tiles are made again."""

PROBED, PROBED_OF = 128, 120
"""Most tiles that judge whether tiles pay, and the least others for each of them."""

HOPELESS, CROWDED = 0.35, 0.01
"""Shares of products made and of distances measured above which blocked products are faster."""


class Ground:
    """Where the live clusters of a table lie."""

    def __init__(self, table: Table, active: Int32) -> None:
        self.table, self.axes = table, principal_axes(table)
        self.products = self.measured = 0
        self.lay(active)

    def lay(self, active: Int32) -> None:
        """Make the tiles anew."""
        self.laid = len(active)
        self.tree, self.tiles, self.place = lay_out(self.table, active, self.axes)

    def lay_if_sparse(self, active: Int32) -> None:
        if len(active) < NEW_BELOW * self.laid:
            self.lay(active)

    def move(self, pairs: Int64) -> None:
        """Clusters merged: column 1 of `pairs` (P, 2) into column 0, whose sums and sizes the table has."""
        moved(pairs, self.table, self.axes, self.tree, self.tiles, self.place)

    def in_order(self, rows: Int32) -> Int32:
        """The same clusters tile by tile: who stands together is searched together."""
        return rows[np.argsort(self.place.tile[rows], kind="stable")]

    def own_tile(self, nearest: int) -> Float64:
        """How far the nearest so many others in its own tile are from each live cluster, about (in float32)."""
        return own_tile(nearest, self.tiles)

    def hopeless(self, radius: float, lists: Lists) -> bool:
        """Whether a search would leave out too little, judged by some tiles; lists that were empty are so again."""
        which = np.arange(0, len(self.tiles.slot), max(PROBED_OF, len(self.tiles.slot) // PROBED), dtype=np.int32)
        slots = self.tiles.slot[which]
        wanted = np.zeros(len(self.table.size), dtype=bool)
        wanted[slots[slots >= 0]] = True
        work = search_tiles(which, wanted, radius, self.tree, self.tiles, self.table, lists).sum(axis=0)
        reopen_lists(slots[slots >= 0], lists)
        pairs = int((slots >= 0).sum()) * len(self.table.size)
        return bool(work[0] > HOPELESS * pairs or work[1] > CROWDED * pairs)

    def search(self, rows: Int32, radius: float, others: int, lists: Lists, heard: Callable[[int], None]) -> None:
        """New lists for some clusters, in the order of tiles: the nearest of the `others` others within a radius.

        heard: told the number of rows that are done, often; what it raises ends the search, with the rows told of done
        """
        tile = self.place.tile[rows]
        begin = np.flatnonzero(np.concatenate([[True], tile[1:] != tile[:-1]])) if len(rows) else np.empty(0, np.int64)
        wanted = np.zeros(len(self.table.size), dtype=bool)
        for at in range(0, len(begin), AT_ONCE):
            stop = begin[at + AT_ONCE] if at + AT_ONCE < len(begin) else len(rows)
            part = rows[begin[at] : stop]
            wanted[part] = True
            work = search_tiles(
                tile[begin[at : at + AT_ONCE]], wanted, radius, self.tree, self.tiles, self.table, lists
            )
            close_within(part, radius, others, lists)
            self.products += int(work[:, 0].sum())
            self.measured += int(work[:, 1].sum())
            heard(len(part))
