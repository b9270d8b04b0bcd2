"""Whose coins a block spends: what its inputs reveal, and what a node's undo data (`rev*.dat`) tell.

Both end in the output script that is spent. An undo record belongs to the block whose parent's hash, put before the
record, has the hash that stands behind the record; it tells script and value of every output that the block spends.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256

from embit.ec import ECError, PublicKey
from embit.hashes import double_sha256, ripemd160

from btcnb.data.readers.blocks.chain import Head, compact
from btcnb.data.readers.blocks.files import content, records, unmask
from btcnb.data.readers.files import Member
from btcnb.data.readers.scripts import Network, is_key
from btcnb.data.tables import MAX_MONEY
from btcnb.errors import DataError

P2SH_FROM = 1_333_238_400
"""Block time (1 April 2012) from which a hash in a script can stand for a script, BIP 16."""
_NO_SCRIPT = 0xBA  # opcodes from here on end a script of version 0, so no such script begins with one
_ANNEX = 0x50  # neither does it begin with this one
_MAX_SCRIPT = 10_000  # bytes; a node keeps a longer script, which cannot be spent, as OP_RETURN
_CHECKSUM = 32  # bytes behind an undo record


def script_of_unlock(unlock: bytes, with_witness: bool, p2sh: bool) -> bytes:
    """The output script (P2PKH or P2SH) that an input's own script reveals; empty where it reveals none.

    with_witness: whether the input has a witness too
    p2sh:         whether its block knows BIP 16
    """
    pushes = _pushes(unlock)
    if not pushes:
        return b""
    last = pushes[-1]
    if len(pushes) == 2 and is_key(last) and not with_witness and _is_signature(pushes[0]):
        return b"\x76\xa9\x14" + _hash160(last) + b"\x88\xac"
    if not p2sh or not last or _is_signature(last):
        return b""  # a bare key or bare keys, which only the output tells
    return b"\xa9\x14" + _hash160(last) + b"\x87"


@lru_cache(maxsize=2**16)
def _hash160(data: bytes) -> bytes:
    """What the address of a key or of a script stands for. embit has RIPEMD-160 where OpenSSL lacks it."""
    return ripemd160(sha256(data).digest())  # type: ignore[no-any-return]


def _pushes(script: bytes) -> list[bytes]:
    """What a script pushes, small numbers as empty bytes; nothing where it does anything else."""
    found, at, end = [], 0, len(script)
    while at < end:
        size = script[at]
        at += 1
        if 0x4C <= size <= 0x4E:
            width = 1 << (size - 0x4C)
            size = int.from_bytes(script[at : at + width], "little")
            at += width
        elif size > 0x4E:
            if size != 0x4F and not 0x51 <= size <= 0x60:
                return []
            size = 0
        if at + size > end:
            return []
        found.append(script[at : at + size])
        at += size
    return found


def script_of_witness(items: Sequence[bytes]) -> bytes:
    """The output script of SegWit version 0 that a witness reveals; empty where it is of Taproot."""
    first, last = items[0], items[-1]
    if len(items) == 1:
        if len(last) in (64, 65):
            return b""  # a Taproot key's signature
    elif len(items) == 2 and len(last) == 33 and is_key(last) and _is_signature(first):
        return b"\x00\x14" + _hash160(last)
    if last and (last[0] >= _NO_SCRIPT or last[0] == _ANNEX):
        return b""  # a Taproot control block or annex
    return b"\x00\x20" + sha256(last).digest()


def _is_signature(data: bytes) -> bool:
    """Whether bytes have the form of an ECDSA signature with its hash type; early ones are not strict DER."""
    return 9 <= len(data) <= 80 and data[0] == 0x30 and data[2] == 0x02


class UndoFile:
    """The undo records of one file of blocks; `heads`: the blocks of that file, by height."""

    def __init__(self, member: Member, key: bytes, heads: Sequence[Head], network: Network) -> None:
        self.source, self.key, self.raw = member.source, key, content(member)
        waiting: defaultdict[int, list[Head]] = defaultdict(list)  # number of transactions -> blocks that have as many
        for head in heads:
            waiting[head.transactions - 1].append(head)
        self.place: dict[bytes, tuple[int, int]] = {}  # hash of a block -> first byte and length of its record
        for start, size in records(self.raw, key, network, "rev", self.source):
            record = unmask(self.raw, key, start, size + _CHECKSUM).tobytes()
            candidates = waiting[compact(record, 0)[0]]
            for head in candidates:
                if double_sha256(head.previous + record[:size]) == record[size:]:
                    self.place[head.hash] = (start, size)
                    candidates.remove(head)  # nearly always the first one: nodes connect blocks in their order
                    break

    def spent(self, head: Head, inputs: Sequence[int]) -> list[tuple[int, bytes]]:
        """Value and script of every output that a block spends; `inputs`: how many each of its transactions has."""
        if head.hash not in self.place:
            problem = f"holds nothing for block {head.display}, which the node has not connected yet"
            raise DataError(self.source, "undo", problem, "read the blocks before it (end=…), or none of the rev*.dat")
        record = unmask(self.raw, self.key, *self.place[head.hash]).tobytes()
        try:
            return _unpacked(record, inputs)
        except IndexError:
            problem = "it is cut short"
        except _UndoError as error:
            problem = str(error)
        raise DataError(self.source, f"undo of block {head.display}", problem, "copy the file again")


class _UndoError(Exception):
    """An undo record that does not fit its block."""


def _unpacked(record: bytes, inputs: Sequence[int]) -> list[tuple[int, bytes]]:
    """The coins of an undo record; IndexError where it ends too early."""
    number, at = compact(record, 0)
    found = []
    if number != len(inputs):
        raise _UndoError("its numbers of transactions or inputs are not the block's")
    for expected in inputs:
        number, at = compact(record, at)
        if number != expected:
            raise _UndoError("its numbers of transactions or inputs are not the block's")
        for _ in range(number):
            height, at = _variable(record, at)
            if height >= 2:  # beside the height, once a version stood here
                _, at = _variable(record, at)
            packed, at = _variable(record, at)
            script, at = _script(record, at)
            found.append((_amount(packed), script))
    if at != len(record):
        raise _UndoError("bytes are left over")
    return found


def _variable(data: bytes, at: int) -> tuple[int, int]:
    """A number in base 128, as Bitcoin Core writes it to disk, and the byte behind it."""
    value = 0
    for place in range(at, at + 9):
        byte = data[place]
        value = value << 7 | byte & 127
        if byte < 128:
            return value, place + 1
        value += 1
    raise IndexError


def _amount(packed: int) -> int:
    """A packed amount in satoshi: its trailing zeros are counted, not written."""
    if packed == 0:
        return 0
    packed, zeros = divmod(packed - 1, 10)
    value = (packed // 9 * 10 + packed % 9 + 1 if zeros < 9 else packed + 1) * 10**zeros
    if value > MAX_MONEY:
        raise _UndoError("an amount is no amount")
    return value


def _script(data: bytes, at: int) -> tuple[bytes, int]:
    """The packed script at `at`, unpacked, and the byte behind it. Kinds 0 to 5 are hashes and keys without opcodes."""
    kind, at = _variable(data, at)
    size = 20 if kind < 2 else 32 if kind < 6 else kind - 6
    behind = at + size
    if behind > len(data):
        raise IndexError
    body = data[at:behind]
    if kind == 0:
        return b"\x76\xa9\x14" + body + b"\x88\xac", behind
    if kind == 1:
        return b"\xa9\x14" + body + b"\x87", behind
    if kind < 4:
        return b"\x21" + bytes([kind]) + body + b"\xac", behind
    if kind < 6:
        try:
            key = PublicKey.parse(bytes([kind - 2]) + body)  # 2 and 3 tell which of two keys begins so
        except ECError:
            raise _UndoError("a key lies not on the curve") from None
        key.compressed = False
        return b"\x41" + key.sec() + b"\xac", behind
    return body if size <= _MAX_SCRIPT else b"\x6a", behind
