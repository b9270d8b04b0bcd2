"""Pieces of figures about clusters: points in colours and shapes, cliques in a ring, embeddings in a plane."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from btcnb.book.style import COLOURS, MARKERS

FloatArray = npt.NDArray[np.float64]


def scatter_clusters(ax: Axes, points: npt.ArrayLike, labels: npt.ArrayLike, **style: Any) -> None:
    """Points (n, 2), each cluster in a colour and a shape of its own (eight of each, then from the start)."""
    at, codes = np.asarray(points), np.asarray(labels)
    for code in np.unique(codes):
        look = {"color": COLOURS[code % len(COLOURS)], "marker": MARKERS[code % len(MARKERS)], "zorder": 3}
        ax.scatter(*at[codes == code].T, **(look | style))


def cliques_in_a_ring(clusters: int, size: int) -> FloatArray:
    """Places (clusters · size, 2) for a drawing of equal cliques: a circle of circles, the first one on top."""
    middle = 2 * np.pi * (np.arange(clusters) / clusters + 0.25)
    own = 2 * np.pi * np.arange(size) / size
    x = np.cos(middle)[:, None] + 0.5 * np.cos(own)
    y = np.sin(middle)[:, None] + 0.5 * np.sin(own)
    return np.column_stack([x.ravel(), y.ravel()])


def edge_lines(place: FloatArray, i: npt.ArrayLike, j: npt.ArrayLike) -> FloatArray:
    """All edges (i, j) as one poly-line (2, 3·edges) with gaps: far smaller in a page than one line per edge."""
    first, second = np.asarray(i), np.asarray(j)
    ends = np.full((len(first), 3, 2), np.nan)
    ends[:, 0], ends[:, 1] = place[first], place[second]
    return ends.reshape(-1, 2).T.round(2)


def spectral_plane(U: FloatArray, place: FloatArray) -> FloatArray:
    """Spectral embeddings (n, k ≥ 2) as points (n, 2), turned to lie like `place`, the drawing of the graph.

    Only directions at a right angle to the embedding of the constant vector are shown: it tells no two nodes apart.
    """
    k = U.shape[1]
    constant = U.sum(axis=0) / np.linalg.norm(U.sum(axis=0))
    basis = np.linalg.svd(np.eye(k) - np.outer(constant, constant))[0][:, : k - 1]
    left, _, right = np.linalg.svd(basis.T @ U.T @ place[:, : k - 1], full_matrices=False)
    flat = U @ basis @ (left @ right)
    return np.column_stack([flat, np.zeros(len(flat))])[:, :2]


def principal_plane(H: npt.ArrayLike) -> FloatArray:
    """Rows (n, d ≥ 2) on their first two principal components, (n, 2)."""
    centred = np.asarray(H, dtype=np.float64)
    centred = centred - centred.mean(axis=0)
    return np.asarray(centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T)
