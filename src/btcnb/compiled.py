"""Compiled code is kept as well, and is never older than its source.

numba keeps what it compiles beside each file and looks only at that file's own time stamp: a kernel that calls another
file's kernel, or uses another file's constant, would go on running the old one. Here the folder itself is named after
the content of every file that compiles anything and of all they import, so an edit of any of them compiles anew.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent
_IMPORTS = re.compile(r"^\s*from (btcnb[\w.]*) import ([\w ,]+|\([^)]*\))", re.MULTILINE)


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
    for name, source in sorted(_kernels().items()):
        digest.update(f"{name}\n{source}".encode())
    return project / ".cache" / "numba" / digest.hexdigest()[:16]


def _kernels() -> dict[str, str]:
    """Module name -> source, of the modules that compile something and of those that they import."""
    sources = {
        ".".join(["btcnb", *path.relative_to(PACKAGE).with_suffix("").parts]): path.read_text(encoding="utf-8")
        for path in PACKAGE.rglob("*.py")
    }
    waiting = [name for name, source in sources.items() if "njit" in source or "import compiled" in source]
    found: dict[str, str] = {}
    while waiting:
        name = waiting.pop()
        if name in sources and name not in found:
            found[name] = sources[name]
            for module, names in _IMPORTS.findall(sources[name]):
                waiting += [module, *(f"{module}.{item}" for item in re.findall(r"\w+", names))]
    return found
