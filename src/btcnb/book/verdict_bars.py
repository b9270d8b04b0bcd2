"""Verdicts as bars: one bar a group of claims, one segment an outcome; colour, hatch and number all tell which."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from btcnb import gates
from btcnb.book.style import COLOURS
from btcnb.paper.scoreboard import OUTCOMES

LOOKS: dict[str, dict[str, Any]] = dict(
    zip(
        OUTCOMES,
        (
            {"facecolor": COLOURS[2]},
            {"facecolor": "#b8e0d2", "hatch": "...."},
            {"facecolor": COLOURS[1], "hatch": "///"},
            {"facecolor": COLOURS[5], "hatch": "xxx"},
            {"facecolor": "#e0e0e0"},
        ),
        strict=True,
    )
)
NARROW = 2.5
"""Segments below this share (in %) are too narrow for their number."""


def draw_verdicts(ax: Axes, counts: pd.DataFrame) -> None:
    """A bar a line of `counts` (as `scoreboard.counted` gives it), the first on top, in % of its claims."""
    gates.instance("counts", counts, pd.DataFrame)
    total = counts.sum(axis=1)
    places = range(len(counts) - 1, -1, -1)
    left = pd.Series(0.0, index=counts.index)
    for outcome, look in LOOKS.items():
        share = 100 * counts[outcome] / total
        ax.barh(places, share, left=left, label=outcome, edgecolor="white", height=0.72, **look)
        for place, start, width, count in zip(places, left, share, counts[outcome], strict=True):
            if width >= NARROW:
                box = {"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.85}
                ax.text(start + width / 2, place, f"{count}", ha="center", va="center", fontsize=8, bbox=box)
        left = left + share
    names = [f"{name} ({count})" for name, count in zip(counts.index, total, strict=True)]
    ax.set_yticks(list(places), names)
    ax.set(xlim=(0, 100), ylim=(-0.6, len(counts) - 0.4), xlabel="share of the claims (%)")
    ax.grid(False, axis="y")
