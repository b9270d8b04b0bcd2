"""One part of a chain, some blocks of a file, as columns that no longer need the file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from btcnb.data.contract import MAX_MONEY, UNKNOWN
from btcnb.data.readers.blocks import owners
from btcnb.data.readers.blocks.chain import Heads, field
from btcnb.data.readers.blocks.checks import transaction_hashes, wrong_root
from btcnb.data.readers.blocks.files import BlockFile, array
from btcnb.data.readers.blocks.hashes import Bytes, IntArray, copy, outer
from btcnb.data.readers.blocks.networks import Network
from btcnb.data.readers.blocks.parse import PROBLEMS, Parsed, parse, taken
from btcnb.data.readers.blocks.texts import text_of_script
from btcnb.data.readers.blocks.undo import UndoFile
from btcnb.errors import DataError


class Coins(NamedTuple):
    """Owners, script types and values of n outputs, or of what n inputs spend."""

    tag: owners.Tags
    owner: Bytes  # (n, 32)
    script_type: owners.Kinds
    value: IntArray  # satoshi, -1 where unknown

    def take(self, rows: Any) -> Coins:
        return Coins(self.tag[rows], self.owner[rows], self.script_type[rows], self.value[rows])


class Part(NamedTuple):
    """Transactions of some blocks, with their inputs (but those of coinbases) and outputs in their order."""

    row: IntArray  # per transaction: row of its block in `Heads`
    place: IntArray  # position in the block
    hash: Bytes  # (n, 32)
    version: IntArray
    lock_time: IntArray
    size: IntArray
    virtual_size: IntArray
    inputs: IntArray  # how many
    outputs: IntArray
    previous: Bytes  # per input: (n, 32), the transaction it spends from
    previous_index: IntArray
    sequence: IntArray
    spent: Coins
    made: Coins


class Batch(NamedTuple):
    """Some blocks: their bytes one after the other, where each starts (n + 1,), and what is known of them."""

    data: Bytes
    offset: IntArray
    row: IntArray  # of `heads`
    heads: Heads
    files: Sequence[BlockFile]

    def source(self, block: int) -> str:
        """The file that block lies in."""
        return self.files[self.heads.file[self.row[block]]].source

    def name(self, block: int) -> str:
        return self.heads.display(self.row[block])


@outer
def _gathered(raw: Bytes, key: Bytes, start: IntArray, offset: IntArray, out: Bytes) -> None:
    plain = not key.any()
    for block in range(len(start)):
        shift = start[block] - offset[block]
        if plain:
            copy(raw, start[block], offset[block + 1] - offset[block], out, offset[block])
            continue
        for at in range(offset[block], offset[block + 1]):
            out[at] = raw[at + shift] ^ key[(at + shift) & 7]


def gather(heads: Heads, files: Sequence[BlockFile], row: IntArray) -> Batch:
    """The blocks in these rows, taken out of their files, which may have changed since they were looked at."""
    offset = np.concatenate([[0], np.cumsum(heads.size[row])])
    data = np.empty(offset[-1], dtype=np.uint8)
    first = 0
    while first < len(row):
        number = heads.file[row[first]]
        other = np.flatnonzero(heads.file[row[first:]] != number)
        last = first + int(other[0]) if len(other) else len(row)
        start, raw = heads.start[row[first:last]], files[number].content()
        if (start + heads.size[row[first:last]]).max() > len(raw):
            raise DataError(files[number].source, "size", "it became shorter while it was read", "read it again")
        _gathered(raw, array(files[number].key), start, offset[first : last + 1], data)
        first = last
    return Batch(data, offset, row, heads, files)


def read_part(batch: Batch, undo: UndoFile | None, others: Others) -> Part:
    """Parse, check and hash a batch; what its owners are called, where they have no address, is added to `others`."""
    parsed, ids = require_sound(batch)
    coinbase = parsed.place == 0
    spending = ~np.repeat(coinbase, np.diff(parsed.input_offset))  # rows of inputs that spend something
    outpoint = parsed.outpoint[spending]
    previous = taken(batch.data, outpoint, 32)
    index = taken(batch.data, outpoint + 32, 4).view("<u4")[:, 0].astype(np.int64)
    made = _made(batch.data, parsed, ids, others)
    inputs = np.where(coinbase, 0, np.diff(parsed.input_offset))
    if undo is None:
        spent = _revealed(batch, parsed, spending)
    else:
        spent = _undone(batch, parsed, inputs, undo, Outpoints(previous, index, others))
    return Part(
        row=batch.row[parsed.block],
        place=parsed.place.copy(),
        hash=ids,
        version=parsed.version.copy(),
        lock_time=parsed.lock_time.copy(),
        size=parsed.size.copy(),
        virtual_size=(4 * parsed.size - 3 * parsed.witness + 3) // 4,
        inputs=inputs,
        outputs=np.diff(parsed.output_offset),
        previous=previous,
        previous_index=index,
        sequence=parsed.sequence[spending],
        spent=spent,
        made=made,
    )


def require_sound(batch: Batch) -> tuple[Parsed, Bytes]:
    """The batch in columns, and its transaction ids; `DataError` unless all is what the headers stand for."""
    start, end = batch.offset[:-1], batch.offset[1:]
    parsed, stop = parse(batch.data, start, end)
    if stop.problem:
        place, what = PROBLEMS[stop.problem]
        where = f"block {batch.name(stop.block)}, byte {stop.byte - start[stop.block]}, {place}"
        raise DataError(batch.source(stop.block), where, what, "fetch or copy it again")
    ids, whole = transaction_hashes(batch.data, parsed)
    first = np.append(np.flatnonzero(parsed.place == 0), len(ids))
    block, where = wrong_root(batch.data, start, first, ids, whole, parsed)
    if where:
        what = f"of block {batch.name(block)} is not that of its transactions"
        raise DataError(batch.source(block), where, what, "the file is damaged: fetch or copy it again")
    wrong = (parsed.value < 0) | (parsed.value > MAX_MONEY)
    if wrong.any():
        row = int(wrong.argmax())
        tx = int(np.searchsorted(parsed.output_offset, row, side="right")) - 1
        where = f"{displayed(ids[tx])}, vout[{row - parsed.output_offset[tx]}].value"
        what, remedy = "is more than 21 million coins", "the block is not valid: leave it out"
        raise DataError(batch.source(int(parsed.block[tx])), where, what, remedy)
    return parsed, ids


def displayed(digest: Bytes) -> str:
    """A transaction id as the world writes it."""
    return digest[::-1].tobytes().hex()


class Others:
    """What owners without an address are called: the 32 bytes -> text."""

    def __init__(self, network: Network) -> None:
        self.network, self.text = network, dict[bytes, str]()

    def scripts(self, data: Bytes, start: IntArray, size: IntArray, coins: Coins) -> None:
        """Note the scripts of those that are told by their script."""
        rows = np.flatnonzero(coins.tag == owners.SCRIPT)
        _, first = np.unique(coins.owner[rows].view("V32"), return_index=True)
        for row in rows[first]:
            script = data[start[row] : start[row] + size[row]].tobytes()
            self.text.setdefault(coins.owner[row].tobytes(), text_of_script(script, self.network))

    def outpoints(self, coins: Coins, hashes: Bytes, index: IntArray) -> None:
        """Outputs with an empty script: each its own owner, told by transaction and position (n, 32), (n,)."""
        for row in np.flatnonzero(coins.tag == owners.OUTPOINT):
            name = hashes[row].copy()
            name[-4:] ^= np.frombuffer(int(index[row]).to_bytes(4, "little"), dtype=np.uint8)
            coins.owner[row] = name
            self.text[name.tobytes()] = f"{displayed(hashes[row])}:{index[row]}"


class Outpoints(NamedTuple):
    """What n inputs spend, and where names are kept."""

    previous: Bytes  # (n, 32)
    position: IntArray
    others: Others


def _coins(number: int) -> Coins:
    return Coins(
        np.zeros(number, dtype=np.uint8),
        np.zeros((number, 32), dtype=np.uint8),
        np.zeros(number, dtype=np.int8),
        np.full(number, UNKNOWN, dtype=np.int64),
    )


def _made(data: Bytes, parsed: Parsed, ids: Bytes, others: Others) -> Coins:
    made = _coins(len(parsed.value))._replace(value=parsed.value.copy())
    owners.of_scripts(data, parsed.locking, parsed.locking_size, made.tag, made.script_type, made.owner)
    others.scripts(data, parsed.locking, parsed.locking_size, made)
    if (made.tag == owners.OUTPOINT).any():
        tx = np.repeat(np.arange(len(ids)), np.diff(parsed.output_offset))
        others.outpoints(made, ids[tx], np.arange(len(tx)) - parsed.output_offset[tx])
    return made


def _revealed(batch: Batch, parsed: Parsed, spending: Any) -> Coins:
    """What inputs reveal of the outputs that they spend; of coinbases nothing is kept."""
    spent = _coins(len(parsed.script))
    p2sh = field(batch.heads.header[batch.row], 68, "<u4") >= owners.P2SH_FROM
    owners.of_spenders(batch.data, parsed, p2sh, spent.tag, spent.owner)
    tag = spent.tag[spending]
    return Coins(tag, spent.owner[spending], owners.types_of(tag), spent.value[spending])


def _undone(batch: Batch, parsed: Parsed, inputs: IntArray, undo: UndoFile, out: Outpoints) -> Coins:
    """What the undo data say that the inputs spend."""
    spent = _coins(len(out.position))
    last, first = 0, np.append(np.flatnonzero(parsed.place == 0), len(inputs))
    for block, row in enumerate(batch.row.tolist()):
        counts = inputs[first[block] + 1 : first[block + 1]]
        if not len(counts):
            continue
        found = undo.spent(row, batch.name(block), counts)
        here = slice(last, last + len(found.value))
        last = here.stop
        part = Coins(spent.tag[here], spent.owner[here], spent.script_type[here], spent.value[here])
        part.value[:] = found.value
        owners.of_scripts(found.pool, found.start, found.size, part.tag, part.script_type, part.owner)
        out.others.scripts(found.pool, found.start, found.size, part)
    out.others.outpoints(spent, out.previous, out.position)
    return spent
