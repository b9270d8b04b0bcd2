"""What a sweep has to do: a grid compared with its records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from btcnb import gates
from btcnb.experiments.sweep.grids import Grid
from btcnb.experiments.sweep.identity import run_id, run_of
from btcnb.experiments.sweep.records import DONE, FAILED, OTHER_VERSION, Record, Records

if TYPE_CHECKING:
    from btcnb.experiments.recipe import Job

OTHER_DATA = "other data"
AGAIN = {"failed": {FAILED}, "other-data": {FAILED, OTHER_DATA}, "all": {FAILED, OTHER_DATA, DONE}}
"""What runs again besides what never ran."""


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


def plan(grid: Grid, records: Records, again: str = "failed") -> Plan:
    """Compare a grid with its records; a torn last line is mended first."""
    gates.choice("again", again, AGAIN)
    mended = records.mend()
    found = records.read()
    newest = {run_of(record): record for record in found if record["state"] != OTHER_VERSION}
    states = dict(zip(newest, states_of(list(newest.values()), found), strict=True))
    wanted = {run_id(job): job for job in grid.jobs}
    todo = {run for run in wanted if run not in states or states[run] in AGAIN[again]}
    renamed = [
        {**newest[run], "row": job.row}
        for run, job in wanted.items()
        if run not in todo and newest[run]["row"] != job.row
    ]
    told = (mended, *_told(grid, states, found, set(wanted), AGAIN[again]))
    return Plan(
        grid=grid,
        records=records,
        todo=tuple(job for run, job in wanted.items() if run in todo),
        renamed=tuple(renamed),
        known=len(found),
        sentences=tuple(sentence for sentence in told if sentence),
    )


def states_of(records: Sequence[Record], among: Sequence[Record]) -> list[str]:
    """The state of every record: `done` only where it was made on the data that its source gave last.

    `among` are all records of the file; those of another version say nothing about data.
    """
    data = {_source(record): record["data"] for record in among if record["state"] == DONE and record["data"]}
    return [_state(record, data) for record in records]


def _state(record: Record, data: Mapping[tuple[str, ...], str]) -> str:
    changed = data.get(_source(record), record["data"]) != record["data"]
    return OTHER_DATA if record["state"] == DONE and changed else str(record["state"])


def _source(record: Record) -> tuple[str, ...]:
    """What decides the data: a measure looks at one graph of a source."""
    named = sorted(f"{name}={value}" for name, value in record.items() if name.startswith("source."))
    return record["measure"], *named


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
