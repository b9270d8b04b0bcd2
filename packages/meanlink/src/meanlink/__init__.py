"""Exact average linkage without the distance matrix, and what one does with the dendrogram: cuts, silhouettes, purity.

Points are compared by direction (cosine distance). Dendrograms are SciPy's linkage matrices.

>>> import numpy as np
>>> from meanlink import cut, cut_silhouette, linkage
>>> X = np.repeat(np.eye(3), 2, axis=0) + 0.01 * np.arange(18).reshape(6, 3)
>>> Z = linkage(X)
>>> cut(Z, cut_silhouette(X, Z))
array([0, 0, 1, 1, 2, 2])
"""

from typing import TYPE_CHECKING, Any

from meanlink.cuts import CUTS, cut, cut_gap, cut_inconsistency, cut_silhouette, flat, global_threshold
from meanlink.forest import Forest, cut_forest, dendrograms, local_thresholds
from meanlink.levels import Levels, silhouette_levels
from meanlink.linkage import LINKAGES, linkage
from meanlink.purity import dendrogram_purity, dendrogram_purity_sampled, forest_purity, forest_purity_sampled
from meanlink.silhouette import silhouette, silhouette_samples

if TYPE_CHECKING:
    from meanlink.estimator import MeanLinkage

__version__ = "0.1.0"

__all__ = [
    "CUTS",
    "LINKAGES",
    "Forest",
    "Levels",
    "MeanLinkage",
    "cut",
    "cut_forest",
    "cut_gap",
    "cut_inconsistency",
    "cut_silhouette",
    "dendrogram_purity",
    "dendrogram_purity_sampled",
    "dendrograms",
    "flat",
    "forest_purity",
    "forest_purity_sampled",
    "global_threshold",
    "linkage",
    "local_thresholds",
    "silhouette",
    "silhouette_levels",
    "silhouette_samples",
]


def __getattr__(name: str) -> Any:
    """`MeanLinkage` is imported when it is asked for: scikit-learn is optional, and slow to import."""
    if name == "MeanLinkage":
        from meanlink.estimator import MeanLinkage

        return MeanLinkage
    raise AttributeError(f"module 'meanlink' has no attribute {name!r}")
