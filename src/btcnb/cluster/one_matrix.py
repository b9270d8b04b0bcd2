"""Several trees and several cuts of one set of a few thousand points, out of one distance matrix.

    matrix = one_matrix(X, room)                        # room: memory that serves one set after the other
    whole_cuts(matrix, "average", ("silhouette", "gap"))             # of one tree over all points
    inner_cuts(matrix, partition, "average", ("silhouette", "gap"))  # of a tree inside each cluster, at one λ

The same partitions as `linkage` and `cut_…`, and as `refine`, which need no matrix and are for larger sets. A thousand
local graphs of a few thousand addresses are another trade: there the matrix fits, and serves all linkages and cuts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from btcnb import gates
from btcnb.cluster import _gate
from btcnb.cluster._gate import Float64, Int64, Trees
from btcnb.cluster._one_matrix import best_threshold, forest_trees, grown, with_copies
from btcnb.cluster._trees import below
from btcnb.cluster.cuts import CRITERIA, CUTS, N_MIN, Work, _no_rows, above_root, global_threshold
from btcnb.cluster.linkage import LINKAGES, distinct_rows

MOST_POINTS = 20_000
"""Above it a matrix takes more than 3 GB: take `linkage` and `refine`."""


class Room:
    """Two matrices' worth of memory that serves one set of points after the other: fresh pages cost more than sums."""

    def __init__(self) -> None:
        self._memory = [np.empty(0), np.empty(0)]

    def square(self, which: int, m: int) -> Float64:
        """Matrix `which` (0 or 1) of m by m numbers, with whatever is in it."""
        if len(self._memory[which]) < m * m:
            self._memory[which] = np.empty(0)  # let go first
            self._memory[which] = np.empty(m * m)
        return self._memory[which][: m * m].reshape(m, m)


class OneMatrix(NamedTuple):
    """Cosine distances of the m distinct of n points; good until its `room` serves the next set."""

    distances: Float64  # (m, m), 0 on the diagonal
    copies: Int64  # (n,) the distinct point that each one equals, numbered by first appearance
    weight: Float64  # (m,) points that are equal to it
    room: Room


def one_matrix(X: Any, room: Room | None = None) -> OneMatrix:
    """The matrix of the rows of X (n, d), compared by direction; zero rows are refused, see `_gate.directed`."""
    rows = _gate.unit_rows(X)
    if not 1 <= len(rows) <= MOST_POINTS:
        gates.whole("the number of rows of X", len(rows), f"[1, {MOST_POINTS}]")
    first, copies = distinct_rows(rows)
    room = Room() if room is None else gates.instance("room", room, Room)
    distances = room.square(0, len(first))
    distinct = rows[first]
    np.dot(distinct, distinct.T, out=distances)
    np.subtract(1.0, distances, out=distances)
    np.maximum(distances, 0.0, out=distances)
    np.fill_diagonal(distances, 0.0)
    return OneMatrix(distances, copies, np.bincount(copies, minlength=len(first)).astype(np.float64), room)


def whole_tree(matrix: OneMatrix, method: str = "average") -> Float64:
    """`linkage` of all points: SciPy's matrix (n-1, 4)."""
    return with_copies(_distinct_tree(matrix, method), matrix.copies)


def whole_cuts(
    matrix: OneMatrix,
    method: str = "average",
    cuts: Sequence[str] = tuple(CUTS),
    *,
    alpha: float = 1.0,
    depth: int = 2,
) -> dict[str, Int64]:
    """Partition (n,) of the points for each of the rules of `CUTS`, out of one tree over all of them."""
    names = _names(cuts)
    if len(matrix.copies) < 2:
        return {name: np.zeros(len(matrix.copies), dtype=np.int64) for name in names}
    distinct = _distinct_tree(matrix, method)
    tree = _gate.tree(with_copies(distinct, matrix.copies))
    one = np.zeros(1, dtype=np.int64)
    found = {}
    for name in names:
        if name == "silhouette":
            threshold = float(best_threshold(matrix.distances, matrix.weight, distinct))
        else:
            threshold = float(CUTS[name].thresholds(Work(_no_rows, tree, one, alpha, depth))[0])
        found[name] = _flat(tree, name, max(threshold, above_root(np.zeros(0))), depth)
    return found


def inner_cuts(
    matrix: OneMatrix,
    partition: Any,
    method: str = "average",
    cuts: Sequence[str] = tuple(CUTS),
    *,
    alpha: float = 1.0,
    depth: int = 2,
    n_min: int = N_MIN,
) -> dict[str, Int64]:
    """Partition (n,) by each of the rules, as `refine` gives it: a tree in each cluster, one λ for all of them."""
    names = _names(cuts)
    labels = _gate.classes(partition, len(matrix.copies), "partition")
    members = np.argsort(labels, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=1))]).astype(np.int64)
    code = LINKAGES[_gate.choice(method, "method", LINKAGES)].code
    wanted = "silhouette" in names
    merges, own = forest_trees(matrix.distances, matrix.copies, members, offsets, code, n_min, wanted)
    trees = _gate.trees(merges, offsets, "forest")
    sizes = np.diff(offsets)
    large = np.flatnonzero(sizes >= n_min)
    found = {}
    for name in names:
        local = np.full(len(sizes), np.nan)
        work = Work(_no_rows, trees, large, alpha, depth)
        local[large] = own[large] if name == "silhouette" else CUTS[name].thresholds(work)
        threshold = global_threshold(sizes, local, n_min)
        flat = np.empty(len(labels), dtype=np.int64)
        flat[members] = _flat(trees, name, float("inf") if np.isnan(threshold) else threshold, depth)
        found[name] = flat
    return found


def _distinct_tree(matrix: OneMatrix, method: str) -> Float64:
    code = LINKAGES[_gate.choice(method, "method", LINKAGES)].code
    m = len(matrix.distances)
    if m < 2:
        return np.empty((0, 4))
    return grown(matrix.distances, matrix.weight, code, matrix.room.square(1, m))


def _flat(trees: Trees, cut: str, threshold: float, depth: int) -> Int64:
    return below(trees, CRITERIA[CUTS[cut].criterion](trees, depth), threshold)


def _names(cuts: Iterable[str]) -> list[str]:
    return [_gate.choice(name, "cut", CUTS) for name in gates.items("cuts", cuts)]
