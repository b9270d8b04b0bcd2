"""Where to cut a dendrogram: the paper's three rules, the global threshold, and the flat partition of a cut.

Everywhere, a cut at λ joins two points when the height of their lowest common ancestor is strictly below λ
(the paper's d_u(x, y) < λ), so a merge at height λ or above is undone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit

from btcnb.cluster._rows import Float64, Int64, check_tree
from btcnb.cluster.levels import silhouette_levels
from btcnb.errors import ParameterError

N_MIN = 3
"""Default smallest cluster that takes part in the global threshold: two points have one level and nothing to choose."""


def cut(Z: Any, threshold: float) -> Int64:
    """Partition of the n leaves at height `threshold`: int64 labels 0..k-1 in order of first appearance."""
    tree = check_tree(Z)
    return flatten(tree, largest_below(tree, tree[:, 2]) < threshold)


def flat(Z: Any, threshold: float, criterion: str = "distance", depth: int = 2) -> Int64:
    """Partition of the leaves under a threshold of either kind.

    criterion: "distance" compares merge heights (`cut`), "inconsistent" compares inconsistency coefficients, to
        `depth` levels down: a subtree stays whole if every merge in it has a coefficient below the threshold.
    """
    if criterion == "distance":
        return cut(Z, threshold)
    if criterion != "inconsistent":
        raise ParameterError(f"criterion is {criterion!r}; choose distance or inconsistent.")
    tree = check_tree(Z)
    return flatten(tree, largest_below(tree, inconsistency(tree, depth)) < threshold)


def cut_silhouette(X: Any, Z: Any) -> float:
    """Threshold whose partition has the largest silhouette, over every level of the dendrogram Z of the rows of X.

    The score of a level is exact (see `silhouette_levels`); the lowest of equally good levels wins. The threshold is
    the middle between the heights on either side. Where no level has 2 to n-1 clusters (two points, or all heights
    equal) there is nothing to compare: the threshold is just above the root, and nothing is split.
    """
    levels = silhouette_levels(X, Z, best_only=True)
    if not len(levels.score):
        return above_root(check_tree(Z)[:, 2])
    return float(levels.threshold[levels.best])


def cut_gap(Z: Any) -> float:
    """Middle of the largest gap between consecutive merge heights (the paper's largest-gap cut); the lowest wins a tie.

    A tree with fewer than two merges, or with all merges at one height, has no gap: the threshold is just above the
    root.
    """
    heights = np.sort(check_tree(Z)[:, 2])
    gaps = np.diff(heights)
    if not len(gaps) or gaps.max() <= 0.0:
        return above_root(heights)
    widest = int(np.argmax(gaps))
    return float(heights[widest] + gaps[widest] / 2)


def cut_inconsistency(Z: Any, alpha: float = 1.0, depth: int = 2) -> float:
    """The paper's adaptive threshold μ + ασ, mean and standard deviation of the merges' inconsistency coefficients.

    It is a threshold on *coefficients*, not on heights: use it with `flat(Z, threshold, "inconsistent")`.
    (The paper averages it over clusters and applies it like the other two; read as a height it is about 1, above nearly
    every cosine distance, which merges nearly everything.) σ is the population standard deviation.
    """
    if not alpha > 0:
        raise ParameterError(f"alpha is {alpha}; it must be positive.")
    tree = check_tree(Z)
    if not len(tree):
        return above_root(tree[:, 2])
    coefficient = inconsistency(tree, depth)
    return float(coefficient.mean() + alpha * coefficient.std())


def global_threshold(sizes: Sequence[int] | Int64, thresholds: Sequence[float] | Float64, n_min: int = N_MIN) -> float:
    """The paper's λ: mean of the local thresholds t_k weighted by cluster size n_k, over clusters with n_k >= n_min.

    NaN if no cluster is that large.
    """
    n, t = np.asarray(sizes, dtype=np.float64), np.asarray(thresholds, dtype=np.float64)
    if n.shape != t.shape or n.ndim != 1:
        raise ParameterError(f"there are {n.size} sizes and {t.size} thresholds; pass one of each per cluster.")
    large = n >= n_min
    return float((n[large] * t[large]).sum() / n[large].sum()) if large.any() else float("nan")


def above_root(heights: Float64) -> float:
    """The smallest threshold that undoes no merge."""
    return float(np.nextafter(heights.max(initial=0.0), np.inf))


def inconsistency(tree: Float64, depth: int = 2) -> Float64:
    """Inconsistency coefficient of every merge, as SciPy's: (height - mean) / deviation of the merges within `depth`
    levels.

    Depth 1 is the merge alone; the deviation has n - 1 in the denominator; without a deviation the coefficient is 0.
    """
    if depth < 1:
        raise ParameterError(f"depth is {depth}; it must be at least 1.")
    return np.asarray(_coefficients(tree, depth))


@njit(cache=True)
def _coefficients(Z: Any, depth: int) -> Any:
    n = len(Z) + 1
    out = np.zeros(n - 1)
    stack, level = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    for m in range(n - 1):
        stack[0], level[0] = m, 1
        waiting, count, total, squares = 1, 0, 0.0, 0.0
        while waiting > 0:
            waiting -= 1
            node, here = stack[waiting], level[waiting]
            gap = Z[node, 2] - Z[m, 2]  # relative to the merge itself: no cancellation between large squares
            count += 1
            total += gap
            squares += gap * gap
            for side in range(2):
                child = int(Z[node, side]) - n
                if child >= 0 and here < depth:
                    stack[waiting], level[waiting] = child, here + 1
                    waiting += 1
        if count > 1:
            variance = (squares - total * total / count) / (count - 1)
            if variance > 0.0:
                out[m] = -total / count / np.sqrt(variance)
    return out


@njit(cache=True)
def largest_below(Z: Any, value: Any) -> Any:
    """For every merge the largest of `value` over the merges of its subtree, itself included."""
    n = len(Z) + 1
    largest = value.copy()
    for m in range(n - 1):
        for side in range(2):
            child = int(Z[m, side]) - n
            if child >= 0:
                largest[m] = max(largest[m], largest[child])
    return largest


@njit(cache=True)
def flatten(Z: Any, kept: Any) -> Any:
    """Labels of the leaves when only the merges in `kept` are made; a merge is kept only if those below it are."""
    n = len(Z) + 1
    top = np.full(2 * n - 1, -1, dtype=np.int64)  # the node whose cluster a node belongs to
    for node in range(2 * n - 2, -1, -1):
        if top[node] < 0:
            top[node] = node
        if node >= n:
            for side in range(2):
                child = int(Z[node - n, side])
                if kept[node - n]:
                    top[child] = top[node]
    label = np.full(2 * n - 1, -1, dtype=np.int64)
    labels = np.empty(n, dtype=np.int64)
    k = 0
    for leaf in range(n):
        if label[top[leaf]] < 0:
            label[top[leaf]] = k
            k += 1
        labels[leaf] = label[top[leaf]]
    return labels
