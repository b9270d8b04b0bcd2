"""Files as the readers see them: one file, a folder or a zip, unpacked within limits; and files written as a whole.

`members` finds the files, `Member` opens them, `reading` turns what a damaged file raises into one sentence, and
`replacing` writes a file so that a reader sees the old content or the new one, never half of one.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import os
import re
import shutil
import time
import uuid
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import DecimalException
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import IO, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from btcnb.data.tables import plain
from btcnb.errors import DataError, ParameterError

MAX_RATIO = 50
"""Packed content may grow to this many times its size. The text of transactions grows four to ten times."""
MAX_PLAIN = 64 * 2**20
"""Content up to this many bytes is read at any ratio. The variable `BTCNB_UNPACK_LIMIT` sets another number."""

BROKEN = (EOFError, OSError, zipfile.BadZipFile, zlib.error)
"""What a packed file raises that is cut short or damaged."""
UNREADABLE = (
    *BROKEN,
    DecimalException,
    RecursionError,
    UnicodeError,
    csv.Error,
    json.JSONDecodeError,
    pa.ArrowException,
    pd.errors.EmptyDataError,
    pd.errors.ParserError,
)
"""What parsers raise on the content of a file. Errors of our own code (TypeError, …) are not among them."""
MISSHAPEN = (*UNREADABLE, AttributeError, LookupError, OverflowError, TypeError, ValueError)
"""What an access to parsed content raises when the content has another shape. Only for blocks that do nothing else."""

_NAME_BYTES = 255  # of the longest name that file systems take
_STALE = 86_400  # seconds after which the part that a killed process left behind is removed


@contextlib.contextmanager
def reading(
    source: object,
    field: str = "content",
    problem: str = "cannot be read",
    remedy: str = "check or fetch it again",
    errors: tuple[type[Exception], ...] = UNREADABLE,
) -> Iterator[None]:
    """Turn the given errors, which come from the content of `source`, into a `DataError` that names the source."""
    try:
        yield
    except errors as error:
        reason = plain(error).strip()[:200] or type(error).__name__
        raise DataError(plain(source), field, f"{problem} ({reason})", remedy) from error


def is_address(path: str | Path) -> bool:
    """Whether a text is, or was meant as, a URL. It may hold a password and is therefore shown in no message."""
    text = str(path)
    return "://" in text or re.match(r"\s*https?:", text, re.IGNORECASE) is not None or bool(re.search(":.*@", text))


def path_of(path: object, name: str = "path") -> Path:
    """`path` as a `Path`; `ParameterError` where it is neither text nor a path, or names nothing a disk can hold."""
    try:
        if isinstance(path, str | Path) and str(path):
            raw = os.fsencode(path)
            if b"\0" not in raw and max(map(len, raw.split(b"/"))) <= _NAME_BYTES:
                return Path(path)
    except UnicodeError:  # half of a surrogate pair
        pass
    shown = "an address" if isinstance(path, str | Path) and is_address(path) else f"{path!r:.80}"
    raise ParameterError(f"{name}: {shown} is not the path of a file or folder.")


@dataclass(frozen=True)
class Member:
    """One file: `name` relative to where it was found, `path` on disk, `inner` name in a zip."""

    name: str
    path: Path
    inner: str | None = None
    archive: zipfile.ZipFile | None = field(default=None, repr=False, compare=False)  # shared by the zip's members

    @property
    def source(self) -> str:
        """The file as messages name it."""
        return plain(self.path if self.inner is None else f"{self.path}!{self.inner}")

    @property
    def stem(self) -> str:
        """File name without folders and extensions."""
        return plain(PurePosixPath(self.name).name.split(".")[0])

    @contextlib.contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """The content as a stream without gzip or zstd; `DataError` where it is broken or grows too much."""
        words = (self.source, "archive", "is broken or cut short", "fetch it again")
        with contextlib.ExitStack() as stack:
            with reading(*words, errors=(*BROKEN, NotImplementedError, RuntimeError)):  # also an encrypted zip
                stream: Any = stack.enter_context(self._raw())
                packing = _packing(stream)
                if packing:
                    unpacked = gzip.GzipFile(fileobj=stream) if packing == "gzip" else _zstd(stream)
                    capped = _Capped(stack.enter_context(unpacked), packing, self.source, self._size())
                    stream = io.BufferedReader(capped, 2**18)
            with reading(*words, errors=(*BROKEN, pa.ArrowException)):
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
        """The whole content without gzip or zstd."""
        with self.open() as stream:
            return stream.read()

    def head(self, size: int = 2**16) -> bytes:
        """The first bytes without gzip or zstd."""
        with self.open() as stream:
            return stream.read(size)

    def seekable(self) -> Any:
        """What Arrow reads with seeks: the path of a plain file, else the content in memory."""
        with reading(self.source, "archive", "is broken or cut short", "fetch it again"), self._raw() as stream:
            packed = self.inner is not None or _packing(stream) is not None
        return io.BytesIO(self.read()) if packed else self.path

    def parquet(self) -> Any:
        """A Parquet file of modest size: a few bytes can stand for very many rows.

        To ask a damaged footer about single columns ends the process (pyarrow 26), so only totals are asked for.
        """
        file = pq.ParquetFile(self.seekable(), page_checksum_verification=True)
        grown = sum(file.metadata.row_group(group).total_byte_size for group in range(file.metadata.num_row_groups))
        require_harmless(self.source, "Parquet", self.path.stat().st_size, max(grown, file.metadata.num_rows))
        return file


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
    """Refuse content that grows far more than transactions do when it is unpacked."""
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

    `pattern` selects file names, except that of a file given itself. Hidden files and files whose name starts with an
    underscore are skipped. Zips inside a folder are searched, one level deep. A zip is read in memory.
    """
    place = path_of(path)
    if not isinstance(pattern, str):
        raise ParameterError(f"pattern: {pattern!r:.80} is not a pattern of file names.")
    with reading("path", "path", "cannot be looked at", "give a file, a folder or a zip", (OSError,)):
        there, folder = place.exists(), place.is_dir()
    if not there:
        hidden = is_address(path)  # it may hold a password
        problem = "is an address and no file" if hidden else "does not exist"
        raise DataError("path" if hidden else plain(place), "path", problem, "give a file, a folder or a zip")
    if not folder and not place.is_file():
        raise DataError(plain(place), "path", "is neither a file nor a folder", "give a file, a folder or a zip")
    if folder:
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
    errors = (*BROKEN, NotImplementedError, RuntimeError, LookupError, ValueError)
    with reading(path, "archive", "is broken or cut short", "fetch it again", errors):
        archive = zipfile.ZipFile(path)  # outlives this function on purpose
        listed = [entry for entry in archive.infolist() if not entry.is_dir()]
    entries = sorted(listed, key=lambda entry: entry.filename)
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


@contextlib.contextmanager
def replacing(path: str | Path, folder: bool = False) -> Iterator[Path]:
    """A temporary file (or folder) beside `path`; on success it takes the place of `path`, on an error it is removed.

    Errors of the disk become a `DataError`.
    """
    target = path_of(path)
    part = target.with_name(f".btcnb-{uuid.uuid4().hex[:12]}.part")
    old = part.with_suffix(".old.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        for left in target.parent.glob(".btcnb-*.part"):
            if left.stat().st_mtime < time.time() - _STALE:
                _remove(left)
        part.mkdir() if folder else part.touch(exist_ok=False)
        yield part
        if folder and target.exists():
            target.rename(old)
        part.replace(target)
    except OSError as error:
        problem = f"cannot be written ({error.strerror or error})"
        remedy = "check the path, its permissions and the disk's space"
        raise DataError(plain(target), "path", problem, remedy) from error
    finally:
        if old.exists() and not target.exists():
            old.rename(target)
        _remove(part)
        _remove(old)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
