"""Means over a few seeds, with their intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

CONFIDENCE = 0.95
Values = Sequence[float] | npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95 % interval, by Student's t."""

    mean: float
    low: float
    high: float
    count: int

    def clear(self, sign: int) -> bool:
        """Whether the whole interval lies on that side of 0."""
        return self.low > 0 if sign > 0 else self.high < 0

    def right(self, sign: int) -> bool:
        """Whether the mean lies on that side of 0."""
        return sign * self.mean > 0

    def inside(self, bound: float) -> bool:
        """Whether the whole interval lies within the bound of 0."""
        return -bound <= self.low and self.high <= bound


def estimate(values: Values) -> Estimate:
    """The mean of at least two values; of equal ones, an interval without width."""
    given = np.asarray(values, dtype=np.float64)
    mean = float(given.mean())
    error = float(given.std(ddof=1)) / math.sqrt(len(given))
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(given) - 1)) * error
    return Estimate(mean, mean - half, mean + half, len(given))


def slopes(x: Values, values: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.float64]:
    """The least-squares slope over x of each row of `values` (one seed a row, one x a column)."""
    centred = np.asarray(x, dtype=np.float64) - np.mean(x)
    return np.asarray(values @ centred / (centred @ centred), dtype=np.float64)


def unequal_variances(first: Values, other: Values) -> float:
    """p-value (two-sided) that two paired samples vary equally: Pitman and Morgan's test, from the correlation of sums
    and differences; 1 where it says nothing, because both are constant or move by the same steps."""
    x, y = np.asarray(first, dtype=np.float64), np.asarray(other, dtype=np.float64)
    total, difference = x + y, x - y
    if len(x) < 3 or np.ptp(total) == 0 or np.ptp(difference) == 0:
        return 1.0
    return float(stats.pearsonr(total, difference).pvalue)
