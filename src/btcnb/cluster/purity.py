"""Dendrogram purity: exact, in one pass over heavy paths, and the paper's Monte-Carlo estimate beside it.

The paper's steps (appendix on metrics, after Heller and Ghahramani): draw a leaf ℓ uniformly, then *another* leaf j
uniformly among those with the same label; the score is the share of ℓ's class among the leaves below their lowest
common ancestor. A leaf whose label nobody shares has no j: such leaves are never drawn as ℓ, but they do count as
impurity in the subtrees of others. Without any shared label the purity is undefined (NaN).

In a forest, both leaves come from the same tree (the paper draws pairs within one coarse Leiden cluster), so "nobody
shares" is judged inside the tree.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numba import njit

from btcnb.cluster._rows import Int64, check_tree, compact_labels
from btcnb.errors import ParameterError

PAPER_PAIRS = 10_000
"""Pairs of the paper's Monte-Carlo estimate."""

WEIGHTINGS = ("leaf", "pair")


def dendrogram_purity(Z: Any, labels: Any, mask: Any = None, weighting: str = "leaf") -> float:
    """Exact dendrogram purity of a tree Z (n-1, 4) under class labels (n,).

    mask: bool (n,), leaves to score; the others are left out as if pruned from the tree (the paper scores nodes of
        degree at least 2)
    weighting: "leaf" draws ℓ uniformly over leaves, the paper's steps; "pair" draws the pair {ℓ, j} uniformly over all
        same-class pairs, which gives a class of size s the weight s (s - 1) instead of s
    """
    return forest_purity([(Z, labels, mask)], weighting)


def forest_purity(trees: Iterable[tuple[Any, Any, Any]], weighting: str = "leaf") -> float:
    """Exact purity over several dendrograms, pairs drawn within a tree: an iterable of (Z, labels, mask or None)."""
    if weighting not in WEIGHTINGS:
        raise ParameterError(f"weighting is {weighting!r}; choose leaf or pair.")
    total = weight = 0.0
    for Z, labels, mask in trees:
        tree, classes, counted = _arrays(Z, labels, mask)
        number = np.bincount(classes[counted], minlength=int(classes.max()) + 1).astype(np.float64)
        per_pair = np.ones(len(number)) if weighting == "pair" else 2.0 / np.maximum(number - 1.0, 1.0)
        shared = number * (number - 1.0) / 2.0
        weight += float((shared * per_pair).sum())
        if shared.any():
            total += _exact(tree, classes, counted, per_pair)
    return total / weight if weight else float("nan")


def dendrogram_purity_sampled(
    Z: Any, labels: Any, pairs: int = PAPER_PAIRS, seed: int = 0, mask: Any = None
) -> tuple[float, float]:
    """The paper's estimate from `pairs` random pairs, and its standard error; see `dendrogram_purity`."""
    return forest_purity_sampled([(Z, labels, mask)], pairs, seed)


def forest_purity_sampled(
    trees: Iterable[tuple[Any, Any, Any]], pairs: int = PAPER_PAIRS, seed: int = 0
) -> tuple[float, float]:
    """Monte-Carlo purity over several dendrograms: ℓ uniform over all leaves that share their label inside their
    tree.
    """
    if pairs < 2:
        raise ParameterError(f"pairs is {pairs}; an estimate with an error needs at least 2.")
    forest = [_arrays(*tree) for tree in trees]
    eligible = [_eligible(classes, counted) for _, classes, counted in forest]
    ends = np.cumsum([len(leaves) for leaves in eligible])
    if not len(ends) or ends[-1] == 0:
        return float("nan"), float("nan")
    rng = np.random.default_rng(seed)
    draws = np.sort(rng.integers(ends[-1], size=pairs))
    chosen = np.searchsorted(ends, draws, side="right")
    scores = np.empty(pairs)
    for tree_number in np.unique(chosen):
        here = np.flatnonzero(chosen == tree_number)
        tree, classes, counted = forest[tree_number]
        first = eligible[tree_number][draws[here] - (ends[tree_number] - len(eligible[tree_number]))]
        scores[here] = _score_pairs(tree, classes, counted, first, _classmates(classes, counted, first, rng))
    return float(scores.mean()), float(scores.std(ddof=1) / np.sqrt(pairs))


def _arrays(Z: Any, labels: Any, mask: Any) -> tuple[Any, Int64, Any]:
    tree = check_tree(Z)
    n = len(tree) + 1
    classes = compact_labels(labels, n)
    counted = np.ones(n, dtype=bool) if mask is None else np.asarray(mask, dtype=bool)
    if counted.shape != (n,):
        raise ParameterError(f"mask has shape {counted.shape} for {n} leaves; pass one bool per leaf.")
    return tree, classes, counted


def _eligible(classes: Int64, counted: Any) -> Int64:
    """Counted leaves that share their class with another counted leaf."""
    number = np.bincount(classes[counted], minlength=int(classes.max()) + 1)
    return np.flatnonzero(counted & (number[classes] > 1))


def _classmates(classes: Int64, counted: Any, first: Int64, rng: np.random.Generator) -> Int64:
    """For each leaf another counted leaf of its class, uniformly."""
    members = np.flatnonzero(counted)
    members = members[np.argsort(classes[members], kind="stable")]
    starts = np.searchsorted(classes[members], np.arange(classes.max() + 2))
    place = np.empty(len(classes), dtype=np.int64)
    place[members] = np.arange(len(members)) - starts[classes[members]]
    c = classes[first]
    number = starts[c + 1] - starts[c]
    other = rng.integers(number - 1)
    other += other >= place[first]  # skip the leaf itself
    return members[starts[c] + other]


def _score_pairs(tree: Any, classes: Int64, counted: Any, first: Int64, second: Int64) -> Any:
    """Share of the pair's class below the lowest common ancestor, for each pair."""
    start, leaves, _, size = _layout(tree, counted)
    ancestor = _common_ancestors(tree, first, second)
    position = np.empty(len(classes), dtype=np.int64)
    position[leaves] = np.arange(len(leaves))
    by_class = np.lexsort((position, classes))
    by_class = by_class[counted[by_class]]
    key = classes[by_class] * (len(classes) + 1) + position[by_class]
    base = classes[first] * (len(classes) + 1)
    span = np.where(ancestor < len(classes), 1, tree[ancestor - len(classes), 3].astype(np.int64))
    low = np.searchsorted(key, base + start[ancestor])
    high = np.searchsorted(key, base + start[ancestor] + span)
    return (high - low) / size[ancestor]


@njit(cache=True)
def _common_ancestors(Z: Any, first: Any, second: Any) -> Any:
    n = len(Z) + 1
    parent = np.full(2 * n - 1, 2 * n - 1, dtype=np.int64)
    for m in range(n - 1):
        parent[int(Z[m, 0])] = n + m
        parent[int(Z[m, 1])] = n + m
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


@njit(cache=True)
def _layout(Z: Any, counted: Any) -> Any:
    """The leaves in drawing order: first position per node, leaves, heavier child per merge, counted leaves per
    node.
    """
    n = len(Z) + 1
    nodes = 2 * n - 1
    size = np.zeros(nodes, dtype=np.int64)
    span = np.ones(nodes, dtype=np.int64)
    heavy = np.empty(n - 1, dtype=np.int64)
    for leaf in range(n):
        size[leaf] = 1 if counted[leaf] else 0
    for m in range(n - 1):
        a, b = int(Z[m, 0]), int(Z[m, 1])
        size[n + m] = size[a] + size[b]
        span[n + m] = span[a] + span[b]
        heavy[m] = a if span[a] >= span[b] else b
    start = np.zeros(nodes, dtype=np.int64)
    for m in range(n - 2, -1, -1):
        a, b = int(Z[m, 0]), int(Z[m, 1])
        start[a] = start[n + m]
        start[b] = start[n + m] + span[a]
    leaves = np.empty(n, dtype=np.int64)
    for leaf in range(n):
        leaves[start[leaf]] = leaf
    return start, leaves, heavy, size


@njit(cache=True)
def _exact(Z: Any, classes: Any, counted: Any, per_pair: Any) -> float:
    """Sum over same-class pairs of (share of the class below their common ancestor) times the class's weight per pair.

    A heavy path runs from a node down to a leaf, always into the larger child. Class counts of the path's end are
    kept while climbing it; at each step the lighter child's leaves are added, after their pairs with what is there
    have been scored. Every leaf is added once per light edge above it, at most log2(n) times: O(n log n) in all, and
    one array of counts.
    """
    n = len(Z) + 1
    start, leaves, heavy, size = _layout(Z, counted)
    span = np.ones(2 * n - 1, dtype=np.int64)
    parent = np.full(2 * n - 1, -1, dtype=np.int64)
    for m in range(n - 1):
        span[n + m] = int(Z[m, 3])
        parent[int(Z[m, 0])] = n + m
        parent[int(Z[m, 1])] = n + m
    count = np.zeros(len(per_pair), dtype=np.int64)
    extra = np.zeros(len(per_pair), dtype=np.int64)
    total = 0.0
    for top in range(2 * n - 2, n - 1, -1):
        if parent[top] >= 0 and heavy[parent[top] - n] == top:
            continue  # not the top of its path
        node = top
        while node >= n:
            node = heavy[node - n]
        if counted[node]:
            count[classes[node]] = 1
        while node != top:
            up = parent[node] - n
            light = int(Z[up, 0]) + int(Z[up, 1]) - node
            for p in range(start[light], start[light] + span[light]):
                if counted[leaves[p]]:
                    extra[classes[leaves[p]]] += 1
            for p in range(start[light], start[light] + span[light]):
                c = classes[leaves[p]]
                if extra[c] > 0:
                    total += per_pair[c] * extra[c] * count[c] * ((extra[c] + count[c]) / size[n + up])
                    count[c] += extra[c]
                    extra[c] = 0
            node = n + up
        for p in range(start[top], start[top] + span[top]):
            count[classes[leaves[p]]] = 0
    return total
