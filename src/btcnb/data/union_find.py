"""Connected components of a growing list of merges."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from btcnb.data.checks import whole
from btcnb.data.transactions import IntArray
from btcnb.errors import DataError


class UnionFind:
    """A partition of 0..size-1 that merges make coarser. Merges may come in any number of batches, in any order."""

    def __init__(self, size: int) -> None:
        self._size = whole("size", size)
        self._pairs: list[IntArray] = []

    def __len__(self) -> int:
        return self._size

    def union(self, a: npt.ArrayLike, b: npt.ArrayLike) -> None:
        """Merge a[i] with b[i] for every i."""
        sides = np.asarray(a), np.asarray(b)
        if sides[0].shape != sides[1].shape or any(s.ndim != 1 or (s.size and s.dtype.kind not in "iu") for s in sides):
            raise DataError("merges", "pairs", "are not two lists of ids", "give whole numbers, two for each merge")
        pairs = np.array(sides, dtype=np.int64)
        if pairs.size and (pairs.min() < 0 or pairs.max() >= self._size):
            raise DataError("merges", "pairs", f"an id lies outside 0 to {self._size - 1}", "merge known ids only")
        self._pairs.append(pairs)

    def labels(self) -> IntArray:
        """Labels 0..k-1: groups are numbered by their lowest member. int64, one per id."""
        a, b = np.concatenate([np.empty((2, 0), dtype=np.int64), *self._pairs], axis=1)
        merges = coo_array((np.ones(len(a), dtype=np.int8), (a, b)), shape=(self._size, self._size))
        return by_first(connected_components(merges, directed=False)[1])


def by_first(labels: npt.NDArray[np.integer]) -> IntArray:
    """Renumber labels 0..k-1 by first appearance, so that equal partitions have equal arrays."""
    return pd.factorize(labels)[0].astype(np.int64)
