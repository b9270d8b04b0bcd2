"""How figures look, and plots that several chapters draw: estimates with intervals, confusion matrices, verdict bars.

Colours are safe for the colour-blind, the paper's value is always drawn the same way, and notebooks show figures as
SVG: the same bytes for the same figure, small, and legible in the column of a page. Tables of estimates come in
long form, columns row, metric, mean, sd, low, high; NaN is what has not been run.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
import pandas as pd
from cycler import cycler
from IPython.core.getipython import get_ipython
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import Collection
from matplotlib.colors import LinearSegmentedColormap, to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text

COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999933", "#444444"]
"""Okabe and Ito's palette, reordered so that the first three also differ in lightness."""

MARKERS = ["o", "s", "^", "D", "v", "P", "X", "*"]
"""Shapes to pair with `COLOURS`: no figure should need colour alone."""

PAPER_COLOUR = "#B00020"
GREY = "#777777"
COLUMN = 7.4
"""Inches of a figure that fit the column of a laptop's page at full size; a wider figure is shrunk to it."""
SMALLEST = 7.5
"""Points that a letter keeps, once the figure is shrunk to the column."""
DENSE = 1500
"""Points from which on an artist is drawn as pixels inside the SVG; as shapes each would cost some hundred bytes."""
PIXELS = 200
"""Pixels per inch of what is drawn as pixels."""
KEPT = "as-drawn"
"""How the name of an SVG group begins that keeps its colours on light and dark pages: letters on a heat map, say."""
_PAPER: dict[str, Any] = {"mfc": "none", "mec": PAPER_COLOUR, "ecolor": PAPER_COLOUR, "elinewidth": 0.9, "ms": 5.5}
_OUTCOMES: dict[str, dict[str, Any]] = {
    "reproduced": {"facecolor": COLOURS[2]},
    "true by construction": {"facecolor": "#b8e0d2", "hatch": "...."},
    "partly": {"facecolor": COLOURS[1], "hatch": "///"},
    "not reproduced": {"facecolor": COLOURS[5], "hatch": "xxx"},
    "cannot be tested here": {"facecolor": "#e0e0e0"},
}


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
    style: dict[str, Any] = {"color": PAPER_COLOUR, "linestyle": (0, (4, 2)), "linewidth": 1.4, "zorder": 3} | line
    if x is not None:
        ax.axvline(x, label=label, **style)
    if y is not None:
        ax.axhline(y, label=label if x is None else None, **style)


# SVG


def figure_svg(figure: Figure) -> str:
    """`figure` as SVG text, cropped to what is drawn; letters are outlines, so it looks alike on every machine.

    Labels too small for a page are enlarged, artists of very many points become pixels, and neither date nor random
    names are written: equal figures give equal text.
    """
    final = not _enlarge_letters(figure)
    _rasterise_dense(figure)
    _keep_on_colours(figure)
    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "btcnb", "svg.fonttype": "path"}), _as_laid_out(figure, final):
        figure.savefig(buffer, format="svg", bbox_inches="tight", dpi=PIXELS, metadata={"Date": None, "Creator": None})
    return rounded(buffer.getvalue())


def rounded(svg: str) -> str:
    """Paths to a hundredth of a point: nobody sees the difference, and the page is a third smaller."""
    return re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path.group()), svg)


def _enlarge_letters(figure: Figure) -> bool:
    """No letter below `SMALLEST` points when the figure is shrunk to the column. Whether there was any."""
    least = SMALLEST * max(1.0, float(figure.get_figwidth()) / COLUMN)
    figure.draw_without_rendering()  # tick labels exist, and axes have their places, once that is done
    texts = [text for text in figure.findobj(Text) if isinstance(text, Text) and text.get_text()]
    small = [text for text in texts if float(text.get_fontsize()) < least]
    for text in small:
        text.set_fontsize(least)
    return bool(small)


@contextmanager
def _as_laid_out(figure: Figure, final: bool) -> Iterator[None]:
    """Save without a second layout where the first is final: a fifth of the work of drawing a figure."""
    engine = figure.get_layout_engine()
    if not final or engine is None:
        yield
        return
    figure.set_layout_engine("none")
    try:
        yield
    finally:
        figure.set_layout_engine(engine)


def _rasterise_dense(figure: Figure) -> None:
    for artist in figure.findobj(lambda found: isinstance(found, Collection | Line2D)):
        if _points(artist) > DENSE and artist.get_rasterized() is not True:
            artist.set_rasterized(True)


def _keep_on_colours(figure: Figure) -> None:
    """Mark what is drawn over a heat map or a coloured patch: it keeps its colour on a dark page."""
    kept: list[Artist] = []
    for ax in figure.axes:
        texts = [text for text in ax.texts if text.get_bbox_patch() is None]
        if ax.images:
            kept += [*ax.lines, *texts]
            continue
        plates = [patch for patch in ax.patches if _coloured(patch)]
        kept += [text for text in texts if any(patch.contains_point(_middle(text)) for patch in plates)]
    for number, artist in enumerate(kept):
        artist.set_gid(f"{KEPT}-{number}")


def _coloured(patch: Patch) -> bool:
    red, green, blue, alpha = to_rgba(patch.get_facecolor())
    return alpha > 0.6 and max(red, green, blue) - min(red, green, blue) > 0.15


def _middle(text: Text) -> tuple[float, float]:
    box = text.get_window_extent()
    return (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2


def _points(artist: Any) -> int:
    if isinstance(artist, Line2D):
        return np.size(artist.get_xdata(orig=False)) if artist.get_marker() not in (None, "None", "", " ") else 0
    return max(len(artist.get_offsets()), len(artist.get_paths()))


# Plots


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
        for band in range(0, len(labels), 2):
            ax.axhspan(band - 0.5, band + 0.5, color="#f4f4f4", lw=0, zorder=0)
        ax.grid(False, axis="y")
        if differences:
            ax.axvline(0, color=GREY, lw=1, zorder=1)
        if theirs is not None:
            known = _known(theirs, metric, place)
            y = known["row"].map(place) + 0.22
            style = {**_PAPER, "ms": 4, "label": paper_label, "zorder": 3}
            ax.errorbar(known["mean"], y, xerr=_spread(known), fmt="D", **style)
        known = _known(ours, metric, place)
        clear = (known["low"] > 0) | (known["high"] < 0) if differences else known["low"].notna()
        for lines, hollow in ((known[clear], {}), (known[~clear], {"mfc": "white"})):
            label = f"{ours_label}, holds 0" if hollow else ours_label
            style = {"fmt": "o", "ms": 5, "lw": 1.6, "color": COLOURS[0], "zorder": 4, "label": label, **hollow}
            if len(lines):
                ax.errorbar(lines["mean"], lines["row"].map(place), xerr=_interval(lines), **style)
        if known.empty:
            _not_yet_run(ax)
        else:
            for row in set(place) - set(known["row"]):
                at = ax.get_yaxis_transform()
                ax.text(0.02, place[row], "–", transform=at, color=GREY, fontsize=8, va="center")
        ax.set(title=metric, ylim=(-0.6, len(labels) - 0.4))
    axes[0].set_yticks([place[row] for row in labels], list(labels.values()))


def draw_curves(
    axes: Sequence[Axes], ours: pd.DataFrame, at: Mapping[str, float], theirs: pd.DataFrame | None = None
) -> None:
    """One axes a metric: mean and interval of each row of `at` over its number; the paper's mean ± sd in red."""
    style: dict[str, Any]
    for ax, metric in zip(axes, dict.fromkeys(ours["metric"]), strict=True):
        if theirs is not None:
            lines = _known(theirs, metric, at)
            style = {"fmt": "D--", "color": PAPER_COLOUR, "lw": 1.2, "label": "paper: mean ± sd, five runs, one graph"}
            ax.errorbar(lines["row"].map(at), lines["mean"], yerr=_spread(lines), **{**_PAPER, **style})
        lines = _known(ours, metric, at)
        if len(lines):
            style = {"fmt": "o-", "color": COLOURS[0], "ms": 5, "elinewidth": 1}
            style |= {"label": "ours: mean and 95 % interval over worlds"}
            ax.errorbar(lines["row"].map(at), lines["mean"], yerr=_interval(lines), **style)
        else:
            _not_yet_run(ax)
        ax.set(title=metric)


def _known(lines: pd.DataFrame, metric: str, at: Mapping[str, float]) -> pd.DataFrame:
    """The lines of a metric that hold a number, in the order of their places."""
    found = lines[(lines["metric"] == metric) & lines["row"].isin(at) & np.isfinite(lines["mean"])]
    return found.iloc[np.argsort(found["row"].map(at).to_numpy(), kind="stable")]


def _interval(lines: pd.DataFrame) -> list[Any]:
    return [lines["mean"] - lines["low"], lines["high"] - lines["mean"]]


def _spread(lines: pd.DataFrame) -> Any:
    return lines["sd"].to_numpy(dtype=float) if lines["sd"].notna().any() else None


def _not_yet_run(ax: Axes) -> None:
    """In a corner, where the paper's values seldom are."""
    ax.text(0.97, 0.04, "not yet run", transform=ax.transAxes, ha="right", color=GREY, style="italic")


def legend_below(fig: Figure, columns: int = 3) -> None:
    """One legend for all axes of a figure, below them."""
    pairs = [pair for ax in fig.axes for pair in zip(*ax.get_legend_handles_labels(), strict=True)]
    found = {name: handle for handle, name in reversed(pairs)}
    if found:
        names = list(dict.fromkeys(name for _, name in pairs))
        fig.legend([found[name] for name in names], names, loc="outside lower center", ncols=columns)


def draw_confusion(ax: Axes, counts: npt.NDArray[np.int64], names: Sequence[str]) -> None:
    """Counts (rows: is, columns: called) with their numbers; the first name is what nobody looks for.

    A cell is coloured by its share of its row, mistakes in another colour; in the first row by its share of the largest
    mistake there, and the corner, where nearly everything lies, is left uncoloured.
    """
    from sklearn.metrics import ConfusionMatrixDisplay

    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    share[0] = counts[0] / max(counts[0, 1:].max(initial=0), 1)
    share[0, 0] = 0
    signed = np.where(np.eye(len(counts), dtype=bool), 1, -1) * (0.25 + 0.6 * np.clip(share, 0, 1))
    shown = ConfusionMatrixDisplay(counts, display_labels=list(names))
    shown.plot(ax=ax, colorbar=False, values_format=",d", xticks_rotation=40)
    shown.im_.set_data(np.ma.masked_where(share == 0, signed))  # elsewhere the page shows, light or dark
    shown.im_.set(
        cmap=LinearSegmentedColormap.from_list("right and wrong", [COLOURS[5], "white", COLOURS[0]]), clim=(-1, 1)
    )
    for text, count in zip(shown.text_.flat, counts.flat, strict=True):
        text.set(text=text.get_text() if count else "", color="black", fontsize=9 if count < 10_000 else 6.5)
    plt.setp(ax.get_xticklabels(), ha="right")
    ax.set(xlabel="", ylabel="")
    ax.grid(False)


def draw_verdicts(ax: Axes, counts: pd.DataFrame) -> None:
    """A bar a line of `counts` (as `scoreboard.counted` gives it), the first on top, in % of its claims.

    Colour, hatch and number tell the outcome; segments below 2.5 % are too narrow for their number.
    """
    total = counts.sum(axis=1)
    places = range(len(counts) - 1, -1, -1)
    left = np.zeros(len(counts))
    for outcome, look in _OUTCOMES.items():
        share = (100 * counts[outcome] / total).to_numpy()
        bars = ax.barh(places, share, left=left, label=outcome, edgecolor="white", height=0.72, **look)
        numbers = [str(count) if width >= 2.5 else "" for count, width in zip(counts[outcome], share, strict=True)]
        box = {"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.85}
        for text in ax.bar_label(bars, numbers, label_type="center", fontsize=8):
            if text.get_text():
                text.set_bbox(box)
        left = left + share
    ax.set_yticks(list(places), [f"{name} ({count})" for name, count in zip(counts.index, total, strict=True)])
    ax.set(xlim=(0, 100), ylim=(-0.6, len(counts) - 0.4), xlabel="share of the claims (%)")
    ax.grid(False, axis="y")
