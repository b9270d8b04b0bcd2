"""Is it the block its header speaks of: Merkle root, witness commitment, and no more coins than there may be."""

from __future__ import annotations

import numpy as np

from btcnb.data.readers.blocks.hashes import Bytes, IntArray, outer, sha256d
from btcnb.data.readers.blocks.parse import Parsed, stripped, taken

_COMMITMENT = np.frombuffer(bytes.fromhex("6a24aa21a9ed"), dtype=np.uint8).copy()  # BIP 141
_COMMITTED = 38  # bytes of a script that begins so
SUBSIDY = 50 * 100_000_000


def transaction_hashes(data: Bytes, parsed: Parsed) -> tuple[Bytes, Bytes]:
    """Ids and witness hashes of n transactions, both (n, 32), as computed, not as displayed."""
    whole = sha256d(data, parsed.start, parsed.size)
    marked = parsed.witness > 0
    size = np.where(marked, parsed.size - parsed.witness, 0)
    offset = np.concatenate([[0], np.cumsum(size)])
    bodies = np.empty(offset[-1], dtype=np.uint8)
    stripped(data, parsed, bodies, offset)
    ids = whole.copy()
    ids[marked] = sha256d(bodies, offset[:-1][marked], size[marked])
    return ids, whole


def merkle_roots(leaves: Bytes, first: IntArray) -> Bytes:
    """(n, 32): roots of n trees; the leaves of tree i are rows first[i] to first[i + 1] of `leaves` (m, 32)."""
    nodes, counts = leaves, np.diff(first)
    while counts.max(initial=1) > 1:
        start = np.cumsum(counts) - counts
        above = (counts + 1) // 2
        tree = np.repeat(np.arange(len(counts)), above)
        left = start[tree] + 2 * (np.arange(len(tree)) - np.repeat(np.cumsum(above) - above, above))
        right = np.minimum(left + 1, start[tree] + counts[tree] - 1)  # without a partner, a node is paired with itself
        done = counts[tree] == 1
        pairs = np.concatenate([nodes[left], nodes[right]], axis=1)
        joined = sha256d(pairs.reshape(-1), 64 * np.arange(len(pairs)), np.full(len(pairs), 64))
        joined[done] = nodes[left[done]]
        nodes, counts = joined, above
    return nodes


@outer
def _commitments(data: Bytes, first: IntArray, parsed: Parsed, places: IntArray) -> None:
    """Where each block's commitment to its witnesses stands, and the value hashed with it; -1 where there is none."""
    for block in range(len(first) - 1):
        coinbase = first[block]
        stack = parsed.stack[parsed.input_offset[coinbase]]
        places[block, 0] = places[block, 1] = -1
        if stack < 0 or data[stack] != 1 or data[stack + 1] != 32:
            continue
        for row in range(parsed.output_offset[coinbase], parsed.output_offset[coinbase + 1]):
            at, fits = parsed.locking[row], parsed.locking_size[row] >= _COMMITTED
            for i in range(len(_COMMITMENT)):
                fits = fits and data[at + i] == _COMMITMENT[i]
            if fits:  # the last one counts
                places[block, 0], places[block, 1] = at + len(_COMMITMENT), stack + 2


def wrong_root(
    data: Bytes, start: IntArray, first: IntArray, ids: Bytes, whole: Bytes, parsed: Parsed
) -> tuple[int, str]:
    """The first block whose transactions, or witnesses, are not those that its header stands for, and what is wrong.

    (-1, "") where all is well. start (n,): where blocks begin; first (n + 1,): their first transactions.
    """
    leaves = np.concatenate([ids, whole])
    leaves[len(ids) + first[:-1]] = 0  # a coinbase cannot commit to itself
    roots = merkle_roots(leaves, np.concatenate([first, len(ids) + first[1:]]))
    wrong = (roots[: len(start)] != taken(data, start + 36, 32)).any(axis=1)
    if wrong.any():
        return int(wrong.argmax()), "Merkle root"
    places = np.zeros((len(start), 2), dtype=np.int64)
    _commitments(data, first, parsed, places)
    committed = np.flatnonzero(places[:, 0] >= 0)
    pairs = np.concatenate([roots[len(start) + committed], taken(data, places[committed, 1], 32)], axis=1)
    found = sha256d(pairs.reshape(-1), 64 * np.arange(len(pairs)), np.full(len(pairs), 64))
    wrong = (found != taken(data, places[committed, 0], 32)).any(axis=1)
    return (int(committed[wrong.argmax()]), "witness commitment") if wrong.any() else (-1, "")


def subsidies(height: IntArray, halving: int) -> IntArray:
    """Satoshi that a block of each height may make."""
    return np.where(height // halving < 64, SUBSIDY >> np.minimum(height // halving, 63), 0)
