"""Walks over dendrograms that have passed the gate, compiled. A child's number is always below its parent's."""

from __future__ import annotations

import numpy as np

from btcnb.cluster._compile import compiled
from btcnb.cluster._gate import Bool, Float64, Int64, Trees


@compiled()
def layout(t: Trees) -> tuple[Int64, Int64]:
    """First position of every node and the leaves in drawing order: every subtree is a run, larger child first."""
    leaves = t.offsets[-1]
    start = np.zeros(len(t.size), dtype=np.int64)
    for k in range(len(t.offsets) - 1):
        last = t.offsets[k + 1] - k - 2  # the tree's last merge, its root; a tree of one leaf has none
        root = leaves + last if last >= t.offsets[k] - k else t.offsets[k]
        start[root] = t.offsets[k]
    for m in range(len(t.height) - 1, -1, -1):
        a, b = t.children[m]
        if t.size[b] > t.size[a]:
            a, b = b, a
        start[a] = start[leaves + m]
        start[b] = start[leaves + m] + t.size[a]
    order = np.empty(leaves, dtype=np.int64)
    for leaf in range(leaves):
        order[start[leaf]] = leaf
    return start, order


@compiled()
def parents(t: Trees) -> Int64:
    """The node above each node; -1 above a root."""
    parent = np.full(len(t.size), -1, dtype=np.int64)
    for m in range(len(t.height)):
        parent[t.children[m, 0]] = t.offsets[-1] + m
        parent[t.children[m, 1]] = t.offsets[-1] + m
    return parent


@compiled()
def first_leaf(t: Trees) -> Int64:
    """The smallest leaf below each node."""
    first = np.arange(len(t.size))
    for m in range(len(t.height)):
        first[t.offsets[-1] + m] = min(first[t.children[m, 0]], first[t.children[m, 1]])
    return first


@compiled()
def largest_below(t: Trees, value: Float64) -> Float64:
    """For every merge the largest of `value` (M,) over the merges of its subtree, itself included."""
    largest = value.copy()
    for m in range(len(largest)):
        for child in t.children[m]:
            if child >= t.offsets[-1]:
                largest[m] = max(largest[m], largest[child - t.offsets[-1]])
    return largest


@compiled()
def flatten(t: Trees, kept: Bool) -> Int64:
    """Labels of the leaves when only the merges in `kept` are made, 0..k-1 in order of first appearance.

    A merge is kept only if those below it are.
    """
    leaves = t.offsets[-1]
    top = np.arange(len(t.size))  # the node whose cluster a node belongs to
    for m in range(len(t.height) - 1, -1, -1):
        if kept[m]:
            for child in t.children[m]:
                top[child] = top[leaves + m]
    name = np.full(len(t.size), -1, dtype=np.int64)
    labels = np.empty(leaves, dtype=np.int64)
    used = 0
    for leaf in range(leaves):
        if name[top[leaf]] < 0:
            name[top[leaf]] = used
            used += 1
        labels[leaf] = name[top[leaf]]
    return labels


def below(t: Trees, value: Float64, threshold: float) -> Int64:
    """Labels of the leaves: a merge is made where its value and all those below it are less than the threshold."""
    return flatten(t, largest_below(t, value) < threshold)


def inconsistency(t: Trees, depth: int = 2) -> Float64:
    """Inconsistency coefficient of every merge, as SciPy's: (height - mean) / deviation of the merges within `depth`
    levels.

    Depth 1 is the merge alone; the deviation has n - 1 in the denominator; without a deviation the coefficient is 0.
    All trees at once, and relative to the merge itself: SciPy's sums of large squares leave noise where heights agree.
    """
    number = len(t.height)
    count, total, squares = np.zeros(number), np.zeros(number), np.zeros(number)
    owner = node = np.arange(number)
    while depth > 0 and len(node):
        gap = t.height[node] - t.height[owner]
        count += np.bincount(owner, minlength=number)
        total += np.bincount(owner, gap, number)
        squares += np.bincount(owner, gap * gap, number)
        child = t.children[node] - t.offsets[-1]
        owner = np.repeat(owner, 2)[child.ravel() >= 0]
        node = child[child >= 0]
        depth -= 1
    variance = (squares - total * total / np.maximum(count, 1)) / np.maximum(count - 1, 1)
    some = variance > 0.0
    return np.where(some, -total / np.maximum(count, 1) / np.sqrt(np.where(some, variance, 1.0)), 0.0)


def ascending(t: Trees) -> Trees:
    """The same trees with the merges of each in order of height, as a rising threshold makes them.

    A merge below one of those it contains takes their height: no cut can tell the difference.
    """
    height, tree = largest_below(t, t.height), t.tree_of_merge
    if not ((np.diff(height) < 0) & (np.diff(tree) == 0)).any():
        return t._replace(height=height)
    order = np.lexsort((height, tree))  # stable, so a merge stays behind those it contains
    leaves = int(t.offsets[-1])
    number = np.arange(len(t.size))
    number[leaves + order] = leaves + np.arange(len(order))
    size = np.concatenate([t.size[:leaves], t.size[leaves:][order]])
    return Trees(number[t.children[order]], height[order], size, t.offsets)
