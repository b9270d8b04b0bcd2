"""A matplotlib figure as SVG: the same bytes for the same figure, small, and legible in the column of a page."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.collections import Collection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text

from btcnb.book.inks import KEPT

COLUMN = 7.4
"""Inches of a figure that fit the column of a laptop's page at full size; a wider figure is shrunk to it."""

SMALLEST = 7.5
"""Points that a letter keeps, once the figure is shrunk to the column."""

DENSE = 1500
"""Points from which on an artist is drawn as pixels inside the SVG; as shapes each would cost some hundred bytes."""

PIXELS = 200
"""Pixels per inch of what is drawn as pixels."""


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
    """Mark what is drawn over a heat map or a coloured patch: it keeps its colour on a dark page (see `inks`)."""
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
