"""Dendrograms as arrays: how they are numbered, walked over and cut, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meanlink._compile import compiled
from meanlink._types import Bool, Float64, Int64


class Trees(NamedTuple):
    """One or more dendrograms in one numbering: leaves 0..N-1, tree after tree; merge m is node N + m.

    A single tree has SciPy's numbering. The number of a child is always below that of its parent.
    """

    children: Int64  # (M, 2) the two nodes that a merge joins
    height: Float64  # (M,)
    size: Int64  # (N + M,) leaves below each node
    offsets: Int64  # (trees + 1,) leaves of tree t are offsets[t]..offsets[t+1], its merges those minus t

    @property
    def tree_of_merge(self) -> Int64:
        """The tree that each merge belongs to, (M,)."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets) - 1)


# --- from merges to a linkage matrix ---


@compiled()
def root_of(parent: Int64, node: int) -> int:
    """The root above a node of a union-find forest, with path compression."""
    root = node
    while parent[root] != root:
        root = parent[root]
    while parent[node] != root:
        parent[node], node = root, parent[node]
    return root


@compiled()
def raise_to_children(pairs: Int64, heights: Float64, n: int) -> None:
    """Lift heights that rounding left below a merge they contain; merges stand in the order they were made."""
    parent = np.arange(n)
    top = np.zeros(n)
    for m in range(len(pairs)):
        a, b = root_of(parent, pairs[m, 0]), root_of(parent, pairs[m, 1])
        heights[m] = max(heights[m], max(top[a], top[b]))
        parent[b] = a
        top[a] = heights[m]


@compiled()
def numbered(pairs: Int64, heights: Float64, n: int) -> Float64:
    """Linkage matrix (n-1, 4) of merges that are sorted by height."""
    parent = np.arange(2 * n - 1)
    size = np.ones(2 * n - 1)
    Z = np.empty((n - 1, 4))
    for m in range(n - 1):
        a, b = root_of(parent, pairs[m, 0]), root_of(parent, pairs[m, 1])
        node = n + m
        parent[a] = node
        parent[b] = node
        size[node] = size[a] + size[b]
        Z[m, 0] = min(a, b)
        Z[m, 1] = max(a, b)
        Z[m, 2] = heights[m]
        Z[m, 3] = size[node]
    return Z


@compiled()
def linkage_matrix(pairs: Int64, heights: Float64) -> Float64:
    """Linkage matrix (n-1, 4) of merges in any order in which a merge comes after those it contains.

    pairs (n-1, 2): any leaf of each side; heights (n-1,): at least 0, changed in place. Equal heights keep their order.
    """
    n = len(pairs) + 1
    raise_to_children(pairs, heights, n)
    order = np.argsort(heights, kind="mergesort")
    return numbered(pairs[order], heights[order], n)


# --- walks ---


@compiled()
def layout(t: Trees) -> tuple[Int64, Int64]:
    """First position of every node, and the leaves in drawing order: every subtree is a run, larger child first."""
    leaves = t.offsets[-1]
    start = np.zeros(len(t.size), dtype=np.int64)
    for k in range(len(t.offsets) - 1):
        last = t.offsets[k + 1] - k - 2  # the last merge of the tree, its root; a tree of one leaf has none
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


@np.errstate(over="ignore", invalid="ignore")
def inconsistency(t: Trees, depth: int = 2) -> Float64:
    """Inconsistency coefficient of every merge, as SciPy defines it, for all trees at once.

    (height - mean) / deviation over the merges within `depth` levels; depth 1 is the merge alone. The deviation has
    n - 1 in its denominator; without a deviation the coefficient is 0. Sums run over differences to the merge itself,
    because SciPy's sums of large squares leave noise where heights agree.
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


def one_of(t: Trees, tree: int) -> Trees:
    """One of several trees, in a numbering of its own."""
    leaves, (start, stop) = t.offsets[-1], t.offsets[tree : tree + 2]
    first, n = start - tree, stop - start
    children = t.children[first : first + n - 1]
    children = np.where(children < leaves, children - start, children - leaves - first + n)
    size = np.concatenate([t.size[start:stop], t.size[leaves + first : leaves + first + n - 1]])
    return Trees(children, t.height[first : first + n - 1], size, np.array([0, n]))
