"""Values to files and back without executing anything: JSON for the structure, `.npy` and Arrow for what is large.

The same walk gives a value's fingerprint, by which arguments are compared. Classes take part when they are registered
with `@storable`: dataclasses and named tuples by their fields, others through `to_store` and `from_store`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import feather

T = TypeVar("T", bound=type)

_CLASSES: dict[str, type] = {}
_TAGS: dict[type, str] = {}
_MARK = "~"  # the key that marks a JSON object as ours


class StorableError(TypeError):
    """A value of a kind that the store does not know."""


def storable(tag: str) -> Callable[[T], T]:
    """Class decorator: the store may keep instances, under a name that does not change when the class moves."""

    def register(cls: T) -> T:
        if not (dataclasses.is_dataclass(cls) or hasattr(cls, "_fields") or hasattr(cls, "from_store")):
            raise StorableError(
                f"{cls.__name__} has no fields: make it a dataclass, or give it to_store and from_store."
            )
        _CLASSES[tag] = cls
        _TAGS[cls] = tag
        return cls

    return register


class Sink(Protocol):
    """Where the large pieces of a value go."""

    def array(self, value: np.ndarray) -> str: ...
    def frame(self, value: pd.DataFrame) -> str: ...


class FileSink:
    """Writes each piece to a file of its own; `names` lists them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: list[str] = []

    def array(self, value: np.ndarray) -> str:
        name = self._name("npy")
        np.save(self.folder / name, value, allow_pickle=False)
        return name

    def frame(self, value: pd.DataFrame) -> str:
        name = self._name("arrow")
        try:
            table = pa.Table.from_pandas(value)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            raise StorableError(f"a table that Arrow cannot hold ({error}).") from None
        feather.write_feather(table, str(self.folder / name), compression="lz4")
        return name

    def _name(self, suffix: str) -> str:
        self.names.append(f"{len(self.names)}.{suffix}")
        return self.names[-1]


class DigestSink:
    """Turns each piece into a digest of its content."""

    def array(self, value: np.ndarray) -> str:
        digest = hashlib.sha256(f"{value.dtype.str}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).data if value.size else b"")
        return digest.hexdigest()

    def frame(self, value: pd.DataFrame) -> str:
        hashed = pd.util.hash_pandas_object(value, index=True).to_numpy()
        return self.array(np.ascontiguousarray(hashed))


def fingerprint(value: Any, what: str = "the value") -> str:
    """A digest of a value: equal for equal values, also across processes."""
    try:
        tree = to_tree(value, DigestSink())
    except StorableError as error:
        raise StorableError(f"{what} cannot be compared by value: {error}") from None
    return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()


def to_tree(value: Any, sink: Sink) -> Any:
    """The structure of `value` as JSON; its arrays and tables go to the sink."""
    if value is None or isinstance(value, bool | str) or type(value) is int:
        return value
    if type(value) is float:
        return value if math.isfinite(value) else _marked("float", repr(value))
    if type(value) in _TAGS:
        return _marked("object", to_tree(_parts(value), sink), tag=_TAGS[type(value)])
    if isinstance(value, list):
        return [to_tree(item, sink) for item in value]
    if type(value) is tuple:
        return _marked("tuple", [to_tree(item, sink) for item in value])
    if isinstance(value, dict):
        return _marked("dict", [[to_tree(key, sink), to_tree(item, sink)] for key, item in value.items()])
    if isinstance(value, set | frozenset):
        return _marked(type(value).__name__, [to_tree(item, sink) for item in sorted(value)])
    if isinstance(value, Path):
        return _marked("path", str(value))
    return _large_to_tree(value, sink)


def _large_to_tree(value: Any, sink: Sink) -> Any:
    if isinstance(value, np.generic):
        return _marked("scalar", sink.array(np.asarray(value)))
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "biufcmMSU":
            return _marked("array", sink.array(value))
        if value.dtype.kind == "O" and all(isinstance(item, str) for item in value.flat):
            return _marked("strings", sink.frame(pd.DataFrame({"text": value.ravel()})), shape=list(value.shape))
    if isinstance(value, pd.DataFrame):
        plain = [i for i, kind in enumerate(value.dtypes) if kind is np.dtype(object)]
        return _marked("frame", sink.frame(value), objects=plain, columns=_schema(value))
    if isinstance(value, pd.Series):
        return _marked("series", to_tree(value.to_frame("value"), sink), name=to_tree(value.name, sink))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kind = type(value).__qualname__
        raise StorableError(f"{kind} is not registered: put @storable above its class.")
    raise StorableError(
        f"{type(value).__module__}.{type(value).__qualname__} is of a kind that the store does not know."
    )


def from_tree(tree: Any, folder: Path) -> Any:
    """The inverse of `to_tree` with a `FileSink` on `folder`."""
    if isinstance(tree, list):
        return [from_tree(item, folder) for item in tree]
    if not isinstance(tree, dict):
        return tree
    return _READ[tree[_MARK]](tree, folder)


def _object(tree: dict[str, Any], folder: Path) -> Any:
    cls: Any = _CLASSES[tree["tag"]]
    parts = from_tree(tree["value"], folder)
    return cls.from_store(parts) if hasattr(cls, "from_store") else cls(**parts)


def _frame(tree: dict[str, Any], folder: Path) -> pd.DataFrame:
    table: pd.DataFrame = feather.read_feather(str(folder / tree["value"]))
    for position in tree["objects"]:
        name = table.columns[position]
        column = table[name].astype(object)
        table[name] = column.where(column.notna(), None)
    return table


def _series(tree: dict[str, Any], folder: Path) -> pd.Series:
    return from_tree(tree["value"], folder)["value"].rename(from_tree(tree["name"], folder))


def _strings(tree: dict[str, Any], folder: Path) -> np.ndarray:
    text = feather.read_feather(str(folder / tree["value"]))["text"]
    return text.to_numpy(dtype=object).reshape(tree["shape"])


def _array(tree: dict[str, Any], folder: Path) -> np.ndarray:
    return np.load(folder / tree["value"], allow_pickle=False)


_READ: dict[str, Callable[[dict[str, Any], Path], Any]] = {
    "float": lambda tree, folder: float(tree["value"]),
    "object": _object,
    "tuple": lambda tree, folder: tuple(from_tree(item, folder) for item in tree["value"]),
    "dict": lambda tree, folder: {from_tree(k, folder): from_tree(v, folder) for k, v in tree["value"]},
    "set": lambda tree, folder: {from_tree(item, folder) for item in tree["value"]},
    "frozenset": lambda tree, folder: frozenset(from_tree(item, folder) for item in tree["value"]),
    "path": lambda tree, folder: Path(tree["value"]),
    "scalar": lambda tree, folder: _array(tree, folder)[()],
    "array": _array,
    "strings": _strings,
    "frame": _frame,
    "series": _series,
}


def _marked(kind: str, value: Any, **more: Any) -> dict[str, Any]:
    return {_MARK: kind, "value": value, **more}


def _parts(value: Any) -> dict[str, Any]:
    if hasattr(value, "to_store"):
        return dict(value.to_store())
    if dataclasses.is_dataclass(value):
        return {item.name: getattr(value, item.name) for item in dataclasses.fields(value)}
    return dict(value._asdict())


def _schema(table: pd.DataFrame) -> list[str]:
    return [f"{name}: {kind}" for name, kind in table.dtypes.items()]
