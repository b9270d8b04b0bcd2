"""A confusion matrix as a picture: what things are, what they are called, mistakes in another colour."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

RIGHT, WRONG = np.array([0.0, 0.45, 0.70]), np.array([0.84, 0.37, 0.0])


def draw_confusion(ax: Axes, counts: npt.NDArray[np.int64], names: Sequence[str]) -> None:
    """Counts (rows: is, columns: called) with their numbers; the first name is what nobody looks for.

    A cell is coloured by its share of its row; in the first row by its share of the largest mistake there, and the
    corner, where nearly everything lies, is left uncoloured.
    """
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    share[0] = counts[0] / max(counts[0, 1:].max(initial=0), 1)
    share[0, 0] = 0
    diagonal = np.eye(len(counts), dtype=bool)[..., None]
    strength = ((0.25 + 0.6 * np.clip(share, 0, 1)) * (share > 0))[..., None]
    colours = 1 - strength * (1 - np.where(diagonal, RIGHT, WRONG))
    for (row, column), count in np.ndenumerate(counts):
        if share[row, column] > 0:  # elsewhere the page shows, light or dark
            ax.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=colours[row, column]))
        if count:
            ax.text(column, row, f"{count:,}", ha="center", va="center", fontsize=9 if count < 10_000 else 6.5)
    ax.set(xlim=(-0.5, len(names) - 0.5), ylim=(len(names) - 0.5, -0.5), aspect="equal")
    ax.set_xticks(range(len(names)), names, rotation=40, ha="right")
    ax.set_yticks(range(len(names)), names)
    ax.grid(False)
