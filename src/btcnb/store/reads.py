"""Files that were read: each file whose content decides a number is noted, with a digest of its content.

`note_read(path)` informs the listeners: results being kept (they are valid only while the file stays the same) and the
build, which executes a chapter again when a file that it read has changed.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from btcnb.errors import DataError

ROOT = Path(__file__).resolve().parents[3]
"""The project that holds the package, if there is one: files below it are noted by their path from here."""
LOG = "BTCNB_READS"
"""Environment variable: a file to which every read is appended as one JSON line (path, digest)."""
ABSENT = "absent"
LARGE = 32 * 2**20
"""Bytes. A larger file is identified by size and modification time instead of content. A source may be the folder of a
running Bitcoin node: 600 GB in files of 128 MB, which would take an hour to hash at every check."""
_SETTLED = 2 * 10**9
"""Nanoseconds. The clock of a file system is coarse: a file changed more recently may change again under one time."""

_listening: ContextVar[tuple[dict[str, str], ...]] = ContextVar("listening", default=())


def note_read(path: str | Path) -> Path:
    """Note that the content of this file (or of all files below this folder, or its absence) decides what follows."""
    try:
        place = Path(path).absolute()
        mark = digest(place)
    except OSError as error:
        raise DataError(f"{path!s:.200}", "content", f"cannot be read ({error.strerror})", "mend that first") from None
    tell({relative(place): mark})
    return place


def tell(reads: Mapping[str, str]) -> None:
    """Pass reads on to all listeners."""
    for listener in _listening.get():
        listener.update(reads)
    log = os.environ.get(LOG)
    if log and reads:
        lines = "".join(json.dumps({"path": path, "digest": mark}) + "\n" for path, mark in reads.items())
        with Path(log).open("a", encoding="utf-8") as file:  # one write of a few lines, appended as a whole
            file.write(lines)


@contextmanager
def recording() -> Iterator[dict[str, str]]:
    """Collect everything that is noted inside the block: path -> digest."""
    found: dict[str, str] = {}
    token = _listening.set((*_listening.get(), found))
    try:
        yield found
    finally:
        _listening.reset(token)


def unchanged(reads: Mapping[str, str], root: Path = ROOT) -> bool:
    """Whether every file noted in `reads` still has the same digest; a file that cannot be read has not."""
    try:
        return all(digest(root / path) == mark for path, mark in reads.items())
    except OSError:
        return False


def relative(path: Path) -> str:
    """The path from the project's root for a file of the project, else the whole path."""
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else str(path)


def digest(path: Path) -> str:
    """A digest of a file's content, or of all files below a folder; `ABSENT` where there is nothing.

    A file above `LARGE` is identified by size and modification time. The content of any other file is hashed once per
    process, as long as the file system shows no change.
    """
    if path.is_dir():
        whole = hashlib.sha256()
        for item in sorted(item for item in path.rglob("*") if item.is_file()):
            whole.update(f"{item.relative_to(path).as_posix()} {digest(item)}\n".encode())
        return whole.hexdigest()
    if not path.exists():
        return ABSENT
    stat = path.stat()
    if stat.st_size > LARGE:
        return f"{stat.st_size} bytes modified {stat.st_mtime_ns}"
    if time.time_ns() - max(stat.st_mtime_ns, stat.st_ctime_ns) < _SETTLED:
        return _content_digest.__wrapped__(path)
    return _content_digest(path, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)


@functools.cache
def _content_digest(path: Path, *_state: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
