"""Connected components of a growing list of merges: union-find over integer ids."""

from __future__ import annotations

import numpy as np
from numba import njit

from btcnb.data.transactions import IntArray


class UnionFind:
    """A partition of 0..size-1 that merges make coarser. Merges may come in any number of batches, in any order."""

    def __init__(self, size: int) -> None:
        self._parent = np.arange(size, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._parent)

    def union(self, a: IntArray, b: IntArray) -> IntArray:
        """Merge a[i] with b[i] for every i; return the positions i that joined two groups until then apart."""
        a = np.ascontiguousarray(a, dtype=np.int64)
        b = np.ascontiguousarray(b, dtype=np.int64)
        return np.flatnonzero(_union(self._parent, a, b))

    def labels(self) -> IntArray:
        """Canonical labels 0..k-1: groups are numbered by their lowest member. int64, one per id."""
        return _labels(self._parent)


def canonical(labels: IntArray) -> IntArray:
    """Renumber labels 0..k-1 by first appearance, so that equal partitions have equal arrays."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    return rank[inverse]


@njit(cache=True)
def _find(parent: IntArray, x: int) -> int:
    while parent[x] != x:
        parent[x] = parent[parent[x]]  # path halving keeps trees flat without a second pass
        x = parent[x]
    return x


@njit(cache=True)
def _union(parent: IntArray, a: IntArray, b: IntArray) -> np.ndarray:  # type: ignore[type-arg]
    joined = np.zeros(len(a), dtype=np.bool_)
    for i in range(len(a)):
        ra, rb = _find(parent, a[i]), _find(parent, b[i])
        if ra != rb:
            joined[i] = True
            if ra < rb:  # the lowest member is the root, so labels need no sorting
                parent[rb] = ra
            else:
                parent[ra] = rb
    return joined


@njit(cache=True)
def _labels(parent: IntArray) -> IntArray:
    labels = np.empty(len(parent), dtype=np.int64)
    count = 0
    for x in range(len(parent)):
        root = _find(parent, x)
        if root == x:
            labels[x] = count
            count += 1
        else:
            labels[x] = labels[root]  # root < x, so it is numbered already
    return labels
