"""Metrics by seed, out of the records of the grids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from btcnb import gates
from btcnb.paper.kinds import Pair, Place
from btcnb.paper.statistics import Estimate, estimate

FEWEST_SEEDS = 3
Frames = Callable[[str], "pd.DataFrame | None"]


class Untestable(Exception):  # noqa: N818
    """Why the records cannot decide; an outcome, not an error."""


@dataclass(frozen=True)
class Records:
    """Metrics by seed, out of the grids' records."""

    frames: Frames

    def metric(
        self, place: Place, name: str, where: Sequence[tuple[str, object]] = (), fewest: int = FEWEST_SEEDS
    ) -> pd.Series[float]:
        """The metric of every seed of a row. `A - B` is the difference of two metrics of the same run."""
        first, _, less = name.partition(" - ")
        found = self._column(place, first, where, fewest)
        return found - self._column(place, less, where, fewest) if less else found

    def table(self, places: Sequence[Place], metric: str, where: Sequence[tuple[str, object]] = ()) -> pd.DataFrame:
        """One column a place, one line a seed that all of them have."""
        columns = [self.metric(place, metric, where) for place in places]
        return together(columns, ", ".join(dict.fromkeys(place.row for place in places)))

    def rows(self, grid: str, metric: str) -> tuple[Place, ...]:
        """All rows of the grid in which the metric has a value."""
        frame = self._frame(grid)
        has = pd.to_numeric(frame[metric], errors="coerce").notna() if metric in frame.columns else frame["seed"].isna()
        return tuple(Place(grid, str(row)) for row in dict.fromkeys(frame.loc[has, "row"]))

    def differences(self, pair: Pair) -> list[Estimate]:
        """The paired difference in each metric."""
        found = []
        for mine, theirs in zip(pair.metrics, pair.other_metrics, strict=True):
            first, other = self.metric(pair.place, mine, pair.where), self.metric(pair.other, theirs, pair.where)
            both = together([first, other], f"{pair.place.row}, {pair.other.row}")
            found.append(estimate((both[0] - both[1]).to_numpy()))
        return found

    def _frame(self, grid: str) -> pd.DataFrame:
        frame = self.frames(grid)
        if frame is None or gates.instance(f"the records of {grid}", frame, pd.DataFrame).empty:
            raise Untestable(f"there are no records of the grid “{grid}”")
        if not {"row", "seed"} <= set(frame.columns):
            raise Untestable(f"the records of the grid “{grid}” name no row or no seed")
        frame = frame.assign(row=frame["row"].astype(str))
        return frame[frame["state"] == "done"] if "state" in frame.columns else frame

    def _column(self, place: Place, name: str, where: Sequence[tuple[str, object]], fewest: int) -> pd.Series[float]:
        frame = self._frame(place.grid)
        frame = frame[frame["row"] == place.row]
        for column, wanted in where:
            frame = frame[frame[column] == wanted] if column in frame.columns else frame.iloc[:0]
        if frame.empty:
            raise Untestable(f"the grid “{place.grid}” has no finished run of “{place.row}”")
        if name not in frame.columns:
            raise Untestable(f"{name} of “{place.row}” was not recorded")
        latest = frame.drop_duplicates("seed", keep="last").set_index("seed")
        values = pd.to_numeric(latest[name], errors="coerce").astype(float)
        if not np.isfinite(values).all():
            seeds = ", ".join(map(str, values.index[~np.isfinite(values)]))
            raise Untestable(f"{name} of “{place.row}” has no value for seed {seeds}")
        _enough(len(values), f"“{place.row}”", fewest)
        return values


def together(columns: Sequence[pd.Series[float]], names: str) -> pd.DataFrame:
    """The seeds that all columns have."""
    frame = pd.concat(list(columns), axis=1, join="inner")
    frame.columns = pd.RangeIndex(len(columns))
    _enough(len(frame), f"together, {names:.200}")
    return frame.sort_index()


def _enough(seeds: int, what: str, fewest: int = FEWEST_SEEDS) -> None:
    if seeds < fewest:
        raise Untestable(f"{what} has {seeds} seed{'s' * (seeds != 1)}, fewer than {fewest}")
