"""Compiled joins: which transaction a hash stands for, which output an input spends, which number an owner gets.

Hashes and owners are rows of 32 bytes, viewed as four 64-bit words. A table has a power of two of slots, at least twice
as many as rows; a slot holds a row or -1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from btcnb.data.readers.blocks.hashes import ZERO, Bytes, IntArray, inner, outer

Words = npt.NDArray[np.uint64]

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


def words(rows: Bytes) -> Words:
    """(n, 32) bytes as (n, 4) words."""
    return np.ascontiguousarray(rows).view(np.uint64)


def slots(rows: int) -> IntArray:
    """An empty table for so many rows."""
    return np.full(1 << max(4, (2 * rows).bit_length()), -1, dtype=np.int64)


@inner
def _slot(key: Any, row: Any, tag: Any, mask: Any) -> Any:
    mixed = np.uint64(tag)
    for i in range(4):
        mixed = (mixed ^ key[row, i]) * _FACTOR
        mixed ^= mixed >> _HALF
    return np.int64(mixed & np.uint64(mask))


@inner
def _same(one: Any, row: Any, other: Any, at: Any) -> Any:
    return (
        one[row, 0] == other[at, 0]
        and one[row, 1] == other[at, 1]
        and one[row, 2] == other[at, 2]
        and one[row, 3] == other[at, 3]
    )


@outer
def enter(key: Words, table: IntArray, before: IntArray) -> int:
    """Enter n keys, the last of equal ones; `before` (n,) gets the row entered earlier for an equal key, or -1.

    The number of keys that were there already.
    """
    mask, again = len(table) - 1, 0
    for row in range(len(key)):
        at = _slot(key, row, ZERO, mask)
        while table[at] >= 0 and not _same(key, row, key, table[at]):
            at = (at + 1) & mask
        before[row] = table[at]
        again += table[at] >= 0
        table[at] = row
    return again


class Places(NamedTuple):
    """Where transactions and outputs stand."""

    tree: IntArray  # per transaction: number of the tree of blocks it stands in
    input_offset: IntArray  # (n + 1,)
    output_offset: IntArray  # (n + 1,)


NO_OUTPUT, TWICE, EARLY = 1, 2, 3


@outer
def link(
    hashes: Words, table: IntArray, previous: Words, index: IntArray, places: Places, rows: tuple[IntArray, IntArray]
) -> tuple[int, int]:
    """Per input: the output row that it spends, and the one that it can be read off from; -1 where there is none.

    The two differ where blocks of several trees are at hand: a coin may be spent once in each, or made later in another
    one, and only the first spend that follows is a link. (0, 0), or (problem, input row).
    """
    spent, seen = rows
    mask = len(table) - 1
    used = np.zeros(places.output_offset[-1], dtype=np.int64)  # spending transaction + 1
    for tx in range(len(places.tree)):
        for row in range(places.input_offset[tx], places.input_offset[tx + 1]):
            spent[row] = seen[row] = -1
            at = _slot(previous, row, ZERO, mask)
            while table[at] >= 0 and not _same(previous, row, hashes, table[at]):
                at = (at + 1) & mask
            parent = table[at]
            if parent < 0:
                continue
            out = places.output_offset[parent] + index[row]
            if out >= places.output_offset[parent + 1]:
                return NO_OUTPUT, row
            seen[row] = out
            if parent >= tx:
                if places.tree[parent] == places.tree[tx]:
                    return EARLY, row
            elif used[out] == 0:
                spent[row], used[out] = out, tx + 1
            elif places.tree[used[out] - 1] == places.tree[tx]:
                return TWICE, row
    return 0, 0


class Sides(NamedTuple):
    """Tags and owners of the inputs and of the outputs."""

    in_tag: npt.NDArray[np.uint8]
    in_owner: Words
    out_tag: npt.NDArray[np.uint8]
    out_owner: Words


@inner
def _numbered(tag: Any, owner: Any, row: Any, table: Any, found: Any, total: Any) -> Any:
    """The number of an owner, `total` where it is new. found: tags and owners by number."""
    mask = len(table) - 1
    at = _slot(owner, row, tag[row], mask)
    while table[at] >= 0 and not (found[0][table[at]] == tag[row] and _same(owner, row, found[1], table[at])):
        at = (at + 1) & mask
    if table[at] < 0:
        table[at] = total
        found[0][total] = tag[row]
        for i in range(4):
            found[1][total, i] = owner[row, i]
    return table[at]


@outer
def number(
    sides: Sides,
    places: Places,
    table: IntArray,
    found: tuple[npt.NDArray[np.uint8], Words],
    ids: tuple[IntArray, IntArray],
) -> int:
    """Number the owners by first appearance: transaction by transaction, inputs before outputs. How many there are."""
    in_id, out_id = ids
    total: Any = np.int64(0)
    for tx in range(len(places.tree)):
        for row in range(places.input_offset[tx], places.input_offset[tx + 1]):
            in_id[row] = -1
            if sides.in_tag[row]:
                in_id[row] = _numbered(sides.in_tag, sides.in_owner, row, table, found, total)
                total += in_id[row] == total
        for row in range(places.output_offset[tx], places.output_offset[tx + 1]):
            out_id[row] = -1
            if sides.out_tag[row]:
                out_id[row] = _numbered(sides.out_tag, sides.out_owner, row, table, found, total)
                total += out_id[row] == total
    return total
