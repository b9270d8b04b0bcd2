"""Hierarchical clustering of embeddings with SciPy's output format, without the distance matrix where that is
possible.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.cluster import hierarchy
from scipy.spatial.distance import pdist
from tqdm.auto import tqdm

from btcnb.cluster._distance import AVERAGE, WARD
from btcnb.cluster._order import canonical
from btcnb.cluster._reciprocal import agglomerate
from btcnb.cluster._rows import Float64, Int64, unit_rows
from btcnb.errors import DataError, ParameterError

METHODS = ("average", "ward", "complete", "single")
MATRIX_FREE = {"average": AVERAGE, "ward": WARD}
PROGRESS_FROM = 20_000
"""Points from which `progress=None` shows a progress bar: below, a run takes about a second."""


def linkage(
    X: Any,
    method: str = "average",
    *,
    memory_limit: int | None = None,
    progress: bool | Callable[[int, int], None] | None = None,
) -> Float64:
    """Dendrogram of the rows of X (n, d), n >= 2, as SciPy's linkage matrix Z (n-1, 4), float64.

    Rows are compared by direction: X is normalised in a copy, and never written to.

    method:
        "average"   mean cosine distance (the paper's choice); exact, matrix-free, O(n d) memory
        "ward"      Ward on the unit sphere, Euclidean distances and SciPy's heights; exact, matrix-free
        "complete", "single"   cosine distance through SciPy; needs 8 n (n - 1) / 2 bytes, twice over
    memory_limit: bytes the working arrays may take; smaller products are used to keep to it, and a limit that
        cannot be kept raises `ParameterError` before any work is done
    progress: True for a bar, False for none, None for a bar from 20,000 points on, or a function of
        (merges done, merges in all)

    Heights agree with SciPy's to rounding, and so does every flat cut that does not fall on a tie. Equal rows are
    merged first, at height 0. Rows of Z are sorted by height; heights never decrease towards the root.
    """
    if method not in METHODS:
        raise ParameterError(f"method is {method!r}; choose one of {', '.join(METHODS)}.")
    if memory_limit is not None and memory_limit <= 0:
        raise ParameterError(f"memory_limit is {memory_limit}; pass a positive number of bytes, or None.")
    rows = unit_rows(X)
    n = len(rows)
    if n < 2:
        raise DataError("X", "rows", f"there is {n}, and a dendrogram joins at least two", "pass two or more points")
    if method in MATRIX_FREE:
        return _matrix_free(rows, MATRIX_FREE[method], memory_limit, progress)
    return _through_scipy(rows, method, memory_limit)


def _matrix_free(
    rows: Float64, kind: int, memory_limit: int | None, progress: bool | Callable[[int, int], None] | None
) -> Float64:
    n = len(rows)
    first, copies = distinct_rows(rows)
    same = np.flatnonzero(first[copies] != np.arange(n))
    pairs = np.stack([first[copies[same]], same], axis=1)
    heights = np.zeros(len(same))
    if len(first) > 1:
        size = np.bincount(copies, minlength=len(first)).astype(np.float64)
        if len(first) < n:
            rows = rows[first]
        with _Reporter(progress, n - 1) as reporter:
            reporter.add(len(same))
            slots, far = agglomerate(rows, size, kind, memory_limit, reporter.add)
        pairs = np.concatenate([pairs, first[slots]])
        heights = np.concatenate([heights, np.sqrt(np.maximum(far, 0.0)) if kind == WARD else far])
    return canonical(pairs, heights)


def distinct_rows(rows: Float64) -> tuple[Int64, Int64]:
    """Positions of the first of each set of equal rows, in order, and for every row the set it belongs to.

    Equal rows have equal projections on a fixed random direction, so it is enough to sort projections and to compare
    neighbours; rows that only share their projection stay apart.
    """
    n, d = rows.shape
    key = rows @ np.random.default_rng(0).normal(size=d)
    key = np.round(key, 9)  # a blocked product may round equal rows differently
    order = np.lexsort((np.arange(n), rows[:, 0], key))
    new = np.ones(n, dtype=bool)
    step = 8192
    for start in range(1, n, step):
        here = order[start : start + step]
        new[start : start + step] = (rows[here] != rows[order[start - 1 : start - 1 + len(here)]]).any(axis=1)
    group = np.empty(n, dtype=np.int64)
    group[order] = np.cumsum(new) - 1
    first = np.full(int(new.sum()), n, dtype=np.int64)
    np.minimum.at(first, group, np.arange(n))
    rank = np.argsort(first, kind="stable")
    place = np.empty(len(rank), dtype=np.int64)
    place[rank] = np.arange(len(rank))
    return first[rank], place[group]


def _through_scipy(rows: Float64, method: str, memory_limit: int | None) -> Float64:
    needed = 8 * len(rows) * (len(rows) - 1)
    if memory_limit is not None and needed > memory_limit:
        raise ParameterError(
            f"{method} linkage of {len(rows):,} points needs the distance matrix, {needed:,} bytes, "
            f"and memory_limit is {memory_limit:,}; use average or ward."
        )
    distances = pdist(rows, "cosine")
    np.maximum(distances, 0.0, out=distances)  # rounding leaves equal rows at -1e-16
    return np.asarray(hierarchy.linkage(distances, method), dtype=np.float64)


class _Reporter:
    """Tells a bar, a function or nobody how many merges are done."""

    def __init__(self, progress: bool | Callable[[int, int], None] | None, total: int) -> None:
        self.total, self.done = total, 0
        self.callback = progress if callable(progress) else None
        shown = progress is True or (progress is None and total + 1 >= PROGRESS_FROM)
        self.bar = tqdm(total=total, desc="linkage", unit="merge", leave=False) if shown else None

    def __enter__(self) -> _Reporter:
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def add(self, merges: int) -> None:
        self.done += merges
        if self.bar is not None:
            self.bar.update(merges)
        if self.callback is not None:
            self.callback(self.done, self.total)
