"""The silhouette of a partition, from cluster sums: one matrix product, no distance matrix.

For unit rows, with S the sum and n the size of a cluster, the distances to a whole cluster add up to n - x.S. So

    a(i) = (n - x_i.S) / (n - 1)      over the point's own cluster (its distance to itself is 0),
    b(i) = min over other clusters of 1 - x_i.S' / n',

which are the paper's a(i) and b(i) (appendix on cutting methods) without a single pairwise distance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import prange

from btcnb.cluster import _gate
from btcnb.cluster._climb import ROUNDING
from btcnb.cluster._compile import compiled
from btcnb.cluster._distance import AVERAGE, Table, dot
from btcnb.cluster._gate import Bool, Float64, Int32
from btcnb.cluster._neighbours import empty_lists
from btcnb.cluster._progress import nobody
from btcnb.cluster._search import Centres, search
from btcnb.errors import DataError


def silhouette_samples(X: Any, labels: Any) -> Float64:
    """Silhouette s(i) of every point under cosine distance, float64 (n,), equal to scikit-learn's to rounding.

    X (n, d): embeddings, normalised in a copy. labels (n,): a partition into at least 2 and at most n - 1 clusters.
    A point alone in its cluster scores 0.
    """
    n = len(_gate.embedding(X))
    clusters = _gate.classes(labels, n)
    size = np.bincount(clusters, minlength=1).astype(np.float64)
    if not 2 <= len(size) <= n - 1:
        problem = f"there are {len(size)} for {n} points"
        raise DataError("labels", "clusters", problem, "the silhouette needs at least 2 and at most n - 1")
    rows = _gate.unit_rows(X)
    begins = np.concatenate([[0], np.cumsum(size[:-1])]).astype(np.int64)
    sums = np.add.reduceat(rows[np.argsort(clusters, kind="stable")], begins, axis=0)
    a, b = distances(Table(rows, np.ones(n)), clusters.astype(np.int32), Table(sums, size))
    return coefficients(a, b, size[clusters] < 2.0)


def silhouette(X: Any, labels: Any) -> float:
    """Mean silhouette of a partition under cosine distance, the paper's Sil; see `silhouette_samples`."""
    return float(silhouette_samples(X, labels).mean())


def distances(
    points: Table, clusters: Int32, table: Table, beat: Callable[[], None] = nobody
) -> tuple[Float64, Float64]:
    """a(i) and b(i) of unit rows in clusters of known sums; a is 0 for a point alone."""
    n, k = len(clusters), len(table.size)
    nearest = empty_lists(n, 1)
    centres = Centres(table, np.arange(k, dtype=np.int32), AVERAGE)
    search(nearest, np.arange(n, dtype=np.int32), clusters, points, centres, k - 1, beat)
    return _inner(points, clusters, table), nearest.distances[:, 0]


@compiled(parallel=True)
def _inner(points: Table, clusters: Int32, table: Table) -> Float64:
    a = np.zeros(len(clusters))
    for i in prange(len(clusters)):
        n = table.size[clusters[i]]
        if n > 1.0:
            a[i] = (n - dot(points.sums[i], table.sums[clusters[i]])) / (n - 1.0)
    return a


def coefficients(a: Float64, b: Float64, alone: Bool) -> Float64:
    """s = (b - a) / max(a, b); 0 for points alone in their cluster and where both distances vanish."""
    a, b = np.where(a < ROUNDING, 0.0, a), np.where(b < ROUNDING, 0.0, b)
    larger = np.maximum(a, b)
    return np.where(alone | (larger == 0.0), 0.0, (b - a) / np.where(larger > 0.0, larger, 1.0))
