"""Nearest clusters within a radius, from tiles (`_tiles`), exactly.

For two centres a and c with |a|, |c| <= 1 the distance of average linkage is

    1 - a.c = |a - c|² / 2 + (1 - |a|²) / 2 + (1 - |c|²) / 2,

so a ball around some c bounds it from below. The members of a tile are searched together, down the tree of balls, the
nearer branch first. A branch is left out when it lies beyond the last entry of all their lists, and beyond the radius;
a tile is left out for a member when it lies beyond that member's; products on the first axes rule out most of the rest.
What float32 cannot rule out is measured in float64. Lists hold the nearest by (distance, slot), so they are the same
whatever the tiles, the order of the search and the number of threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import prange, uintp

from btcnb.cluster._compile import compiled
from btcnb.cluster._distance import AVERAGE, Table, cluster_distance
from btcnb.cluster._gate import Bool, Float32, Float64, Int32, Int64
from btcnb.cluster._neighbours import Lists
from btcnb.cluster._tiles import AXES, DEEPEST, LANES, Tiles, Tree

TINY = 1e-14
"""Rounding of float64 distances, and of the rotation."""

UNIT = 2.0**-24
"""Relative rounding of one float32 operation."""


FARTHEST = 4.0
"""Beyond every distance."""


class Clustered(NamedTuple):
    """What is searched."""

    tree: Tree
    tiles: Tiles
    table: Table


class Desk(NamedTuple):
    """What one tile needs while its members are searched."""

    rows: Float32  # (LANES, d') members relative to their tile's middle
    half: Float64  # (LANES,)
    limit: Float64  # (LANES,) distance that a cluster must not exceed to matter; -1 in lanes that do not search
    shift: Float32  # (d',) from the other tile's middle to the own one
    moved: Float32  # (d',) one member relative to the other tile's middle
    left: Float32  # (steps,) length of what each step of a product leaves over
    sums: Float32  # (LANES,)
    work: Int64  # (2,) products made; distances measured


@compiled()
def insert(lists: Lists, i: int, j: int, distance: float) -> None:
    """Insert (j, distance) into the list of row i, ordered by distance, then by slot; the last one falls off."""
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


@compiled(fastmath=True)
def _shifted(row: Float32, shift: Float32, moved: Float32, left: Float32) -> float:
    """moved = row + shift; its squared length, and in `left` the lengths of what remains after each step."""
    total = np.float32(0.0)
    for step in range(len(left) - 1, -1, -1):
        left[step] = np.sqrt(total)
        part = np.float32(0.0)
        for k in range(step * AXES, (step + 1) * AXES):
            moved[k] = row[k] + shift[k]
            part += moved[k] * moved[k]
        total += part
    return float(total)


@compiled(fastmath=True)
def _more(moved: Float32, offset: Float32, start: int, sums: Float32) -> None:
    """Add the products of one step to `sums`. Unsigned positions: what may count from the end is not vectorised."""
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
def _open(sums: Float32, base: Float32, cut: Any) -> bool:
    """Whether some lane's product reaches what its distance needs."""
    best = sums[0] - base[0]
    for lane in range(1, LANES):
        best = max(best, sums[lane] - base[lane])
    return best >= cut


@compiled()
def _visit(tile: int, other: int, radius: float, c: Clustered, desk: Desk, lists: Lists) -> None:
    """Offer the members of one tile, or its own, to those members of another that search."""
    tree, tiles = c.tree, c.tiles
    here, there = tiles.node[tile], tiles.node[other]
    wide, room, ball = desk.rows.shape[1], tree.radius[here], tree.radius[there]
    for k in range(wide):
        desk.shift[k] = tree.middle[here, k] - tree.middle[there, k]
    for r in range(LANES):
        if desk.limit[r] < 0.0:
            continue
        square = _shifted(desk.rows[r], desk.shift, desk.moved, desk.left)
        away, slope = np.sqrt(square), (wide + 16) * UNIT
        gap = max(away * (1.0 - slope) - 1e-6 * room - ball, 0.0)
        if 0.5 * gap * gap + desk.half[r] + tree.spread[there] - TINY > desk.limit[r]:
            continue
        desk.work[0] += LANES
        known = 0.5 * square + desk.half[r] - slope * (away + room + ball) ** 2 - TINY
        if _products(other, known, desk.limit[r], tiles, desk):
            _measure(tile, r, other, known, radius, c, desk, lists)


@compiled()
def _products(other: int, known: float, limit: float, tiles: Tiles, desk: Desk) -> bool:
    """Products of the member at hand with those of a tile; whether one of them may be within the limit."""
    desk.sums[:] = np.float32(0.0)
    need = known - limit
    need -= 16 * UNIT * abs(need)
    for step in range(tiles.rest.shape[1]):
        _more(desk.moved, tiles.offset[other], step * AXES, desk.sums)
        rest = desk.left[step] * tiles.rest[other, step] * (1.0 + 1e-5)
        if not _open(desk.sums, tiles.base[other], np.float32(need - rest - UNIT * abs(need - rest))):
            return False
    return True


@compiled()
def _measure(
    tile: int, r: int, other: int, known: float, radius: float, c: Clustered, desk: Desk, lists: Lists
) -> None:
    """Measure what the products could not rule out, and list what is near enough."""
    i, tiles = c.tiles.slot[tile, r], c.tiles
    for lane in range(LANES):
        j = tiles.slot[other, lane]
        need = known - desk.limit[r]
        reached = desk.sums[lane] - tiles.base[other, lane] >= need - 16 * UNIT * (abs(need) + desk.limit[r])
        if j < 0 or j == i or not reached:
            continue
        desk.work[1] += 1
        distance = cluster_distance(AVERAGE, c.table, i, c.table, j)
        if distance < radius and distance <= desk.limit[r]:
            insert(lists, i, j, distance)
            if lists.filled[i] == lists.ids.shape[1]:
                desk.limit[r] = lists.distances[i, -1]


@compiled()
def _prepared(tile: int, wanted: Bool, radius: float, c: Clustered, lists: Lists) -> Desk:
    """An emptied list for every wanted member of a tile."""
    wide, steps = c.tiles.offset.shape[1], c.tiles.rest.shape[1]
    desk = Desk(
        np.zeros((LANES, wide), dtype=np.float32),
        c.tiles.half[tile].copy(),
        np.full(LANES, -1.0),
        np.empty(wide, dtype=np.float32),
        np.empty(wide, dtype=np.float32),
        np.empty(steps, dtype=np.float32),
        np.empty(LANES, dtype=np.float32),
        np.zeros(2, dtype=np.int64),
    )
    for lane in range(LANES):
        i = c.tiles.slot[tile, lane]
        if i >= 0 and wanted[i]:
            desk.limit[lane] = min(radius, FARTHEST)
            desk.rows[lane] = c.tiles.offset[tile, :, lane]
            lists.filled[i] = 0
            lists.distances[i, :] = np.inf
    return desk


@compiled()
def _around(tile: int, tree: Tree, tiles: Tiles, desk: Desk) -> tuple[Float64, float, float]:
    """Middle, radius and least half of the members that search."""
    middle, number = np.zeros(desk.rows.shape[1]), 0
    for r in range(LANES):
        if desk.limit[r] >= 0.0:
            middle += desk.rows[r]
            number += 1
    middle /= number
    ball, least = 0.0, 1.0
    for r in range(LANES):
        if desk.limit[r] >= 0.0:
            total = 0.0
            for k in range(len(middle)):
                total += (desk.rows[r, k] - middle[k]) ** 2
            ball, least = max(ball, total), min(least, desk.half[r])
    ball = np.sqrt(ball) * (1.0 + 1e-6) + 1e-6 * tree.radius[tiles.node[tile]]
    return middle + tree.middle[tiles.node[tile]], ball, least


@compiled(fastmath=True)
def _apart(a: Float64, b: Float64) -> float:
    total = 0.0
    for k in range(len(a)):
        total += (a[k] - b[k]) * (a[k] - b[k])
    return np.sqrt(total)


@compiled()
def _search_tile(
    tile: int, wanted: Bool, radius: float, tree: Tree, tiles: Tiles, table: Table, lists: Lists
) -> tuple[int, int]:
    """Lists of the wanted members of one tile; products made and distances measured."""
    c = Clustered(tree, tiles, table)
    desk = _prepared(tile, wanted, radius, c, lists)
    middle, ball, least = _around(tile, tree, tiles, desk)
    _visit(tile, tile, radius, c, desk, lists)
    waiting, bound = np.empty(DEEPEST, dtype=np.int64), np.empty(DEEPEST)
    waiting[0], bound[0], height = 0, 0.0, 1
    limit = desk.limit.max()
    while height > 0:
        height -= 1
        node = waiting[height]
        if bound[height] > limit:
            continue
        if tree.left[node] < 0:
            if tree.tile[node] != tile:
                _visit(tile, tree.tile[node], radius, c, desk, lists)
                limit = desk.limit.max()
            continue
        far = np.empty(2)
        for side in range(2):
            child = tree.left[node] if side == 0 else tree.right[node]
            gap = max(_apart(middle, tree.middle[child]) * (1.0 - 1e-9) - ball - tree.radius[child], 0.0)
            far[side] = 0.5 * gap * gap + least + tree.spread[child] - TINY
        nearer = 0 if _closer(middle, tree, node, far) else 1
        for side in (1 - nearer, nearer):
            waiting[height] = tree.left[node] if side == 0 else tree.right[node]
            bound[height] = far[side]
            height += 1
    return desk.work[0], desk.work[1]


@compiled()
def _closer(middle: Float64, tree: Tree, node: int, far: Float64) -> bool:
    """Whether the left child comes first: by its bound, and where both may hold something by its middle."""
    if far[0] != far[1]:
        return far[0] < far[1]
    return _apart(middle, tree.middle[tree.left[node]]) <= _apart(middle, tree.middle[tree.right[node]])


@compiled(parallel=True)
def search_tiles(
    which: Int32, wanted: Bool, radius: float, tree: Tree, tiles: Tiles, table: Table, lists: Lists
) -> Int64:
    """New lists for the wanted slots (all slots,) of some tiles; of each tile (products made, distances measured)."""
    work = np.zeros((len(which), 2), dtype=np.int64)
    for q in prange(len(which)):
        made, measured = _search_tile(which[q], wanted, radius, tree, tiles, table, lists)
        work[q, 0], work[q, 1] = made, measured
    return work


@compiled()
def close_within(rows: Int32, radius: float, others: int, lists: Lists) -> None:
    """After a search: what a list does not name is no nearer than the radius, nor than the last entry of a full one."""
    for i in rows:
        full = lists.filled[i] == lists.ids.shape[1] and lists.filled[i] < others
        lists.bound[i] = min(lists.distances[i, -1], radius) if full else radius


@compiled()
def own_tile(nearest: int, tiles: Tiles) -> Float64:
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
