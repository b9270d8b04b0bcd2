"""Hierarchical clustering by direction, in SciPy's output format, without the distance matrix where possible."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastcluster
import numpy as np
from scipy.cluster import hierarchy

from meanlink import _validate
from meanlink._chains import AVERAGE, COMPLETE, SINGLE, WARD
from meanlink._checkpoint import Checkpoint
from meanlink._compile import compiled
from meanlink._dendrogram import linkage_matrix
from meanlink._level_scores import best_threshold
from meanlink._matrix import near_groups, square_distances, tree_of, with_copies
from meanlink._neighbours import LENGTH, Table, equal
from meanlink._stages import State, agglomerate
from meanlink._types import Float64, Int64, UnitRows
from meanlink.progress import Progress, Reporter

LINKAGES = {"average": AVERAGE, "ward": WARD, "complete": COMPLETE, "single": SINGLE}
"""Every linkage and its number in compiled code."""

MATRIX_POINTS = 5_000
"""Points up to which a distance matrix (200 MB) is made: it is faster, and serves all linkages."""

EXACT_BELOW = 1e-6
"""Distances below this are measured by differences: products round by 1e-16, which a root makes 1e-8."""

ROWS = 256
"""Rows of the distance matrix filled at a time."""


def linkage(
    X: Any, method: str = "average", *, progress: Progress = None, checkpoint: str | Path | None = None
) -> Float64:
    """Dendrogram of the rows of X as SciPy's linkage matrix.

    Rows are compared by direction: lengths do not matter. X is not changed.

    Parameters
    ----------
    X : array_like, shape (n, d)
        At least two points; a row of zeros has no direction and is refused.
    method : {"average", "ward", "complete", "single"}
        "average" is the mean cosine distance, exact, in O(n d) memory. "ward" is Ward's criterion on the unit sphere,
        with Euclidean distances and SciPy's heights. "complete" and "single" are the largest and smallest cosine
        distance. All but "average" use 4 n² bytes for distances, and "ward" and "single" do without if that is too
        much.
    progress : bool, callable or None
        True for a bar, False for none, None for a bar on a terminal from 20,000 points on, or a function of
        (merges done, merges in all).
    checkpoint : path, optional
        A file in which average linkage of more than 5,000 points keeps its state every two minutes. If it is there, the
        run goes on from it, to the same bits; at the end it is removed.

    Returns
    -------
    Z : ndarray, shape (n - 1, 4)
        Rows are sorted by height. Equal rows of X are merged first, at height 0. Heights agree with SciPy's to
        rounding, and so does every flat cut that does not fall on a tie.

    Examples
    --------
    >>> linkage([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]])
    array([[0., 2., 0., 2.],
           [1., 3., 1., 3.]])
    """
    code = LINKAGES[_validate.choice("method", method, LINKAGES)]
    n, d = _validate.points(X).shape
    if n < 2:
        raise ValueError(f"X has {n} rows; a dendrogram joins at least two points.")
    if checkpoint is not None and (code != AVERAGE or not isinstance(checkpoint, str | Path)):
        raise ValueError("checkpoint must be the path of a file, and is for average linkage only.")
    if code == COMPLETE:
        _validate.require_memory(8 * n * n, f"Complete linkage of {n:,} points")
    _validate.require_memory(n * (16 * d + 12 * LENGTH + 96), f"Linkage of {n:,} points")
    return tree_of_rows(_validate.unit_rows(X), method, progress, checkpoint)


class DistanceMatrix:
    """Several trees and their best cuts of one set of a few thousand points, out of one matrix of cosine distances.

    All results are those of the functions without a matrix. A thousand such sets are another task than one large set.

    Parameters
    ----------
    X : array_like, shape (n, d)
        Points, compared by direction.
    reuse : DistanceMatrix, optional
        A matrix that is no longer needed, whose memory the new one takes over: fresh memory costs more than sums.

    Examples
    --------
    >>> matrix = DistanceMatrix([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]])
    >>> matrix.linkage("complete")
    array([[0., 2., 0., 2.],
           [1., 3., 1., 3.]])
    >>> matrix.cut_silhouette("complete")
    0.5
    """

    def __init__(self, X: Any, reuse: DistanceMatrix | None = None) -> None:
        rows = _validate.unit_rows(X)
        if not len(rows):
            raise ValueError("X has no rows.")
        _validate.require_memory(8 * len(rows) ** 2, f"The distance matrix of {len(rows):,} points")
        first, self._copies, self._weight = distinct_rows(rows)
        self.points, m = len(rows), len(first)
        self._memory, self._distances = np.empty(0), np.empty((0, 0))
        if reuse is not None:
            self._memory, reuse._memory = reuse._memory, self._memory
            reuse._distances = self._memory[:0].reshape(0, 0)
        if len(self._memory) < m * m:
            self._memory = np.empty(0)  # let go first
            self._memory = np.empty(m * m)
        self._distances = square_distances(rows[first], self._memory)
        self._groups = near_groups(self._distances)
        self._trees: dict[str, Float64] = {}

    def _tree(self, method: str) -> Float64:
        """The tree of the distinct points."""
        code = LINKAGES[_validate.choice("method", method, LINKAGES)]
        if method not in self._trees:
            self._trees[method] = tree_of(self._distances, self._weight, self._groups, code)
        return self._trees[method]

    def linkage(self, method: str = "average") -> Float64:
        """The linkage matrix (n-1, 4), as `meanlink.linkage` gives it."""
        return with_copies(self._tree(method), self._copies)

    def cut_silhouette(self, method: str = "average") -> float:
        """The threshold of the tree's best level, as `meanlink.cut_silhouette` gives it."""
        return float(best_threshold(self._distances, self._weight, self._tree(method)))


def tree_of_rows(
    rows: UnitRows, method: str, progress: Progress = False, checkpoint: str | Path | None = None
) -> Float64:
    """`linkage` of unit rows (n, d), which are used up."""
    n = len(rows)
    with Reporter(progress, n - 1, "linkage", "merge") as reporter:
        if n <= MATRIX_POINTS:
            first, copies, weight = distinct_rows(rows)
            distances = square_distances(rows[first])
            Z = with_copies(tree_of(distances, weight, near_groups(distances), LINKAGES[method]), copies)
        elif method != "average":
            Z = _by_distances(rows, method, reporter.add)
        else:
            return _in_stages(rows, progress, reporter, checkpoint)
        reporter.add(n - 1)
    return Z


def _in_stages(rows: UnitRows, progress: Progress, reporter: Reporter, checkpoint: str | Path | None) -> Float64:
    """Average linkage without a distance matrix."""
    n = len(rows)
    first, copies, size = distinct_rows(rows)
    same = np.flatnonzero(first[copies] != np.arange(n))
    pairs, heights = np.stack([first[copies[same]], same], axis=1), np.zeros(len(same))
    reporter.add(len(same))
    if len(first) > 1:
        del copies
        sums = _to_front(rows, first)
        if len(same):
            sums *= size[:, None]
        table = Table(sums, size)
        kept = None if checkpoint is None else Checkpoint(checkpoint, table)
        state = (None if kept is None else kept.load()) or State.new(len(first))
        searching: Progress = progress if isinstance(progress, bool | None) else lambda *_: reporter.add()
        with Reporter(searching, len(first), "linkage, first search", "row") as searched:
            save = (lambda _: None) if kept is None else kept.save
            slots, far = agglomerate(table, state, searched.add, reporter.add, save)
        if kept is not None:
            kept.remove()
        pairs, heights = np.concatenate([pairs, first[slots]]), np.concatenate([heights, far])
    return linkage_matrix(pairs, heights)


def _by_distances(rows: UnitRows, method: str, beat: Callable[[], object]) -> Float64:
    """Ward's and single linkage by fastcluster, complete linkage by SciPy."""
    n = len(rows)
    try:
        _validate.require_memory(5 * n * n, "The distance matrix")
    except ValueError:
        if method == "complete":
            raise
        Z = fastcluster.linkage_vector(rows, method, "euclidean")  # no matrix, but d times the work
        if method == "single":
            Z[:, 2] = 0.5 * Z[:, 2] ** 2
        return np.asarray(Z, dtype=np.float64)
    distances = _condensed(rows, beat)
    if method == "complete":
        return np.asarray(hierarchy.linkage(distances, method), dtype=np.float64)
    if method == "ward":
        np.sqrt(2.0 * distances, out=distances)
    return np.asarray(fastcluster.linkage(distances, method, preserve_input=False), dtype=np.float64)


def _condensed(rows: Float64, beat: Callable[[], object]) -> Float64:
    """Cosine distances of unit rows as SciPy's condensed vector (n (n - 1) / 2,); `beat` is called as it fills."""
    n, done = len(rows), 0
    distances = np.empty(n * (n - 1) // 2)
    for start in range(0, n - 1, ROWS):
        stop = min(start + ROWS, n - 1)
        part = 1.0 - rows[start:stop] @ rows[start + 1 :].T
        _measure_again(part, rows[start:stop], rows[start + 1 :])
        for i in range(stop - start):
            after = n - 1 - start - i
            distances[done : done + after] = part[i, i:]
            done += after
        beat()
    return distances


@compiled()
def _measure_again(part: Float64, left: Float64, right: Float64) -> None:
    """Replace small distances (L, R) of two sets of unit rows by half their squared difference, which is exact."""
    for i in range(len(left)):
        for j in range(len(right)):
            if part[i, j] < EXACT_BELOW:
                part[i, j] = 0.0
                for k in range(left.shape[1]):
                    part[i, j] += 0.5 * (left[i, k] - right[j, k]) ** 2


def _to_front(rows: Float64, first: Int64) -> Float64:
    """The rows at ascending positions, moved to the front of their own array: equal rows must not cost a copy."""
    if len(first) < len(rows):
        for start in range(0, len(first), _validate.BLOCK_ROWS):
            chosen = first[start : start + _validate.BLOCK_ROWS]
            rows[start : start + len(chosen)] = rows[chosen]
    return rows[: len(first)]


def distinct_rows(rows: Float64) -> tuple[Int64, Int64, Float64]:
    """Positions of the first of each set of equal rows, ascending; for every row the number of its set; set sizes."""
    key = _keys(rows)
    of_set = _first_equal(rows, key, np.argsort(key, kind="stable"))
    first = np.flatnonzero(of_set == np.arange(len(rows)))
    copies = np.searchsorted(first, of_set)
    return first, copies, np.bincount(copies, minlength=len(first)).astype(np.float64)


@compiled()
def _keys(rows: Float64) -> Int64:
    """A number for every row that equal rows share, and other rows hardly ever."""
    keys = np.empty(len(rows), dtype=np.int64)
    for i in range(len(rows)):
        key = np.uint64(0)
        for value in rows[i]:
            bits = np.float64(value + 0.0).view(np.uint64)  # -0 is 0
            key = (key ^ bits) * np.uint64(0x9E3779B97F4A7C15)
            key ^= key >> np.uint64(29)
        keys[i] = np.int64(key)
    return keys


@compiled()
def _first_equal(rows: Float64, key: Int64, order: Int64) -> Int64:
    """The first row that equals each row; `order` sorts the keys, and keeps rows of one key in their order."""
    first = np.arange(len(rows))
    begin = 0
    for p in range(len(order)):
        if key[order[p]] != key[order[begin]]:
            begin = p
        for q in range(begin, p):
            if first[order[q]] == order[q] and equal(rows[order[q]], rows[order[p]]):
                first[order[p]] = order[q]
                break
    return first
