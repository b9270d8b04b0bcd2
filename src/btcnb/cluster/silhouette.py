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
from btcnb.cluster._near import search_near
from btcnb.cluster._neighbours import Lists, empty_lists
from btcnb.cluster._progress import nobody
from btcnb.cluster._search import Centres
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
    points, own, table = Table(rows, np.ones(n)), clusters.astype(np.int32), Table(sums, size)
    b = nearest(points, np.arange(n, dtype=np.int32), own, table, 1, nobody).distances[:, 0]
    return coefficients(inner(points, own, table), b, size[clusters] < 2.0)


def silhouette(X: Any, labels: Any) -> float:
    """Mean silhouette of a partition under cosine distance, the paper's Sil; see `silhouette_samples`."""
    return float(silhouette_samples(X, labels).mean())


def nearest(points: Table, which: Int32, own: Int32, table: Table, length: int, beat: Callable[[], None]) -> Lists:
    """Lists of the clusters of a table nearest to the points `which`, but for the own[which] of each."""
    found = empty_lists(len(own), length)
    centres = Centres(table, np.arange(len(table.size), dtype=np.int32), AVERAGE)
    search_near(found, which, own[which], points, centres, len(table.size) - 1, beat)
    return found


@compiled(parallel=True)
def inner(points: Table, own: Int32, table: Table) -> Float64:
    """a(i): mean distance of each point to the others of its cluster; 0 for a point alone."""
    a = np.zeros(len(own))
    for i in prange(len(own)):
        n = table.size[own[i]]
        if n > 1.0:
            a[i] = (n - dot(points.sums[i], table.sums[own[i]])) / (n - 1.0)
    return a


def coefficients(a: Float64, b: Float64, alone: Bool) -> Float64:
    """s = (b - a) / max(a, b); 0 for points alone in their cluster and where both distances vanish."""
    a, b = np.where(a < ROUNDING, 0.0, a), np.where(b < ROUNDING, 0.0, b)
    larger = np.maximum(a, b)
    return np.where(alone | (larger == 0.0), 0.0, (b - a) / np.where(larger > 0.0, larger, 1.0))
