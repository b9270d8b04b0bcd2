"""What sweeps found: records as a table, rows compared seed by seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from btcnb import gates
from btcnb.errors import DataError, ParameterError
from btcnb.experiments.sweep.identity import run_of, settings_of
from btcnb.experiments.sweep.planning import OTHER_DATA, states_of
from btcnb.experiments.sweep.records import DONE, FAILED, OTHER_VERSION, Record, Records

CONFIDENCE = 0.95


class Paired(NamedTuple):
    """The mean difference of two rows over the seeds that both have, with its 95 % t-interval (NaN below two seeds)."""

    mean: float
    low: float
    high: float
    n: int


def records_frame(path: str | Path) -> pd.DataFrame:
    """The newest done record of each run of a file; by row, in the order in which rows were recorded, and seed.

    A row whose settings were changed shows its newest settings only.
    """
    every = Records(path).read()
    usable = [record for record in every if record["state"] != OTHER_VERSION]
    newest = {run_of(record): record for record in usable if record["state"] == DONE}
    last = {record["row"]: settings_of(record) for record in usable}
    kept = [record for record in newest.values() if settings_of(record) == last[record["row"]]]
    rank = {row: place for place, row in enumerate(dict.fromkeys(record["row"] for record in kept))}
    kept.sort(key=lambda record: (rank[record["row"]], record["seed"]))
    columns = list(dict.fromkeys(name for record in kept for name in record)) or ["grid", "row", "seed"]
    return pd.DataFrame.from_records(kept, columns=columns)


def counts(records: Sequence[Record]) -> dict[str, int]:
    """How many runs of a file's records are done, failed, or made on other data; and records of other versions."""
    states = Counter(states_of(_newest(records), records))
    other = sum(record["state"] == OTHER_VERSION for record in records)
    return {state: states[state] for state in (DONE, FAILED, OTHER_DATA)} | {OTHER_VERSION: other}


def failures(records: Sequence[Record]) -> list[Record]:
    """The records of runs whose newest record is a failure."""
    return [record for record in _newest(records) if record["state"] == FAILED]


def _newest(records: Sequence[Record]) -> list[Record]:
    """The newest record of each run, done or failed."""
    return list({run_of(record): record for record in records if record["state"] != OTHER_VERSION}.values())


def paired(frame: pd.DataFrame, row: str, other: str, metric: str) -> Paired:
    """`metric` of `row` minus that of `other`, seed by seed; seeds where either has no number do not count."""
    ours, theirs = (_by_seed(frame, name, metric) for name in (row, other))
    found = (ours - theirs).dropna().to_numpy(dtype=float)
    n = len(found)
    mean = float(found.mean()) if n else np.nan
    if n < 2:
        return Paired(mean, np.nan, np.nan, n)
    from scipy import stats  # takes as long to import as everything else here

    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1) * found.std(ddof=1) / np.sqrt(n))
    return Paired(mean, mean - half, mean + half, n)


def summary(frame: pd.DataFrame, metrics: Sequence[str], against: str | None = None) -> pd.DataFrame:
    """A line for each row and metric: mean, standard deviation over seeds (NaN for one) and n.

    against: a row; then also difference, low and high: the paired difference from that row, with its interval
    """
    lines: list[dict[str, Any]] = []
    for row in dict.fromkeys(frame["row"]):
        for metric in gates.items("metrics", metrics):
            values = _by_seed(frame, row, metric).dropna()
            line = {"row": row, "metric": metric, "mean": values.mean(), "sd": values.std(ddof=1), "n": len(values)}
            if against is not None:
                found = paired(frame, row, against, metric)
                line |= {"difference": found.mean, "low": found.low, "high": found.high, "pairs": found.n}
            lines.append(line)
    differences = ["difference", "low", "high", "pairs"] if against is not None else []
    return pd.DataFrame(lines, columns=["row", "metric", "mean", "sd", "n", *differences])


def metrics_of(frame: pd.DataFrame) -> list[str]:
    """The names of the columns that hold numbers that were measured."""
    told = {"format", "seed", "seconds"}
    numbers = frame.select_dtypes("number").columns
    return [name for name in numbers if name not in told and not name.startswith(("source.", "train.", "cluster."))]


def _by_seed(frame: pd.DataFrame, row: str, metric: str) -> pd.Series[float]:
    _known(frame["row"], "row", row)
    if metric not in frame.columns:
        raise ParameterError(f"no run has the metric {metric!r:.80}; there are {', '.join(metrics_of(frame))}.")
    values = frame.loc[frame["row"] == row, ["seed", metric]].set_index("seed")[metric]
    if not values.index.is_unique:
        raise DataError("records", f"row {row}", "a seed stands there twice", "compare records of one grid at a time")
    return pd.to_numeric(values, errors="coerce")


def _known(names: Iterable[str], what: str, name: str) -> None:
    if name not in set(names):
        raise ParameterError(f"there is no {what} {name!r:.80}; there are {', '.join(dict.fromkeys(names))}.")
