"""Writing so that a reader sees the old file or the new one, never half of one."""

from __future__ import annotations

import contextlib
import shutil
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from btcnb.errors import DataError

_STALE = 86_400  # seconds after which a part that a killed process left behind is removed


@contextlib.contextmanager
def replacing(path: str | Path, folder: bool = False) -> Iterator[Path]:
    """A temporary file (or folder) beside `path`; on success it takes the place of `path`, on an error it is removed.

    What the disk refuses becomes a `DataError`.
    """
    target = Path(path)
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
        raise DataError(target, "path", problem, "check the path, its permissions and the disk's space") from error
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
