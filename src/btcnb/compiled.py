"""Compiled code is kept as well, and is never older than its source.

numba keeps what it compiles beside each file and looks only at that file's own time stamp: a kernel that calls another
file's kernel would go on running the old one. Here the folder itself is named after the content of every file that
compiles anything, so an edit of any of them compiles anew.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent


def settle() -> None:
    """Called when the package is imported, before any kernel is: environment variables win."""
    # A waiting OpenMP thread spins for milliseconds by default, which stalls everybody on a busy machine (a training
    # step took three times as long); a thousand turns (microseconds) are plenty. Read when torch or numba load OpenMP.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    folder = compiled_folder()
    if folder is not None and "NUMBA_CACHE_DIR" not in os.environ:
        os.environ["NUMBA_CACHE_DIR"] = str(folder)
        if "numba" in sys.modules:
            sys.modules["numba"].config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]


def compiled_folder() -> Path | None:
    """`.cache/numba/<digest of the kernels' sources>` in the project; None where the package lies in no project."""
    project = PACKAGE.parent.parent
    if not (project / "pyproject.toml").exists():
        return None
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_bytes()
        if b"njit" in source:
            digest.update(path.relative_to(PACKAGE).as_posix().encode() + source)
    return project / ".cache" / "numba" / digest.hexdigest()[:16]
