"""The silhouette of a partition, from cluster sums: one matrix product, no distance matrix.

For unit rows, with S the sum and n the size of a cluster, the distances to a whole cluster add up to n - x.S. So

    a(i) = (n - x_i.S) / (n - 1)      over the point's own cluster (its distance to itself is 0),
    b(i) = min over other clusters of 1 - x_i.S' / n',

which are the paper's a(i) and b(i) (appendix on cutting methods) without a single pairwise distance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange

from btcnb.cluster._distance import AVERAGE, dot
from btcnb.cluster._neighbours import Lists
from btcnb.cluster._rows import Float64, Int64, compact_labels, unit_rows
from btcnb.cluster._search import Centres, search
from btcnb.errors import DataError

ROUNDING = 1e-13
"""Distances below this are rounding noise of equal points, and count as 0."""


def cluster_sums(rows: Float64, labels: Int64) -> tuple[Float64, Float64]:
    """Sum of the rows (k, d) and number of points (k,) of every cluster; labels are 0..k-1, each in use."""
    size = np.bincount(labels).astype(np.float64)
    order = np.argsort(labels, kind="stable")
    starts = np.concatenate([[0], np.cumsum(size[:-1])]).astype(np.int64)
    return np.add.reduceat(rows[order], starts, axis=0), size


@njit(cache=True, parallel=True)
def inner_distances(rows: Any, clusters: Any, sums: Any, size: Any) -> Any:
    """a(i): mean distance of each point to the others of its cluster, float64 (n,); 0 for a point alone."""
    a = np.zeros(len(rows))
    for i in prange(len(rows)):
        n = size[clusters[i]]
        if n > 1.0:
            a[i] = (n - dot(rows[i], sums[clusters[i]])) / (n - 1.0)
    return a


def silhouette_samples(X: Any, labels: Any) -> Float64:
    """Silhouette s(i) of every point under cosine distance, float64 (n,), equal to scikit-learn's to rounding.

    X (n, d): embeddings, normalised in a copy. labels (n,): a partition into at least 2 and at most n - 1 clusters.
    A point alone in its cluster scores 0.
    """
    rows = unit_rows(X)
    clusters = compact_labels(labels, len(rows))
    return _samples(rows, clusters)


def silhouette(X: Any, labels: Any) -> float:
    """Mean silhouette of a partition under cosine distance, the paper's Sil; see `silhouette_samples`."""
    return float(silhouette_samples(X, labels).mean())


def silhouette_of(rows: Float64, clusters: Int64) -> float:
    """`silhouette` for rows that are unit already and labels that are 0..k-1 already."""
    return float(_samples(rows, clusters).mean())


def _samples(rows: Float64, clusters: Int64) -> Float64:
    n, k = len(rows), int(clusters.max(initial=-1)) + 1
    if not 2 <= k <= n - 1:
        raise DataError(
            "labels", "clusters", f"there are {k} for {n} points", "the silhouette needs at least 2 and at most n - 1"
        )
    sums, size = cluster_sums(rows, clusters)
    own = size[clusters]
    a = inner_distances(rows, clusters, sums, size)
    nearest = Lists.empty(n, 1)
    every = np.arange(n, dtype=np.int32)
    centres = Centres(sums, size, np.arange(k, dtype=np.int32), AVERAGE)
    search(nearest, every, clusters, rows, np.ones(n), centres, k - 1)
    return coefficients(a, nearest.distances[:, 0], own)


def coefficients(a: Float64, b: Float64, own: Float64) -> Float64:
    """s = (b - a) / max(a, b); 0 for points alone in their cluster and where both distances vanish."""
    a, b = np.where(a < ROUNDING, 0.0, a), np.where(b < ROUNDING, 0.0, b)
    larger = np.maximum(a, b)
    return np.where((own > 1.0) & (larger > 0.0), (b - a) / np.where(larger > 0.0, larger, 1.0), 0.0)
