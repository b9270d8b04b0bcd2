"""A scikit-learn estimator around `linkage`. It is the only module of the library that needs scikit-learn."""

from __future__ import annotations

import numbers
import warnings
from typing import Any

import numpy as np

from meanlink import _validate
from meanlink._dendrogram import flatten
from meanlink.linkage import linkage

try:
    from sklearn.base import BaseEstimator, ClusterMixin
    from sklearn.utils.validation import validate_data
except ImportError as error:
    raise ImportError(
        "MeanLinkage needs scikit-learn 1.6 or newer (pip install scikit-learn); the functions of meanlink do not."
    ) from error


class MeanLinkage(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Exact agglomerative clustering by mean cosine distance, without the distance matrix.

    The tree is that of ``AgglomerativeClustering(metric="cosine", linkage="average")``. The memory grows with the
    number of rows, not with its square.

    Parameters
    ----------
    n_clusters : int or None, default=2
        Number of clusters. It must be None if `distance_threshold` is given.
    distance_threshold : float or None, default=None
        Merges at this height or above are undone. It must be None if `n_clusters` is given.
    method : {"average", "ward", "complete", "single"}, default="average"
        Linkage, as in `meanlink.linkage`. Distances are cosine distances; for "ward" they are Euclidean distances
        between rows of length 1.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row, numbered in order of first appearance.
    n_clusters_ : int
        Number of clusters.
    children_ : ndarray of shape (n_samples - 1, 2)
        The two nodes that each merge joins. Nodes below `n_samples` are rows; merge ``i`` is node ``n_samples + i``.
    distances_ : ndarray of shape (n_samples - 1,)
        Height of each merge, in ascending order.
    linkage_ : ndarray of shape (n_samples - 1, 4)
        The tree as SciPy's linkage matrix, for instance for ``scipy.cluster.hierarchy.dendrogram``.
    n_leaves_ : int
        Number of rows.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns. Defined only if `X` has names that are all text.

    See Also
    --------
    meanlink.linkage : The tree alone, with progress and checkpoints.
    sklearn.cluster.AgglomerativeClustering : Other metrics, and constraints on who may be joined.

    Notes
    -----
    Cosine distance ignores the lengths of rows. Rows of zeros have no direction: `fit` treats them as equal to each
    other and at right angles to all other rows (cosine distance 1), and warns. `meanlink.linkage` refuses them.

    Examples
    --------
    >>> import numpy as np
    >>> from meanlink import MeanLinkage
    >>> X = np.array([[1.0, 0.0], [2.0, 0.1], [0.0, 1.0], [0.1, 3.0]])
    >>> MeanLinkage(n_clusters=2).fit_predict(X)
    array([0, 0, 1, 1])
    >>> model = MeanLinkage(n_clusters=None, distance_threshold=0.5).fit(X)
    >>> model.n_clusters_
    2
    >>> model.children_
    array([[2, 3],
           [0, 1],
           [4, 5]])
    >>> model.distances_.round(2)
    array([0.  , 0.  , 0.96])
    """

    def __init__(
        self, n_clusters: int | None = 2, *, distance_threshold: float | None = None, method: str = "average"
    ) -> None:
        self.n_clusters = n_clusters
        self.distance_threshold = distance_threshold
        self.method = method

    def fit(self, X: Any, y: Any = None) -> MeanLinkage:
        """Build the tree of the rows of `X` and cut it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Real numbers.
        y : ignored
            Only for the conventions of scikit-learn.

        Returns
        -------
        self : MeanLinkage
        """
        X = validate_data(self, X, dtype=[np.float64, np.float32])
        self._check_settings(len(X))
        self.linkage_ = linkage(_directed(X), self.method, progress=False) if len(X) > 1 else np.empty((0, 4))
        self.children_ = self.linkage_[:, :2].astype(np.int64)
        self.distances_ = self.linkage_[:, 2].copy()
        self.n_leaves_ = len(X)
        threshold: Any = self.distance_threshold
        if self.n_clusters is None:
            kept = int(np.searchsorted(self.distances_, threshold))
        else:
            kept = self.n_leaves_ - self.n_clusters
        self.n_clusters_ = self.n_leaves_ - kept
        self.labels_ = flatten(_validate.tree(self.linkage_), np.arange(len(X) - 1) < kept)
        return self

    def _check_settings(self, samples: int) -> None:
        if (self.n_clusters is None) == (self.distance_threshold is None):
            raise ValueError("Exactly one of n_clusters and distance_threshold has to be set; the other must be None.")
        if self.n_clusters is not None:
            if not _is(self.n_clusters, numbers.Integral) or self.n_clusters < 1:
                raise ValueError(f"n_clusters is {self.n_clusters!r}, but must be a whole number of at least 1.")
            if self.n_clusters > samples:
                raise ValueError(f"n_clusters={self.n_clusters} is more than n_samples={samples}.")
        elif not (_is(self.distance_threshold, numbers.Real) and float(self.distance_threshold or 0.0) >= 0.0):
            raise ValueError(f"distance_threshold is {self.distance_threshold!r}, but must be a number of at least 0.")


def _is(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _directed(X: Any) -> Any:
    """Rows with a direction: rows of zeros get an axis of their own."""
    zero = ~X.any(axis=1)
    if not zero.any():
        return X
    warnings.warn(
        f"{zero.sum()} of {len(X)} rows are all zeros; they count as equal to each other and unlike all others.",
        stacklevel=3,
    )
    return np.column_stack([X, zero])
