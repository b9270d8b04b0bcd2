"""Metrics by seed, out of the records of the grids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from btcnb import gates
from btcnb.paper.kinds import Pair, Place
from btcnb.paper.statistics import Estimate, estimate

FEWEST_SEEDS = 3
Frames = Callable[[str], "pd.DataFrame | None"]
Finished = tuple[pd.DataFrame, dict[str, list[int]]]


class Untestable(Exception):  # noqa: N818
    """Why the records cannot decide; an outcome, not an error."""


@dataclass(frozen=True)
class Records:
    """Metrics by seed, out of the grids' records."""

    frames: Frames
    _read: dict[str, Finished] = field(default_factory=dict, repr=False, compare=False)

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
        frame, places = self._finished(grid)
        if metric not in frame.columns:
            return ()
        has = np.asarray(pd.to_numeric(frame[metric], errors="coerce").notna())
        return tuple(Place(grid, row) for row, lines in places.items() if has[lines].any())

    def differences(self, pair: Pair) -> list[Estimate]:
        """The paired difference in each metric."""
        found = []
        for mine, theirs in zip(pair.metrics, pair.other_metrics, strict=True):
            first, other = self.metric(pair.place, mine, pair.where), self.metric(pair.other, theirs, pair.where)
            both = together([first, other], f"{pair.place.row}, {pair.other.row}")
            found.append(estimate((both[0] - both[1]).to_numpy()))
        return found

    def _finished(self, grid: str) -> Finished:
        if grid not in self._read:
            self._read[grid] = finished(grid, self.frames(grid))
        return self._read[grid]

    def _column(self, place: Place, name: str, where: Sequence[tuple[str, object]], fewest: int) -> pd.Series[float]:
        frame, places = self._finished(place.grid)
        lines = np.array(places.get(place.row, []), dtype=np.intp)
        for column, wanted in where:
            lines = lines[np.asarray(frame[column].iloc[lines] == wanted)] if column in frame.columns else lines[:0]
        if not len(lines):
            raise Untestable(f"the grid “{place.grid}” has no finished run of “{place.row}”")
        if name not in frame.columns:
            raise Untestable(f"{name} of “{place.row}” was not recorded")
        latest = lines[~np.asarray(frame["seed"].iloc[lines].duplicated(keep="last"))]
        values = pd.to_numeric(frame[name].iloc[latest], errors="coerce").astype(float)
        values.index = pd.Index(frame["seed"].iloc[latest], name="seed")
        if not np.isfinite(values).all():
            seeds = ", ".join(map(str, values.index[~np.isfinite(values)]))
            raise Untestable(f"{name} of “{place.row}” has no value for seed {seeds}")
        _enough(len(values), f"“{place.row}”", fewest)
        return values


def finished(grid: str, frame: pd.DataFrame | None) -> Finished:
    """The records of a grid, and by row the places of its finished runs.

    A record has hundreds of columns and a rule asks for few: lines are chosen by place, column by column.
    """
    if frame is None or gates.instance(f"the records of {grid}", frame, pd.DataFrame).empty:
        raise Untestable(f"there are no records of the grid “{grid}”")
    if not {"row", "seed"} <= set(frame.columns):
        raise Untestable(f"the records of the grid “{grid}” name no row or no seed")
    done = np.asarray(frame["state"] == "done") if "state" in frame.columns else np.full(len(frame), True)
    places: dict[str, list[int]] = {}
    for place, row in enumerate(frame["row"].astype(str)):
        if done[place]:
            places.setdefault(row, []).append(place)
    return frame, places


def together(columns: Sequence[pd.Series[float]], names: str) -> pd.DataFrame:
    """The seeds that all columns have."""
    frame = pd.concat(list(columns), axis=1, join="inner")
    frame.columns = pd.RangeIndex(len(columns))
    _enough(len(frame), f"together, {names:.200}")
    return frame.sort_index()


def _enough(seeds: int, what: str, fewest: int = FEWEST_SEEDS) -> None:
    if seeds < fewest:
        raise Untestable(f"{what} has {seeds} seed{'s' * (seeds != 1)}, fewer than {fewest}")
