"""Several trees and several cuts of one set of a few thousand points, out of one distance matrix.

    matrix = one_matrix(X, room)                        # room: memory that serves one set after the other
    whole_cuts(matrix, "average", ("silhouette", "gap"))             # of one tree over all points
    inner_cuts(matrix, partition, "average", ("silhouette", "gap"))  # of a tree inside each cluster, at one λ

The same partitions as `linkage` and `cut_…`, and as `refine`, which need no matrix and are for larger sets. A thousand
local graphs of a few thousand addresses are another trade: there the matrix fits, and serves all linkages and cuts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from btcnb import gates
from btcnb.cluster import _gate
from btcnb.cluster._gate import Float64, Int64, Trees
from btcnb.cluster._one_matrix import Groups, fill_distances, forest_trees, grown, near_groups, with_copies
from btcnb.cluster._one_matrix_levels import best_thresholds
from btcnb.cluster._trees import flatten, largest_below
from btcnb.cluster.cuts import CRITERIA, CUTS, N_MIN, Work, _no_rows, global_threshold
from btcnb.cluster.linkage import LINKAGES, distinct_rows

MOST_POINTS = 20_000
"""Above it a matrix takes more than 3 GB: take `linkage` and `refine`."""


class Room:
    """A matrix's worth of memory that serves one set of points after the other: fresh pages cost more than sums."""

    def __init__(self) -> None:
        self._memory = np.empty(0)

    def square(self, m: int) -> Float64:
        """A matrix of m by m numbers, with whatever is in it."""
        if len(self._memory) < m * m:
            self._memory = np.empty(0)  # let go first
            self._memory = np.empty(m * m)
        return self._memory[: m * m].reshape(m, m)


class OneMatrix(NamedTuple):
    """Cosine distances of the m distinct of n points; good until its `room` serves the next set."""

    distances: Float64  # (m, m), 0 on the diagonal
    copies: Int64  # (n,) the distinct point that each one equals, numbered by first appearance
    weight: Float64  # (m,) points that are equal to it
    groups: Groups  # of the distinct points, which every linkage may merge on their own


def one_matrix(X: Any, room: Room | None = None) -> OneMatrix:
    """The matrix of the rows of X (n, d), compared by direction; zero rows are refused, see `_gate.directed`."""
    rows = _gate.unit_rows(X)
    if not 1 <= len(rows) <= MOST_POINTS:
        gates.whole("the number of rows of X", len(rows), f"[1, {MOST_POINTS}]")
    first, copies = distinct_rows(rows)
    room = Room() if room is None else gates.instance("room", room, Room)
    distances = room.square(len(first))
    fill_distances(rows[first], distances)
    weight = np.bincount(copies, minlength=len(first)).astype(np.float64)
    return OneMatrix(distances, copies, weight, near_groups(distances))


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
    return several_whole_cuts(matrix, (method,), cuts, alpha=alpha, depth=depth)[method]


def several_whole_cuts(
    matrix: OneMatrix,
    methods: Sequence[str],
    cuts: Sequence[str] = tuple(CUTS),
    *,
    alpha: float = 1.0,
    depth: int = 2,
) -> dict[str, dict[str, Int64]]:
    """`whole_cuts` by linkage; reading the matrix once for the silhouettes of all of them."""
    names = _names(cuts)
    if len(matrix.copies) < 2:
        alone = {name: np.zeros(len(matrix.copies), dtype=np.int64) for name in names}
        return {_gate.choice(method, "method", LINKAGES): dict(alone) for method in methods}
    distinct = [_distinct_tree(matrix, method) for method in methods]
    best = np.full(len(distinct), np.nan)
    if "silhouette" in names and distinct:
        best = best_thresholds(matrix.distances, matrix.weight, np.stack(distinct))
    one = np.zeros(1, dtype=np.int64)
    found = {}
    for method, Z, silhouette in zip(methods, distinct, best.tolist(), strict=True):
        values = _Values(_gate.tree(with_copies(Z, matrix.copies)), one, alpha, depth)
        found[method] = {
            name: values.flat(name, silhouette if name == "silhouette" else float(values.thresholds(name)[0]))
            for name in names
        }
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
    values = _Values(trees, large, alpha, depth)
    found = {}
    for name in names:
        local = np.full(len(sizes), np.nan)
        local[large] = own[large] if name == "silhouette" else values.thresholds(name)
        threshold = global_threshold(sizes, local, n_min)
        flat = np.empty(len(labels), dtype=np.int64)
        flat[members] = values.flat(name, float("inf") if np.isnan(threshold) else threshold)
        found[name] = flat
    return found


class _Values:
    """Values of merges and thresholds of rules that several cuts of the same trees ask for, each made once."""

    def __init__(self, trees: Trees, which: Int64, alpha: float, depth: int) -> None:
        self._trees, self._work, self._depth = trees, Work(_no_rows, trees, which, alpha, depth), depth
        self._largest: dict[str, Float64] = {}
        self._thresholds: dict[Callable[[Work], Float64], Float64] = {}

    def thresholds(self, cut: str) -> Float64:
        """One for each of the wanted trees."""
        rule = CUTS[cut].thresholds
        if rule not in self._thresholds:  # both readings of the inconsistency cut have one threshold
            self._thresholds[rule] = rule(self._work)
        return self._thresholds[rule]

    def flat(self, cut: str, threshold: float) -> Int64:
        """As `below`."""
        criterion = CUTS[cut].criterion
        if criterion not in self._largest:
            self._largest[criterion] = largest_below(self._trees, CRITERIA[criterion](self._trees, self._depth))
        return flatten(self._trees, self._largest[criterion] < threshold)


def _distinct_tree(matrix: OneMatrix, method: str) -> Float64:
    code = LINKAGES[_gate.choice(method, "method", LINKAGES)].code
    return grown(matrix.distances, matrix.weight, matrix.groups, code)


def _names(cuts: Iterable[str]) -> list[str]:
    return [_gate.choice(name, "cut", CUTS) for name in gates.items("cuts", cuts)]
