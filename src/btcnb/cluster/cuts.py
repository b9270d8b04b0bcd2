"""Where to cut a dendrogram: the paper's three rules, the global threshold, and the flat partition of a cut.

Everywhere, a cut at λ joins two points when the height of their lowest common ancestor is strictly below λ
(the paper's d_u(x, y) < λ), so a merge at height λ or above is undone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from btcnb.cluster import _gate
from btcnb.cluster._compile import compiled
from btcnb.cluster._gate import Float64, Int64, Trees, UnitRows
from btcnb.cluster._progress import nobody
from btcnb.cluster._small import SMALL, small_cuts
from btcnb.cluster._trees import ascending, below, inconsistency
from btcnb.cluster.levels import levels_of
from btcnb.errors import DataError, ParameterError

N_MIN = 3
"""Default smallest cluster that takes part in the global threshold: two points have one level and nothing to choose."""

BATCH_ROWS = 2**15
"""Points of small clusters handled at a time: their float64 rows take 32 MB at 128 dimensions."""

CRITERIA: dict[str, Callable[[Trees, int], Float64]] = {
    "distance": lambda trees, depth: trees.height,
    "inconsistent": inconsistency,
}
"""What a threshold can be compared with: a value of every merge."""


class Work(NamedTuple):
    """What a rule may use: unit rows of any leaves, trees, the numbers of those to cut, and the settings.

    `report` hears how many points are done.
    """

    rows: Callable[[Int64], UnitRows]
    trees: Trees
    which: Int64
    alpha: float = 1.0
    depth: int = 2
    report: Callable[[int], None] = nobody

    def sizes(self) -> Int64:
        return np.diff(self.trees.offsets)[self.which]


class Rule(NamedTuple):
    """criterion: what its thresholds are compared with; thresholds: one for each of the wanted trees."""

    criterion: str
    thresholds: Callable[[Work], Float64]


def cut(Z: Any, threshold: float) -> Int64:
    """Partition of the n leaves at height `threshold`: int64 labels 0..k-1 in order of first appearance."""
    return flat(Z, threshold)


def flat(Z: Any, threshold: float, criterion: str = "distance", depth: int = 2) -> Int64:
    """Partition of the leaves under a threshold of either kind.

    criterion: "distance" compares merge heights (`cut`), "inconsistent" compares inconsistency coefficients, to
        `depth` levels down: a subtree stays whole if every merge in it has a coefficient below the threshold.
    """
    values = CRITERIA[_gate.choice(criterion, "criterion", CRITERIA)]
    threshold = _gate.number(threshold, "threshold", infinite=True)
    tree, depth = _gate.tree(Z), _gate.whole(depth, "depth", 1)
    return below(tree, values(tree, depth), threshold)


def cut_silhouette(X: Any, Z: Any) -> float:
    """Threshold whose partition has the largest silhouette, over every level of the dendrogram Z of the rows of X.

    The score of a level is exact (see `silhouette_levels`); the lowest of equally good levels wins. The threshold is
    the middle between the heights on either side. Where no level has 2 to n-1 clusters (two points, or all heights
    equal) there is nothing to compare: the threshold is just above the root, and nothing is split.
    """
    tree = _gate.tree(Z, len(_gate.embedding(X)))
    return _best_level(_gate.unit_rows(X), ascending(tree))


def cut_gap(Z: Any) -> float:
    """Middle of the largest gap between consecutive merge heights (the paper's largest-gap cut); the lowest wins a tie.

    A tree with fewer than two merges, or with all merges at one height, has no gap: the threshold is just above the
    root.
    """
    return float(_gaps(_gate.tree(Z), np.zeros(1, dtype=np.int64))[0])


def cut_inconsistency(Z: Any, alpha: float = 1.0, depth: int = 2) -> float:
    """The paper's adaptive threshold μ + ασ, mean and standard deviation of the merges' inconsistency coefficients.

    Two readings: a threshold on *coefficients*, `flat(Z, threshold, "inconsistent")`, the rule "inconsistency" here;
    or on heights like the other two, `cut(Z, threshold)`, the rule "inconsistency-height". (The paper averages it
    over clusters and applies it like the other two; as a height it is about 1, above nearly every cosine distance,
    which merges nearly everything.) σ is the population standard deviation.
    """
    alpha, depth = _gate.number(alpha, "alpha", 0.0), _gate.whole(depth, "depth", 1)
    tree = _gate.tree(Z)
    if not len(tree.height):
        return above_root(tree.height)
    return float(_adaptive(Work(_no_rows, tree, np.zeros(1, dtype=np.int64), alpha, depth))[0])


def global_threshold(sizes: Any, thresholds: Any, n_min: int = N_MIN) -> float:
    """The paper's λ: mean of the local thresholds t_k weighted by cluster size n_k, over clusters with n_k >= n_min.

    NaN if no cluster is that large.
    """
    n_min = _gate.whole(n_min, "n_min", 1)
    n, t = _gate.reals(sizes, "sizes"), _gate.reals(thresholds, "thresholds", nan=True)
    if n.shape != t.shape:
        raise ParameterError(f"there are {n.size} sizes and {t.size} thresholds; pass one of each per cluster.")
    large = n >= n_min
    if np.isnan(t[large]).any():
        raise DataError("thresholds", "values", "hold NaN for a cluster that counts", "raise n_min or drop the cluster")
    return float((n[large] * t[large]).sum() / n[large].sum()) if large.any() else float("nan")


def above_root(heights: Float64) -> float:
    """Threshold that undoes nothing."""
    return float(np.nextafter(heights.max(initial=0.0), np.inf))


def batches(sizes: Int64) -> list[Int64]:
    """Positions of clusters in groups of some `BATCH_ROWS` points."""
    group = (np.cumsum(sizes) - 1) // BATCH_ROWS
    parts = np.split(np.arange(len(sizes)), np.flatnonzero(np.diff(group)) + 1)
    return [part for part in parts if len(part)]


def _no_rows(leaves: Int64) -> UnitRows:
    raise ParameterError("this rule does not use embeddings.")


def _silhouettes(work: Work) -> Float64:
    trees, sizes = ascending(work.trees), work.sizes()
    found = np.empty(len(sizes))
    small = np.flatnonzero(sizes <= SMALL)
    for part in batches(sizes[small]):
        chosen = small[part]
        which, begin = work.which[chosen], np.concatenate([[0], np.cumsum(sizes[chosen])])
        leaves = np.repeat(trees.offsets[which] - begin[:-1], sizes[chosen]) + np.arange(begin[-1])
        found[chosen] = small_cuts(work.rows(leaves), begin, which, trees)
        work.report(len(leaves))
    for at in np.flatnonzero(sizes > SMALL):
        tree = int(work.which[at])
        rows = work.rows(np.arange(trees.offsets[tree], trees.offsets[tree + 1]))
        found[at] = _best_level(rows, one_of(trees, tree), lambda: work.report(0))
        work.report(int(sizes[at]))
    return found


def one_of(t: Trees, tree: int) -> Trees:
    """One of several trees, in a numbering of its own."""
    leaves, (start, stop) = t.offsets[-1], t.offsets[tree : tree + 2]
    first, n = start - tree, stop - start
    children = t.children[first : first + n - 1]
    children = np.where(children < leaves, children - start, children - leaves - first + n)
    size = np.concatenate([t.size[start:stop], t.size[leaves + first : leaves + first + n - 1]])
    return Trees(children, t.height[first : first + n - 1], size, np.array([0, n]))


def _best_level(rows: UnitRows, tree: Trees, beat: Callable[[], None] = nobody) -> float:
    levels = levels_of(rows, tree, best_only=True, beat=beat)
    return float(levels.threshold[levels.best]) if len(levels.score) else above_root(tree.height)


@compiled()
def _gaps(t: Trees, which: Int64) -> Float64:
    found = np.empty(len(which))
    for k in range(len(which)):
        tree = which[k]
        heights = np.sort(t.height[t.offsets[tree] - tree : t.offsets[tree + 1] - tree - 1])
        widest, at = 0.0, -1
        for m in range(len(heights) - 1):
            if heights[m + 1] - heights[m] > widest:
                widest, at = heights[m + 1] - heights[m], m
        top = max(heights[-1], 0.0) if len(heights) else 0.0
        found[k] = heights[at] + widest / 2 if at >= 0 else np.nextafter(top, np.inf)
    return found


def _adaptive(work: Work) -> Float64:
    coefficient, offsets = inconsistency(work.trees, work.depth), work.trees.offsets
    found = np.empty(len(work.which))
    for k, tree in enumerate(work.which):
        here = coefficient[offsets[tree] - tree : offsets[tree + 1] - tree - 1]
        found[k] = here.mean() + work.alpha * here.std()
    return found


CUTS = {
    "silhouette": Rule("distance", _silhouettes),
    "gap": Rule("distance", lambda work: _gaps(work.trees, work.which)),
    "inconsistency": Rule("inconsistent", _adaptive),
    "inconsistency-height": Rule("distance", _adaptive),
}
"""Every rule: what its thresholds are compared with, and how it finds them. A new rule is a new entry."""
