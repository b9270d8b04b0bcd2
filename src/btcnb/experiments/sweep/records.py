"""Records of runs: one JSON line each, appended whole or not at all, readable while a sweep writes them.

The file lies among the committed results; the locks lie in the hidden folder `.locks` beside it. A line that a killed
process left half-written is mended by the next one that appends; a damaged line anywhere else is told, never skipped.
"""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from btcnb.errors import DataError

FORMAT = 1
"""Raise it when fields change their meaning: older records are then read, and marked."""
DONE, FAILED, OTHER_VERSION = "done", "failed", "other version"
FIELDS: dict[str, type] = {
    "format": int,
    "grid": str,
    "row": str,
    "seed": int,
    "run": str,
    "measure": str,
    "method": str,
    "state": str,
    "error": str,
    "made": str,
    "versions": str,
    "data": str,
    "seconds": float,
}
"""What every record has; then come the commit, the recipe's fields, and what was measured. Older records have a digest
of code in the field `code` and no commit; no reader uses it."""

Record = dict[str, Any]


class Records:
    """The records of one grid."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._locks = self.path.parent / ".locks"

    def read(self) -> list[Record]:
        """All whole lines, in the order in which they were appended; a last line without its end is not one yet."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise DataError(self.path, "records", f"cannot be read ({error.strerror})", "mend that") from None
        lines = content.split(b"\n")
        last = _parsed(lines.pop())  # what follows the last line end: nothing, or a line that is being written
        records = [self._record(line, number) for number, line in enumerate(lines, 1)]
        return [_marked(record) for record in (*records, *([last] if last else []))]

    def mend(self) -> str:
        """Mend a torn last line; what was done, in one sentence, empty where nothing had to be."""
        if not self.path.exists():
            return ""
        with self._locked(), self._opened() as file:
            return self._mend(file)

    def append(self, record: Mapping[str, Any]) -> None:
        """Write one record and see it on the disk; whatever goes wrong, the file is as it was before."""
        line = json.dumps(_plain(record), ensure_ascii=False, allow_nan=False).encode() + b"\n"
        with self._locked(), self._opened() as file:
            self._mend(file)
            before = os.lseek(file, 0, os.SEEK_END)
            try:
                _write(file, line)
                os.fsync(file)
            except BaseException as error:
                os.ftruncate(file, before)
                if isinstance(error, OSError):
                    raise self._unwritable(error) from None
                raise

    def claim(self, run: str) -> Claim | None:
        """The right to compute a run; None while another process has it."""
        lock = FileLock(self._lock_file(f"{self.path.stem}-{run}"))
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return None
        return Claim(lock)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with FileLock(self._lock_file(self.path.stem)):
            yield

    def _lock_file(self, name: str) -> Path:
        try:
            self._locks.mkdir(parents=True, exist_ok=True)
            ignore = self._locks / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n", encoding="utf-8")
        except OSError as error:
            raise self._unwritable(error) from None
        return self._locks / f"{name}.lock"

    @contextmanager
    def _opened(self) -> Iterator[int]:
        try:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise self._unwritable(error) from None
        try:
            yield file
        finally:
            os.close(file)

    def _mend(self, file: int) -> str:
        """A whole record without its line end gets one; half a record is cut off."""
        size = os.lseek(file, 0, os.SEEK_END)
        start, tail = _tail(file, size)
        if not tail:
            return ""
        if _parsed(tail) is not None:
            _write(file, b"\n")
            return f"{self.path}: the last line had no end; it is whole and is kept."
        os.ftruncate(file, start)
        return f"{self.path}: the last line was only half written and is cut off; its run counts as not done."

    def _record(self, line: bytes, number: int) -> Record:
        record = _parsed(line)
        if record is None:
            raise DataError(self.path, f"line {number}", "is no record", "remove the line, or take the file from git")
        return record

    def _unwritable(self, error: OSError) -> DataError:
        full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        problem = "the disk is full" if full else f"cannot be written ({error.strerror or error})"
        remedy = "free some space" if full else "mend that"
        again = "run the same command again: the runs recorded so far are kept"
        return DataError(self.path, "records", problem, f"{remedy} and {again}")


class Claim:
    """The right to compute one run; it ends with the process, or when it is released."""

    def __init__(self, lock: FileLock) -> None:
        self._lock = lock

    def release(self, recorded: bool = False) -> None:
        """`recorded`: nobody will want the lock again. Who still does reads the records first, and finds the run."""
        if recorded:
            Path(self._lock.lock_file).unlink(missing_ok=True)
        self._lock.release()


def _tail(file: int, size: int) -> tuple[int, bytes]:
    """What follows the last line end, and where that starts."""
    tail, start = b"", size
    while start > 0 and b"\n" not in tail:
        step = min(start, 65_536)
        start -= step
        tail = os.pread(file, step, start) + tail
    end = tail.rfind(b"\n") + 1
    return start + end, tail[end:]


def _write(file: int, content: bytes) -> None:
    while content:
        content = content[os.write(file, content) :]


def _parsed(line: bytes) -> Record | None:
    try:
        read = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


def _marked(record: Record) -> Record:
    """Records that this version did not write are kept apart by their state."""
    right = record.get("format") == FORMAT and all(_is(record.get(name), kind) for name, kind in FIELDS.items())
    return record if right and record["state"] in (DONE, FAILED) else {**record, "state": OTHER_VERSION}


def _is(value: Any, kind: type) -> bool:
    wanted = (int, float) if kind is float else kind
    return isinstance(value, wanted) and not isinstance(value, bool)


def _plain(record: Mapping[str, Any]) -> Record:
    """JSON knows no NaN and no infinity: both become null."""
    strange = (name for name, value in record.items() if isinstance(value, float) and not math.isfinite(value))
    return {**record, **dict.fromkeys(strange)}
