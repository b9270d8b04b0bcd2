"""Files to read, wherever they lie: one file, a folder, or a zip, which is read in memory and never unpacked."""

from __future__ import annotations

import contextlib
import gzip
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import IO, cast

from btcnb.errors import DataError

MAX_RATIO = 250
"""A zip member that unpacks to more than this many times its size, and to more than `MAX_PLAIN`, is refused."""
MAX_PLAIN = 256 * 2**20
"""Bytes up to which a zip member is read however well it is packed."""

_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, gzip.BadGzipFile)


@dataclass(frozen=True)
class Member:
    """One file: `name` relative to where it was found, `source` for messages, `path` on disk, `inner` name in a zip."""

    name: str
    path: Path
    inner: str | None = None
    archive: zipfile.ZipFile | None = field(default=None, repr=False, compare=False)  # shared by the zip's members

    @property
    def source(self) -> str:
        return str(self.path) if self.inner is None else f"{self.path}!{self.inner}"

    @property
    def stem(self) -> str:
        """File name without folders and extensions."""
        return PurePosixPath(self.name).name.split(".")[0]

    @contextlib.contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """The content as a stream, gzip taken off; a broken archive becomes a `DataError`."""
        with contextlib.ExitStack() as stack:
            try:
                stream = stack.enter_context(self._raw())
                if stream.peek(2)[:2] == b"\x1f\x8b":  # type: ignore[attr-defined]  # both kinds of stream can peek
                    stream = cast(IO[bytes], stack.enter_context(gzip.GzipFile(fileobj=stream)))
            except (OSError, RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error, EOFError) as error:
                raise _broken(self.source, error) from error
            try:
                yield stream
            except _BROKEN as error:
                raise _broken(self.source, error) from error

    def _raw(self) -> IO[bytes]:
        if self.inner is None or self.archive is None:
            return self.path.open("rb")
        return self.archive.open(self.inner)

    def read(self) -> bytes:
        """The whole content, gzip taken off."""
        with self.open() as stream:
            return stream.read()


def members(path: str | Path, pattern: str = "*") -> list[Member]:
    """The files that `path` stands for (a file, a folder searched recursively, or a zip), sorted by name.

    `pattern` is matched against file names, except that of a file given itself. Hidden files, and those whose name
    starts with an underscore, are skipped. Zips inside a folder are looked into, one level deep.
    """
    place = Path(path)
    if not place.exists():
        raise DataError(place, "path", "does not exist", "give a file, a folder or a zip")
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
    try:
        archive = zipfile.ZipFile(path)  # outlives this function on purpose
    except _BROKEN as error:
        raise _broken(str(path), error) from error
    entries = sorted((entry for entry in archive.infolist() if not entry.is_dir()), key=lambda entry: entry.filename)
    for entry in entries:
        _require_harmless(path, entry)
    return [Member(prefix + entry.filename, path, entry.filename, archive) for entry in entries]


def _require_harmless(path: Path, entry: zipfile.ZipInfo) -> None:
    parts = PurePosixPath(entry.filename.replace("\\", "/"))
    if parts.is_absolute() or ".." in parts.parts or ":" in parts.parts[0]:
        raise DataError(path, "zip", f"member {entry.filename!r} points outside the archive", "do not trust this file")
    if entry.file_size > max(MAX_PLAIN, MAX_RATIO * entry.compress_size):
        raise DataError(
            path,
            "zip",
            f"member {entry.filename!r} would grow from {entry.compress_size} to {entry.file_size} bytes",
            "unpack it yourself if you trust it",
        )


def _wanted(name: str, pattern: str) -> bool:
    parts = PurePosixPath(name).parts
    return not any(part.startswith((".", "_")) for part in parts) and fnmatch(parts[-1], pattern)


def _broken(source: str, error: BaseException) -> DataError:
    return DataError(source, "archive", f"is broken or cut short ({error})", "fetch it again")
