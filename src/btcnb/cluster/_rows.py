"""What every function of this room asks of an embedding matrix and of a label vector."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from btcnb.errors import DataError

Float64 = npt.NDArray[np.float64]
Float32 = npt.NDArray[np.float32]
Int64 = npt.NDArray[np.int64]

BLOCK_ROWS = 8192
"""Rows normalised at a time, so that the float64 temporaries stay small beside the result."""


def unit_rows(X: Any, source: str = "X") -> Float64:
    """A float64 copy of X (n, d) with every row scaled to length 1; X itself is left alone.

    Rows of any non-zero length are accepted, because cosine distance does not see lengths.
    Raises `DataError` for anything that has no cosine distance: another shape, NaN, infinities, zero rows.
    """
    rows = np.asarray(X)
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise DataError(
            source, "shape", f"is {rows.shape}, not (points, dimensions)", "pass one row per point, at least one column"
        )
    if rows.dtype.kind not in "fiu":
        raise DataError(source, "dtype", f"holds {rows.dtype}, not real numbers", "pass float32 or float64 embeddings")
    unit = np.empty(rows.shape, dtype=np.float64)
    for start in range(0, len(rows), BLOCK_ROWS):
        block = rows[start : start + BLOCK_ROWS].astype(np.float64, order="C")
        if not np.isfinite(block).all():
            bad = start + int((~np.isfinite(block)).any(axis=1).argmax())
            raise DataError(source, f"row {bad}", "holds NaN or infinity", "drop the row or repair the embedding")
        largest = np.abs(block).max(axis=1, keepdims=True)
        if not largest.all():
            bad = start + int((largest == 0).argmax())
            raise DataError(source, f"row {bad}", "is all zeros and has no direction", "drop the row")
        block /= largest  # first, so that squares of tiny or huge entries neither vanish nor overflow
        block /= np.sqrt(np.einsum("ij,ij->i", block, block))[:, None]
        unit[start : start + BLOCK_ROWS] = block
    return unit


def compact_labels(labels: Any, n: int, source: str = "labels") -> Int64:
    """Labels renumbered 0..k-1 in order of value, int64, shape (n,); raises `DataError` unless there is one per
    point.
    """
    array = np.asarray(labels)
    if array.shape != (n,):
        raise DataError(source, "shape", f"is {array.shape} for {n} points", "pass exactly one label per point")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise DataError(source, "values", "hold NaN or infinity", "label every point")
    return np.unique(array, return_inverse=True)[1].astype(np.int64)


def check_tree(Z: Any, source: str = "Z") -> Float64:
    """Z as float64 (n-1, 4); raises `DataError` unless it is a linkage matrix: each node formed once, from formed
    nodes.
    """
    tree = np.asarray(Z, dtype=np.float64)
    if tree.ndim != 2 or tree.shape[1] != 4:
        raise DataError(source, "shape", f"is {tree.shape}, not (points - 1, 4)", "pass a SciPy linkage matrix")
    merges = len(tree)
    children = tree[:, :2].astype(np.int64)
    formed = np.arange(merges) + merges + 1
    if merges and (
        not np.isfinite(tree).all()
        or (children < 0).any()
        or (children >= formed[:, None]).any()
        or (np.bincount(children.ravel()) > 1).any()
    ):
        raise DataError(
            source,
            "merges",
            "some node is used twice or before it is formed",
            "pass the output of linkage or of SciPy's linkage",
        )
    return tree
