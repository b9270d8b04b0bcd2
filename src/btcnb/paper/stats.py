"""Runs as numbers: the newest record of each run, a metric by seed, and a mean over seeds with its interval.

These definitions serve the rules that judge claims, the chapters' tables and the command `btcnb results`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import stdtrit

CONFIDENCE = 0.95
FEWEST_SEEDS = 3
"""Fewer judge nothing."""
Values = Sequence[float] | npt.NDArray[np.floating[Any]]
_SETTINGS = ("source.", "train.", "cluster.")


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95 % interval, by Student's t; NaN where there are no values, or too few for an interval."""

    mean: float
    low: float
    high: float
    count: int


def estimate(values: Values) -> Estimate:
    """The mean of some values; of equal ones, an interval without width."""
    given = np.asarray(values, dtype=np.float64)
    count = len(given)
    mean = float(given.mean()) if count else math.nan
    if count < 2:
        return Estimate(mean, math.nan, math.nan, count)
    half = float(stdtrit(count - 1, (1 + CONFIDENCE) / 2) * given.std(ddof=1) / math.sqrt(count))
    return Estimate(mean, mean - half, mean + half, count)


def newest(frame: pd.DataFrame | None) -> pd.DataFrame:
    """The finished runs of a grid: the last record of each row and seed. Without any, an empty table.

    A row whose settings were changed has its newest settings only: runs of two settings are not averaged.
    """
    if frame is None or frame.empty:
        return pd.DataFrame({"row": [], "seed": []})
    done = frame[frame["state"] == "done"] if "state" in frame.columns else frame
    done = done.assign(row=done["row"].astype(str))
    named = [name for name in done.columns if name.startswith(_SETTINGS) and not name.endswith(".seed")]
    named += [name for name in ("measure", "method", "supervision") if name in done.columns]
    settings = done[named]
    last = settings.groupby(done["row"]).transform("last")
    same = ((settings == last) | settings.isna()).all(axis=1)
    return done[same].drop_duplicates(["row", "seed"], keep="last")


def by_seed(frame: pd.DataFrame, row: str, metric: str) -> pd.Series[float]:
    """The metric of a row for each seed that has a number; `A - B` is the difference of two metrics of a run."""
    first, _, less = metric.partition(" - ")
    found = _column(frame, row, first)
    return (found - _column(frame, row, less) if less else found).dropna()


def _column(frame: pd.DataFrame, row: str, metric: str) -> pd.Series[float]:
    if metric not in frame.columns:
        return pd.Series(dtype=float)
    runs = frame.loc[frame["row"] == row, ["seed", metric]].set_index("seed")
    values = pd.to_numeric(runs[metric], errors="coerce").astype(float)
    return values.replace([np.inf, -np.inf], np.nan)


def slopes(x: Values, values: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.float64]:
    """The least-squares slope over x of each row of `values` (one seed a row, one x a column)."""
    centred = np.asarray(x, dtype=np.float64) - np.mean(x)
    return np.asarray(values @ centred / (centred @ centred), dtype=np.float64)


def unequal_variances(first: Values, other: Values) -> float:
    """p-value (two-sided) that two paired samples vary equally: Pitman and Morgan's test, from the correlation of sums
    and differences; 1 where it says nothing, because both are constant or move by the same steps."""
    from scipy import stats  # takes longer to import than everything else here

    x, y = np.asarray(first, dtype=np.float64), np.asarray(other, dtype=np.float64)
    total, difference = x + y, x - y
    if len(x) < 3 or np.ptp(total) == 0 or np.ptp(difference) == 0:
        return 1.0
    return float(stats.pearsonr(total, difference).pvalue)
