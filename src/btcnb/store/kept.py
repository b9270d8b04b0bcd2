"""Results of functions, kept on disk: found by their key, checked before use, written whole or not at all.

An entry is a folder with a manifest (JSON, sealed by a digest of itself) and one file that joblib wrote. The manifest
holds a digest of that file, which is checked before the file is unpickled: a damaged entry is never used.
"""

from __future__ import annotations

import dataclasses
import dis
import functools
import hashlib
import inspect
import json
import os
import shutil
import textwrap
import time
import types
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePath
from typing import Any, ParamSpec, TypeVar

import numpy as np
from filelock import FileLock, Timeout

from btcnb.store import keys, reads

P = ParamSpec("P")
R = TypeVar("R")

FORMAT = 2
"""Part of every key: raise it when entries are written in another way."""
MANIFEST, VALUE = "entry.json", "value.joblib"
DAMAGED, STALE, CURRENT = "damaged", "stale", "current"


class StoreWarning(UserWarning):
    """An entry could not be used or not be kept; the result is right all the same."""


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
        folder = store_folder() / name / _sha(_json(key))[:32]
        found, value = _load(folder)
        if found:
            return value
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(folder.with_suffix(".lock")).acquire()
        except (OSError, NotImplementedError) as error:  # the latter: a file system without locks
            reason = getattr(error, "strerror", None) or error
            _warn(f"the store {store_folder()} cannot be used ({reason}), so nothing is kept")
            return function(*args, **kwargs)
        with lock:
            found, value = _load(folder)  # another process may have computed it while this one waited
            if not found:
                value = _compute(functools.partial(function, *args, **kwargs), key, bound.arguments, folder)
            return value

    return wrapper


# ---- the key of a call


def _key(name: str, function: Callable[..., Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Everything that decides a result, but for the files that it reads. Methods of arguments are code that may run."""
    modules, own = _code_of(function)
    given = {type(value).__module__ for value in arguments.values()}
    modules |= {module for module in given if module.startswith("btcnb.")}
    code, libraries = code_today(frozenset(modules))
    return {
        "format": FORMAT,
        "function": name,
        "arguments": {argument: fingerprint(value) for argument, value in arguments.items()},
        "modules": sorted(modules),
        "own": own,
        "code": code,
        "libraries": libraries,
    }


@functools.cache
def code_today(modules: frozenset[str]) -> tuple[str, dict[str, str]]:
    """Digest of the sub-packages that the modules import, and versions of libraries; determined once per process."""
    return keys.code_digest(keys.imported_subpackages(modules)), keys.library_versions(modules)


def _code_of(function: Callable[..., Any]) -> tuple[set[str], dict[str, str]]:
    """The modules whose code a function can run, and digests of code that lies in no module of the package.

    A function of the package is decided by its module. One that a notebook or a test defines is decided by its source,
    by the functions, classes and variables of its own module that it uses, and by the modules that these use.
    """
    own: dict[str, str] = {}
    if function.__module__.startswith("btcnb."):
        return {function.__module__}, own
    modules: set[str] = set()
    waiting: list[Any] = [function]
    while waiting:
        item = waiting.pop()
        if f"{item.__module__}.{item.__qualname__}" in own:
            continue
        source = textwrap.dedent(inspect.getsource(item))
        own[f"{item.__module__}.{item.__qualname__}"] = _sha(source)
        modules |= keys.cell_modules([source])
        for name, value in _used(item):
            plain = inspect.unwrap(getattr(value, "py_func", value))  # behind numba's dispatchers and decorators
            if isinstance(plain, types.ModuleType):
                modules.add(plain.__name__)
            elif isinstance(plain, type | types.FunctionType) and plain.__module__ == function.__module__:
                waiting.append(plain)
            elif isinstance(plain, type | types.FunctionType | types.BuiltinFunctionType):
                modules.add(plain.__module__ or "builtins")
            else:
                own[name] = fingerprint(value)
                modules.add(type(value).__module__)
    return modules, own


def _used(item: Any) -> Iterator[tuple[str, Any]]:
    """Global and free variables, with values, that a function or the methods of a class load."""
    methods = [item] if isinstance(item, types.FunctionType) else vars(item).values()
    for function in (method for method in methods if isinstance(method, types.FunctionType)):
        outside = dict(function.__globals__)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            if name != "__class__":
                outside[name] = cell.cell_contents
        yield from ((name, outside[name]) for name in sorted(_loaded(function.__code__)) if name in outside)


def _loaded(code: types.CodeType) -> set[str]:
    names = {str(step.argval) for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_DEREF")}
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return names.union(*map(_loaded, inner))


def fingerprint(value: Any) -> str:
    """A digest of a value: equal for equal values, in every process and however the value came about.

    Raises PicklingError for what can be compared by identity only, such as a lambda.
    """
    import joblib  # here and below: commands that keep nothing should start without joblib and pandas

    return str(joblib.hash(_comparable(value), hash_name="sha1"))


def _comparable(value: Any) -> Any:
    """What joblib hashes in place of `value`.

    joblib hashes pickles. Those of equal values differ for tables with another history, arrays with other strides,
    dictionaries in another order, and containers that hold one object twice.
    """
    import pandas as pd

    kind = type(value).__qualname__
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return kind, [(item.name, _comparable(getattr(value, item.name))) for item in dataclasses.fields(value)]
    if isinstance(value, dict):
        return kind, sorted((fingerprint(key), fingerprint(item)) for key, item in value.items())
    if isinstance(value, set | frozenset):
        return kind, sorted(map(fingerprint, value))
    if isinstance(value, list | tuple):
        return kind, [_comparable(item) for item in value]
    if isinstance(value, PurePath):
        return kind, str(value)
    if isinstance(value, pd.DataFrame):
        columns = [(fingerprint(name), str(dtype)) for name, dtype in value.dtypes.items()]
        return kind, columns, np.asarray(pd.util.hash_pandas_object(value)).tobytes()
    if isinstance(value, pd.Series | pd.Index):
        return kind, fingerprint(value.name), str(value.dtype), np.asarray(pd.util.hash_pandas_object(value)).tobytes()
    if isinstance(value, np.ndarray):
        items = [_comparable(item) for item in value.flat] if value.dtype.kind == "O" else value.tobytes()
        return kind, str(value.dtype), value.shape, items
    return value


# ---- entries


def _compute(call: Callable[[], R], key: dict[str, Any], arguments: dict[str, Any], folder: Path) -> R:
    with reads.recording() as files:
        started = time.monotonic()
        value = call()
        seconds = time.monotonic() - started
    if _source_state() != _AT_IMPORT:
        _warn(f"the source code was edited while {key['function']} ran, so its result is not kept")
        return value
    shown = {name: _short(argument) for name, argument in arguments.items()}
    manifest = {**key, "shown": shown, "files": files, "seconds": round(seconds, 3)}
    try:
        _write(value, manifest, folder)
    except OSError as error:
        _warn(f"the result of {key['function']} could not be kept ({error.strerror or error})")
    return value


def _write(value: Any, manifest: dict[str, Any], folder: Path) -> None:
    """Into a folder beside the final one, then renamed: what is visible is complete."""
    import joblib

    partial = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        joblib.dump(value, partial / VALUE)
        manifest["created"] = datetime.now(UTC).isoformat(timespec="seconds")
        manifest["size"], manifest["payload"] = (partial / VALUE).stat().st_size, _payload(partial)
        (partial / MANIFEST).write_text(_json({**manifest, "digest": _sha(_json(manifest))}), encoding="utf-8")
        _remove(folder)  # a damaged entry, or one whose files have changed
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _load(folder: Path) -> tuple[bool, Any]:
    """(True, value) of a sound entry whose files are unchanged; (False, None) otherwise."""
    import joblib

    if not os.path.isdir(folder):  # noqa: PTH112 (is_dir raises where a name is too long for the file system)
        return False, None
    try:
        manifest = _read_manifest(folder)
        if manifest is None or _payload(folder) != manifest["payload"]:
            raise ValueError
        if not reads.unchanged(manifest["files"]):
            return False, None
        value = joblib.load(folder / VALUE)
    except Exception:  # whatever a damaged entry does to its readers
        _warn(f"the stored entry {folder.parent.name}/{folder.name} is damaged and is made anew")
        return False, None
    reads.tell(manifest["files"])
    return True, value


def _read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of an entry, None when it is absent, unreadable, or does not fit its digest."""
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return manifest if manifest.pop("digest") == _sha(_json(manifest)) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _remove(folder: Path) -> None:
    """Remove an entry, or whatever is in its place; half an entry never looks like a whole one."""
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
        return
    (folder / MANIFEST).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def _payload(folder: Path) -> str:
    with (folder / VALUE).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _source_state() -> str:
    """A digest of all code that may decide a number."""
    names = {path.stem for path in keys.PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    return keys.code_digest(f"btcnb.{name}" for name in names - {"__init__", *keys.BOUNDARY})


_AT_IMPORT = _source_state()
"""What this process runs. After an edit its results must not be kept: their key may name the new code."""


def _short(value: Any) -> str:
    """An argument in a few characters, for the listing."""
    shape = getattr(value, "shape", None)
    text = repr(value) if shape is None else f"{type(value).__name__}{tuple(shape)}"
    return text if len(text) <= 60 else text[:57] + "…"


def _warn(sentence: str) -> None:
    warnings.warn(f"{sentence}.", StoreWarning, stacklevel=2)


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# ---- listing and removing


@dataclasses.dataclass(frozen=True)
class Entry:
    """One kept result.

    state: `current` while code, versions and files are those it was made with; `stale` when they are not (it can only
        be used again if they return); `damaged` when it cannot be read
    """

    folder: Path
    function: str
    arguments: str
    size: int  # bytes
    seconds: float  # that it took to compute
    created: str  # UTC, ISO 8601; empty where it is not known
    state: str


def entries() -> Iterator[Entry]:
    """Every entry, by function. Of the kept values only the size is checked: hashing gigabytes would take minutes."""
    for place in sorted(path for path in store_folder().glob("*/*/") if not path.name.startswith(".")):
        manifest = _read_manifest(place) or {}
        yield Entry(
            folder=place,
            function=manifest.get("function", place.parent.name),
            arguments=", ".join(f"{name}={value}" for name, value in manifest.get("shown", {}).items()),
            size=sum(item.stat().st_size for item in place.iterdir() if item.is_file()),
            seconds=manifest.get("seconds", 0.0),
            created=manifest.get("created", ""),
            state=_state(place, manifest),
        )


def prune(older_than_days: float | None = None, everything: bool = False) -> list[Entry]:
    """Remove entries that are stale or damaged; or older than so many days; or all. Return what was removed.

    Locks tell entries that a process is computing right now from what interrupted processes left behind.
    """
    from btcnb.compiled import compiled_folder

    limit = datetime.now(UTC) - timedelta(days=older_than_days or 0)
    gone = []
    for entry in list(entries()):
        old = older_than_days is not None and (not entry.created or datetime.fromisoformat(entry.created) < limit)
        if (everything or old or entry.state != CURRENT) and _remove_unlocked(entry.folder, entry.folder.name):
            entry.folder.with_suffix(".lock").unlink(missing_ok=True)
            gone.append(entry)
    for partial in store_folder().glob("*/.*.part"):
        _remove_unlocked(partial, partial.name.split(".")[1])
    kernels = compiled_folder()
    for other in kernels.parent.glob("*") if kernels else []:
        if other != kernels:
            shutil.rmtree(other, ignore_errors=True)
    return gone


def _state(place: Path, manifest: dict[str, Any]) -> str:
    if manifest and manifest.get("format") != FORMAT:
        return STALE
    value = place / VALUE
    if not manifest or not value.is_file() or value.stat().st_size != manifest["size"]:
        return DAMAGED
    today = code_today(frozenset(manifest["modules"])) == (manifest["code"], manifest["libraries"])
    return CURRENT if today and reads.unchanged(manifest["files"]) else STALE


def _remove_unlocked(folder: Path, entry: str) -> bool:
    try:
        with FileLock(folder.with_name(f"{entry}.lock"), timeout=0):
            _remove(folder)
    except Timeout:
        return False
    return True
