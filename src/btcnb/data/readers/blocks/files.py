"""Where raw blocks lie: single files (binary or hex, packed or not), and a node's `blk*.dat` with their `rev*.dat`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from btcnb.data.readers.archives import Member, members
from btcnb.data.readers.blocks.hashes import Bytes, IntArray, inner, outer
from btcnb.data.readers.blocks.networks import OF_MAGIC, Network
from btcnb.data.readers.blocks.parse import HEADER
from btcnb.errors import DataError

_NODE_FILE = re.compile(r"(blk|rev)(\d{5,})\.dat(\.gz|\.zst)?")
_NAMED = re.compile(r"(\d{1,8})-([0-9a-f]{64})")
_HEX = re.compile(rb"[0-9a-fA-F\s]+")
_SURE = (".bin", ".hex", ".raw")
"""Endings of single blocks: such a file in a folder is read, or refused; others are read if they look like blocks."""
_MAYBE = (".txt", ".dat", ".zst", ".gz", "")
_NO_KEY = bytes(8)
_FRAME = 8  # bytes of magic and length
_SMALLEST = HEADER + 1 + 60  # bytes of a block with a coinbase
_LARGEST = 4_000_000


@dataclass(frozen=True)
class BlockFile:
    """One file of blocks. `key` obfuscates it (8 bytes); `undo` is the file of spent outputs beside it, if any."""

    member: Member
    number: int | None  # of a node's file; None: a single block
    key: bytes = _NO_KEY
    undo: Member | None = None

    @property
    def source(self) -> str:
        return self.member.source

    @property
    def named(self) -> tuple[int, str] | None:
        """Height and hash, where the file is named after them."""
        found = _NAMED.fullmatch(self.member.stem)
        return (int(found[1]), found[2]) if found else None

    def content(self) -> Bytes:
        """The bytes of the file, unpacked, and of hex its meaning."""
        data = content(self.member)
        if self.number is None and len(data) and _HEX.fullmatch(data[:HEADER].tobytes()):
            try:
                return array(bytes.fromhex(data.tobytes().decode("ascii")))
            except ValueError as error:
                raise DataError(self.source, "hex", f"is broken ({error})", "write pairs of hex digits") from error
        return data


def content(member: Member) -> Bytes:
    """The bytes of a file, unpacked; those of a plain file are mapped, not read."""
    place = member.seekable()
    if not isinstance(place, Path):
        return array(member.read())
    return np.asarray(np.memmap(place, np.uint8, "c")) if place.stat().st_size else np.zeros(0, dtype=np.uint8)


def find_files(path: str | Path) -> list[BlockFile]:
    """The files of blocks that `path` stands for, in the order of their names."""
    found = members(path)
    kinds = {member: _NODE_FILE.fullmatch(PurePosixPath(member.name).name) for member in found}
    undo = {(_folder(member), int(kind[2])): member for member, kind in kinds.items() if kind and kind[1] == "rev"}
    keys = {_folder(member): _key(member) for member in found if PurePosixPath(member.name).name == "xor.dat"}
    files = []
    for member, kind in kinds.items():
        folder = _folder(member)
        if kind and kind[1] == "blk":
            number = int(kind[2])
            files.append(BlockFile(member, number, keys.get(folder, _NO_KEY), undo.get((folder, number))))
        elif not kind and _is_single(member, alone=len(found) == 1):
            files.append(BlockFile(member, None))
    if not files:
        raise DataError(path, "files", "no raw block is there", "give blk*.dat, *.bin or *.hex files, or their folder")
    for file in files:
        if file.number is not None and file.undo is None and any(folder == _folder(file.member) for folder, _ in undo):
            name = PurePosixPath(file.member.name).name.replace("blk", "rev")
            raise DataError(
                file.source, name, "is missing, though other files have theirs", "copy it too, or none of the rev*.dat"
            )
    return files


def is_node_file(name: str) -> bool:
    """Whether a file is named like a node's file of blocks."""
    found = _NODE_FILE.fullmatch(PurePosixPath(name).name)
    return found is not None and found[1] == "blk"


def looks_like_blocks(head: bytes) -> bool:
    """Whether a file starts like a block (binary or hex: a header, then a coinbase), or like a node's file of them."""
    if _HEX.fullmatch(head[:HEADER]):
        digits = b"".join(head[:1024].split())
        head = bytes.fromhex(digits[: len(digits) // 2 * 2].decode("ascii"))
    return _coinbase_follows(head) or (head[:4] in OF_MAGIC and _coinbase_follows(head[_FRAME:]))


def _coinbase_follows(head: bytes) -> bool:
    width = {253: 3, 254: 5}.get(head[HEADER], 1) if len(head) > HEADER else 1
    first = head[HEADER + width + 4 :]
    first = first[2:] if first.startswith(b"\x00\x01") else first
    return first.startswith(b"\x01" + bytes(32) + b"\xff" * 4)


def _is_single(member: Member, alone: bool) -> bool:
    ending = PurePosixPath(member.name).suffix.lower()
    sure = ending in _SURE or _NAMED.fullmatch(member.stem) is not None
    return alone or sure or (ending in _MAYBE and looks_like_blocks(member.head(1024)))


def _folder(member: Member) -> tuple[Path, str]:
    return member.path.parent if member.inner is None else member.path, PurePosixPath(member.name).parent.as_posix()


def _key(member: Member) -> bytes:
    key = member.read()
    if len(key) != len(_NO_KEY):
        raise DataError(member.source, "key", f"has {len(key)} bytes, not 8", "copy the node's own xor.dat")
    return key


@inner
def _unmasked(raw: Any, key: Any, at: Any) -> Any:
    return np.int64(raw[at] ^ key[at & 7])


@outer
def _frames(raw: Bytes, key: Bytes, magic: Bytes, limits: IntArray, found: IntArray) -> tuple[int, int]:
    """Start and length of the records in a node's file to `found` (n, 2): (how many, byte of a fault or -1).

    limits: least and greatest length of a record, bytes that follow it. Zeros lie where a node has reserved room.
    """
    number, at = 0, 0
    while True:
        while at < len(raw):
            here = at + _FRAME <= len(raw)
            for i in range(4):
                here = here and _unmasked(raw, key, at + i) == magic[i]
            if here or (raw[at] != 0 and _unmasked(raw, key, at) != 0):
                break
            at += 1
        if at == len(raw):
            return number, -1
        size = 0
        for i in range(4 if here else 0):
            size |= _unmasked(raw, key, at + 4 + i) << 8 * i
        if size < limits[0] or size > limits[1] or size + limits[2] > len(raw) - at - _FRAME or number == len(found):
            return number, at
        found[number, 0], found[number, 1] = at + _FRAME, size
        number += 1
        at += _FRAME + size + limits[2]


def records(raw: Bytes, key: bytes, network: Network, undo: bool, source: str) -> IntArray:
    """(n, 2): first byte and length of each record in a node's file."""
    limits = np.array([1, 2**27, 32] if undo else [_SMALLEST, _LARGEST, 0], dtype=np.int64)
    found = np.zeros((len(raw) // (_FRAME + int(limits[0] + limits[2])) + 1, 2), dtype=np.int64)
    number, fault = _frames(raw, array(key), array(network.magic), limits, found)
    if fault < 0:
        return found[:number]
    start = bytes(unmask(raw, key, fault, min(4, len(raw) - fault)))
    if start == network.magic:
        raise DataError(source, f"byte {fault}", "a record is cut short", "copy the file again, with the node stopped")
    raise DataError(
        source, f"byte {fault}", f"{start.hex()} is not the magic of {network.name}", "check the file and its xor.dat"
    )


def network_of(raw: Bytes, key: bytes, source: str) -> Network | None:
    """The network whose magic a node's file begins with; None where the file holds nothing."""
    begin = bytes(unmask(raw, key, 0, min(4, len(raw))))
    if begin in OF_MAGIC:
        return OF_MAGIC[begin]
    if not np.any(raw):
        return None
    known = ", ".join(f"{network.magic.hex()} ({network.name})" for network in OF_MAGIC.values())
    remedy = f"expected one of {known}; an obfuscated file needs the xor.dat beside it"
    raise DataError(source, "magic", f"is {begin.hex()}", remedy)


def unmask(raw: Bytes, key: bytes, start: int, length: int) -> Bytes:
    """A copy of a piece, without its obfuscation."""
    piece = raw[start : start + length]
    if key == _NO_KEY:
        return piece.copy()
    turned = np.roll(array(key), -(start % 8))
    return piece ^ np.resize(turned, len(piece))


def array(data: bytes) -> Bytes:
    return np.frombuffer(bytearray(data), dtype=np.uint8)
