"""The named sizes, read from `sizes.yml` beside this file: one table for simulator, training, chapters and build."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from btcnb.errors import ParameterError
from btcnb.store.reads import note_read

TABLE = Path(__file__).with_name("sizes.yml")


@dataclass(frozen=True)
class Size:
    """One column of the table; what each part means is said at its top."""

    name: str
    simulation: Mapping[str, Any]
    sample: int
    training: Mapping[str, Any]
    chapters: Mapping[str, Any]


def size(name: str) -> Size:
    """The size of that name."""
    note_read(TABLE)
    table = _table()
    if name not in table:
        raise ParameterError(f"size is {name!r}, but must be one of {', '.join(map(repr, table))}.")
    return table[name]


def names() -> tuple[str, ...]:
    return tuple(_table())


@functools.cache
def _table() -> dict[str, Size]:
    read = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    return {name: Size(name, **{**entry, "simulation": _tuples(entry["simulation"])}) for name, entry in read.items()}


def _tuples(fields: Mapping[str, Any]) -> dict[str, Any]:
    """YAML has lists where the dataclasses want pairs."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
