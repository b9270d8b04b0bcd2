"""Raw blocks to columns, in one compiled pass.

No number that stands in the data decides how much memory is taken: rows are bounded by the bytes that rows need.
Positions are offsets in the buffer of the part; scripts and witnesses stay there until their owners are read off.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from btcnb.data.readers.blocks.hashes import Bytes, IntArray, copy, inner, outer

HEADER = 80
OUTPOINT = 36
_LEAST_TRANSACTION, _LEAST_INPUT, _LEAST_OUTPUT = 60, OUTPOINT + 5, 9  # bytes
_FOUR = np.int64(4)
PROBLEMS = {
    1: ("size", "it ends in the middle of a transaction"),
    2: ("compact size", "a number is written longer than it needs to be"),
    3: ("tx", "bytes are left over behind its last transaction"),
    4: ("tx[0]", "its first transaction is no coinbase"),
    5: ("vin", "a coinbase stands among its other transactions"),
    6: ("tx", "a transaction has no inputs or no outputs"),
    7: ("tx", "a transaction has an unknown flag"),
}
"""What the pass returns -> field and problem, for messages."""
CUT, LONG, LEFT_OVER, HEADLESS, SECOND_HEAD, EMPTY, FLAG = PROBLEMS


class Parsed(NamedTuple):
    """A part of a chain in columns; inputs and outputs lie in the order of their transactions."""

    block: IntArray  # per transaction: number of its block in the part
    place: IntArray  # position in the block
    version: IntArray
    lock_time: IntArray
    start: IntArray  # first byte
    size: IntArray  # bytes
    witness: IntArray  # bytes of marker, flag and witnesses; 0 where there are none
    body_end: IntArray  # first byte behind the outputs
    input_offset: IntArray  # (n + 1,)
    output_offset: IntArray  # (n + 1,)
    outpoint: IntArray  # per input, coinbases included: its 36 bytes begin here
    script: IntArray
    script_size: IntArray
    sequence: IntArray
    stack: IntArray  # the number of its witness items stands here; -1 where it has no witness
    value: IntArray  # per output
    locking: IntArray  # output script
    locking_size: IntArray


@inner
def _little(data: Any, at: Any, size: Any) -> Any:
    value = np.uint64(0)
    for i in range(size):
        value |= np.uint64(data[at + i]) << np.uint64(8 * i)
    return np.int64(value)


@inner
def compact(data: Any, at: Any, end: Any) -> Any:
    """A compact size at `at`: its value and the byte behind it; a negative value is minus the problem."""
    if at >= end:
        return np.int64(-CUT), at
    first = np.int64(data[at])
    if first < 253:
        return first, at + 1
    width = 2 if first == 253 else 4 if first == 254 else 8
    if at + 1 + width > end:
        return np.int64(-CUT), at
    value = _little(data, at + 1, width)
    if value < 0:
        return np.int64(-CUT), at  # beyond 2^63: no data are that long
    if value < 253 or (width == 4 and value < 2**16) or (width == 8 and value < 2**32):
        return np.int64(-LONG), at
    return value, at + 1 + width


@inner
def _bytes(data: Any, at: Any, end: Any) -> Any:
    """A byte string behind its length: (its first byte, its length, the byte behind it); length -problem."""
    length, at = compact(data, at, end)
    if length < 0:
        return at, length, at
    if length > end - at:
        return at, np.int64(-CUT), at
    return at, length, at + length


@inner
def _is_null(data: Any, at: Any) -> Any:
    for i in range(32):
        if data[at + i] != 0:
            return False
    return _little(data, at + 32, 4) == 0xFFFFFFFF


@inner
def _inputs(data: Any, at: Any, end: Any, into: Any, row: Any) -> Any:
    """Read the inputs into rows from `row` on; their number and the byte behind them."""
    number, at = compact(data, at, end)
    for i in range(max(number, 0)):
        if end - at < OUTPOINT:
            return np.int64(-CUT), at
        script, length, behind = _bytes(data, at + OUTPOINT, end)
        if length < 0:
            return length, at
        if end - behind < 4:
            return np.int64(-CUT), at
        into.outpoint[row + i] = at
        into.script[row + i], into.script_size[row + i] = script, length
        into.sequence[row + i] = _little(data, behind, 4)
        into.stack[row + i] = -1
        at = behind + 4
    return number, at


@inner
def _outputs(data: Any, at: Any, end: Any, into: Any, row: Any) -> Any:
    number, at = compact(data, at, end)
    for i in range(max(number, 0)):
        if end - at < 8:
            return np.int64(-CUT), at
        script, length, behind = _bytes(data, at + 8, end)
        if length < 0:
            return length, at
        into.value[row + i] = _little(data, at, 8)
        into.locking[row + i], into.locking_size[row + i] = script, length
        at = behind
    return number, at


@inner
def _witnesses(data: Any, at: Any, end: Any, number: Any, into: Any, row: Any) -> Any:
    """Pass over the witness stacks of `number` inputs: (0 or -problem, byte behind)."""
    for i in range(number):
        stack = at
        items, at = compact(data, at, end)
        if items < 0:
            return items, at
        for _ in range(items):
            _, length, at = _bytes(data, at, end)
            if length < 0:
                return length, at
        if items > 0:
            into.stack[row + i] = stack
    return np.int64(0), at


@inner
def _transaction(data: Any, start: Any, end: Any, first: Any, into: Any, rows: Any) -> Any:
    """Read the transaction at `start`: (inputs or -problem, outputs, byte behind it). `rows`: where to."""
    tx, row_in, row_out = rows
    at = start + 4
    if end - at < 2:
        return np.int64(-CUT), np.int64(0), at
    marked = data[at] == 0
    if marked and data[at + 1] != 1:
        return np.int64(-FLAG), np.int64(0), at
    inputs, at = _inputs(data, at + 2 if marked else at, end, into, row_in)
    if inputs <= 0:
        return inputs if inputs < 0 else np.int64(-EMPTY), np.int64(0), at
    outputs, at = _outputs(data, at, end, into, row_out)
    if outputs <= 0:
        return outputs if outputs < 0 else np.int64(-EMPTY), np.int64(0), at
    body_end, witness = at, np.int64(0)
    if marked:
        problem, at = _witnesses(data, at, end, inputs, into, row_in)
        if problem < 0:
            return problem, np.int64(0), at
        witness = at - body_end + 2
    if end - at < 4:
        return np.int64(-CUT), np.int64(0), at
    outpoint = start + (7 if marked else 5)
    coinbase = inputs == 1 and _is_null(data, outpoint)
    if coinbase != first:
        return np.int64(-HEADLESS if first else -SECOND_HEAD), np.int64(0), at
    into.version[tx] = np.int64(np.int32(_little(data, start, 4)))
    into.lock_time[tx] = _little(data, at, 4)
    into.start[tx], into.size[tx] = start, at + 4 - start
    into.witness[tx], into.body_end[tx] = witness, body_end
    return inputs, outputs, at + 4


class Stop(NamedTuple):
    """Where a pass ended: the problem (0 for none), its block and byte; rows of transactions, inputs and outputs."""

    problem: int
    block: int
    byte: int
    transactions: int
    inputs: int
    outputs: int


@outer
def _fill(data: Bytes, start: IntArray, end: IntArray, into: Parsed) -> Any:
    tx = row_in = row_out = np.int64(0)
    for block in range(len(start)):
        stop = end[block]
        if stop - start[block] < HEADER:
            return CUT, block, stop, tx, row_in, row_out
        number, at = compact(data, start[block] + HEADER, stop)
        if number <= 0:
            return -number if number else HEADLESS, block, at, tx, row_in, row_out
        for position in range(number):
            inputs, outputs, at = _transaction(data, at, stop, position == 0, into, (tx, row_in, row_out))
            if inputs < 0:
                return -inputs, block, at, tx, row_in, row_out
            into.block[tx], into.place[tx] = block, position
            tx, row_in, row_out = tx + 1, row_in + inputs, row_out + outputs
            into.input_offset[tx], into.output_offset[tx] = row_in, row_out
        if at != stop:
            return LEFT_OVER, block, at, tx, row_in, row_out
    return 0, 0, 0, tx, row_in, row_out


def parse(data: Bytes, start: IntArray, end: IntArray) -> tuple[Parsed, Stop]:
    """n blocks in columns. Room is made for as many rows as so many bytes can hold; the system gives what is used."""
    size = len(data)
    most = [size // least + 1 for least in (_LEAST_TRANSACTION, _LEAST_INPUT, _LEAST_OUTPUT)]
    rows = [most[0]] * 8 + [most[0] + 1] * 2 + [most[1]] * 5 + [most[2]] * 3
    room = Parsed(*(np.empty(number, dtype=np.int64) for number in rows))
    room.input_offset[0] = room.output_offset[0] = 0
    stop = Stop(*_fill(data, start, end, room))
    rows = [stop.transactions] * 8 + [stop.transactions + 1] * 2 + [stop.inputs] * 5 + [stop.outputs] * 3
    return Parsed(*(column[:number] for column, number in zip(room, rows, strict=True))), stop


@outer
def stripped(data: Bytes, parsed: Parsed, out: Bytes, offset: IntArray) -> None:
    """Write transactions with witnesses to `out` without them, transaction t to offset[t]: what its id is hashed of."""
    for tx in range(len(offset) - 1):
        at, start = offset[tx], parsed.start[tx]
        if parsed.witness[tx] == 0:
            continue
        body = start + 6
        length = parsed.body_end[tx] - body
        copy(data, start, _FOUR, out, at)
        copy(data, body, length, out, at + 4)
        copy(data, start + parsed.size[tx] - 4, _FOUR, out, at + 4 + length)


@outer
def _copied(data: Bytes, start: IntArray, out: Bytes) -> None:
    for row in range(len(start)):
        for i in range(out.shape[1]):
            out[row, i] = data[start[row] + i]


def taken(data: Bytes, start: IntArray, size: int) -> Bytes:
    """Pieces of `size` bytes, (n, size)."""
    found = np.empty((len(start), size), dtype=np.uint8)
    _copied(data, start, found)
    return found
