"""Files to read, wherever they lie: one file, a folder, or a zip, which is read in memory and never unpacked."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import IO, Any

import pyarrow as pa

from btcnb.data.contract import plain
from btcnb.data.readers.guard import BROKEN, is_address, reading
from btcnb.errors import DataError, ParameterError

MAX_RATIO = 50
"""What is packed may grow to this many times its size; text of transactions grows four to ten times."""
MAX_PLAIN = 64 * 2**20
"""Bytes up to which packed content is read however well it is packed; `BTCNB_UNPACK_LIMIT` sets another number."""


@dataclass(frozen=True)
class Member:
    """One file: `name` relative to where it was found, `source` for messages, `path` on disk, `inner` name in a zip."""

    name: str
    path: Path
    inner: str | None = None
    archive: zipfile.ZipFile | None = field(default=None, repr=False, compare=False)  # shared by the zip's members

    @property
    def source(self) -> str:
        return plain(self.path if self.inner is None else f"{self.path}!{self.inner}")

    @property
    def stem(self) -> str:
        """File name without folders and extensions."""
        return plain(PurePosixPath(self.name).name.split(".")[0])

    @contextlib.contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """The content as a stream, gzip or zstd taken off; what is broken, or grows too much, is a `DataError`."""
        words = (self.source, "archive", "is broken or cut short", "fetch it again")
        with contextlib.ExitStack() as stack:
            with reading(*words):
                stream: Any = stack.enter_context(self._raw())
                packing = _packing(stream)
                if packing:
                    unpacked = gzip.GzipFile(fileobj=stream) if packing == "gzip" else _zstd(stream)
                    capped = _Capped(stack.enter_context(unpacked), packing, self.source, self._size())
                    stream = io.BufferedReader(capped, 2**18)
            with reading(*words, errors=BROKEN):
                yield stream

    def _raw(self) -> IO[bytes]:
        if self.inner is None or self.archive is None:
            return self.path.open("rb")
        return self.archive.open(self.inner)

    def _size(self) -> int:
        if self.inner is None or self.archive is None:
            return self.path.stat().st_size
        return self.archive.getinfo(self.inner).file_size

    def read(self) -> bytes:
        """The whole content, gzip or zstd taken off."""
        with self.open() as stream:
            return stream.read()

    def head(self, size: int = 2**16) -> bytes:
        """The first bytes, gzip or zstd taken off."""
        with self.open() as stream:
            return stream.read(size)

    def seekable(self) -> Any:
        """What Arrow reads with seeks: the path of a plain file, else the content in memory."""
        with self._raw() as stream:
            packed = self.inner is not None or _packing(stream) is not None
        return io.BytesIO(self.read()) if packed else self.path


def _packing(stream: Any) -> str | None:
    """How a stream is packed, by its first bytes."""
    begin = stream.peek(4)
    return "gzip" if begin.startswith(b"\x1f\x8b") else "zstd" if begin.startswith(b"\x28\xb5\x2f\xfd") else None


def _zstd(stream: Any) -> Any:
    return pa.CompressedInputStream(pa.PythonFile(stream, mode="r"), "zstd")


class _Capped(io.RawIOBase):
    """A stream that refuses to grow beyond what its packed size allows."""

    def __init__(self, stream: Any, packing: str, source: str, packed: int) -> None:
        self.stream, self.packing, self.source, self.packed, self.got = stream, packing, source, packed, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.stream.read(len(buffer))
        self.got += len(data)
        require_harmless(self.source, self.packing, self.packed, self.got)
        buffer[: len(data)] = data
        return len(data)


def require_harmless(source: object, what: str, packed: int, plain_size: int) -> None:
    """Refuse what grows far more than data do when it is unpacked."""
    given = os.environ.get("BTCNB_UNPACK_LIMIT", "") or str(MAX_PLAIN)
    if not given.isdecimal():
        raise ParameterError(f"BTCNB_UNPACK_LIMIT: {given!r} is not a number of bytes.")
    if plain_size > max(int(given), MAX_RATIO * packed):
        raise DataError(
            plain(source),
            what,
            f"would grow from {packed} to {plain_size} bytes or more",
            "if you trust it, unpack it yourself or set BTCNB_UNPACK_LIMIT to the bytes it may have",
        )


def members(path: str | Path, pattern: str = "*") -> list[Member]:
    """The files that `path` stands for (a file, a folder searched recursively, or a zip), sorted by name.

    `pattern` is matched against file names, except that of a file given itself. Hidden files, and those whose name
    starts with an underscore, are skipped. Zips inside a folder are looked into, one level deep.
    """
    place = Path(path)
    if not place.exists():
        hidden = is_address(path)  # it may hold a password
        problem = "is an address and no file" if hidden else "does not exist"
        raise DataError("path" if hidden else plain(place), "path", problem, "give a file, a folder or a zip")
    if not place.is_dir() and not place.is_file():
        raise DataError(plain(place), "path", "is neither a file nor a folder", "give a file, a folder or a zip")
    if place.is_dir():
        found = [member for file in sorted(place.rglob("*")) if file.is_file() for member in _from(file, place)]
    elif place.suffix.lower() == ".zip" or zipfile.is_zipfile(place):
        found = _in_zip(place, "")
    else:
        return [Member(place.name, place)]
    return [member for member in found if _wanted(member.name, pattern)]


def _from(file: Path, folder: Path) -> list[Member]:
    name = file.relative_to(folder).as_posix()
    return _in_zip(file, f"{name[:-4]}/") if file.suffix.lower() == ".zip" else [Member(name, file)]


def _in_zip(path: Path, prefix: str) -> list[Member]:
    """The members of a zip. Its table of contents is read once; the archive closes when the last member goes."""
    with reading(path, "archive", "is broken or cut short", "fetch it again"):
        archive = zipfile.ZipFile(path)  # outlives this function on purpose
    entries = sorted((entry for entry in archive.infolist() if not entry.is_dir()), key=lambda entry: entry.filename)
    for entry in entries:
        parts = PurePosixPath(entry.filename.replace("\\", "/"))
        if not parts.parts or parts.is_absolute() or ".." in parts.parts or ":" in parts.parts[0]:
            problem = f"member {entry.filename!r} points outside the archive"
            raise DataError(plain(path), "zip", problem, "do not trust this file")
        require_harmless(path, f"zip member {entry.filename!r}", entry.compress_size, entry.file_size)
    require_harmless(path, "zip", path.stat().st_size, sum(entry.file_size for entry in entries))
    return [Member(prefix + entry.filename, path, entry.filename, archive) for entry in entries]


def _wanted(name: str, pattern: str) -> bool:
    parts = PurePosixPath(name).parts
    return not any(part.startswith((".", "_")) for part in parts) and fnmatch(parts[-1], pattern)
