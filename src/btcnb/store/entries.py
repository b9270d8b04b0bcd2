"""Entries of the store: found by their key, checked before they are believed, written whole or not at all."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import os
import platform
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from filelock import FileLock

from btcnb.store import reads
from btcnb.store.codec import DigestSink, FileSink, StorableError, from_tree, to_tree
from btcnb.store.reach import PACKAGE, Reach, package

P = ParamSpec("P")
R = TypeVar("R")

FORMAT = 1
"""Part of every key: raise it when entries are written in another way."""
MANIFEST = "entry.json"
_FIELDS: dict[str, type] = {
    "function": str,
    "code": str,
    "libraries": dict,
    "arguments": dict,
    "kinds": list,
    "files": dict,
    "seconds": float,
    "created": str,
    "parts": dict,
}


class StoreWarning(UserWarning):
    """An entry could not be used or not be kept; the number on the page is right all the same."""


@dataclass(frozen=True)
class Key:
    """Everything that decides a result, but for the files it reads."""

    function: str
    code: str
    libraries: dict[str, str]
    arguments: Any  # JSON, large pieces as digests
    kinds: list[list[str]]  # classes of the package that the arguments belong to: (module, name)

    @property
    def digest(self) -> str:
        return _sha(_json([FORMAT, self.function, self.code, self.libraries, self.arguments]))[:32]


def store_folder() -> Path:
    """`BTCNB_CACHE` if set; else `.cache` in the project that holds the package, or in the working directory."""
    chosen = os.environ.get("BTCNB_CACHE")
    if chosen:
        return Path(chosen) / "store"
    in_project = (reads.ROOT / "pyproject.toml").exists()
    return (reads.ROOT if in_project else Path.cwd()) / ".cache" / "store"


def kept(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: keep the function's results on disk for as long as nothing changes that decides them.

    Two processes that want the same result compute it once; an interrupted one leaves nothing behind; a damaged entry
    is computed again, with a warning. `.__wrapped__` is the plain function.
    """
    name = f"{function.__module__}.{function.__qualname__}"
    signature = inspect.signature(function)

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()  # f(3) and f(x=3) are the same call
        key = _key(name, function, bound.arguments)
        folder = store_folder() / name / key.digest
        found, value = _load(folder)
        if found:
            return value
        with _locked(folder) as usable:
            if not usable:
                return function(*args, **kwargs)
            found, value = _load(folder)
            return value if found else _compute(functools.partial(function, *args, **kwargs), key, folder)

    return wrapper


@contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Hold an entry's lock; False, with a warning, where the store lies in a place that cannot be written to."""
    lock = FileLock(folder.with_suffix(".lock"))
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except (OSError, NotImplementedError) as error:  # the latter: a file system without locks
        reason = getattr(error, "strerror", None) or error
        _warn(f"the store {store_folder()} cannot be used ({reason}), so nothing is kept")
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def _key(name: str, function: Callable[..., Any], arguments: dict[str, Any]) -> Key:
    try:
        given = {argument: to_tree(value, DigestSink()) for argument, value in arguments.items()}
    except StorableError as error:
        raise StorableError(f"an argument of {name} cannot be compared by value: {error}") from None
    found = {(type(value).__module__, type(value).__qualname__.partition(".")[0]) for value in arguments.values()}
    kinds = [list(kind) for kind in sorted(found) if kind[0].startswith("btcnb.")]
    reach = _reach(function)
    return Key(name, _code(reach, kinds), library_versions(reach.libraries), given, kinds)


def _code(reach: Reach, kinds: list[list[str]]) -> str:
    """The code that a call can run: what the function reaches, and the methods of what it is given."""
    return _sha(_json([reach.digest, [[*kind, _symbol_code(*kind)] for kind in kinds]]))


def code_of(function: str, kinds: list[list[str]]) -> tuple[str | None, frozenset[str]]:
    """Code and libraries that a key would have today; None for a function that lives outside of the package."""
    module, _, name = function.rpartition(".")
    if not function.startswith("btcnb."):
        return None, frozenset()
    reach = package().of_symbol(module, name)
    return _code(reach, kinds), reach.libraries


def _reach(function: Callable[..., Any]) -> Reach:
    """Package code is looked up once a process; a notebook's function may have been defined anew."""
    return _package_reach(function) if function.__module__.startswith("btcnb.") else package().of_function(function)


@functools.cache
def _package_reach(function: Callable[..., Any]) -> Reach:
    return package().of_function(function)


@functools.cache
def _symbol_code(module: str, name: str) -> str:
    return package().of_symbol(module, name).digest


def library_versions(names: frozenset[str]) -> dict[str, str]:
    """The versions of the libraries with these import names, and Python's own."""
    found = {"python": ".".join(platform.python_version_tuple()[:2])}
    for name in sorted(names - sys.stdlib_module_names):
        if (version := library_version(name)) is not None:
            found[name] = version
    return found


@functools.cache
def library_version(name: str) -> str | None:
    """The version of the distribution that provides the import name, None where there is none."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        provided = metadata.packages_distributions().get(name, [])
        return metadata.version(provided[0]) if provided else None


def _compute(function: Callable[[], R], key: Key, folder: Path) -> R:
    with reads.recording() as files:
        started = time.monotonic()
        value = function()
        seconds = time.monotonic() - started
    if _source_changed():
        _warn(f"the source code was edited while {key.function} ran, so its result is not kept")
        return value
    try:
        _write(value, key, files, seconds, folder)
    except OSError as error:
        _warn(f"the result of {key.function} could not be kept ({error.strerror or error})")
        return value
    found, stored = _load(folder, tell=False)
    return stored if found else value


def _write(value: Any, key: Key, files: dict[str, str], seconds: float, folder: Path) -> None:
    """Into a folder beside the final one, then renamed: what is visible is complete."""
    partial = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        sink = FileSink(partial)
        tree = to_tree(value, sink)
        manifest = {
            "function": key.function,
            "code": key.code,
            "libraries": key.libraries,
            "arguments": key.arguments,
            "kinds": key.kinds,
            "files": files,
            "seconds": round(seconds, 3),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "parts": {name: reads.digest(partial / name) for name in sink.names},
            "value": tree,
        }
        (partial / MANIFEST).write_text(_json({**manifest, "digest": _sha(_json(manifest))}), encoding="utf-8")
        _clear(folder)  # a damaged entry, or one whose files have changed
        partial.rename(folder)
    except StorableError as error:
        raise StorableError(f"the result of {key.function} cannot be kept: {error}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _clear(folder: Path) -> None:
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    else:
        shutil.rmtree(folder, ignore_errors=True)


def _load(folder: Path, tell: bool = True) -> tuple[bool, Any]:
    """(True, value) of a sound entry whose files are unchanged; (False, None) otherwise."""
    try:
        if not folder.is_dir():
            return False, None
        manifest = read_manifest(folder)
        if manifest is None or not reads.unchanged(manifest["parts"], folder):
            raise ValueError
        if not reads.unchanged(manifest["files"]):
            return False, None
        value = from_tree(manifest["value"], folder)
    except Exception:  # whatever a damaged entry does to its readers
        _warn(f"the stored entry {folder.parent.name}/{folder.name} is damaged and is made anew")
        return False, None
    if tell:
        reads.tell(manifest["files"])
    return True, value


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of an entry, None when it is absent, unreadable, or does not fit its digest."""
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        whole = all(isinstance(manifest.get(name), kind) for name, kind in _FIELDS.items()) and "value" in manifest
        return manifest if manifest.pop("digest") == _sha(_json(manifest)) and whole else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def sources_digest(root: Path = PACKAGE) -> str:
    """A digest of the names and the content of all Python files below a folder."""
    whole = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        content = path.read_bytes()
        whole.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode())
        whole.update(content)
    return whole.hexdigest()


_AT_IMPORT = sources_digest()


def _source_changed() -> bool:
    """Whether files differ from what this process imported: its results must not be kept under the new code's name."""
    return sources_digest() != _AT_IMPORT


def _warn(sentence: str) -> None:
    warnings.warn(f"{sentence}.", StoreWarning, stacklevel=2)


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
