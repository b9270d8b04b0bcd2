"""What the records of several grids say, chosen and laid out for a reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from btcnb.errors import ParameterError
from btcnb.experiments.sweep.comparing import counts, failures, metrics_of, records_frame, summary
from btcnb.experiments.sweep.records import Records
from btcnb.experiments.sweep.tables import table

METRICS = ("DP", "NMI", "ARI")
"""The paper's three scores, shown where nothing else is asked for."""


class Wanted(NamedTuple):
    """What a reader wants to see, in this order; empty: everything, or the paper's metrics.

    order: names of rows, as a grid has them; rows that are not among them come last
    """

    rows: Sequence[str] = ()
    metrics: Sequence[str] = ()
    against: str = ""
    form: str = "text"
    order: Sequence[str] = ()


def report(paths: Sequence[Path], wanted: Wanted) -> str:
    """A table for each file of records; of several files, those that hold any of the rows wanted."""
    frames = {path.stem: frame for path in paths if len(frame := records_frame(path))}
    _check(frames, wanted)
    parts = {name: _summary(frame, wanted) for name, frame in frames.items()}
    parts = {name: part for name, part in parts.items() if len(part)}
    if wanted.form == "csv":
        whole = [part.assign(grid=name)[["grid", *part.columns]] for name, part in parts.items()]
        return table(pd.concat(whole), "csv") if whole else ""
    titles = [f"{name}\n" if len(parts) > 1 and wanted.form != "latex" else "" for name in parts]
    space = "\n" if wanted.form == "markdown" else ""
    tables = [table(part, wanted.form, wanted.against) for part in parts.values()]
    return "\n".join(f"{title}{space if title else ''}{part}" for title, part in zip(titles, tables, strict=True))


def state_of_affairs(path: Path) -> list[str]:
    """How many runs are done, failed, or made on other data, in one sentence; then a sentence for each failure."""
    records = Records(path).read()
    told = [f"{number} {state}" for state, number in counts(records).items() if number]
    failed = [f"  failed: {each['row']} · seed {each['seed']}: {each['error']}" for each in failures(records)]
    return [f"{path.stem}: {', '.join(told) or 'no records'}.", *failed]


def _check(frames: Mapping[str, pd.DataFrame], wanted: Wanted) -> None:
    """What is asked for must stand in one of the grids at least."""
    rows = dict.fromkeys(row for frame in frames.values() for row in frame["row"])
    metrics = dict.fromkeys(name for frame in frames.values() for name in metrics_of(frame))
    asked = [("row", row, rows) for row in (*wanted.rows, wanted.against) if row]
    asked += [("metric", metric, metrics) for metric in wanted.metrics]
    for what, name, known in asked:
        if name not in known:
            there = f"there are {', '.join(known)}" if known else "there are no records of runs that are done"
            raise ParameterError(f"there is no {what} {name!r:.80}; {there}.")


def _summary(frame: pd.DataFrame, wanted: Wanted) -> pd.DataFrame:
    measured = metrics_of(frame)
    metrics = [name for name in wanted.metrics or METRICS if name in measured]
    if not metrics and not wanted.metrics:
        metrics = [name for name in measured if "." not in name]
    against = wanted.against if wanted.against in set(frame["row"]) else None
    whole = summary(frame, metrics, against)
    place = {row: number for number, row in enumerate(wanted.order)}
    rows = sorted(dict.fromkeys(frame["row"]), key=lambda row: place.get(row, len(place)))
    if wanted.rows:
        rows = list(dict.fromkeys([*wanted.rows, *([against] if against else [])]))
    return pd.concat([whole[whole["row"] == row] for row in rows])
