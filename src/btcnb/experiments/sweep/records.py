"""Records of runs, one JSON line each: which run a record is of, its state, and what is left to do.

The file of a grid lies among the committed results. It is written whole, to another name, and renamed, under a lock: it
is never half written. The locks lie in the hidden folder `.locks` beside it.

Two runs are the same by what they compute, not by what their rows are called or when they were recorded. Fields at
their default do not count, so a record stays the record of its run when a recipe gets a new field. The defaults that
count are those of `defaults.json`, which holds every field that a recipe has or had: a run keeps its id when a class
drops a field or changes a default.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from btcnb.errors import DataError

if TYPE_CHECKING:
    from btcnb.experiments.recipe import Job
    from btcnb.experiments.sweep.grid import Grid

FORMAT = 1
"""Raise it when fields change their meaning: older records are then read, and marked."""
DONE, FAILED, OTHER_VERSION, OTHER_DATA = "done", "failed", "other version", "other data"
FIELDS: dict[str, type] = {
    "format": int,
    "grid": str,
    "row": str,
    "seed": int,
    "run": str,
    "measure": str,
    "method": str,
    "state": str,
    "error": str,
    "made": str,
    "versions": str,
    "data": str,
    "seconds": float,
}
"""What every record has; then come the commit, the recipe's fields, and what was measured. Older records have a digest
of code in the field `code` and no commit; no reader uses it."""
AGAIN = {"failed": {FAILED}, "other-data": {FAILED, OTHER_DATA}, "all": {FAILED, OTHER_DATA, DONE}}
"""What runs again besides what never ran."""
SEEDS = ("source.seed", "train.seed")
MEASURED_AS: dict[str, tuple[str, dict[str, Any]]] = {
    "thorough": ("scores", {"thorough": True}),
    "whole_tree_real": ("whole_tree", {"graph": "real"}),
    "flipped_8": ("flipped", {"share": 0.08}),
    "flipped_20": ("flipped", {"share": 0.2}),
    "transfer_simulated": ("transfer", {"teacher": "simulated"}),
    "transfer_real": ("transfer", {"teacher": "real"}),
    "transfer_both": ("transfer", {"teacher": "both"}),
    "transfer_side_by_side": ("transfer", {"teacher": "side by side"}),
    "entity_table": ("entity", {"table": True}),
    "mixing_repelled": ("mixing", {"repulsion": True}),
    "mixing_without_joinmarket": ("mixing", {"repulsion": True, "without": "joinmarket"}),
    "mixing_without_whirlpool": ("mixing", {"repulsion": True, "without": "whirlpool"}),
}
"""How records name a measure with arguments, where they had a name for it before measures took arguments."""
Record = dict[str, Any]
_PARTS = ("source.", "train.", "cluster.")


# ---- which run a record is of


def run_id(job: Job) -> str:
    """A short name of what a job computes: equal for equal measure, method and recipe, whatever its row is called."""
    return _id(measured_as(job), job.method, job.recipe.flat())


def measured_as(job: Job) -> str:
    """The measure of a job with its arguments, as its record names it."""
    arguments = dict(job.arguments)
    for name, earlier in MEASURED_AS.items():
        if earlier == (job.measure, arguments):
            return name
    told = ", ".join(f"{name}={value!r}" for name, value in sorted(arguments.items()))
    return f"{job.measure}({told})" if told else job.measure


def run_of(record: Mapping[str, Any]) -> str:
    """The id of a record's run, from its fields as today's recipes have them."""
    flat = {name: value for name, value in record.items() if name.startswith(_PARTS) or name in defaults()}
    return _id(record["measure"], record["method"], flat)


@functools.cache
def defaults() -> dict[str, Any]:
    """The settings at which fields of a recipe do not count, by the names that records have for them."""
    found: dict[str, Any] = json.loads((Path(__file__).parent / "defaults.json").read_text(encoding="utf-8"))
    return found


def _id(measure: str, method: str, flat: Mapping[str, Any]) -> str:
    plain = {name: _number(value) for name, value in flat.items()}
    changed = {name: value for name, value in plain.items() if value != _number(defaults().get(name, ...))}
    for seed in SEEDS:
        if seed in plain:  # seeds have no default worth the name
            changed[seed] = plain[seed]
    return hashlib.sha256(json.dumps([measure, method, changed], sort_keys=True).encode()).hexdigest()[:16]


def _number(value: Any) -> Any:
    """1 and 1.0 are the same setting; True is not a number."""
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


# ---- the file


class Records:
    """The records of one grid."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def read(self) -> list[Record]:
        """All records, in the order in which they were made."""
        try:
            lines = self.path.read_bytes().splitlines()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise DataError(self.path, "records", f"cannot be read ({error.strerror})", "mend that") from None
        return [_marked(self._parsed(line, number)) for number, line in enumerate(lines, 1) if line.strip()]

    def append(self, *records: Mapping[str, Any]) -> None:
        """Write some records; whatever goes wrong, the file is as it was before."""
        if not records:
            return
        lines = [json.dumps(_plain(record), ensure_ascii=False, allow_nan=False).encode() + b"\n" for record in records]
        try:
            with self.lock():
                before = self.path.read_bytes() if self.path.exists() else b""
                _replace(self.path, before + b"".join(lines))
        except OSError as error:
            raise DataError(
                self.path,
                "records",
                f"cannot be written ({error.strerror or error})",
                "mend that and run the same command again: the runs recorded so far are kept",
            ) from None

    def lock(self, run: str = "") -> FileLock:
        """The lock of the file, or of one run: whoever holds it has the right to compute that run.

        It ends with the process that holds it.
        """
        folder = self.path.parent / ".locks"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".gitignore").write_text("*\n", encoding="utf-8")
        return FileLock(folder / f"{self.path.stem}{'-' if run else ''}{run}.lock")

    def _parsed(self, line: bytes, number: int) -> Record:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            raise DataError(self.path, f"line {number}", "is no record", "remove the line, or take the file from git")
        return record


def _replace(path: Path, content: bytes) -> None:
    """Write a file whole, to the disk, under another name; then rename it."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            Path(file.name).chmod(0o644)
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink()
            raise


def _marked(record: Record) -> Record:
    """Records that this version did not write are kept apart by their state."""
    right = record.get("format") == FORMAT and all(_is(record.get(name), kind) for name, kind in FIELDS.items())
    return record if right and record["state"] in (DONE, FAILED) else {**record, "state": OTHER_VERSION}


def _is(value: Any, kind: type) -> bool:
    wanted = (int, float) if kind is float else kind
    return isinstance(value, wanted) and not isinstance(value, bool)


def _plain(record: Mapping[str, Any]) -> Record:
    """JSON knows no NaN and no infinity: both become null."""
    strange = (name for name, value in record.items() if isinstance(value, float) and not math.isfinite(value))
    return {**record, **dict.fromkeys(strange)}


# ---- what is left to do


@dataclass(frozen=True)
class Plan:
    """What a sweep of one grid has to do, and what it found."""

    grid: Grid
    records: Records
    todo: tuple[Job, ...]
    renamed: tuple[Record, ...]  # records of runs whose row has another name now: to be appended under the new one
    known: int  # number of records in the file: later ones are another sweep's
    sentences: tuple[str, ...]  # what a reader should know about earlier records

    @property
    def done(self) -> int:
        return len(self.grid.jobs) - len(self.todo)

    def since(self, job: Job) -> Record | None:
        """The newest record of a run that was made after the plan, by another sweep."""
        later = [record for record in self.records.read()[self.known :] if record["state"] != OTHER_VERSION]
        return next((record for record in reversed(later) if run_of(record) == run_id(job)), None)


def plan(grid: Grid, records: Records, again: str = "failed") -> Plan:
    """Compare a grid with its records."""
    found = records.read()
    newest = newest_of_runs(found)
    states = dict(zip(newest, states_of(list(newest.values()), found), strict=True))
    wanted = {run_id(job): job for job in grid.jobs}
    todo = {run for run in wanted if run not in states or states[run] in AGAIN[again]}
    renamed = [
        {**newest[run], "row": job.row}
        for run, job in wanted.items()
        if run not in todo and newest[run]["row"] != job.row
    ]
    return Plan(
        grid=grid,
        records=records,
        todo=tuple(job for run, job in wanted.items() if run in todo),
        renamed=tuple(renamed),
        known=len(found),
        sentences=tuple(_told(grid, states, found, set(wanted), AGAIN[again])),
    )


def newest_of_runs(records: Sequence[Record]) -> dict[str, Record]:
    """The newest record of each run, done or failed, by the run's id."""
    return {run_of(record): record for record in records if record["state"] != OTHER_VERSION}


def states_of(records: Sequence[Record], among: Sequence[Record]) -> list[str]:
    """The state of every record: `done` only where it was made on the data that its source gave last.

    `among` are all records of the file; those of another version say nothing about data.
    """
    data = {_source(record): record["data"] for record in among if record["state"] == DONE and record["data"]}
    changed = [data.get(_source(record), record["data"]) != record["data"] for record in records]
    return [
        OTHER_DATA if record["state"] == DONE and other else str(record["state"])
        for record, other in zip(records, changed, strict=True)
    ]


def _source(record: Record) -> tuple[str, ...]:
    """What decides the data: a measure looks at one graph of a source."""
    return record["measure"], *sorted(f"{name}={value}" for name, value in record.items() if name.startswith("source."))


def _told(
    grid: Grid, states: Mapping[str, str], found: Sequence[Record], wanted: set[str], again: set[str]
) -> Iterator[str]:
    if number := sum(states.get(run) == OTHER_DATA for run in wanted):
        kept = "they run again" if OTHER_DATA in again else "they count as done (`--again other-data` runs them again)"
        yield f"{grid.name}: made on other data: {number} of {len(wanted)} runs; {kept}."
    if number := sum(record["state"] == OTHER_VERSION for record in found):
        yield f"{grid.name}: records of another version of the format, which are left out: {number}."
    if number := len(set(states) - wanted):
        yield f"{grid.name}: recorded runs that are none of those asked for, which stay in the file: {number}."
