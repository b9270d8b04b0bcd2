"""One dendrogram per cluster of a partition, kept in four flat arrays: a forest of a million leaves is four arrays,
not a million.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from btcnb import gates
from btcnb.cluster import _gate
from btcnb.cluster._gate import Float64, Int64, Trees
from btcnb.cluster._progress import Progress, Reporter
from btcnb.cluster._small import SMALL, small_trees
from btcnb.cluster._trees import below
from btcnb.cluster.cuts import CRITERIA, CUTS, N_MIN, Work, batches
from btcnb.cluster.linkage import LINKAGES, check_limit, grow
from btcnb.errors import DataError
from btcnb.store import storable


@storable("forest")
@dataclass(frozen=True)
class Forest:
    """Dendrograms of the clusters of a partition of n points.

    clusters (k,): the partition's own labels; tree t has leaves members[offsets[t] : offsets[t+1]] (positions of
    points, ascending) and its linkage matrix is tree(t). A cluster of one point has a tree without merges.
    """

    clusters: Any
    members: Int64
    offsets: Int64
    merges: Float64

    def __len__(self) -> int:
        return len(self.clusters)

    @property
    def sizes(self) -> Int64:
        return np.diff(self.offsets)

    def leaves(self, t: int) -> Int64:
        return self.members[self.offsets[t] : self.offsets[t + 1]]

    def tree(self, t: int) -> Float64:
        """SciPy's linkage matrix (n_t - 1, 4); leaf i of it is point leaves(t)[i]."""
        return self.merges[self.offsets[t] - t : self.offsets[t + 1] - t - 1]

    def __iter__(self) -> Iterator[tuple[Any, Int64, Float64]]:
        """(cluster label, positions of its points, linkage matrix) of every tree."""
        for t in range(len(self)):
            yield self.clusters[t], self.leaves(t), self.tree(t)

    def labelled(self, labels: Any, mask: Any = None) -> Iterator[tuple[Float64, Any, Any]]:
        """(Z, labels, mask) of every tree with at least two leaves, as `forest_purity` takes them."""
        values = np.asarray(labels)
        for t in np.flatnonzero(self.sizes > 1):
            leaves = self.leaves(int(t))
            yield self.tree(int(t)), values[leaves], None if mask is None else np.asarray(mask)[leaves]

    def trees(self) -> Trees:
        """What compiled code sees of the forest: checked, as anybody can make a `Forest` of anything."""
        members, offsets = (_gate.integers(part, "forest", "arrays") for part in (self.members, self.offsets))
        merges = _gate.array(self.merges, "forest")
        sizes = np.diff(offsets) if offsets.ndim == 1 and len(offsets) else np.zeros(1, dtype=np.int64)
        n = int(sizes.sum())
        if (
            (sizes < 1).any()
            or offsets[0] != 0
            or _gate.array(self.clusters, "forest").shape != sizes.shape
            or members.shape != (n,)
            or not np.array_equal(np.sort(members), np.arange(n))
            or merges.shape != (n - len(sizes), 4)
        ):
            raise DataError("forest", "arrays", "do not fit each other", "pass the result of dendrograms")
        return _gate.trees(merges, offsets, "forest")


def dendrograms(
    X: Any,
    partition: Any,
    method: str = "average",
    *,
    memory_limit: int | None = None,
    progress: Progress = None,
) -> Forest:
    """A dendrogram inside each cluster of a partition (n,) of the rows of X (n, d); see `linkage` for methods and
    limits.

    progress: True for a bar, False for none, None for a bar on a terminal from 20,000 points on, or a function of
        (points done, points in all), called from the first second on
    """
    code = LINKAGES[_gate.choice(method, "method", LINKAGES)].code
    rows = _gate.embedding(X)
    labels = _gate.classes(partition, len(rows), "partition")
    members = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels, minlength=1)[: len(rows)]
    check_limit(int(sizes.max(initial=1)), rows.shape[1], method, memory_limit)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    forest = Forest(
        np.asarray(partition)[members[offsets[:-1]]], members, offsets, np.empty((len(rows) - len(sizes), 4))
    )
    with Reporter(progress, len(rows), "linkage") as reporter:
        small = np.flatnonzero(sizes <= SMALL)
        for part in batches(sizes[small]):
            some = small[part]
            points = np.concatenate([forest.leaves(int(t)) for t in some])
            begin = np.concatenate([[0], np.cumsum(sizes[some])])
            unit = _gate.unit_rows(rows[points], names=points)
            small_trees(unit, begin, offsets[some] - some, code, forest.merges)
            reporter.add(len(points))
        for t in np.flatnonzero(sizes > SMALL):
            points = forest.leaves(int(t))
            unit = _gate.unit_rows(rows[points], names=points)
            forest.tree(int(t))[:] = grow(unit, method, memory_limit, lambda *_: reporter.add())
            reporter.add(len(points))
    return forest


def local_thresholds(
    X: Any,
    forest: Forest,
    cut: str = "silhouette",
    *,
    n_min: int = N_MIN,
    alpha: float = 1.0,
    depth: int = 2,
    progress: Progress = None,
) -> Float64:
    """Threshold t_k of every tree of the forest by one of the rules in `CUTS`, float64 (k,); NaN below `n_min` points.

    progress: as in `dendrograms`
    """
    rule = CUTS[_gate.choice(cut, "cut", CUTS)]
    n_min, depth = _gate.whole(n_min, "n_min", 2), _gate.whole(depth, "depth", 1)
    alpha = _gate.number(alpha, "alpha", 0.0)
    trees = gates.instance("forest", forest, Forest).trees()
    rows = _gate.embedding(X)
    if len(rows) != len(forest.members):
        problem = f"there are {len(rows)} for a forest of {len(forest.members)} points"
        raise DataError("X", "rows", problem, "pass the embeddings that the forest was made of")
    which = np.flatnonzero(forest.sizes >= n_min)
    found = np.full(len(forest), np.nan)
    with Reporter(progress, int(forest.sizes[which].sum()), "cut") as reporter:

        def unit(leaves: Int64) -> _gate.UnitRows:
            points = forest.members[leaves]
            return _gate.unit_rows(rows[points], names=points)

        found[which] = rule.thresholds(Work(unit, trees, which, alpha, depth, reporter.add))
        reporter.add(reporter.total - reporter.done)  # a rule that is done at once says nothing on its way
    return found


def merge_values(forest: Forest, criterion: str, depth: int = 2) -> Float64:
    """What a threshold is compared with, for every merge: its height, or its inconsistency coefficient."""
    values = CRITERIA[_gate.choice(criterion, "criterion", CRITERIA)]
    return values(gates.instance("forest", forest, Forest).trees(), _gate.whole(depth, "depth", 1))


def cut_forest(forest: Forest, values: Any, threshold: float) -> Int64:
    """Partition of all points: a merge is kept where its value and those below it are less than the threshold."""
    trees = gates.instance("forest", forest, Forest).trees()
    threshold = _gate.number(threshold, "threshold", infinite=True)
    labels = np.empty(len(forest.members), dtype=np.int64)
    labels[forest.members] = below(trees, _gate.reals(values, "values", len(trees.height)), threshold)
    return labels
