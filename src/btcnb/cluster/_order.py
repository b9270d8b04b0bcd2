"""From merges in any valid order to SciPy's linkage matrix."""

from __future__ import annotations

import numpy as np

from btcnb.cluster._compile import compiled
from btcnb.cluster._gate import Float64, Int64


@compiled()
def _root(parent: Int64, node: int) -> int:
    root = node
    while parent[root] != root:
        root = parent[root]
    while parent[node] != root:
        parent[node], node = root, parent[node]
    return root


@compiled()
def raise_to_children(pairs: Int64, heights: Float64, n: int) -> None:
    """Lift a height that rounding left below one of the merges it contains. Merges stand in the order they were
    made.
    """
    parent = np.arange(n)
    top = np.zeros(n)
    for m in range(len(pairs)):
        a, b = _root(parent, pairs[m, 0]), _root(parent, pairs[m, 1])
        heights[m] = max(heights[m], max(top[a], top[b]))
        parent[b] = a
        top[a] = heights[m]


@compiled()
def numbered(pairs: Int64, heights: Float64, n: int) -> Float64:
    """Give the merges, sorted by height, the node numbers and sizes of a linkage matrix."""
    parent = np.arange(2 * n - 1)
    size = np.ones(2 * n - 1)
    Z = np.empty((n - 1, 4))
    for m in range(n - 1):
        a, b = _root(parent, pairs[m, 0]), _root(parent, pairs[m, 1])
        node = n + m
        parent[a] = node
        parent[b] = node
        size[node] = size[a] + size[b]
        Z[m, 0] = min(a, b)
        Z[m, 1] = max(a, b)
        Z[m, 2] = heights[m]
        Z[m, 3] = size[node]
    return Z


def canonical(pairs: Int64, heights: Float64) -> Float64:
    """Linkage matrix of n-1 merges; pairs (n-1, 2) name any leaf of each side, heights (n-1,) are at least 0.

    A merge must come after those it contains. Sorting is stable, so equal heights keep that order.
    """
    n = len(pairs) + 1
    heights = heights.copy()
    raise_to_children(pairs, heights, n)
    order = np.argsort(heights, kind="stable")
    return numbered(pairs[order], heights[order], n)
