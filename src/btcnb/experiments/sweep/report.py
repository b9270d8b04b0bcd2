"""What the records of grids say, laid out for `btcnb results`: text, Markdown, LaTeX, CSV.

Nothing here computes: neither torch nor numba is imported.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from btcnb.errors import ParameterError
from btcnb.experiments.sweep.records import (
    DONE,
    FAILED,
    OTHER_DATA,
    OTHER_VERSION,
    Records,
    newest_of_runs,
    states_of,
)
from btcnb.paper.stats import Estimate, by_seed, estimate, newest

METRICS = ("DP", "NMI", "ARI")
"""The paper's three scores, shown where nothing else is asked for."""
FORMS = ("text", "markdown", "latex", "csv")


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
    frames = {path.stem: frame for path in paths if len(frame := frame_of(path))}
    _check(frames, wanted)
    parts = {name: summary(frame, wanted) for name, frame in frames.items()}
    parts = {name: part for name, part in parts.items() if len(part)}
    if wanted.form == "csv":
        whole = [part.assign(grid=name)[["grid", *part.columns]] for name, part in parts.items()]
        return pd.concat(whole).to_csv(index=False, lineterminator="\n") if whole else ""
    titled = len(parts) > 1 and wanted.form != "latex"
    space = "\n" if wanted.form == "markdown" else ""
    tables = [(f"{name}\n{space}" if titled else "") + _table(part, wanted) for name, part in parts.items()]
    return "\n".join(tables)


def frame_of(path: Path) -> pd.DataFrame:
    """The finished runs of a file, the newest of each row and seed, rows in the order in which they were recorded."""
    runs = newest(pd.DataFrame([each for each in Records(path).read() if each["state"] != OTHER_VERSION]))
    place = {row: number for number, row in enumerate(dict.fromkeys(runs["row"]))}
    return runs.sort_values("seed", kind="stable").sort_values("row", key=lambda row: row.map(place), kind="stable")


def state_of_affairs(path: Path) -> list[str]:
    """How many runs are done, failed, or made on other data, in one sentence; then a sentence for each failure."""
    records = Records(path).read()
    runs = list(newest_of_runs(records).values())
    states = Counter(states_of(runs, records))
    states[OTHER_VERSION] = len(records) - sum(each["state"] != OTHER_VERSION for each in records)
    told = [f"{states[state]} {state}" for state in (DONE, FAILED, OTHER_DATA, OTHER_VERSION) if states[state]]
    failed = [each for each in runs if each["state"] == FAILED]
    said = [f"  failed: {each['row']} · seed {each['seed']}: {each['error']}" for each in failed]
    return [f"{path.stem}: {', '.join(told) or 'no records'}.", *said]


def metrics_of(frame: pd.DataFrame) -> list[str]:
    """The names of the columns that hold numbers that were measured."""
    told = {"format", "seed", "seconds"}
    numbers = frame.select_dtypes("number").columns
    return [name for name in numbers if name not in told and not name.startswith(("source.", "train.", "cluster."))]


def summary(frame: pd.DataFrame, wanted: Wanted) -> pd.DataFrame:
    """A line for each row and metric: mean, standard deviation over seeds (NaN for one) and n.

    With a row `against`, also difference, low and high, paired by seed.
    """
    measured, there = metrics_of(frame), set(frame["row"])
    metrics = [name for name in wanted.metrics or METRICS if name in measured]
    if not metrics and not wanted.metrics:
        metrics = [name for name in measured if "." not in name]
    against = wanted.against if wanted.against in there else ""
    place = {row: number for number, row in enumerate(wanted.order)}
    rows = sorted(dict.fromkeys(frame["row"]), key=lambda row: place.get(row, len(place)))
    if wanted.rows:
        rows = [row for row in dict.fromkeys([*wanted.rows, *([against] if against else [])]) if row in there]
    lines = []
    for row in rows:
        for metric in metrics:
            values = by_seed(frame, row, metric)
            line = {"row": row, "metric": metric, "mean": values.mean(), "sd": values.std(ddof=1), "n": len(values)}
            if against:
                found = estimate((values - by_seed(frame, against, metric)).dropna().to_numpy())
                line |= {"difference": found.mean, "low": found.low, "high": found.high, "pairs": found.count}
            lines.append(line)
    return pd.DataFrame(lines)


def _check(frames: dict[str, pd.DataFrame], wanted: Wanted) -> None:
    """What is asked for must stand in one of the grids at least."""
    rows = dict.fromkeys(row for frame in frames.values() for row in frame["row"])
    metrics = dict.fromkeys(name for frame in frames.values() for name in metrics_of(frame))
    asked = [("row", row, rows) for row in (*wanted.rows, wanted.against) if row]
    asked += [("metric", metric, metrics) for metric in wanted.metrics]
    for what, name, known in asked:
        if name not in known:
            there = f"there are {', '.join(known)}" if known else "there are no records of runs that are done"
            raise ParameterError(f"there is no {what} {name!r:.80}; {there}.")


def _table(part: pd.DataFrame, wanted: Wanted) -> str:
    """A line for each row; with `against`, each metric has a second column: difference and interval."""
    cells: dict[str, dict[str, str]] = {}
    for line in part.to_dict("records"):
        row = cells.setdefault(line["row"], {"row": line["row"], "n": "0"})
        row["n"] = str(max(int(row["n"]), line["n"]))
        row[line["metric"]] = _spread(line["mean"], line["sd"])
        if "difference" in line:
            found = Estimate(line["difference"], line["low"], line["high"], line["pairs"])
            row[f"{line['metric']} − {wanted.against}"] = "" if line["row"] == wanted.against else _interval(found)
    frame = pd.DataFrame(list(cells.values()))
    if wanted.form == "latex":
        text = frame.to_latex(index=False, escape=True, column_format="l" + "r" * (len(frame.columns) - 1))
        return text.replace("±", r"$\pm$").replace("−", "$-$").replace("–", "--")
    lines = [list(frame.columns), *frame.to_numpy().tolist()]
    if wanted.form == "markdown":
        escaped = [[cell.replace("|", r"\|") for cell in line] for line in lines]
        escaped.insert(1, ["---", *("---:" for _ in lines[0][1:])])
        return "".join(f"| {' | '.join(line)} |\n" for line in escaped)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    told = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
    return "".join(f"{line.rstrip()}\n" for line in told)


def _spread(mean: float, sd: float) -> str:
    if math.isnan(mean):
        return "–"
    return _number(mean) if math.isnan(sd) else f"{_number(mean)} ± {_number(sd)}"


def _interval(found: Estimate) -> str:
    if math.isnan(found.mean):
        return "–"
    interval = "" if math.isnan(found.low) else f" [{_number(found.low, '+')}, {_number(found.high, '+')}]"
    return _number(found.mean, "+") + interval


def _number(value: float, sign: str = "") -> str:
    digits = 3 if abs(value) < 10 else 1 if abs(value) < 10_000 else 0
    return format(value, f"{sign},.{digits}f")
