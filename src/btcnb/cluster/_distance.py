"""Distances between clusters that need only what each cluster remembers: its sum, its size, its centre's length.

For unit rows, with S the sum of a cluster's rows and n its size, the mean cosine distance over all pairs of A and B is

    d(A, B) = mean over a in A, b in B of (1 - a.b) = 1 - S_A.S_B / (n_A n_B),

and Ward's squared distance between the centres c = S / n (Euclidean, SciPy's scale) is

    d²(A, B) = 2 n_A n_B / (n_A + n_B) * (|c_A|² + |c_B|² - 2 c_A.c_B).

Both are *reducible*: a union is never nearer to a third cluster than the nearer of its two parts. Everything in
`_neighbours` and `_reciprocal` rests on that and on nothing else.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import prange

from btcnb.cluster._compile import compiled
from btcnb.cluster._gate import Float64

Real = npt.NDArray[Any]  # float32 or float64

AVERAGE, WARD = 0, 1
"""The two matrix-free methods, as numba sees them."""


class Table(NamedTuple):
    """What clusters remember: the sum of their rows (n, d) and their sizes (n,). A point is a cluster of size 1."""

    sums: Float64
    size: Float64


@compiled(fastmath=True)
def dot(a: Float64, b: Float64) -> float:
    total = 0.0
    for k in range(a.shape[0]):
        total += a[k] * b[k]
    return total


@compiled()
def cluster_distance(kind: int, left: Table, i: int, right: Table, j: int) -> float:
    """Exact float64 distance of cluster i of one table and cluster j of another (or of the same).

    The same bits for (i, j) and (j, i).
    """
    a, b = left.size[i], right.size[j]
    if kind == AVERAGE:
        return max(1.0 - dot(left.sums[i], right.sums[j]) / (a * b), 0.0)
    total = 0.0  # |n_j S_i - n_i S_j|²: no cancellation between nearly equal centres
    for k in range(left.sums.shape[1]):
        difference = left.sums[i, k] * b - right.sums[j, k] * a
        total += difference * difference
    return 2.0 * total / (a * b * (a + b))


@compiled()
def union_bound(kind: int, bound_a: float, bound_b: float, size_a: float, size_b: float, height: float) -> float:
    """What any cluster x with d(A, x) >= bound_a and d(B, x) >= bound_b keeps as distance to the union of A and B.

    Average: d(AB, x) is the size-weighted mean of the two. Ward (Lance-Williams, squared distances): a ratio that is
    monotone in the size of x, so its smallest value is at size 1 or in the limit of infinite size.
    """
    if np.isinf(bound_a) or np.isinf(bound_b):
        return np.inf
    if kind == AVERAGE:
        return (size_a * bound_a + size_b * bound_b) / (size_a + size_b)
    smallest = ((size_a + 1.0) * bound_a + (size_b + 1.0) * bound_b - height) / (size_a + size_b + 1.0)
    return min(smallest, bound_a + bound_b - height)


@compiled(parallel=True)
def ward_block(
    products: Real, row_size: Real, row_square: Real, col_size: Real, col_square: Real, error: float
) -> None:
    """Turn products -c_i.c_j (R, C) in place into lower bounds of Ward's squared distance.

    error bounds the rounding of |c_i|² + |c_j|² - 2 c_i.c_j; sizes and squares have the dtype of the products.
    """
    two = products.dtype.type(2.0)
    slack = products.dtype.type(error)
    for r in prange(products.shape[0]):
        n, q = row_size[r], row_square[r] - slack
        for c in range(products.shape[1]):
            gap = q + col_square[c] + two * products[r, c]
            products[r, c] = two * n * col_size[c] / (n + col_size[c]) * gap
