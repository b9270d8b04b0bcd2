"""Hierarchical clustering of embeddings with SciPy's output format, without the distance matrix where that is
possible.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.cluster import hierarchy
from scipy.spatial.distance import cdist

from btcnb import gates
from btcnb.cluster import _gate
from btcnb.cluster._checkpoint import Checkpoint
from btcnb.cluster._distance import AVERAGE, WARD, Table
from btcnb.cluster._gate import Float64, Int64, UnitRows
from btcnb.cluster._order import canonical
from btcnb.cluster._progress import Progress, Reporter
from btcnb.cluster._reciprocal import agglomerate, block_bytes
from btcnb.cluster._search import BLOCK_BYTES
from btcnb.cluster._stages import State, agglomerate_in_stages, nobody_saves
from btcnb.errors import DataError, ParameterError


class Method(NamedTuple):
    """code: what kernels know it by; matrix_free: whether cluster sums are enough, or SciPy's matrix is needed."""

    code: int
    matrix_free: bool


LINKAGES = {
    "average": Method(AVERAGE, matrix_free=True),
    "ward": Method(WARD, matrix_free=True),
    "complete": Method(2, matrix_free=False),
    "single": Method(3, matrix_free=False),
}
"""Every linkage. A new one needs its entry, and its line of Lance and Williams in `_small`."""


STAGES_FROM = 40_000
"""Rows from which stages pay on trained embeddings; below, records were made by `grow`, and that way stays."""


MATRIX_ROWS = 256
"""Rows of the distance matrix filled at a time."""


def linkage(
    X: Any,
    method: str = "average",
    *,
    memory_limit: int | None = None,
    progress: Progress = None,
    checkpoint: str | Path | None = None,
) -> Float64:
    """Dendrogram of the rows of X (n, d), n >= 2, as SciPy's linkage matrix Z (n-1, 4), float64.

    Rows are compared by direction: X is normalised in a copy, and never written to. A zero row has no direction and
    is refused.

    method:
        "average"   mean cosine distance (the paper's choice); exact, matrix-free, O(n d) memory
        "ward"      Ward on the unit sphere, Euclidean distances and SciPy's heights; exact, matrix-free
        "complete", "single"   cosine distance, merged by SciPy; needs 8 n (n - 1) / 2 bytes, twice over
    memory_limit: bytes the working arrays may take; smaller products are used to keep to it, and a limit that
        cannot be kept raises `ParameterError` before any work is done
    progress: True for a bar, False for none, None for a bar on a terminal from 20,000 points on, or a function of
        (merges done, merges in all), called from the first second on
    checkpoint: a file in which average linkage keeps its state every two minutes; if it is there, the run goes on from
        it, to the same bits, and at the end it is removed. The file of other rows, or half a file, raises `DataError`.
        Fewer than 40,000 rows, and rows without any structure, are done without one.

    Heights agree with SciPy's to rounding, and so does every flat cut that does not fall on a tie. Equal rows are
    merged first, at height 0. Rows of Z are sorted by height; heights never decrease towards the root.
    """
    _gate.choice(method, "method", LINKAGES)
    n, d = _gate.embedding(X).shape
    if n < 2:
        raise DataError("X", "rows", f"there is {n}, and a dendrogram joins at least two", "pass two or more points")
    check_limit(n, d, method, memory_limit)
    staged = method == "average" and memory_limit is None
    if checkpoint is not None:
        if not staged:
            raise ParameterError("checkpoint is for average linkage without a memory_limit; leave one of them out.")
        gates.instance("checkpoint", checkpoint, (str, Path))  # type: ignore[arg-type]
    if staged and n >= STAGES_FROM:
        return grow_in_stages(_gate.unit_rows(X), progress, checkpoint)
    return grow(_gate.unit_rows(X), method, memory_limit, progress)


def grow_in_stages(rows: UnitRows, progress: Progress = False, checkpoint: str | Path | None = None) -> Float64:
    """Average linkage of very many rows that passed the gate, see `_stages`; `rows` is used up."""
    n = len(rows)
    with Reporter(progress, n - 1, "linkage", "merge") as reporter:
        first, copies = distinct_rows(rows)
        same = np.flatnonzero(first[copies] != np.arange(n))
        pairs = np.stack([first[copies[same]], same], axis=1)
        heights = np.zeros(len(same))
        reporter.add(len(same))
        if len(first) > 1:
            size = np.bincount(copies, minlength=len(first)).astype(np.float64)
            del copies
            sums = _gathered(rows, first)
            if len(same):
                sums *= size[:, None]
            slots, far = _merged(Table(sums, size), progress, reporter, checkpoint)
            pairs = np.concatenate([pairs, first[slots]])
            heights = np.concatenate([heights, far])
    return canonical(pairs, heights)


def _merged(
    table: Table, progress: Progress, reporter: Reporter, checkpoint: str | Path | None
) -> tuple[Int64, Float64]:
    """All merges of distinct rows: in stages, or in one where there is nothing to leave out."""
    n = len(table.size)
    kept = None if checkpoint is None else Checkpoint(checkpoint, table)
    state = (None if kept is None else kept.load()) or State.new(n)
    searching: Progress = progress if isinstance(progress, bool | None) else lambda *_: reporter.add()
    with Reporter(searching, n, "linkage, first pass", "row") as searched:
        save = nobody_saves if kept is None else kept.save
        found = agglomerate_in_stages(table, state, searched.add, reporter.add, save)
        if found is None:
            del state
            found = agglomerate(table, AVERAGE, BLOCK_BYTES, searched.add, reporter.add)
    if kept is not None:
        kept.remove()
    return found


def check_limit(n: int, d: int, method: str, memory_limit: int | None) -> None:
    """Whether the tree of n points of d numbers can be made within a limit."""
    if memory_limit is None:
        return
    _gate.whole(memory_limit, "memory_limit", 1, 2**63)
    if LINKAGES[method].matrix_free:
        block_bytes(n, d, memory_limit)
    elif 8 * n * (n - 1) > memory_limit:
        raise ParameterError(
            f"{method} linkage of {n:,} points needs the distance matrix, {8 * n * (n - 1):,} bytes, "
            f"and memory_limit is {memory_limit:,}; use average or ward."
        )


def grow(rows: UnitRows, method: str, memory_limit: int | None = None, progress: Progress = False) -> Float64:
    """`linkage` of rows that passed the gate; `rows` is used up."""
    n, d = rows.shape
    if not LINKAGES[method].matrix_free:
        with Reporter(progress, n - 1, "linkage", "merge") as reporter:
            tree = hierarchy.linkage(_distances(rows, reporter.add), method)  # SciPy's merging is deaf, but short
            reporter.add(n - 1)
        return np.asarray(tree, dtype=np.float64)
    kind, block = LINKAGES[method].code, block_bytes(n, d, memory_limit)
    with Reporter(progress, n - 1, "linkage", "merge") as reporter:
        first, copies = distinct_rows(rows)
        same = np.flatnonzero(first[copies] != np.arange(n))
        pairs = np.stack([first[copies[same]], same], axis=1)
        heights = np.zeros(len(same))
        reporter.add(len(same))
        if len(first) > 1:
            size = np.bincount(copies, minlength=len(first)).astype(np.float64)
            del copies
            sums = _gathered(rows, first)
            if len(same):
                sums *= size[:, None]
            searching: Progress = progress if isinstance(progress, bool | None) else lambda *_: reporter.add()
            with Reporter(searching, len(first), "linkage, first pass", "row") as searched:
                slots, far = agglomerate(Table(sums, size), kind, block, searched.add, reporter.add)
            pairs = np.concatenate([pairs, first[slots]])
            heights = np.concatenate([heights, np.sqrt(np.maximum(far, 0.0)) if kind == WARD else far])
    return canonical(pairs, heights)


def _distances(rows: Float64, beat: Callable[[], object]) -> Float64:
    """Cosine distances of unit rows as SciPy's condensed vector, (n (n - 1) / 2,); `beat` is called as it fills."""
    n, done = len(rows), 0
    distances = np.empty(n * (n - 1) // 2)
    for start in range(0, n - 1, MATRIX_ROWS):
        part = cdist(rows[start : min(start + MATRIX_ROWS, n - 1)], rows[start + 1 :], "sqeuclidean")
        for i, squares in enumerate(part):  # |u - v|² = 2 (1 - u·v), and exactly 0 where rows are equal
            after = n - 1 - start - i
            np.multiply(0.5, squares[i:], out=distances[done : done + after])
            done += after
        beat()
    return distances


def _gathered(rows: Float64, first: Int64) -> Float64:
    """The rows at ascending positions, moved to the front of their own array: equal rows must not cost a copy."""
    if len(first) < len(rows):
        for start in range(0, len(first), _gate.BLOCK_ROWS):
            chosen = first[start : start + _gate.BLOCK_ROWS]
            rows[start : start + len(chosen)] = rows[chosen]
    return rows[: len(first)]


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
    step = _gate.BLOCK_ROWS
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
