"""Raw blocks to columns, in one compiled pass, and held against their headers.

No number that stands in the data decides how much memory is taken: rows are bounded by the bytes that rows need.
Positions are offsets in the buffer of the batch; scripts and witnesses stay there until their owners are read off.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from btcnb.data.readers.blocks.chain import Head
from btcnb.data.readers.blocks.files import HEADER, Bytes
from btcnb.data.tables import MAX_MONEY
from btcnb.errors import DataError

IntArray = npt.NDArray[np.int64]

_LEAN: dict[str, Any] = {"cache": True, "no_cfunc_wrapper": True}
_BARE: dict[str, Any] = {**_LEAN, "no_cpython_wrapper": True}
_outer: Any = njit(**_LEAN)
_inner: Any = njit(**_BARE)
"""Inner functions are called by compiled code only: without a bridge to Python they compile in half the time."""

OUTPOINT = 36
_LEAST_TRANSACTION, _LEAST_INPUT, _LEAST_OUTPUT = 60, OUTPOINT + 5, 9  # bytes
_COMMITMENT, _COMMITTED = bytes.fromhex("6a24aa21a9ed"), 38  # BIP 141: how the script begins, and its least length
_PROBLEMS = {
    1: ("size", "it ends in the middle of a transaction"),
    2: ("compact size", "a number is written longer than it needs to be"),
    3: ("tx", "bytes are left over behind its last transaction"),
    4: ("tx[0]", "its first transaction is no coinbase"),
    5: ("vin", "a coinbase stands among its other transactions"),
    6: ("tx", "a transaction has no inputs or no outputs"),
    7: ("tx", "a transaction has an unknown flag"),
}
"""What the pass returns -> field and problem, for messages."""
_CUT, _LONG, _LEFT_OVER, _HEADLESS, _SECOND_HEAD, _EMPTY, _FLAG = _PROBLEMS


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


@_inner
def _little(data: Any, at: Any, size: Any) -> Any:
    value = np.uint64(0)
    for i in range(size):
        value |= np.uint64(data[at + i]) << np.uint64(8 * i)
    return np.int64(value)


@_inner
def _compact(data: Any, at: Any, end: Any) -> Any:
    """A compact size at `at`: its value and the byte behind it; a negative value is minus the problem."""
    if at >= end:
        return np.int64(-_CUT), at
    first = np.int64(data[at])
    if first < 253:
        return first, at + 1
    width = 2 if first == 253 else 4 if first == 254 else 8
    if at + 1 + width > end:
        return np.int64(-_CUT), at
    value = _little(data, at + 1, width)
    if value < 0:
        return np.int64(-_CUT), at  # beyond 2^63: no data are that long
    if value < 253 or (width == 4 and value < 2**16) or (width == 8 and value < 2**32):
        return np.int64(-_LONG), at
    return value, at + 1 + width


@_inner
def _bytes(data: Any, at: Any, end: Any) -> Any:
    """A byte string behind its length: (its first byte, its length, the byte behind it); length -problem."""
    length, at = _compact(data, at, end)
    if length < 0:
        return at, length, at
    if length > end - at:
        return at, np.int64(-_CUT), at
    return at, length, at + length


@_inner
def _is_null(data: Any, at: Any) -> Any:
    for i in range(32):
        if data[at + i] != 0:
            return False
    return _little(data, at + 32, 4) == 0xFFFFFFFF


@_inner
def _inputs(data: Any, at: Any, end: Any, into: Any, row: Any) -> Any:
    """Read the inputs into rows from `row` on; their number and the byte behind them."""
    number, at = _compact(data, at, end)
    for i in range(max(number, 0)):
        if end - at < OUTPOINT:
            return np.int64(-_CUT), at
        script, length, behind = _bytes(data, at + OUTPOINT, end)
        if length < 0:
            return length, at
        if end - behind < 4:
            return np.int64(-_CUT), at
        into.outpoint[row + i] = at
        into.script[row + i], into.script_size[row + i] = script, length
        into.sequence[row + i] = _little(data, behind, 4)
        into.stack[row + i] = -1
        at = behind + 4
    return number, at


@_inner
def _outputs(data: Any, at: Any, end: Any, into: Any, row: Any) -> Any:
    number, at = _compact(data, at, end)
    for i in range(max(number, 0)):
        if end - at < 8:
            return np.int64(-_CUT), at
        script, length, behind = _bytes(data, at + 8, end)
        if length < 0:
            return length, at
        into.value[row + i] = _little(data, at, 8)
        into.locking[row + i], into.locking_size[row + i] = script, length
        at = behind
    return number, at


@_inner
def _witnesses(data: Any, at: Any, end: Any, number: Any, into: Any, row: Any) -> Any:
    """Pass over the witness stacks of `number` inputs: (0 or -problem, byte behind)."""
    for i in range(number):
        stack = at
        items, at = _compact(data, at, end)
        if items < 0:
            return items, at
        for _ in range(items):
            _, length, at = _bytes(data, at, end)
            if length < 0:
                return length, at
        if items > 0:
            into.stack[row + i] = stack
    return np.int64(0), at


@_inner
def _transaction(data: Any, start: Any, end: Any, first: Any, into: Any, rows: Any) -> Any:
    """Read the transaction at `start`: (inputs or -problem, outputs, byte behind it). `rows`: where to."""
    tx, row_in, row_out = rows
    at = start + 4
    if end - at < 2:
        return np.int64(-_CUT), np.int64(0), at
    marked = data[at] == 0
    if marked and data[at + 1] != 1:
        return np.int64(-_FLAG), np.int64(0), at
    inputs, at = _inputs(data, at + 2 if marked else at, end, into, row_in)
    if inputs <= 0:
        return inputs if inputs < 0 else np.int64(-_EMPTY), np.int64(0), at
    outputs, at = _outputs(data, at, end, into, row_out)
    if outputs <= 0:
        return outputs if outputs < 0 else np.int64(-_EMPTY), np.int64(0), at
    body_end, witness = at, np.int64(0)
    if marked:
        problem, at = _witnesses(data, at, end, inputs, into, row_in)
        if problem < 0:
            return problem, np.int64(0), at
        witness = at - body_end + 2
    if end - at < 4:
        return np.int64(-_CUT), np.int64(0), at
    outpoint = start + (7 if marked else 5)
    coinbase = inputs == 1 and _is_null(data, outpoint)
    if coinbase != first:
        return np.int64(-_HEADLESS if first else -_SECOND_HEAD), np.int64(0), at
    into.version[tx] = np.int64(np.int32(_little(data, start, 4)))
    into.lock_time[tx] = _little(data, at, 4)
    into.start[tx], into.size[tx] = start, at + 4 - start
    into.witness[tx], into.body_end[tx] = witness, body_end
    return inputs, outputs, at + 4


@_outer
def _fill(data: Bytes, start: IntArray, end: IntArray, into: Parsed) -> Any:
    """The pass: (problem or 0, its block, its byte, rows of transactions, of inputs and of outputs)."""
    tx = row_in = row_out = np.int64(0)
    for block in range(len(start)):
        stop = end[block]
        if stop - start[block] < HEADER:
            return _CUT, block, stop, tx, row_in, row_out
        number, at = _compact(data, start[block] + HEADER, stop)
        if number <= 0:
            return -number if number else _HEADLESS, block, at, tx, row_in, row_out
        for position in range(number):
            inputs, outputs, at = _transaction(data, at, stop, position == 0, into, (tx, row_in, row_out))
            if inputs < 0:
                return -inputs, block, at, tx, row_in, row_out
            into.block[tx], into.place[tx] = block, position
            tx, row_in, row_out = tx + 1, row_in + inputs, row_out + outputs
            into.input_offset[tx], into.output_offset[tx] = row_in, row_out
        if at != stop:
            return _LEFT_OVER, block, at, tx, row_in, row_out
    return 0, 0, 0, tx, row_in, row_out


def parse(data: bytes, offset: IntArray, heads: Sequence[Head]) -> tuple[Parsed, list[bytes]]:
    """n blocks, block i at bytes offset[i] to offset[i + 1], in columns; and their transactions' ids, not reversed.

    `DataError` unless every block is whole and is the one that its header stands for. Room is made for as many rows as
    so many bytes can hold; the system gives what is used.
    """
    most = [len(data) // least + 1 for least in (_LEAST_TRANSACTION, _LEAST_INPUT, _LEAST_OUTPUT)]
    rows = [most[0]] * 8 + [most[0] + 1] * 2 + [most[1]] * 5 + [most[2]] * 3
    room = Parsed(*(np.empty(number, dtype=np.int64) for number in rows))
    room.input_offset[0] = room.output_offset[0] = 0
    buffer = np.frombuffer(data, dtype=np.uint8)
    problem, block, byte, *used = map(int, _fill(buffer, offset[:-1], offset[1:], room))
    if problem:
        place, what = _PROBLEMS[problem]
        where = f"block {heads[block].display}, byte {byte - offset[block]}, {place}"
        raise DataError(heads[block].file.source, where, what, "fetch or copy it again")
    rows = [used[0]] * 8 + [used[0] + 1] * 2 + [used[1]] * 5 + [used[2]] * 3
    parsed = Parsed(*(column[:number] for column, number in zip(room, rows, strict=True)))
    ids = _require_sound(data, offset, heads, parsed)
    wrong = (parsed.value < 0) | (parsed.value > MAX_MONEY)
    if wrong.any():
        row = int(wrong.argmax())
        tx = int(np.searchsorted(parsed.output_offset, row, side="right")) - 1
        where = f"{ids[tx][::-1].hex()}, vout[{row - parsed.output_offset[tx]}].value"
        remedy = "the block is not valid: leave it out"
        raise DataError(heads[parsed.block[tx]].file.source, where, "is more than 21 million coins", remedy)
    return parsed, ids


def _require_sound(data: bytes, offset: IntArray, heads: Sequence[Head], parsed: Parsed) -> list[bytes]:
    """The ids of all transactions; `DataError` unless Merkle roots and witness commitments are right."""
    ids, whole = _hashes(data, parsed)
    first = np.append(np.flatnonzero(parsed.place == 0), len(ids)).tolist()
    for block, head in enumerate(heads):
        begin, end = first[block], first[block + 1]
        where = ""
        if merkle_root(ids[begin:end]) != head.header[36:68]:
            where = "Merkle root"
        else:
            committed = _commitment(data, parsed, begin)
            if committed is not None:
                root, reserved = merkle_root([bytes(32), *whole[begin + 1 : end]]), committed[1]
                hashed = sha256(sha256(root + reserved).digest()).digest()
                where = "" if hashed == committed[0] else "witness commitment"
        if where:
            what = f"of block {head.display} is not that of its transactions"
            raise DataError(head.file.source, where, what, "the file is damaged: fetch or copy it again")
    return ids


def _hashes(data: bytes, parsed: Parsed) -> tuple[list[bytes], list[bytes]]:
    """Ids and witness hashes of all transactions, as computed, not as displayed. An id does not cover witnesses."""
    ids, whole = [], []
    for start, size, witness, body_end in zip(
        parsed.start.tolist(), parsed.size.tolist(), parsed.witness.tolist(), parsed.body_end.tolist(), strict=True
    ):
        end = start + size
        hashed = sha256(sha256(data[start:end]).digest()).digest()
        whole.append(hashed)
        if witness:
            stripped = data[start : start + 4] + data[start + 6 : body_end] + data[end - 4 : end]
            hashed = sha256(sha256(stripped).digest()).digest()
        ids.append(hashed)
    return ids, whole


def merkle_root(nodes: list[bytes]) -> bytes:
    """The root of a Merkle tree. A node without a partner is paired with itself."""
    while len(nodes) > 1:
        pairs = nodes if len(nodes) % 2 == 0 else [*nodes, nodes[-1]]
        joined = zip(pairs[::2], pairs[1::2], strict=True)
        nodes = [sha256(sha256(left + right).digest()).digest() for left, right in joined]
    return nodes[0]


def _commitment(data: bytes, parsed: Parsed, coinbase: int) -> tuple[bytes, bytes] | None:
    """A block's commitment to its witnesses, and the value hashed with it; None where there is none."""
    stack = int(parsed.stack[parsed.input_offset[coinbase]])
    if stack < 0 or data[stack : stack + 2] != b"\x01\x20":
        return None
    for row in range(parsed.output_offset[coinbase + 1] - 1, parsed.output_offset[coinbase] - 1, -1):
        at = int(parsed.locking[row])  # of several, the last one counts
        if parsed.locking_size[row] >= _COMMITTED and data.startswith(_COMMITMENT, at):
            begin = at + len(_COMMITMENT)
            return data[begin : begin + 32], data[stack + 2 : stack + 34]
    return None
