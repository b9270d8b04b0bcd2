"""The silhouette of a partition from cluster sums: one matrix product, no distance matrix.

For unit rows, with S the sum and n the size of a cluster, the distances to a whole cluster add up to n - x.S. So

    a(i) = (n - x_i.S) / (n - 1)      over the point's own cluster (its distance to itself is 0),
    b(i) = min over other clusters of 1 - x_i.S' / n'.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from meanlink import _validate
from meanlink._compile import compiled
from meanlink._level_scores import ROUNDING
from meanlink._neighbours import Lists, Table, dot, empty_lists
from meanlink._search import Search
from meanlink._types import Bool, Float64, Int32
from meanlink.progress import nobody


def silhouette_samples(X: Any, labels: Any) -> Float64:
    """Silhouette of every point under cosine distance, equal to scikit-learn's to rounding.

    Parameters
    ----------
    X : array_like, shape (n, d)
        Points, compared by direction.
    labels : array_like, shape (n,)
        A partition into at least 2 and at most n - 1 clusters.

    Returns
    -------
    ndarray, shape (n,)
        s = (b - a) / max(a, b); 0 for a point alone in its cluster.

    Examples
    --------
    >>> silhouette_samples([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [0, 0, 1])
    array([1., 1., 0.])
    """
    n = len(_validate.points(X))
    clusters = _validate.classes("labels", labels, n)
    size = np.bincount(clusters, minlength=1).astype(np.float64)
    if not 2 <= len(size) <= n - 1:
        raise ValueError(f"labels name {len(size)} clusters of {n} points; pass at least 2 and at most n - 1.")
    rows = _validate.unit_rows(X)
    begins = np.concatenate([[0], np.cumsum(size[:-1])]).astype(np.int64)
    sums = np.add.reduceat(rows[np.argsort(clusters, kind="stable")], begins, axis=0)
    points, own, table = Table(rows, np.ones(n)), clusters.astype(np.int32), Table(sums, size)
    b = nearest(points, np.arange(n, dtype=np.int32), own, table, 1).distances[:, 0]
    return coefficients(inner(points, own, table), b, size[clusters] < 2.0)


def silhouette(X: Any, labels: Any) -> float:
    """Mean silhouette of a partition under cosine distance.

    Parameters
    ----------
    X, labels : array_like
        See `silhouette_samples`.

    Returns
    -------
    float

    Examples
    --------
    >>> round(silhouette([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [0, 0, 1]), 4)
    0.6667
    """
    return float(silhouette_samples(X, labels).mean())


def nearest(points: Table, which: Int32, own: Int32, table: Table, length: int) -> Lists:
    """Lists of the clusters of a table nearest to the points `which`, but for the own[which] of each."""
    lists = empty_lists(len(own), length)
    search = Search(table, np.arange(len(table.size), dtype=np.int32))
    which = which[search.order(own[which])]
    search.search(points, which, own[which], np.inf, lists, nobody)
    return lists


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
