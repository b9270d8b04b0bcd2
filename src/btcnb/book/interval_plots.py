"""Means with intervals: one line a row, or a curve over a setting; the paper's values beside them, hollow and red.

Tables come in long form, columns row, metric, mean, sd, low, high; NaN is what has not been run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from btcnb.book.style import COLOURS, PAPER_COLOUR

GREY = "#777777"
PAPER: dict[str, Any] = {"mfc": "none", "mec": PAPER_COLOUR, "ecolor": PAPER_COLOUR, "elinewidth": 0.9, "ms": 5.5}


def draw_rows(
    axes: Sequence[Axes],
    ours: pd.DataFrame,
    labels: Mapping[str, str],
    theirs: pd.DataFrame | None = None,
    *,
    differences: bool = False,
    ours_label: str = "ours: mean and 95 % interval",
    paper_label: str = "paper",
) -> None:
    """One axes a metric, in the order of `ours`; one line a row, in the order of `labels`, from the top.

    differences: draw a line at 0, and leave markers hollow whose interval holds it
    """
    place = {row: len(labels) - 1 - position for position, row in enumerate(labels)}
    for ax, metric in zip(axes, dict.fromkeys(ours["metric"]), strict=True):
        _bands(ax, len(labels))
        if differences:
            ax.axvline(0, color=GREY, lw=1, zorder=1)
        if theirs is not None:
            _paper_rows(ax, theirs[theirs["metric"] == metric], place, paper_label)
        mine = ours[(ours["metric"] == metric) & ours["row"].isin(place)]
        known = mine[np.isfinite(mine["mean"])]
        clear = (known["low"] > 0) | (known["high"] < 0) if differences else known["low"].notna()
        style = {"fmt": "o", "ms": 5, "lw": 1.6, "color": COLOURS[0], "zorder": 4}
        _errors(ax, known[clear], place, {**style, "label": ours_label})
        _errors(ax, known[~clear], place, {**style, "mfc": "white", "label": f"{ours_label}, holds 0"})
        for row in set(place) - set(known["row"]) if len(known) else ():
            _nothing(ax, place[row])
        if known.empty:
            _empty(ax)
        ax.set(title=metric, ylim=(-0.6, len(labels) - 0.4))
    axes[0].set_yticks([place[row] for row in labels], list(labels.values()))


def _errors(ax: Axes, lines: pd.DataFrame, place: Mapping[str, int], style: dict[str, Any]) -> None:
    if len(lines):
        y = [place[row] for row in lines["row"]]
        reach = [lines["mean"] - lines["low"], lines["high"] - lines["mean"]]
        ax.errorbar(lines["mean"], y, xerr=reach, **style)


def _paper_rows(ax: Axes, lines: pd.DataFrame, place: Mapping[str, int], label: str) -> None:
    lines = lines[np.isfinite(lines["mean"]) & lines["row"].isin(place)]
    y = [place[row] + 0.22 for row in lines["row"]]
    ax.errorbar(lines["mean"], y, xerr=_finite(lines), fmt="D", label=label, zorder=3, **{**PAPER, "ms": 4})


def _finite(lines: pd.DataFrame) -> Any:
    return lines["sd"].to_numpy(dtype=float) if lines["sd"].notna().any() else None


def _bands(ax: Axes, count: int) -> None:
    for position in range(0, count, 2):
        ax.axhspan(position - 0.5, position + 0.5, color="#f4f4f4", lw=0, zorder=0)
    ax.grid(False, axis="y")


def _nothing(ax: Axes, y: float) -> None:
    ax.text(0.02, y, "–", transform=ax.get_yaxis_transform(), color=GREY, fontsize=8, va="center")


def _empty(ax: Axes) -> None:
    """In a corner, where the paper's values seldom are."""
    ax.text(0.97, 0.04, "not yet run", transform=ax.transAxes, ha="right", color=GREY, style="italic")


def draw_curves(
    axes: Sequence[Axes], ours: pd.DataFrame, at: Mapping[str, float], theirs: pd.DataFrame | None = None
) -> None:
    """One axes a metric: mean and interval of each row of `at` over its number; the paper's mean ± sd in red."""
    for ax, metric in zip(axes, dict.fromkeys(ours["metric"]), strict=True):
        if theirs is not None:
            lines = _over(theirs, metric, at)
            x = [at[row] for row in lines["row"]]
            style = {"fmt": "D--", "color": PAPER_COLOUR, "lw": 1.2, "label": "paper: mean ± sd, five runs, one graph"}
            ax.errorbar(x, lines["mean"], yerr=_finite(lines), **{**PAPER, **style})
        lines = _over(ours, metric, at)
        x = [at[row] for row in lines["row"]]
        reach = [lines["mean"] - lines["low"], lines["high"] - lines["mean"]]
        label = "ours: mean and 95 % interval over worlds"
        if len(lines):
            ax.errorbar(x, lines["mean"], yerr=reach, fmt="o-", color=COLOURS[0], ms=5, elinewidth=1, label=label)
        else:
            _empty(ax)
        ax.set(title=metric)


def _over(lines: pd.DataFrame, metric: str, at: Mapping[str, float]) -> pd.DataFrame:
    found = lines[(lines["metric"] == metric) & lines["row"].isin(at) & np.isfinite(lines["mean"])]
    return found.iloc[np.argsort([at[row] for row in found["row"]], kind="stable")]


def legend_below(fig: Figure, columns: int = 3) -> None:
    """One legend for all axes of a figure, below them."""
    found: dict[str, Any] = {}
    for ax in fig.axes:
        handles, names = ax.get_legend_handles_labels()
        for handle, name in zip(handles, names, strict=True):
            found.setdefault(name, handle)
    if found:
        fig.legend(found.values(), found.keys(), loc="outside lower center", ncols=columns)
