"""Where raw blocks lie: single files (binary or hex, packed or not), and a node's `blk*.dat` with their `rev*.dat`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
import numpy.typing as npt

from btcnb.data.readers.files import Member, members
from btcnb.data.readers.scripts import NETWORKS, Network
from btcnb.errors import DataError

Bytes = npt.NDArray[np.uint8]

HEADER = 80
"""Bytes of a block's header."""
OF_MAGIC = {network.magic: network for network in NETWORKS.values()}
_NODE_FILE = re.compile(r"(blk|rev)(\d{5,})\.dat(\.gz|\.zst)?")
_NAMED = re.compile(r"(\d{1,8})-([0-9a-f]{64})")
_HEX = re.compile(rb"[0-9a-fA-F\s]+")
_SURE = (".bin", ".hex", ".raw")
"""Endings of single blocks: such a file in a folder is read, or refused; others are read if they look like blocks."""
_MAYBE = (".txt", ".dat", ".zst", ".gz", "")
_NO_KEY = bytes(8)
_FRAME = 8  # bytes of magic and length
_SIZES = {"blk": (HEADER + 1 + 60, 4_000_000, 0), "rev": (1, 2**27, 32)}
"""Kind of a node's file -> least and greatest length of a record, and bytes that follow it."""


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
        return (int(found[1]), found[2]) if found and self.number is None else None

    def content(self) -> Bytes:
        """The bytes of the file, unpacked; of hex, what it stands for."""
        data = content(self.member)
        if self.number is None and len(data) and _HEX.fullmatch(data[:HEADER].tobytes()):
            try:
                return np.frombuffer(bytes.fromhex(data.tobytes().decode("ascii")), dtype=np.uint8)
            except ValueError as error:
                raise DataError(self.source, "hex", f"is broken ({error})", "write pairs of hex digits") from error
        return data


def content(member: Member) -> Bytes:
    """The bytes of a file, unpacked; those of a plain file are mapped, not read."""
    place = member.seekable()
    if not isinstance(place, Path):
        return np.frombuffer(place.getbuffer(), dtype=np.uint8)
    return np.asarray(np.memmap(place, np.uint8, "r")) if place.stat().st_size else np.zeros(0, dtype=np.uint8)


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
        if _HEX.fullmatch(digits):
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


def unmask(raw: Bytes, key: bytes, start: int, length: int) -> Bytes:
    """A copy of a piece of a node's file, without its obfuscation."""
    piece = raw[start : start + length]
    if key == _NO_KEY:
        return piece.copy()
    turned = np.roll(np.frombuffer(key, dtype=np.uint8), -(start % len(key)))
    return piece ^ np.resize(turned, len(piece))


def records(raw: Bytes, key: bytes, network: Network, kind: str, source: str) -> list[tuple[int, int]]:
    """First byte and length of each record in a node's file of the given kind, "blk" or "rev"."""
    least, most, behind = _SIZES[kind]
    found: list[tuple[int, int]] = []
    at = _next_record(raw, key, network.magic, 0)
    while at < len(raw):
        frame = unmask(raw, key, at, _FRAME).tobytes()
        size = int.from_bytes(frame[4:], "little")
        if frame[:4] != network.magic:
            problem = f"{frame[:4].hex()} is not the magic of {network.name}"
            raise DataError(source, f"byte {at}", problem, "check the file and its xor.dat")
        if not least <= size <= most or at + _FRAME + size + behind > len(raw):
            remedy = "copy the file again, with the node stopped"
            raise DataError(source, f"byte {at}", "a record is cut short", remedy)
        found.append((at + _FRAME, size))
        at = _next_record(raw, key, network.magic, at + _FRAME + size + behind)
    return found


def _next_record(raw: Bytes, key: bytes, magic: bytes, at: int, window: int = 2**16) -> int:
    """The next byte with the magic, or with anything but the zeros that a node reserves; else the file's end."""
    while at < len(raw):
        plain = unmask(raw, key, at, window)
        empty = (raw[at : at + window] == 0) | (plain == 0)
        other = len(plain) if empty.all() else int(empty.argmin())
        marked = plain[: other + len(magic)].tobytes().find(magic)
        if marked >= 0:
            return at + marked
        if other < len(plain):
            return at + other
        at += max(1, len(plain) - len(magic) + 1) if at + len(plain) < len(raw) else len(plain)
    return len(raw)


def network_of(raw: Bytes, key: bytes, source: str) -> Network | None:
    """The network whose magic a node's file begins with; None where the file holds nothing."""
    begin = unmask(raw, key, 0, 4).tobytes()
    if begin in OF_MAGIC:
        return OF_MAGIC[begin]
    if not np.any(raw):
        return None
    known = ", ".join(f"{network.magic.hex()} ({network.name})" for network in OF_MAGIC.values())
    remedy = f"expected one of {known}; an obfuscated file needs the xor.dat beside it"
    raise DataError(source, "magic", f"is {begin.hex()}", remedy)
