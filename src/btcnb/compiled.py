"""Compiled code is kept as well, and is never older than its source.

numba keeps what it compiles beside each file and looks only at that file's own time stamp: a kernel that calls another
file's kernel, or uses another file's constant, would go on running the old one. Here the folder itself is named after
the content of every sub-package that compiles anything, and of meanlink, so an edit in one of them compiles anew.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent
_FOUND = importlib.util.find_spec("meanlink")
LIBRARY = Path(_FOUND.origin).parent if _FOUND and _FOUND.origin else None
"""meanlink, whose kernels lie in the same folder; it stands beside the package and changes with it."""


def settle() -> None:
    """Called when the package is imported, before any kernel is: environment variables win."""
    # A waiting OpenMP thread spins for milliseconds by default, which stalls everybody on a busy machine (a training
    # step took three times as long); a thousand turns (microseconds) are plenty. Read when torch or numba load OpenMP.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    folder, chosen = compiled_folder(), os.environ.get("NUMBA_CACHE_DIR")
    ours = folder is not None and (chosen is None or Path(chosen).parent == folder.parent)  # or a parent process's
    if ours:
        os.environ["NUMBA_CACHE_DIR"] = str(folder)
        if "numba" in sys.modules:
            sys.modules["numba"].config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]


def compiled_folder() -> Path | None:
    """`.cache/numba/<digest of the kernels' sources>` in the project; None where the package lies in no project."""
    project = PACKAGE.parent.parent
    if not (project / "pyproject.toml").exists():
        return None
    digest = hashlib.sha256()
    for name, source in sorted(_kernels().items()):
        digest.update(name.encode() + source)
    return project / ".cache" / "numba" / digest.hexdigest()[:16]


def _kernels() -> dict[str, bytes]:
    """Path -> source of all files that kernels may lie in: they call across files, and use constants."""
    sources = {path.relative_to(PACKAGE): path.read_bytes() for path in PACKAGE.rglob("*.py")}
    folders = {path.parts[0] for path, source in sources.items() if b"import njit" in source}
    found = {path.as_posix(): source for path, source in sources.items() if path.parts[0] in folders}
    if LIBRARY is not None:
        found |= {f"meanlink/{path.relative_to(LIBRARY)}": path.read_bytes() for path in LIBRARY.rglob("*.py")}
    return found
