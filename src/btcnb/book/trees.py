"""Dendrograms on paper: a tree with its cut, leaves coloured by whatever the figure is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from scipy.cluster import hierarchy

from btcnb.book.style import COLOURS

_UNDONE = "#8a8a8a"


def draw_tree(
    ax: Axes,
    Z: Any,
    threshold: float | None = None,
    leaf_colours: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
) -> Any:
    """Draw the linkage matrix Z; merges at the threshold or above are dashed and grey.

    leaf_colours, names: one for each leaf, in the order of the points
    Returns the leaves from left to right.
    """
    n = len(Z) + 1
    order = hierarchy.leaves_list(Z)
    x = np.zeros(2 * n - 1)
    x[order] = np.arange(n)
    for m, (left, right, height, _) in enumerate(Z):
        a, b = int(left), int(right)
        x[n + m] = (x[a] + x[b]) / 2
        feet = [0 if node < n else Z[node - n, 2] for node in (a, b)]
        undone = threshold is not None and height >= threshold
        look: dict[str, Any] = {"color": _UNDONE, "ls": "--"} if undone else {"color": COLOURS[0], "ls": "-"}
        ax.plot([x[a], x[a], x[b], x[b]], [feet[0], height, height, feet[1]], lw=1.5, **look)
    if leaf_colours is not None:
        below = np.full(n, -0.015 * Z[-1, 2])
        ax.scatter(np.arange(n), below, c=[leaf_colours[i] for i in order], s=26, clip_on=False, zorder=3)
    if threshold is not None:
        ax.axhline(threshold, color="#111111", lw=1.2, ls=":")
    ax.set_xticks(np.arange(n), [names[i] for i in order] if names is not None else [""] * n)
    ax.tick_params(axis="x", length=0)
    ax.grid(axis="x", visible=False)
    return order
