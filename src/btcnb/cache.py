"""Expensive artefacts, kept on disk by content: what one chapter has computed, no other computes again.

`@cached("data")` stores a function's result under `.cache/`, keyed by its arguments, by the function and by the source
of the named sub-packages: change the simulator and everything simulated is made anew. A lock per call keeps two
chapters that run side by side from computing the same thing twice.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import joblib
from filelock import FileLock

P = ParamSpec("P")
R = TypeVar("R")

PACKAGE = Path(__file__).parent


def cache_folder() -> Path:
    """`BTCNB_CACHE` if set; else `.cache` in the project that holds the package, or in the working directory."""
    chosen = os.environ.get("BTCNB_CACHE")
    if chosen:
        return Path(chosen)
    project = PACKAGE.parent.parent
    return (project if (project / "pyproject.toml").exists() else Path.cwd()) / ".cache"


@functools.cache
def source_hash(*parts: str) -> str:
    """A hash of all Python sources in the named sub-packages of btcnb (and of the modules beside them)."""
    digest = hashlib.sha256()
    for part in ("errors.py", *sorted(parts)):
        root = PACKAGE / part
        for path in [root] if root.is_file() else sorted(root.rglob("*.py")):
            digest.update(path.relative_to(PACKAGE).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def cached(*parts: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator: keep the function's results on disk until its arguments or the sources of `parts` change.

    Arguments and result must pickle; arguments are compared by value. `.__wrapped__` is the plain function.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        name = f"{function.__module__}.{function.__qualname__}"
        signature = inspect.signature(function)

        @functools.wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()  # f(3) and f(x=3) are the same call
            key = joblib.hash((name, source_hash(*parts), sorted(bound.arguments.items())))
            path = cache_folder() / name / f"{key}.joblib"
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                with FileLock(path.with_suffix(".lock")):
                    if not path.exists():
                        _write(function(*args, **kwargs), path)
            result: R = joblib.load(path)
            return result

        return wrapper

    return decorate


def _write(result: Any, path: Path) -> None:
    """Write beside the target, then rename: a killed process leaves no half-written artefact under the final name."""
    partial = path.with_suffix(f".{os.getpid()}.partial")
    try:
        joblib.dump(result, partial, compress=("zlib", 1))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
