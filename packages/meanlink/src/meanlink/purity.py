"""Dendrogram purity: exact, in one pass over heavy paths, and a Monte-Carlo estimate beside it.

After Heller and Ghahramani: draw a leaf uniformly, then another leaf uniformly among those with the same label; the
score is the share of that class among the leaves below their lowest common ancestor. A leaf whose label nobody shares
is never drawn first, but it counts as impurity in the subtrees of others. Without any shared label the purity is NaN.

In a forest both leaves come from the same tree, so "nobody shares" is judged inside the tree: classes are numbered so
that each belongs to one tree.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from meanlink import _validate
from meanlink._compile import compiled
from meanlink._dendrogram import Trees, layout, parents
from meanlink._types import Bool, Float64, Int64
from meanlink.forest import Forest, checked

PAIRS = 10_000
"""Default number of pairs of the estimate."""

MOST_PAIRS = 100_000_000
"""Pairs that still fit into memory."""

WEIGHTINGS = ("leaf", "pair")


class Labelled(NamedTuple):
    """Trees, the class of every leaf (each class inside one tree, 0..k-1), and which leaves count."""

    trees: Trees
    classes: Int64
    counted: Bool


def _tree(Z: Any, labels: Any, mask: Any) -> Labelled:
    """One tree, checked."""
    trees = _validate.tree(Z)
    n = len(trees.height) + 1
    return Labelled(trees, _validate.classes("labels", labels, n), _validate.mask(mask, n))


def _trees(forest: Any, labels: Any, mask: Any) -> Labelled:
    """All trees of a forest, checked, with labels and mask of its points in the order of its leaves."""
    trees = checked(forest)
    n = len(forest.members)
    classes = _validate.classes("labels", labels, n)[forest.members]
    tree = np.repeat(np.arange(len(forest)), forest.sizes)
    inside = np.unique(tree * (classes.max(initial=0) + 1) + classes, return_inverse=True)[1]
    return Labelled(trees, inside.astype(np.int64), _validate.mask(mask, n)[forest.members])


def dendrogram_purity(Z: Any, labels: Any, mask: Any = None, weighting: str = "leaf") -> float:
    """Exact dendrogram purity of a tree under class labels.

    Parameters
    ----------
    Z : array_like, shape (n - 1, 4)
        Linkage matrix.
    labels : array_like, shape (n,)
        The class of every leaf.
    mask : array_like of bool, shape (n,), optional
        Leaves to score; the others are left out as if pruned from the tree.
    weighting : {"leaf", "pair"}
        "leaf" draws the first leaf uniformly over leaves; "pair" draws the pair uniformly over all same-class pairs,
        which gives a class of size s the weight s (s - 1) instead of s.

    Returns
    -------
    float
        NaN if no two leaves share a label.

    Examples
    --------
    >>> round(dendrogram_purity([[0, 1, 0.1, 2], [2, 3, 0.2, 3]], [0, 1, 0]), 4)
    0.6667
    """
    return _purity(_tree(Z, labels, mask), weighting)


def forest_purity(forest: Forest, labels: Any, mask: Any = None, weighting: str = "leaf") -> float:
    """Exact purity over the dendrograms of a forest, pairs drawn within a tree.

    Parameters
    ----------
    forest : Forest
    labels : array_like, shape (n,)
        The class of every point.
    mask : array_like of bool, shape (n,), optional
        Points to score.
    weighting : {"leaf", "pair"}
        See `dendrogram_purity`.

    Returns
    -------
    float

    Examples
    --------
    >>> from meanlink import dendrograms
    >>> forest = dendrograms([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [3.0, 4.0]], [0, 0, 1, 1])
    >>> forest_purity(forest, ["a", "a", "a", "b"])
    1.0
    """
    return _purity(_trees(forest, labels, mask), weighting)


def _purity(found: Labelled, weighting: str) -> float:
    _validate.choice("weighting", weighting, WEIGHTINGS)
    number = np.bincount(found.classes[found.counted], minlength=int(found.classes.max(initial=0)) + 1).astype(float)
    per_pair = np.ones(len(number)) if weighting == "pair" else 2.0 / np.maximum(number - 1.0, 1.0)
    weight = float((number * (number - 1.0) / 2.0 * per_pair).sum())
    return float(_exact(found, per_pair) / weight) if weight else float("nan")


def dendrogram_purity_sampled(
    Z: Any, labels: Any, pairs: int = PAIRS, seed: int = 0, mask: Any = None
) -> tuple[float, float]:
    """Estimate of `dendrogram_purity` from random pairs.

    Parameters
    ----------
    Z, labels : array_like
        See `dendrogram_purity`.
    pairs, seed : int
        Number of pairs, and seed of the generator that draws them.
    mask : array_like of bool, shape (n,), optional
        Leaves to score.

    Returns
    -------
    estimate, error : float
        The estimate and its standard error.

    Examples
    --------
    >>> dendrogram_purity_sampled([[0, 1, 0.1, 2]], [7, 7], pairs=10)
    (1.0, 0.0)
    """
    return _estimate(_tree(Z, labels, mask), pairs, seed)


def forest_purity_sampled(
    forest: Forest, labels: Any, mask: Any = None, pairs: int = PAIRS, seed: int = 0
) -> tuple[float, float]:
    """Estimate of `forest_purity` from random pairs.

    Parameters
    ----------
    forest, labels, mask : Forest, array_like, array_like
        See `forest_purity`. The first leaf of a pair is uniform over all leaves that share their label inside a tree.
    pairs, seed : int
        Number of pairs, and seed of the generator that draws them.

    Returns
    -------
    estimate, error : float
        The estimate and its standard error.

    Examples
    --------
    >>> from meanlink import dendrograms
    >>> forest_purity_sampled(dendrograms([[1.0, 0.0], [0.0, 1.0]], [0, 0]), [7, 7], pairs=10)
    (1.0, 0.0)
    """
    return _estimate(_trees(forest, labels, mask), pairs, seed)


def _estimate(found: Labelled, pairs: int, seed: int) -> tuple[float, float]:
    pairs, seed = _validate.whole("pairs", pairs, 2, MOST_PAIRS), _validate.whole("seed", seed, 0, 2**63)
    number = np.bincount(found.classes[found.counted], minlength=int(found.classes.max(initial=0)) + 1)
    eligible = np.flatnonzero(found.counted & (number[found.classes] > 1))
    if not len(eligible):
        return float("nan"), float("nan")
    rng = np.random.default_rng(seed)
    first = eligible[np.sort(rng.integers(len(eligible), size=pairs))]
    scores = _score_pairs(found, first, _classmates(found, first, rng))
    return float(scores.mean()), float(scores.std(ddof=1) / np.sqrt(pairs))


def _classmates(found: Labelled, first: Int64, rng: np.random.Generator) -> Int64:
    """For each leaf another counted leaf of its class, uniformly."""
    classes = found.classes
    members = np.flatnonzero(found.counted)
    members = members[np.argsort(classes[members], kind="stable")]
    starts = np.searchsorted(classes[members], np.arange(classes.max() + 2))
    place = np.empty(len(classes), dtype=np.int64)
    place[members] = np.arange(len(members)) - starts[classes[members]]
    c = classes[first]
    other = rng.integers(starts[c + 1] - starts[c] - 1)
    other += other >= place[first]  # skip the leaf itself
    return members[starts[c] + other]


def _score_pairs(found: Labelled, first: Int64, second: Int64) -> Float64:
    """Share of the pair's class below the lowest common ancestor, for each pair."""
    trees, classes, counted = found
    start, leaves = layout(trees)
    ancestor = _common_ancestors(parents(trees), first, second)
    position = start[: len(classes)]
    by_class = np.lexsort((position, classes))
    by_class = by_class[counted[by_class]]
    key = classes[by_class] * (len(classes) + 1) + position[by_class]
    base = classes[first] * (len(classes) + 1)
    begin, end = start[ancestor], start[ancestor] + trees.size[ancestor]
    share = np.searchsorted(key, base + end) - np.searchsorted(key, base + begin)
    below = np.concatenate([[0], np.cumsum(counted[leaves])])
    return share / (below[end] - below[begin])


@compiled()
def _common_ancestors(parent: Int64, first: Int64, second: Int64) -> Int64:
    out = np.empty(len(first), dtype=np.int64)
    for p in range(len(first)):
        a, b = first[p], second[p]
        while a != b:  # a node's number is larger than those below it
            if a < b:
                a = parent[a]
            else:
                b = parent[b]
        out[p] = a
    return out


@compiled()
def _exact(found: Labelled, per_pair: Float64) -> float:
    """Sum over same-class pairs of (share of the class below their common ancestor) times the class's weight per pair.

    A heavy path runs from a node down to a leaf, always into the larger child. Class counts of the path's end are
    kept while climbing it; at each step the lighter child's leaves are added, after their pairs with what is there
    have been scored. Every leaf is added once per light edge above it, at most log2(n) times: O(n log n) in all, and
    one array of counts.
    """
    trees, classes, counted = found
    size, n = trees.size, trees.offsets[-1]
    start, leaves = layout(trees)
    parent = parents(trees)
    below = np.zeros(n + 1, dtype=np.int64)  # counted leaves before each position
    for p in range(n):
        below[p + 1] = below[p] + counted[leaves[p]]
    count = np.zeros(len(per_pair), dtype=np.int64)
    extra = np.zeros(len(per_pair), dtype=np.int64)
    total = 0.0
    for top in range(len(size) - 1, n - 1, -1):
        if parent[top] >= 0 and start[parent[top]] == start[top]:
            continue  # the larger child, drawn first: not the top of its path
        node = leaves[start[top]]
        if counted[node]:
            count[classes[node]] = 1
        while node != top:
            up = parent[node]
            begin, end = start[up] + size[node], start[up] + size[up]
            for p in range(begin, end):
                if counted[leaves[p]]:
                    extra[classes[leaves[p]]] += 1
            here = below[end] - below[start[up]]
            for p in range(begin, end):
                c = classes[leaves[p]]
                if extra[c] > 0:
                    total += per_pair[c] * extra[c] * count[c] * ((extra[c] + count[c]) / here)
                    count[c] += extra[c]
                    extra[c] = 0
            node = up
        for p in range(start[top], start[top] + size[top]):
            count[classes[leaves[p]]] = 0
    return total
