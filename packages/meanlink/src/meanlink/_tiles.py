"""The live clusters in tiles: groups of at most `LANES` centres that lie close together, in a tree of balls.

The centres are split in two again and again, along the line between the middles of two groups, until at most `LANES`
are left: a tile. A tile keeps its members relative to its middle, rotated to principal axes and lane by lane. A product
therefore runs over 32 members at once, says after the first axes whether the rest matters, and rounds relative to the
size of the tile and not to 1. Every node of the tree has a ball around its members. Merged clusters move: their lane is
written anew and balls grow to hold it, until the tiles are made again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meanlink._compile import compiled
from meanlink._neighbours import Table
from meanlink._types import Float32, Float64, Int32, Int64

LANES = 32
"""Most members of a tile."""

AXES = 32
"""Axes of one step of a product: after each, lengths bound what is left."""

SAMPLE = 64
"""Members that decide where a group is split."""

STEP = 4096
"""Rows copied at a time."""

GONE = np.float32(1e30)

GROWN = 1.0 + 1e-9
"""Radii are rounded up."""


class Tree(NamedTuple):
    """Balls, parents before children; a leaf is a tile."""

    left: Int32  # node -> its first child, -1 in a leaf
    right: Int32
    parent: Int32
    tile: Int32  # node -> its tile, -1 inside
    middle: Float64  # (nodes, d') on the rotated axes
    radius: Float64
    spread: Float64  # node -> least (1 - |c|²) / 2 of its members, a part of every distance to them


class Tiles(NamedTuple):
    """The members of every tile."""

    slot: Int32  # (tiles, LANES) cluster in each lane, -1 for none
    offset: Float32  # (tiles, d', LANES) member minus middle, on the rotated axes
    half: Float64  # (tiles, LANES) (1 - |c|²) / 2
    base: Float32  # (tiles, LANES) `half` plus half the squared length of the offset; `GONE` in empty lanes
    rest: Float32  # (tiles, steps) largest length of what a step of a product leaves over
    node: Int32  # (tiles,)


class Place(NamedTuple):
    """Where a cluster lies."""

    tile: Int32  # cluster -> tile
    lane: Int32


def principal_axes(table: Table) -> Float64:
    """An orthogonal matrix (d, d), the direction of largest variance first, from some of the rows."""
    n, d = table.sums.shape
    some = np.arange(0, n, max(1, n // 16384))
    rows = table.sums[some] / table.size[some, None]
    rows = rows - rows.mean(axis=0)
    axes: Float64 = np.linalg.eigh(rows.T @ rows)[1][:, ::-1]
    return np.ascontiguousarray(axes) if np.isfinite(axes).all() else np.eye(d)


def rotated(table: Table, rows: Int32 | Int64, axes: Float64) -> tuple[Float64, Float64]:
    """Centres of some clusters on the axes, padded to whole steps (n, d'), and their (1 - |c|²) / 2, (n,)."""
    d = table.sums.shape[1]
    exact = table.sums[rows] / table.size[rows, None]
    centres = np.zeros((len(rows), -(-d // AXES) * AXES))
    centres[:, :d] = exact @ axes
    return centres, 0.5 * (1.0 - np.einsum("ij,ij->i", exact, exact))


def build(table: Table, active: Int32, axes: Float64) -> tuple[Tree, Tiles, Place]:
    """Tiles of the live clusters, and the tree above them."""
    d = table.sums.shape[1]
    wide = -(-d // AXES) * AXES
    centres = np.empty((len(active), d), dtype=np.float32)
    for start in range(0, len(active), STEP):
        part = active[start : start + STEP]
        centres[start : start + STEP] = table.sums[part] / table.size[part, None]
    order = np.arange(len(active), dtype=np.int64)
    left, right, parent, first, last = _split(centres, order)
    del centres
    leaves = np.flatnonzero(left < 0)
    tile = np.full(len(left), -1, dtype=np.int32)
    tile[leaves] = np.arange(len(leaves), dtype=np.int32)
    tree = Tree(left, right, parent, tile, np.zeros((len(left), wide)), np.zeros(len(left)), np.zeros(len(left)))
    tiles = Tiles(
        np.full((len(leaves), LANES), -1, dtype=np.int32),
        np.zeros((len(leaves), wide, LANES), dtype=np.float32),
        np.zeros((len(leaves), LANES)),
        np.full((len(leaves), LANES), GONE, dtype=np.float32),
        np.zeros((len(leaves), wide // AXES), dtype=np.float32),
        leaves.astype(np.int32),
    )
    slots, sizes = active[order], last - first
    for at in range(0, len(leaves), STEP // LANES):
        some = leaves[at : at + STEP // LANES]
        which = slots[np.concatenate([np.arange(first[k], last[k]) for k in some])]
        rows, half = rotated(table, which, axes)
        _fill(at, sizes[some], which, rows, half, tree, tiles)
    _enclose(tree, sizes)
    place = Place(np.full(len(table.size), -1, dtype=np.int32), np.full(len(table.size), -1, dtype=np.int32))
    at_tile, at_lane = np.nonzero(tiles.slot >= 0)
    members = tiles.slot[at_tile, at_lane]
    place.tile[members], place.lane[members] = at_tile, at_lane
    return tree, tiles, place


# --- where groups are split ---


@compiled()
def _split(centres: Float32, order: Int64) -> tuple[Int32, Int32, Int32, Int64, Int64]:
    """Put `order` into the order of a tree; returns left and right child, parent, first and last position of nodes."""
    n = len(centres)
    most = max(4, 4 * (n // LANES + 1) * 8)
    left, right = np.full(most, -1, dtype=np.int32), np.full(most, -1, dtype=np.int32)
    parent = np.full(most, -1, dtype=np.int32)
    first, last = np.zeros(most, dtype=np.int64), np.zeros(most, dtype=np.int64)
    last[0] = n
    nodes, at = 1, 0
    along, kept = np.empty(n, dtype=np.float32), np.empty(n, dtype=np.int64)
    while at < nodes:
        begin, end = first[at], last[at]
        if end - begin > LANES:
            middle = _partition(centres, order, begin, end, along, kept)
            for child in range(2):
                first[nodes], last[nodes] = (begin, middle) if child == 0 else (middle, end)
                parent[nodes] = at
                nodes += 1
            left[at], right[at] = nodes - 2, nodes - 1
        at += 1
    return left[:nodes], right[:nodes], parent[:nodes], first[:nodes], last[:nodes]


@compiled()
def _partition(centres: Float32, order: Int64, begin: int, end: int, along: Float32, kept: Int64) -> int:
    """Move one part of a group to the front; returns where the other part begins."""
    direction, limit = _between(centres, order, begin, end)
    before = 0
    for p in range(begin, end):
        along[p] = _product(centres[order[p]], direction)
        before += along[p] < limit
    number = end - begin
    if number <= 8 * LANES or before < number // 8 or number - before < number // 8:
        half = max(number // 2 // LANES, 1) * LANES  # full tiles below
        kept[begin:end] = order[begin:end][np.argsort(along[begin:end], kind="mergesort")]
        order[begin:end] = kept[begin:end]
        return begin + half
    at, other = begin, begin + before
    for p in range(begin, end):
        if along[p] < limit:
            kept[at] = order[p]
            at += 1
        else:
            kept[other] = order[p]
            other += 1
    order[begin:end] = kept[begin:end]
    return begin + before


@compiled()
def _between(centres: Float32, order: Int64, begin: int, end: int) -> tuple[Float32, float]:
    """Direction from one half of a group to the other, and the value along it half way, by 2-means of some members."""
    d, number = centres.shape[1], min(SAMPLE, end - begin)
    some = np.empty((number, d), dtype=np.float32)
    for k in range(number):
        some[k] = centres[order[begin + k * (end - begin) // number]]
    here, there = some[_farthest(some, some[0])].copy(), some[0].copy()
    there = some[_farthest(some, here)].copy()
    for _ in range(4):
        sums, count = np.zeros((2, d), dtype=np.float32), np.zeros(2)
        for k in range(number):
            side = 0 if _square(some[k], here) <= _square(some[k], there) else 1
            sums[side] += some[k]
            count[side] += 1.0
        if count[0] == 0.0 or count[1] == 0.0:
            break
        here, there = sums[0] / np.float32(count[0]), sums[1] / np.float32(count[1])
    direction = there - here
    return direction, 0.5 * (_product(there, there) - _product(here, here))


@compiled()
def _farthest(rows: Float32, origin: Float32) -> int:
    best, far = 0, -1.0
    for k in range(len(rows)):
        away = _square(rows[k], origin)
        if away > far:
            best, far = k, away
    return best


@compiled(fastmath=True)
def _square(a: Float32, b: Float32) -> float:
    total = np.float32(0.0)
    for k in range(len(a)):
        total += (a[k] - b[k]) * (a[k] - b[k])
    return float(total)


@compiled(fastmath=True)
def _product(a: Float32, b: Float32) -> float:
    total = np.float32(0.0)
    for k in range(len(a)):
        total += a[k] * b[k]
    return float(total)


# --- members and balls ---


@compiled()
def _fill(start: int, sizes: Int64, slots: Int32, rows: Float64, half: Float64, tree: Tree, tiles: Tiles) -> None:
    """Write the tiles from `start` on, whose members stand one after the other in `rows`."""
    begin = 0
    for k in range(len(sizes)):
        t, number = start + k, sizes[k]
        node = tiles.node[t]
        middle = tree.middle[node]
        for m in range(begin, begin + number):
            middle += rows[m]
        middle /= number
        tree.spread[node] = 1.0
        for lane in range(number):
            tiles.slot[t, lane] = slots[begin + lane]
            _write(t, lane, rows[begin + lane], half[begin + lane], tree, tiles)
        begin += number


@compiled()
def _write(t: int, lane: int, row: Float64, half: float, tree: Tree, tiles: Tiles) -> None:
    """Write one member, and let the ball and the lengths of its tile hold it."""
    node, steps = tiles.node[t], tiles.rest.shape[1]
    middle = tree.middle[node]
    tiles.half[t, lane] = half
    tree.spread[node] = min(tree.spread[node], half)
    total = 0.0
    for step in range(steps - 1, -1, -1):
        for k in range(step * AXES, (step + 1) * AXES):
            away = row[k] - middle[k]
            tiles.offset[t, k, lane] = away
            total += away * away
        if step > 0:
            tiles.rest[t, step - 1] = max(tiles.rest[t, step - 1], np.float32(np.sqrt(total) * (1.0 + 1e-6)))
    tiles.base[t, lane] = half + 0.5 * total
    tree.radius[node] = max(tree.radius[node], np.sqrt(total) * GROWN)


@compiled()
def _enclose(tree: Tree, sizes: Int64) -> None:
    """Middles of inner nodes from those of their children, which stand behind them; balls around the tiles below."""
    for node in range(len(tree.left) - 1, -1, -1):
        if tree.left[node] >= 0:
            a, b = tree.left[node], tree.right[node]
            share = sizes[a] / sizes[node]
            tree.middle[node] = share * tree.middle[a] + (1.0 - share) * tree.middle[b]
            tree.spread[node] = min(tree.spread[a], tree.spread[b])
    for leaf in range(len(tree.left)):
        node = tree.parent[leaf] if tree.left[leaf] < 0 else -1
        while node >= 0:
            away = apart(tree.middle[node], tree.middle[leaf])
            tree.radius[node] = max(tree.radius[node], (away + tree.radius[leaf]) * GROWN)
            node = tree.parent[node]


@compiled(fastmath=True)
def apart(a: Float64, b: Float64) -> float:
    """Euclidean distance of two places."""
    total = 0.0
    for k in range(len(a)):
        total += (a[k] - b[k]) * (a[k] - b[k])
    return np.sqrt(total)


@compiled()
def _move(pairs: Int64, rows: Float64, half: Float64, tree: Tree, tiles: Tiles, place: Place) -> None:
    for p in range(len(pairs)):
        gone = pairs[p, 1]
        tiles.slot[place.tile[gone], place.lane[gone]] = -1
        tiles.base[place.tile[gone], place.lane[gone]] = GONE
        t, lane = place.tile[pairs[p, 0]], place.lane[pairs[p, 0]]
        _write(t, lane, rows[p], half[p], tree, tiles)
        node = tree.parent[tiles.node[t]]
        while node >= 0:
            tree.radius[node] = max(tree.radius[node], apart(rows[p], tree.middle[node]) * GROWN)
            tree.spread[node] = min(tree.spread[node], half[p])
            node = tree.parent[node]


def move(pairs: Int64, table: Table, axes: Float64, tree: Tree, tiles: Tiles, place: Place) -> None:
    """After merges: column 1 of `pairs` (P, 2) is gone, column 0 lies where the table says, and balls hold it."""
    for start in range(0, len(pairs), STEP):
        part = pairs[start : start + STEP]
        _move(part, *rotated(table, part[:, 0], axes), tree, tiles, place)
