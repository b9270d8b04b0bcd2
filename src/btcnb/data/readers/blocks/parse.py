"""Raw blocks to columns, and held against their headers.

No number that stands in the data decides how much memory is taken: whoever promises more than follows is cut short.
"""

from __future__ import annotations

import struct
from hashlib import sha256
from struct import Struct
from typing import NamedTuple

from btcnb.data.readers.blocks.chain import Head
from btcnb.data.readers.blocks.files import HEADER
from btcnb.data.tables import MAX_MONEY
from btcnb.errors import DataError

_COMMITMENT, _COMMITTED = bytes.fromhex("6a24aa21a9ed"), 38  # BIP 141: how the script begins, and its least length
_NULL = bytes(32) + b"\xff" * 4  # what a coinbase spends
_INPUT = Struct("<36sB")  # outpoint, first byte of the script's length
_OUTPUT = Struct("<qB")  # value, first byte of the script's length
_SIGNED, _UNSIGNED = Struct("<i"), Struct("<I")
_NO_ITEMS: list[bytes] = []
_CUT = ("size", "it ends in the middle of a transaction")
_WIDE = {253: (Struct("<xH"), 253), 254: (Struct("<xI"), 2**16), 255: (Struct("<xQ"), 2**32)}
"""First byte of a compact size -> where the number follows, and the least number that may be written so."""


class Columns(NamedTuple):
    """Transactions of some blocks; inputs, but for those of coinbases, and outputs lie in the order of transactions."""

    block: list[int]  # per transaction: number of its block
    place: list[int]  # position in the block
    version: list[int]
    lock_time: list[int]
    size: list[int]  # bytes
    witness_size: list[int]  # bytes of marker, flag and witnesses
    id: list[bytes]  # not reversed
    inputs: list[int]  # how many rows follow
    outputs: list[int]
    outpoint: list[bytes]  # per input: transaction and output that it spends, 36 bytes
    unlock: list[bytes]  # its script
    sequence: list[bytes]  # 4 bytes
    witness: list[list[bytes]]  # empty where there is none
    value: list[int]  # per output
    lock: list[bytes]  # output script


class _BlockError(Exception):
    """What is wrong with a block: field and problem."""


def parse(blocks: list[bytes], heads: list[Head]) -> Columns:
    """The blocks in columns; `DataError` unless every block is whole and is the one that its header stands for."""
    into = Columns(*([] for _ in Columns._fields))
    for number, (data, head) in enumerate(zip(blocks, heads, strict=True)):
        at = HEADER
        try:
            count, at = _compact(data, at)
            first = len(into.id)
            whole: list[bytes] = []
            reserved: list[bytes] = []
            for place in range(count):
                behind, hashed, items = _transaction(data, at, place == 0, into)
                into.block.append(number)
                into.place.append(place)
                whole.append(hashed)
                reserved = items if place == 0 else reserved
                at = behind
            if at != len(data):
                raise _BlockError("tx", "bytes are left over behind its last transaction")
        except (_BlockError, IndexError, struct.error) as error:
            field, problem = error.args if isinstance(error, _BlockError) else _CUT
            where = f"block {head.display}, byte {at}, {field}"
            raise DataError(head.file.source, where, problem, "fetch or copy it again") from error
        _require_sound(head, into, first, whole, reserved)
    return into


def _compact(data: bytes, at: int) -> tuple[int, int]:
    """A compact size at `at`, and the byte behind it; it must be written as short as it can be."""
    first = data[at]
    if first < 253:
        return first, at + 1
    form, least = _WIDE[first]
    (value,) = form.unpack_from(data, at)
    if value < least:
        raise _BlockError("compact size", "a number is written longer than it needs to be")
    if value > len(data):  # of items and of bytes there are fewer
        raise _BlockError(*_CUT)
    return value, at + form.size


def _transaction(data: bytes, start: int, coinbase: bool, into: Columns) -> tuple[int, bytes, list[bytes]]:
    """Read the transaction at `start`: the byte behind it, the hash that covers its witnesses, its last witness."""
    marked = data[start + 4] == 0
    if marked and data[start + 5] != 1:
        raise _BlockError("tx", "a transaction has an unknown flag")
    body = start + (6 if marked else 4)
    inputs, at = _inputs(data, body, into)
    outputs, at = _outputs(data, at, into)
    if not (inputs and outputs):
        raise _BlockError("tx", "a transaction has no inputs or no outputs")
    body_end, stack = at, _NO_ITEMS
    for _ in range(inputs):
        if marked:
            stack, at = _witness(data, at)
        into.witness.append(stack)
    (lock_time,) = _UNSIGNED.unpack_from(data, at)
    at += 4
    if coinbase != (inputs == 1 and into.outpoint[-1] == _NULL):
        among = "a coinbase stands among its other transactions"
        raise _BlockError("vin", "its first transaction is no coinbase" if coinbase else among)
    if coinbase:
        for column in (into.outpoint, into.unlock, into.sequence, into.witness):
            column.pop()
    hashed = whole = sha256(sha256(data[start:at]).digest()).digest()
    if marked:
        stripped = data[start : start + 4] + data[body:body_end] + data[at - 4 : at]
        hashed = sha256(sha256(stripped).digest()).digest()
    into.version.append(_SIGNED.unpack_from(data, start)[0])
    into.lock_time.append(lock_time)
    into.size.append(at - start)
    into.witness_size.append(at - body_end - 2 if marked else 0)
    into.id.append(hashed)
    into.inputs.append(0 if coinbase else inputs)
    into.outputs.append(outputs)
    return at, whole, stack


def _inputs(data: bytes, at: int, into: Columns) -> tuple[int, int]:
    """Read the inputs at `at`: their number and the byte behind them."""
    number, at = _compact(data, at)
    outpoints, unlocks, sequences = into.outpoint, into.unlock, into.sequence
    for _ in range(number):
        outpoint, size = _INPUT.unpack_from(data, at)
        size, at = (size, at + 37) if size < 253 else _compact(data, at + 36)
        outpoints.append(outpoint)
        unlocks.append(data[at : at + size])
        at += size + 4
        sequences.append(data[at - 4 : at])
    return number, at


def _outputs(data: bytes, at: int, into: Columns) -> tuple[int, int]:
    """Read the outputs at `at`: their number and the byte behind them."""
    number, at = _compact(data, at)
    values, locks = into.value, into.lock
    for _ in range(number):
        value, size = _OUTPUT.unpack_from(data, at)
        size, at = (size, at + 9) if size < 253 else _compact(data, at + 8)
        values.append(value)
        locks.append(data[at : at + size])
        at += size
    return number, at


def _witness(data: bytes, at: int) -> tuple[list[bytes], int]:
    """The items of the witness at `at`, and the byte behind it."""
    number, at = _compact(data, at)
    items = []
    for _ in range(number):
        size = data[at]
        size, at = (size, at + 1) if size < 253 else _compact(data, at)
        items.append(data[at : at + size])
        at += size
    return items, at


def _require_sound(head: Head, columns: Columns, first: int, whole: list[bytes], reserved: list[bytes]) -> None:
    """`DataError` unless Merkle root, witness commitment and amounts of the block's transactions are right.

    first:    its first row of transactions, the last of which are its own
    whole:    hashes that cover witnesses
    reserved: witness of the coinbase
    """
    wrong = ""
    outputs = sum(columns.outputs[first:])
    lock, value = columns.lock[-outputs:], columns.value[-outputs:]
    if merkle_root(columns.id[first:]) != head.header[36:68]:
        wrong = "Merkle root"
    elif len(reserved) == 1 and len(reserved[0]) == 32:
        mine = lock[: columns.outputs[first]]
        committed = [script for script in mine if len(script) >= _COMMITTED and script.startswith(_COMMITMENT)]
        root = merkle_root([bytes(32), *whole[1:]])
        hashed = sha256(sha256(root + reserved[0]).digest()).digest()
        if committed and committed[-1][len(_COMMITMENT) : _COMMITTED] != hashed:  # of several, the last one counts
            wrong = "witness commitment"
    if wrong:
        problem = f"of block {head.display} is not that of its transactions"
        raise DataError(head.file.source, wrong, problem, "the file is damaged: fetch or copy it again")
    if not 0 <= min(value) <= max(value) <= MAX_MONEY:
        row, tx = next(row for row, one in enumerate(value) if not 0 <= one <= MAX_MONEY), first
        while row >= columns.outputs[tx]:
            row, tx = row - columns.outputs[tx], tx + 1
        where = f"{columns.id[tx][::-1].hex()}, vout[{row}].value"
        remedy = "the block is not valid: leave it out"
        raise DataError(head.file.source, where, "is more than 21 million coins", remedy)


def merkle_root(nodes: list[bytes]) -> bytes:
    """The root of a Merkle tree. A node without a partner is paired with itself."""
    while len(nodes) > 1:
        pairs = nodes if len(nodes) % 2 == 0 else [*nodes, nodes[-1]]
        joined = zip(pairs[::2], pairs[1::2], strict=True)
        nodes = [sha256(sha256(left + right).digest()).digest() for left, right in joined]
    return nodes[0]
