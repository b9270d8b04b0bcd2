"""What a sweep has to do: a grid compared with its records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from btcnb import gates
from btcnb.experiments.jobs import Job
from btcnb.experiments.sweep.grids import Grid
from btcnb.experiments.sweep.identity import run_id, run_of
from btcnb.experiments.sweep.records import DONE, FAILED, OTHER_VERSION, Record, Records
from btcnb.experiments.sweep.work import MadeBy

OTHER_CODE, OTHER_DATA = "other code", "other data"
AGAIN = {
    "failed": {FAILED},
    "stale": {FAILED, OTHER_CODE, OTHER_DATA},
    "all": {FAILED, OTHER_CODE, OTHER_DATA, DONE},
}
"""What runs again beside what never ran."""


@dataclass(frozen=True)
class Plan:
    """What a sweep of one grid has to do, and what it found."""

    grid: Grid
    records: Records
    made: MadeBy  # by which code and versions a run would be made here and now
    todo: tuple[Job, ...]
    renamed: tuple[Record, ...]  # records of runs whose row has got another name: to be appended under the new one
    known: int  # records that there are: later ones are another sweep's
    sentences: tuple[str, ...]  # what a reader should know of earlier records

    @property
    def done(self) -> int:
        return len(self.grid.jobs) - len(self.todo)


def plan(grid: Grid, records: Records, made: MadeBy, again: str = "failed") -> Plan:
    """Compare a grid with its records; a torn last line is mended first."""
    gates.choice("again", again, AGAIN)
    mended = records.mend()
    found = records.read()
    newest = {run_of(record): record for record in found if record["state"] != OTHER_VERSION}
    states = dict(zip(newest, states_of(list(newest.values()), made, found), strict=True))
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
        made=made,
        todo=tuple(job for run, job in wanted.items() if run in todo),
        renamed=tuple(renamed),
        known=len(found),
        sentences=tuple(sentence for sentence in told if sentence),
    )


def states_of(records: Sequence[Record], made: MadeBy, among: Sequence[Record]) -> list[str]:
    """The state of every record: `done` only where today's code made it, on the data that its source gave last.

    `among` are all records of the file; those of another version say nothing about data.
    """
    data = {_source(record): record["data"] for record in among if record["state"] == DONE and record["data"]}
    return [_state(record, made, data) for record in records]


def _state(record: Record, made: MadeBy, data: Mapping[tuple[str, ...], str]) -> str:
    if record["state"] != DONE:
        return str(record["state"])
    if data.get(_source(record), record["data"]) != record["data"]:
        return OTHER_DATA
    return DONE if record["code"] == made(record["measure"]).code else OTHER_CODE


def _source(record: Record) -> tuple[str, ...]:
    """What decides the data: a measure looks at one graph of a source."""
    named = sorted(f"{name}={value}" for name, value in record.items() if name.startswith("source."))
    return record["measure"], *named


def _told(
    grid: Grid, states: Mapping[str, str], found: Sequence[Record], wanted: set[str], again: set[str]
) -> Iterator[str]:
    for state, how in ((OTHER_CODE, "by other code"), (OTHER_DATA, "on other data")):
        kept = "they run again" if state in again else "they count as done (`--again stale` runs them again)"
        if number := sum(states.get(run) == state for run in wanted):
            yield f"{grid.name}: made {how}: {number} of {len(wanted)} runs; {kept}."
    if number := sum(record["state"] == OTHER_VERSION for record in found):
        yield f"{grid.name}: records of another version of the format, which are left out: {number}."
    if number := len(set(states) - wanted):
        yield f"{grid.name}: recorded runs that are none of those asked for, which stay in the file: {number}."
