"""Connected components of merges: the one helper for every partition that links of addresses make."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from btcnb.data.transactions import IntArray


def components(size: int, a: npt.ArrayLike, b: npt.ArrayLike) -> IntArray:
    """The partition of 0..size-1 that the merges a[i], b[i] make: labels 0..k-1, numbered by their lowest member."""
    narrow = np.int32 if size < 2**31 else np.int64  # twice as fast
    ends = np.asarray(a, dtype=narrow), np.asarray(b, dtype=narrow)
    merges = coo_array((np.ones(len(ends[0])), ends), shape=(size, size))
    return by_first(connected_components(merges, directed=False)[1])


def by_first(labels: npt.NDArray[np.integer]) -> IntArray:
    """Renumber labels 0..k-1 by first appearance, so that equal partitions have equal arrays."""
    return pd.factorize(labels)[0].astype(np.int64)
