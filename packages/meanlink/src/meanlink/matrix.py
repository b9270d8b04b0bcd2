"""Several trees and their best cuts of one set of a few thousand points, out of one distance matrix.

A thousand sets of a few thousand points each are another task than one large set: the matrix of a set fits into memory,
and serves all linkages and cuts. `linkage` uses the same kernels for small inputs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from meanlink import _validate
from meanlink._level_scores import best_threshold
from meanlink._matrix import near_groups, square_distances, tree_of, with_copies
from meanlink._types import Float64
from meanlink.linkage import LINKAGES, distinct_rows


class DistanceMatrix:
    """Cosine distances of the distinct rows of X (n, d); all results are those of the functions without a matrix.

    Parameters
    ----------
    X : array_like, shape (n, d)
        Points, compared by direction.
    reuse : DistanceMatrix, optional
        A matrix that is no longer needed, whose memory the new one takes over: fresh memory costs more than sums.

    Examples
    --------
    >>> matrix = DistanceMatrix([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]])
    >>> matrix.linkage("complete")
    array([[0., 2., 0., 2.],
           [1., 3., 1., 3.]])
    >>> matrix.cut_silhouette("complete")
    0.5
    """

    def __init__(self, X: Any, reuse: DistanceMatrix | None = None) -> None:
        rows = _validate.unit_rows(X)
        if not len(rows):
            raise ValueError("X has no rows.")
        _validate.require_memory(8 * len(rows) ** 2, f"The distance matrix of {len(rows):,} points")
        first, self._copies = distinct_rows(rows)
        self.points, m = len(rows), len(first)
        self._memory, self._distances = np.empty(0), np.empty((0, 0))
        if reuse is not None:
            self._memory, reuse._memory = reuse._memory, self._memory
            reuse._distances = self._memory[:0].reshape(0, 0)
        if len(self._memory) < m * m:
            self._memory = np.empty(0)  # let go first
            self._memory = np.empty(m * m)
        self._distances = square_distances(rows[first], self._memory)
        self._groups = near_groups(self._distances)
        self._weight = np.bincount(self._copies, minlength=m).astype(np.float64)
        self._trees: dict[str, Float64] = {}

    def _tree(self, method: str) -> Float64:
        """The tree of the distinct points."""
        code = LINKAGES[_validate.choice("method", method, LINKAGES)]
        if method not in self._trees:
            self._trees[method] = tree_of(self._distances, self._weight, self._groups, code)
        return self._trees[method]

    def linkage(self, method: str = "average") -> Float64:
        """The linkage matrix (n-1, 4), as `meanlink.linkage` gives it."""
        return with_copies(self._tree(method), self._copies)

    def cut_silhouette(self, method: str = "average") -> float:
        """The threshold of the tree's best level, as `meanlink.cut_silhouette` gives it."""
        return float(best_threshold(self._distances, self._weight, self._tree(method)))
