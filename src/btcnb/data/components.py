"""Connected components of a growing list of merges."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from btcnb.data.checks import ids, whole
from btcnb.data.transactions import IntArray
from btcnb.errors import ParameterError


class UnionFind:
    """A partition of 0..size-1 that merges make coarser. Merges may come in any number of batches, in any order."""

    def __init__(self, size: int) -> None:
        self._size = whole("size", size)
        self._pairs: list[IntArray] = []

    def __len__(self) -> int:
        return self._size

    def union(self, a: npt.ArrayLike, b: npt.ArrayLike) -> None:
        """Merge a[i] with b[i] for every i."""
        pairs = [ids(name, side, self._size) for name, side in (("a", a), ("b", b))]
        if len(pairs[0]) != len(pairs[1]):
            raise ParameterError(f"a has {len(pairs[0])} ids and b has {len(pairs[1])}, but a merge needs two.")
        self._pairs.append(np.stack(pairs))

    def labels(self) -> IntArray:
        """Labels 0..k-1: groups are numbered by their lowest member. int64, one per id."""
        narrow = np.int32 if self._size < 2**31 else np.int64  # twice as fast
        a, b = np.concatenate([np.empty((2, 0), dtype=np.int64), *self._pairs], axis=1).astype(narrow)
        merges = coo_array((np.ones(len(a)), (a, b)), shape=(self._size, self._size))
        return by_first(connected_components(merges, directed=False)[1])


def by_first(labels: npt.NDArray[np.integer]) -> IntArray:
    """Renumber labels 0..k-1 by first appearance, so that equal partitions have equal arrays."""
    return pd.factorize(labels)[0].astype(np.int64)


def components(size: int, a: npt.ArrayLike, b: npt.ArrayLike) -> IntArray:
    """The partition of 0..size-1 that the merges a[i], b[i] make: labels 0..k-1, numbered by their lowest member."""
    merges = UnionFind(size)
    merges.union(a, b)
    return merges.labels()
