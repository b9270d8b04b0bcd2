"""Undo data (`rev*.dat`): the outputs that each block of a node spends: address and value of every input.

A record belongs to the block whose parent's hash, put before the record, has the hash that stands behind the record.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np

from btcnb.data.readers.archives import Member
from btcnb.data.readers.blocks.chain import Heads
from btcnb.data.readers.blocks.files import content, records, unmask
from btcnb.data.readers.blocks.hashes import ZERO, Bytes, IntArray, copy, inner, outer
from btcnb.data.readers.blocks.networks import Network
from btcnb.data.readers.blocks.parse import compact
from btcnb.errors import DataError

_FIELD = 2**256 - 2**32 - 977  # the prime of secp256k1
_MAX_SCRIPT = 10_000  # bytes; longer ones cannot be spent, and are kept as OP_RETURN
_GROWTH = 3  # a packed script grows less than this many times
_CHECKSUM = 32
_PROBLEMS = {
    1: "it is cut short",
    2: "its numbers of transactions or inputs are not the block's",
    3: "bytes are left over",
    4: "an amount is no amount",
}
_CUT, _NUMBERS, _LEFT_OVER, _AMOUNT = _PROBLEMS


class Spent(NamedTuple):
    """Values (n,) and scripts of the outputs that a block's n inputs spend; script i is pool[start[i]:][:size[i]]."""

    value: IntArray
    pool: Bytes
    start: IntArray
    size: IntArray


class UndoFile:
    """The undo records of one file of blocks. `rows`: that file's blocks in `heads`, by height."""

    def __init__(self, member: Member, key: bytes, heads: Heads, rows: IntArray, network: Network) -> None:
        self.source, self.key, self.raw = member.source, key, content(member)
        waiting = defaultdict(list)  # number of transactions -> blocks that have as many
        for row in rows.tolist():
            waiting[int(heads.transactions[row]) - 1].append(row)
        self.place: dict[int, tuple[int, int]] = {}  # row of a block -> first byte and length of its record
        for start, size in records(self.raw, key, network, True, self.source).tolist():
            record = unmask(self.raw, key, start, size + _CHECKSUM)
            number = _number(record.tobytes())
            row = _owner(record, size, heads, waiting[number])
            if row is not None:
                self.place[row] = (start, size)
                waiting[number].remove(row)  # nearly always the first one: nodes connect blocks in their order

    def spent(self, row: int, block: str, inputs: IntArray) -> Spent:
        """What the block in that row spends; inputs (n,): how many inputs each of its transactions has."""
        if row not in self.place:
            problem = f"holds nothing for block {block}, which the node has not connected yet"
            raise DataError(self.source, "undo", problem, "read the blocks before it (end=…), or none of the rev*.dat")
        record = unmask(self.raw, self.key, *self.place[row])
        number = int(inputs.sum())
        value, start, size, odd = (np.zeros(number, dtype=np.int64) for _ in range(4))
        pool = np.zeros(_GROWTH * len(record) + 1, dtype=np.uint8)
        problem = _unpack(record, inputs, (value, start, size, odd), pool)
        if problem:
            raise DataError(self.source, f"undo of block {block}", _PROBLEMS[problem], "copy the file again")
        for at in np.flatnonzero(odd):
            self._complete(pool, int(start[at]), int(odd[at]) % 2, block)
        return Spent(value, pool, start, size)

    def _complete(self, pool: Bytes, at: int, parity: int, block: str) -> None:
        """Write the second coordinate of a public key of which only the first is kept."""
        x = int.from_bytes(pool[at + 2 : at + 34].tobytes(), "big")
        square = (pow(x, 3, _FIELD) + 7) % _FIELD
        y = pow(square, (_FIELD + 1) // 4, _FIELD)
        if y * y % _FIELD != square or x >= _FIELD:
            raise DataError(self.source, f"undo of block {block}", "a key lies not on the curve", "copy the file again")
        y = y if y % 2 == parity else _FIELD - y
        pool[at + 34 : at + 66] = np.frombuffer(y.to_bytes(32, "big"), dtype=np.uint8)


def _number(record: bytes) -> int:
    """The compact size that a record begins with."""
    width = {253: 2, 254: 4, 255: 8}.get(record[0], 0)
    return int.from_bytes(record[1 : 1 + width], "little") if width else record[0]


def _owner(record: Bytes, size: int, heads: Heads, candidates: list[int]) -> int | None:
    """The block, among the candidates, whose record this is."""
    body, told = record[:size].tobytes(), record[size:].tobytes()
    for row in candidates:
        once = hashlib.sha256(heads.header[row, 4:36].tobytes() + body).digest()
        if hashlib.sha256(once).digest() == told:
            return row
    return None


@inner
def _variable(data: Any, at: Any) -> Any:
    """A number in base 128, as Bitcoin Core writes it to disk: (value, byte behind); -1 where it is cut or too long."""
    value = np.int64(0)
    for place in range(at, min(at + 9, len(data))):
        byte = np.int64(data[place])
        value = value << 7 | byte & 127
        if byte < 128:
            return value, place + 1
        value += 1
    return np.int64(-1), len(data)


@inner
def _amount(packed: Any) -> Any:
    """A packed amount in satoshi; -1 where it is larger than any."""
    if packed == 0:
        return np.int64(0)
    packed, zeros = (packed - 1) // 10, (packed - 1) % 10
    value = packed // 9 * 10 + packed % 9 + 1 if zeros < 9 else packed + 1
    for _ in range(zeros):
        if value > 2**53:
            return np.int64(-1)
        value *= 10
    return value


@inner
def _script(data: Any, at: Any, pool: Any, end: Any) -> Any:
    """Unpack the script at `at` to pool[end:]: (byte behind it or -1, its length, kind of a key to complete or 0)."""
    kind, at = _variable(data, at)
    if kind < 0:
        return -1, 0, 0
    size = 20 if kind < 2 else 32 if kind < 6 else kind - 6
    if size > len(data) - at:
        return -1, 0, 0
    if kind >= 6 and size > _MAX_SCRIPT:
        pool[end] = 0x6A
        return at + size, 1, 0
    if kind >= 6:
        copy(data, at, size, pool, end)
        return at + size, size, 0
    if kind == 0:
        pool[end], pool[end + 1], pool[end + 2] = 0x76, 0xA9, 20
        copy(data, at, size, pool, end + 3)
        pool[end + 23], pool[end + 24] = 0x88, 0xAC
        return at + size, 25, 0
    if kind == 1:
        pool[end], pool[end + 1] = 0xA9, 20
        copy(data, at, size, pool, end + 2)
        pool[end + 22] = 0x87
        return at + size, 23, 0
    length = 35 if kind < 4 else 67
    pool[end], pool[end + 1] = length - 2, kind if kind < 4 else 4
    copy(data, at, size, pool, end + 2)
    pool[end + length - 1] = 0xAC
    return at + size, length, 0 if kind < 4 else kind


@outer
def _unpack(data: Bytes, inputs: IntArray, into: tuple[IntArray, IntArray, IntArray, IntArray], pool: Bytes) -> int:
    """Fill value, start, size and key to complete of every input; 0, or the problem."""
    value, start, size, odd = into
    number, at = compact(data, ZERO, np.int64(len(data)))
    if number != len(inputs):
        return _NUMBERS
    row = end = ZERO
    for tx in range(number):
        told, at = compact(data, at, np.int64(len(data)))
        if told != inputs[tx]:
            return _NUMBERS if told >= 0 else _CUT
        for _ in range(told):
            height, at = _variable(data, at)
            if height >= 2:  # beside the height, once a version stood here
                _, at = _variable(data, at)
            packed, at = _variable(data, at)
            if height < 0 or packed < 0:
                return _CUT
            value[row] = _amount(packed)
            if value[row] < 0:
                return _AMOUNT
            start[row] = end
            at, size[row], odd[row] = _script(data, at, pool, end)
            if at < 0:
                return _CUT
            end += size[row]
            row += 1
    return 0 if at == len(data) else _LEFT_OVER
