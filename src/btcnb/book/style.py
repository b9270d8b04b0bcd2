"""How figures look: colour-blind safe, sharp, quiet, with the paper's value always drawn the same way."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
from cycler import cycler
from IPython.core.getipython import get_ipython
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from btcnb import gates
from btcnb.book.figure_svg import figure_svg

COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999933", "#444444"]
"""Okabe and Ito's palette, reordered so that the first three also differ in lightness."""

MARKERS = ["o", "s", "^", "D", "v", "P", "X", "*"]
"""Shapes to pair with `COLOURS`: no figure should need colour alone."""

PAPER_COLOUR = "#B00020"


def plot_style() -> None:
    """Set matplotlib's defaults for every figure of the book; notebooks show figures as SVG (see `figure_svg`)."""
    mpl.rcParams.update(
        {
            "axes.prop_cycle": cycler(color=COLOURS),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "axes.axisbelow": True,
            "axes.facecolor": "none",  # the page is the background, whatever its colour
            "axes.titlesize": 11,
            "axes.titleweight": "bold",
            "axes.labelsize": 10,
            "grid.color": "#e3e3e3",
            "grid.linewidth": 0.6,
            "figure.figsize": (7.2, 4.2),
            "figure.dpi": 100,
            "figure.constrained_layout.use": True,
            "savefig.dpi": 100,
            "font.size": 10,
            "legend.frameon": False,
            "legend.fontsize": 9,
            "lines.linewidth": 1.8,
            "image.cmap": "cividis",
        }
    )
    if not _show_as_svg():
        plt.switch_backend("agg")


def _show_as_svg() -> bool:
    """Have this notebook show figures by `figure_svg`; False outside a notebook, where there is nothing to set."""
    shell = get_ipython()
    if shell is None or shell.display_formatter is None:
        return False
    from matplotlib_inline.backend_inline import set_matplotlib_formats

    set_matplotlib_formats("svg")  # takes the other formats off, and lets the backend settle first
    shell.display_formatter.formatters["image/svg+xml"].for_type(Figure, figure_svg)
    return True


def mark_paper(
    ax: Axes, *, x: float | None = None, y: float | None = None, label: str | None = "paper", **line: Any
) -> None:
    """Draw the paper's value as a dashed red line: vertical at `x`, horizontal at `y`, or both."""
    gates.instance("ax", ax, Axes)
    x, y = (None if at is None else gates.real("x or y", at) for at in (x, y))
    if label is not None:
        gates.text("label", label)
    style: dict[str, Any] = {"color": PAPER_COLOUR, "linestyle": (0, (4, 2)), "linewidth": 1.4, "zorder": 3} | line
    if x is not None:
        ax.axvline(x, label=label, **style)
    if y is not None:
        ax.axhline(y, label=label if x is None else None, **style)
