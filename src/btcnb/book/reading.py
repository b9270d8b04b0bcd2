"""What chapters read besides recipes: records of long runs, what other chapters recorded, and real files at hand.

Reading is declaring: what is read here is noted, and a chapter is executed again when it has changed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from btcnb.errors import DataError
from btcnb.store import note_read
from btcnb.store.reads import ROOT

RESULTS = ROOT / "results"
NOTEBOOKS = ROOT / "notebooks"
REAL_DATA = "BTCNB_REAL_DATA"
UNSET = "_build/no-real-data"
"""Stands for the folder of real files while the variable is not set; nothing is ever there."""
BUILD_RECORDS = "BTCNB_RECORDS"
"""Environment variable in which `btcnb build` names the folder of its records."""


def results(name: str) -> Any:
    """What `results/<name>` holds: a JSON value, or a table (CSV, or JSON lines); None where there is no such record.

    name: path below `results/` without its ending, such as `benchmarks/linkage`
    """
    paths = [(RESULTS / name).with_suffix(suffix) for suffix in _READERS]
    path = next((path for path in paths if path.exists()), None)
    for noted in paths if path is None else [path]:
        note_read(noted)
    if path is None:
        return None
    try:
        return _READERS[path.suffix](path)
    except ValueError as error:
        raise DataError(path, "record", f"cannot be read ({error})", "make it again, see CONTRIBUTING") from None


def sweep(grid: str) -> pd.DataFrame | None:
    """The records of a grid, `results/sweeps/GRID.jsonl`; None where it has not been run."""
    found = results(f"sweeps/{grid}")
    if found is not None and not isinstance(found, pd.DataFrame):
        raise DataError(f"results/sweeps/{grid}", "record", "is no table", "write one JSON record a line (.jsonl)")
    return found


def real_data(name: str = "") -> Path | None:
    """A folder of real files below `BTCNB_REAL_DATA`; None where it is absent or the variable is not set."""
    chosen = os.environ.get(REAL_DATA)
    place = note_read((Path(chosen) if chosen else ROOT / UNSET) / name)
    return place if chosen and place.exists() else None


def recorded_verdicts(folder: Path | None = None) -> dict[str, list[dict[str, Any]]]:
    """The verdicts of every chapter that has been executed, by the chapter's number; without a build, none at all.

    folder: the records of a build; left out, those of the build that executes the calling chapter
    The build itself watches these files: a chapter with `reads_records` runs again when one of them changes.
    """
    named = os.environ.get(BUILD_RECORDS) if folder is None else folder
    paths = sorted(Path(named).glob("[0-9][0-9]_*.json")) if named else []
    return {path.name[:2]: _verdicts(path) for path in paths}


def _verdicts(path: Path) -> list[dict[str, Any]]:
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        found = [dict(entry) for entry in entries if entry["kind"] == "verdict"]
        if not all(isinstance(entry[name], str) for entry in found for name in ("claim", "verdict", "evidence")):
            raise ValueError("a verdict lacks its claim or its evidence")
    except (OSError, KeyError, TypeError, ValueError) as error:
        why = f"cannot be read ({error!s:.200})"
        raise DataError(path, "records", why, "delete it and build the chapter again") from None
    return found


def chapter_pages() -> dict[str, str]:
    """The page of each chapter, as seen from another chapter's page, by number: `{"11": "11_ablation.html"}`."""
    return {path.name[:2]: f"{path.stem}.html" for path in sorted(NOTEBOOKS.glob("[0-9][0-9]_*.md"))}


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
