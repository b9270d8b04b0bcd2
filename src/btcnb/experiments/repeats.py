"""The same runs once more, on another machine: how far scores move where neither recipe nor seed differs.

Another processor adds floating-point numbers in another order. A training amplifies the last digits, step by step,
until it ends at other weights: as if it had started from other ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from btcnb.errors import ParameterError
from btcnb.experiments.tables_of_sweeps import SCORES, label, newest

RUNS, MEAN, MOST = "runs", "mean", "most"


def moved(first: pd.DataFrame | None, again: pd.DataFrame | None, metrics: Sequence[str] = SCORES) -> pd.DataFrame:
    """A line for each row of the grid: its label, how many runs both records have, and for each metric the mean and the
    largest distance between the two (`DP, mean`, `DP, most`), in the order of `again`.

    Only runs with the same recipe and seed count, and the same commit where records have one.
    """
    columns = ["model", RUNS, *(f"{metric}, {what}" for metric in metrics for what in (MEAN, MOST))]
    one, two = newest(first), newest(again)
    if one.empty or two.empty:
        return pd.DataFrame(columns=columns)
    for name in ("run", *metrics):
        if name not in one.columns or name not in two.columns:
            raise ParameterError(f"the records have no field {name!r:.80}; take the records of one grid, run twice.")
    same = [name for name in ("row", "run", "commit") if name in one.columns and name in two.columns]
    both = two.merge(one, on=same, suffixes=("", " before"))
    lines = []
    for row, runs in both.groupby("row", sort=False):
        apart = [(runs[metric] - runs[f"{metric} before"]).abs() for metric in metrics]
        lines.append([label(str(row)), len(runs), *(value for each in apart for value in (each.mean(), each.max()))])
    return pd.DataFrame(lines, columns=columns)
