"""numba's compiler, typed, with a cache that is never older than the sources.

numba caches machine code per file and checks that file's time stamp only, but kernels call across files. The cache
folder is therefore named after a digest of all sources of this package: every edit compiles anew.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

# A waiting OpenMP thread spins for milliseconds by default and slows down the matrix products in between. A thousand
# turns (microseconds) are enough. Read when numba loads OpenMP; a value that is set already stays.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

from numba import config, njit

F = TypeVar("F", bound=Callable[..., Any])

PACKAGE = Path(__file__).parent


def cache_folder() -> Path:
    """Folder of the machine code: below `NUMBA_CACHE_DIR`, else beside the sources, else in the user's cache."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.glob("*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    chosen = str(config.CACHE_DIR)  # type: ignore[attr-defined]
    beside = PACKAGE / "__pycache__"
    if chosen:
        parent = Path(chosen)
    elif os.access(beside if beside.exists() else PACKAGE, os.W_OK):
        parent = beside
    else:
        parent = Path.home() / ".cache"
    return parent / f"meanlink-{digest.hexdigest()[:16]}"


_FOLDER = str(cache_folder())


def compiled(*, parallel: bool = False, fastmath: bool | set[str] = False) -> Callable[[F], F]:
    """Compile a function on its first call and keep the machine code."""

    def decorate(function: F) -> F:
        chosen = config.CACHE_DIR  # type: ignore[attr-defined]
        config.CACHE_DIR = _FOLDER  # type: ignore[attr-defined]  # numba reads it when it decorates
        try:
            return cast(F, njit(function, cache=True, parallel=parallel, fastmath=fastmath))
        finally:
            config.CACHE_DIR = chosen  # type: ignore[attr-defined]

    return decorate
