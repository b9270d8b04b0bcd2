"""Mutual information corrected for chance: the adjusted score beside the paper's NMI, which is not corrected."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import gammaln

from btcnb.cluster import _gate
from btcnb.cluster._compile import compiled
from btcnb.cluster._gate import Float64, Int64
from btcnb.errors import DataError


def ami(a: Any, b: Any) -> float:
    """Adjusted mutual information (I − E[I]) / ((H + H') / 2 − E[I]) of two partitions: 1 if equal, about 0 by chance.

    E[I] is over partitions with the given cluster sizes. Its terms depend on two sizes only, so clusters of equal size
    share them: thousands of clusters have a few hundred sizes, and a million points take seconds. Equals
    scikit-learn's `adjusted_mutual_info_score`, which goes through all pairs of clusters.
    """
    second = _gate.classes(b, source="b")
    first = _gate.classes(a, len(second), "a")
    if not len(first):
        raise DataError("a", "labels", "are none", "a partition of nothing has no score")
    sizes = np.bincount(first), np.bincount(second)
    n = len(first)
    both = np.unique(first * len(sizes[1]) + second, return_counts=True)[1]
    if len(sizes[0]) == len(sizes[1]) == len(both):
        return 1.0  # the same partition
    entropies = [_entropy(part / n) for part in (*sizes, both)]
    information = max(entropies[0] + entropies[1] - entropies[2], 0.0)
    kinds = [np.unique(part, return_counts=True) for part in sizes]
    chance = _by_chance(*kinds[0], *kinds[1], gammaln(np.arange(n + 1) + 1.0))
    return float((information - chance) / ((entropies[0] + entropies[1]) / 2 - chance))


def _entropy(share: Float64) -> float:
    return float(-(share * np.log(share)).sum())


@compiled()
def _by_chance(size_a: Int64, count_a: Int64, size_b: Int64, count_b: Int64, factorial: Float64) -> float:
    """E[I] for clusters of these sizes, so many of each; `factorial[m]` is log m!."""
    n = len(factorial) - 1
    total = 0.0
    for i in range(len(size_a)):
        for j in range(len(size_b)):
            a, b = size_a[i], size_b[j]
            fixed = factorial[a] + factorial[b] + factorial[n - a] + factorial[n - b] - factorial[n]
            expected = 0.0
            for m in range(max(1, a + b - n), min(a, b) + 1):
                ways = factorial[m] + factorial[a - m] + factorial[b - m] + factorial[n - a - b + m]
                expected += m / n * (np.log(n * m / a) - np.log(b)) * np.exp(fixed - ways)
            total += expected * count_a[i] * count_b[j]
    return total
