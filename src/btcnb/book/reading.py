"""What chapters read besides recipes: records of long runs, and real files where they are at hand.

Reading is declaring: what is read here is noted, and a chapter is executed again when it has changed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from btcnb import gates
from btcnb.errors import DataError, ParameterError
from btcnb.store import note_read
from btcnb.store.reads import ROOT

RESULTS = ROOT / "results"
REAL_DATA = "BTCNB_REAL_DATA"
UNSET = "_build/no-real-data"
"""Stands for the folder of real files while the variable is not set; nothing is ever there."""


def results(name: str) -> Any:
    """What `results/<name>` holds: a JSON value, or a table (CSV, or JSON lines); None where there is no such record.

    name: path below `results/` without its ending, such as `benchmarks/linkage`
    """
    name = _below(name)
    paths = [(RESULTS / name).with_suffix(suffix) for suffix in _READERS]
    for path in paths:
        if path.exists():
            note_read(path)
            try:
                return _READERS[path.suffix](path)
            except ValueError as error:
                raise DataError(
                    path, "record", f"cannot be read ({error})", "make it again, see CONTRIBUTING"
                ) from None
    for path in paths:
        note_read(path)
    return None


def real_data(name: str = "") -> Path | None:
    """A folder of real files below `BTCNB_REAL_DATA`; None where it is absent or the variable is not set."""
    name, chosen = _below(name), os.environ.get(REAL_DATA)
    place = note_read((Path(chosen) if chosen else ROOT / UNSET) / name)
    return place if chosen and place.exists() else None


def _below(name: str) -> str:
    """A path that stays below the folder it starts from."""
    parts = gates.text("name", name, 1000).split("/")
    if not name.isprintable() or ".." in parts or name.startswith(("/", "~")) or max(map(len, parts)) > 200:
        raise ParameterError(f"{name!r:.80} is no name of a file or folder below this one.")
    return name


def _value(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _table(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, keep_default_na=False, na_values=["", "nan", "NaN"])


def _lines(path: Path) -> pd.DataFrame:
    """One record a line; a key that a record lacks is missing in its row."""
    entries = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
    if not all(isinstance(entry, dict) for entry in entries):
        raise ValueError("a line holds no record")
    return pd.DataFrame.from_records(entries)


_READERS: dict[str, Callable[[Path], Any]] = {".json": _value, ".csv": _table, ".jsonl": _lines}
