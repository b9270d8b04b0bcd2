"""Is it the block its header speaks of: Merkle root, witness commitment, and no more coins than there may be."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from btcnb.data.readers.blocks.hashes import DIGEST, ZERO, Bytes, copy, desk, inner, outer, sha256d
from btcnb.data.readers.blocks.parse import IntArray, Parsed, stripped

_COMMITMENT = np.frombuffer(bytes.fromhex("6a24aa21a9ed"), dtype=np.uint8).copy()  # BIP 141
_PAIR = np.int64(64)  # bytes of two hashes
SUBSIDY = 50 * 100_000_000


def transaction_hashes(data: Bytes, parsed: Parsed) -> tuple[Bytes, Bytes]:
    """Ids and witness hashes of n transactions, both (n, 32), as computed, not as displayed."""
    offset = np.concatenate([[0], np.cumsum(parsed.size - parsed.witness)])
    bodies = np.empty(offset[-1], dtype=np.uint8)
    stripped(data, parsed, bodies, offset)
    ids = _hashes(bodies, offset[:-1], offset[1:])
    whole = ids.copy()
    rows = np.flatnonzero(parsed.witness > 0)
    whole[rows] = _hashes(data, parsed.start[rows], (parsed.start + parsed.size)[rows])
    return ids, whole


def _hashes(data: Bytes, start: IntArray, end: IntArray) -> Bytes:
    """OpenSSL hashes what is long several times faster than compiled code can."""
    view, sha256 = memoryview(data.data), hashlib.sha256
    pairs = zip(start.tolist(), end.tolist(), strict=True)
    joined = b"".join([sha256(sha256(view[first:last]).digest()).digest() for first, last in pairs])
    return np.frombuffer(bytearray(joined), dtype=np.uint8).reshape(-1, 32)


@inner
def _merkle(leaves: Any, first: Any, number: Any, work: Any, on: Any) -> None:
    """The Merkle root of `number` hashes, to work[:32]."""
    for i in range(number):
        for j in range(32):
            work[32 * i + j] = leaves[first + i, j]
    while number > 1:
        if number % 2:
            copy(work, 32 * number - 32, DIGEST, work, 32 * number)
            number += 1
        for i in range(number // 2):
            sha256d(work, 64 * i, _PAIR, work, 32 * i, on)
        number //= 2


@outer
def wrong_roots(
    data: Bytes, start: IntArray, first: IntArray, ids: Bytes, whole: Bytes, parsed: Parsed
) -> tuple[int, int]:
    """(block, 1) whose Merkle root is not that of its header, (block, 2) whose witnesses are not those committed to.

    (-1, 0) where all is well. first (n + 1,): the first transaction of each block.
    """
    on = desk()
    for block in range(len(start)):
        number = first[block + 1] - first[block]
        work = np.zeros(32 * (number + 1) + 64, dtype=np.uint8)
        _merkle(ids, first[block], number, work, on)
        for j in range(32):
            if work[j] != data[start[block] + 36 + j]:
                return block, 1
        coinbase, at = first[block], -1
        for row in range(parsed.output_offset[coinbase], parsed.output_offset[coinbase + 1]):
            place, fits = parsed.locking[row], parsed.locking_size[row] >= 38
            for j in range(6):
                fits = fits and data[place + j] == _COMMITMENT[j]
            if fits:
                at = place + 6  # the last one counts
        stack = parsed.stack[parsed.input_offset[coinbase]]
        if at < 0 or stack < 0 or data[stack] != 1 or data[stack + 1] != 32:
            continue  # the block commits to no witnesses
        for j in range(32):
            whole[coinbase, j] = 0
        _merkle(whole, first[block], number, work, on)
        copy(data, stack + 2, DIGEST, work, DIGEST)
        sha256d(work, ZERO, _PAIR, work, ZERO, on)
        for j in range(32):
            if work[j] != data[at + j]:
                return block, 2
    return -1, 0


def subsidies(height: IntArray, halving: int) -> IntArray:
    """Satoshi that a block of each height may make."""
    return np.where(height // halving < 64, SUBSIDY >> np.minimum(height // halving, 63), 0)
