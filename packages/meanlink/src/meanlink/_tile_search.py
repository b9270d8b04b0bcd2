"""Nearest clusters within a radius, from tiles (`_tiles`), exactly.

For two centres a and c with |a|, |c| <= 1 the distance of average linkage is

    1 - a.c = |a - c|² / 2 + (1 - |a|²) / 2 + (1 - |c|²) / 2,

so a ball around some c bounds it from below. Up to `LANES` rows that lie together are searched together, down the tree
of balls, the nearer branch first. A branch is left out when it lies beyond the radius and beyond the last entry of all
their lists, a tile for a row when it lies beyond that row's; products on the first axes rule out most of the rest. What
float32 cannot rule out is measured in float64. Lists hold the nearest by (distance, number), so they do not depend on
the tiles, on the order of the search or on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import prange, uintp

from meanlink._compile import compiled
from meanlink._neighbours import Lists, Table, close_lists, cluster_distance, insert, open_lists
from meanlink._tiles import AXES, LANES, Tiles, Tree, apart, build, move, principal_axes, rotated
from meanlink._types import Float32, Float64, Int32, Int64

AT_ONCE = 64
"""Groups searched before anybody hears of it: some tenths of a second at most."""

ROTATED = 16 * AT_ONCE
"""Groups rotated at a time."""

PROBED, PROBED_OF = 128, 120
"""Most groups that judge whether tiles pay, and the least others for each of them."""

HOPELESS, CROWDED = 0.35, 0.01
"""Shares of products made and of distances measured above which blocked products are faster."""

FEW = 2_000
"""Clusters below which the next radius is infinite."""

NEAR = 4
"""The next radius is what half of the clusters find this many neighbours in, about."""

WIDE = 0.3
"""A radius from which on the next is infinite: little would be left out."""

TINY = 1e-14
"""Rounding of float64 distances, and of the rotation."""

UNIT = 2.0**-24
"""Relative rounding of one float32 operation."""

FARTHEST = 4.0
"""Beyond every distance."""

DEEPEST = 512
"""More than a tree can be deep: each part has an eighth of its group or more."""


class TileSearch:
    """The tiles of the live clusters of a table, kept up to date as clusters merge. See `Search`."""

    def __init__(self, table: Table, active: Int32) -> None:
        self.table, self.axes = table, principal_axes(table)
        self.built = len(active) + 1
        self.rebuild(active)

    def rebuild(self, active: Int32, share: float = 1.0) -> None:
        if len(active) < share * self.built:
            self.built = self.live = len(active)
            self.tree, self.tiles, self.place = build(self.table, active, self.axes)

    def moved(self, pairs: Int64) -> None:
        move(pairs, self.table, self.axes, self.tree, self.tiles, self.place)
        self.live -= len(pairs)

    def order(self, own: Int32) -> Int64:
        return np.argsort(self.place.tile[own], kind="stable")

    def next_radius(self, radius: float) -> float:
        if self.live < FEW:
            return float("inf")
        wanted = max(float(np.median(_distance_within_tile(NEAR, self.tiles))), 2.0 * radius)
        return wanted if wanted < WIDE else float("inf")

    def pays(self, left: Table, rows: Int32, own: Int32, radius: float, lists: Lists) -> bool:
        """Whether a search leaves out enough to beat blocked products, judged by some rows; lists stay empty."""
        begin = self._groups(own)
        step = max(PROBED_OF, len(begin) // PROBED)
        stop = np.append(begin, len(rows))[1:]
        some = np.concatenate([np.arange(a, b) for a, b in zip(begin[::step], stop[::step], strict=True)])
        rotated_rows, half = rotated(left, rows[some], self.axes)
        groups = np.append(self._groups(own[some]), len(some))
        products, measured = self._search(groups, rotated_rows, half, left, rows[some], own[some], radius, lists)
        open_lists(rows[some], lists)
        pairs = len(some) * self.live
        return products <= HOPELESS * pairs and measured <= CROWDED * pairs

    def search(
        self, left: Table, rows: Int32, own: Int32, radius: float, lists: Lists, heard: Callable[[int], None]
    ) -> None:
        begin = np.append(self._groups(own), len(rows))
        for at in range(0, len(begin) - 1, ROTATED):
            some = begin[at : at + ROTATED + 1]
            queries, half = rotated(left, rows[some[0] : some[-1]], self.axes)
            for first in range(0, len(some) - 1, AT_ONCE):
                groups = some[first : first + AT_ONCE + 1]
                part, of = slice(groups[0], groups[-1]), slice(groups[0] - some[0], groups[-1] - some[0])
                self._search(groups - groups[0], queries[of], half[of], left, rows[part], own[part], radius, lists)
                close_lists(rows[part], radius, self.live - 1, lists)
                heard(len(rows[part]))

    def _search(
        self,
        begin: Int64,
        queries: Float64,
        half: Float64,
        left: Table,
        rows: Int32,
        own: Int32,
        radius: float,
        lists: Lists,
    ) -> Any:
        """Search for some rows in order, in groups; products made and distances measured."""
        work = _search_groups(begin, queries, half, rows, own, radius, self.tree, self.tiles, left, self.table, lists)
        return work.sum(axis=0)

    def _groups(self, own: Int32) -> Int64:
        """First positions of groups of rows in order: of one tile, at most `LANES` each."""
        tile = self.place.tile[own]
        first = np.flatnonzero(np.concatenate([[True], tile[1:] != tile[:-1]])) if len(own) else np.empty(0, np.int64)
        size = np.diff(first, append=len(own))
        parts = -(-size // LANES)
        within = np.arange(int(parts.sum())) - np.repeat(np.cumsum(parts) - parts, parts)
        return np.repeat(first, parts) + LANES * within


class Index(NamedTuple):
    """What is searched."""

    tree: Tree
    tiles: Tiles
    table: Table


class Group(NamedTuple):
    """Rows that are searched together, and the memory that this takes."""

    left: Table  # their table
    names: Int32  # (R,) their rows in it
    own: Int32  # (R,) the cluster that each one skips
    half: Float64  # (R,) (1 - |a|²) / 2
    rows: Float32  # (R, d') relative to `middle`
    middle: Float64  # (d',) on the rotated axes
    ball: float  # largest distance of a row from the middle
    limit: Float64  # (R,) distance that a cluster must not exceed to matter
    shift: Float32  # (d',) from a tile's middle to this one
    moved: Float32  # (d',) one row relative to a tile's middle
    rest: Float32  # (steps,) length of what each step of a product leaves over
    sums: Float32  # (LANES,)
    work: Int64  # (2,) products made; distances measured


@compiled(fastmath=True)
def _shifted(row: Float32, shift: Float32, moved: Float32, rest: Float32) -> float:
    """moved = row + shift; its squared length, and in `rest` the lengths of what remains after each step."""
    total = np.float32(0.0)
    for step in range(len(rest) - 1, -1, -1):
        rest[step] = np.sqrt(total)
        part = np.float32(0.0)
        for k in range(step * AXES, (step + 1) * AXES):
            moved[k] = row[k] + shift[k]
            part += moved[k] * moved[k]
        total += part
    return float(total)


@compiled(fastmath=True)
def _add_products(moved: Float32, offset: Float32, start: int, sums: Float32) -> None:
    """Add the products of one step to `sums`. Signed positions may count from the end and are not vectorised."""
    for block in range(AXES // 8):
        k = uintp(start) + uintp(8 * block)
        k1, k2, k3, k4 = k + uintp(1), k + uintp(2), k + uintp(3), k + uintp(4)
        k5, k6, k7 = k + uintp(5), k + uintp(6), k + uintp(7)
        a, b, c, d, e, f, g, h = (
            moved[k], moved[k1], moved[k2], moved[k3], moved[k4], moved[k5], moved[k6], moved[k7]
        )  # fmt: skip
        for lane in range(uintp(LANES)):
            sums[lane] += (
                (a * offset[k, lane] + b * offset[k1, lane])
                + (c * offset[k2, lane] + d * offset[k3, lane])
                + (e * offset[k4, lane] + f * offset[k5, lane])
                + (g * offset[k6, lane] + h * offset[k7, lane])
            )


@compiled(fastmath={"nnan", "reassoc", "nsz", "contract"})
def _any_reaches(sums: Float32, base: Float32, cut: Any) -> bool:
    """Whether the product of some lane reaches what its distance needs."""
    best = sums[0] - base[0]
    for lane in range(1, LANES):
        best = max(best, sums[lane] - base[lane])
    return best >= cut


@compiled()
def _visit(tile: int, radius: float, index: Index, group: Group, lists: Lists) -> None:
    """Offer the members of a tile to the rows of a group."""
    tree, node = index.tree, index.tiles.node[tile]
    wide, ball = group.rows.shape[1], tree.radius[node]
    for k in range(wide):
        group.shift[k] = group.middle[k] - tree.middle[node, k]
    for r in range(len(group.names)):
        square = _shifted(group.rows[r], group.shift, group.moved, group.rest)
        away, slope = np.sqrt(square), (wide + 16) * UNIT
        gap = max(away * (1.0 - slope) - 1e-6 * group.ball - ball, 0.0)
        if 0.5 * gap * gap + group.half[r] + tree.spread[node] - TINY > group.limit[r]:
            continue
        group.work[0] += LANES
        known = 0.5 * square + group.half[r] - slope * (away + group.ball + ball) ** 2 - TINY
        if _may_hold_one(tile, known, group.limit[r], index.tiles, group):
            _measure(tile, r, known, radius, index, group, lists)


@compiled()
def _may_hold_one(tile: int, known: float, limit: float, tiles: Tiles, group: Group) -> bool:
    """Products of the row at hand with the members of a tile; whether one of them may be within the limit."""
    group.sums[:] = np.float32(0.0)
    need = known - limit
    need -= 16 * UNIT * abs(need)
    for step in range(tiles.rest.shape[1]):
        _add_products(group.moved, tiles.offset[tile], step * AXES, group.sums)
        rest = group.rest[step] * tiles.rest[tile, step] * (1.0 + 1e-5)
        if not _any_reaches(group.sums, tiles.base[tile], np.float32(need - rest - UNIT * abs(need - rest))):
            return False
    return True


@compiled()
def _measure(tile: int, r: int, known: float, radius: float, index: Index, group: Group, lists: Lists) -> None:
    """Measure what the products could not rule out, and list what is near enough."""
    i, tiles = group.names[r], index.tiles
    for lane in range(LANES):
        j = tiles.slot[tile, lane]
        need = known - group.limit[r]
        reached = group.sums[lane] - tiles.base[tile, lane] >= need - 16 * UNIT * (abs(need) + group.limit[r])
        if j < 0 or j == group.own[r] or not reached:
            continue
        group.work[1] += 1
        distance = cluster_distance(group.left, i, index.table, j)
        if distance < radius and distance <= group.limit[r]:
            insert(lists, i, j, distance)
            if lists.filled[i] == lists.ids.shape[1]:
                group.limit[r] = lists.distances[i, -1]


@compiled()
def _gathered(queries: Float64, half: Float64, names: Int32, own: Int32, radius: float, left: Table) -> Group:
    number, wide = queries.shape
    middle = np.zeros(wide)
    for r in range(number):
        middle += queries[r]
    middle /= number
    rows, ball = np.empty((number, wide), dtype=np.float32), 0.0
    for r in range(number):
        ball = max(ball, apart(queries[r], middle))
        for k in range(wide):
            rows[r, k] = queries[r, k] - middle[k]
    return Group(
        left, names, own, half, rows, middle, ball * (1.0 + 1e-6), np.full(number, min(radius, FARTHEST)),
        np.empty(wide, dtype=np.float32), np.empty(wide, dtype=np.float32), np.empty(wide // AXES, dtype=np.float32),
        np.empty(LANES, dtype=np.float32), np.zeros(2, dtype=np.int64),
    )  # fmt: skip


@compiled()
def _search_group(
    queries: Float64,
    half: Float64,
    names: Int32,
    own: Int32,
    radius: float,
    tree: Tree,
    tiles: Tiles,
    left: Table,
    table: Table,
    lists: Lists,
) -> tuple[int, int]:
    """Lists of the rows of one group; products made and distances measured."""
    open_lists(names, lists)
    group = _gathered(queries, half, names, own, radius, left)
    index, least = Index(tree, tiles, table), half.min()
    waiting, bound = np.empty(DEEPEST, dtype=np.int64), np.empty(DEEPEST)
    waiting[0], bound[0], height = 0, 0.0, 1
    limit, far, away = group.limit.max(), np.empty(2), np.empty(2)
    while height > 0:
        height -= 1
        node = waiting[height]
        if bound[height] > limit:
            continue
        if tree.left[node] < 0:
            _visit(tree.tile[node], radius, index, group, lists)
            limit = group.limit.max()
            continue
        for side in range(2):
            child = tree.left[node] if side == 0 else tree.right[node]
            away[side] = apart(group.middle, tree.middle[child])
            gap = max(away[side] * (1.0 - 1e-9) - group.ball - tree.radius[child], 0.0)
            far[side] = 0.5 * gap * gap + least + tree.spread[child] - TINY
        # the nearer by its bound, and where both may hold something by its middle, is looked at first
        nearer = 0 if far[0] < far[1] or (far[0] == far[1] and away[0] <= away[1]) else 1
        for side in (1 - nearer, nearer):
            waiting[height] = tree.left[node] if side == 0 else tree.right[node]
            bound[height] = far[side]
            height += 1
    return group.work[0], group.work[1]


@compiled(parallel=True)
def _search_groups(
    begin: Int64,
    queries: Float64,
    half: Float64,
    rows: Int32,
    own: Int32,
    radius: float,
    tree: Tree,
    tiles: Tiles,
    left: Table,
    table: Table,
    lists: Lists,
) -> Int64:
    """New lists for the rows begin[q]..begin[q+1] of every group q; products made and distances measured, (groups, 2).

    queries (n, d'): the rows on the rotated axes; half (n,): their (1 - |a|²) / 2
    """
    work = np.zeros((len(begin) - 1, 2), dtype=np.int64)
    for q in prange(len(begin) - 1):
        a, b = begin[q], begin[q + 1]
        made, measured = _search_group(
            queries[a:b], half[a:b], rows[a:b], own[a:b], radius, tree, tiles, left, table, lists
        )
        work[q, 0], work[q, 1] = made, measured
    return work


@compiled()
def _distance_within_tile(nearest: int, tiles: Tiles) -> Float64:
    """Distance of every member to its so many nearest in the same tile, or to the farthest; of members alone, none."""
    found, number = np.empty(tiles.slot.size), 0
    for t in range(len(tiles.slot)):
        lanes = np.flatnonzero(tiles.slot[t] >= 0)
        for r in lanes:
            away = np.empty(len(lanes) - 1)
            at = 0
            for lane in lanes:
                if lane != r:
                    total = 0.0
                    for k in range(tiles.offset.shape[1]):
                        total += (tiles.offset[t, k, r] - tiles.offset[t, k, lane]) ** 2
                    away[at] = 0.5 * total + tiles.half[t, r] + tiles.half[t, lane]
                    at += 1
            if at:
                found[number] = np.sort(away)[min(nearest, at) - 1]
                number += 1
    return found[:number]
