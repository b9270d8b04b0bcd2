"""One tree over the whole graph beside trees inside communities: what is the embedding's work, what the communities'?

    whole_tree_numbers(X, graph, partition, config)["whole_DP"]

Scores named `whole_…` are those of one dendrogram of all nodes, cut where its own silhouette is best; `communities_…`
those of the communities themselves, taken for clusters. Both stand beside the paper's, which mixes the two.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from btcnb.cluster import (
    ClusterConfig,
    ari,
    cut,
    cut_silhouette,
    dendrogram_purity,
    fill_zero_rows,
    linkage,
    nmi,
    scored_nodes,
    silhouette_levels,
)
from btcnb.cluster.communities import LabelledGraph
from btcnb.cluster.scores import ami

Numbers = dict[str, float | int | str | None]

EVERY_LEVEL = 100_000
"""Nodes up to which every level of the tree is compared; above, `LEVELS` of them are."""

LEVELS = 24
"""Levels compared in larger trees: numbers of clusters in geometric progression."""


def whole_tree_numbers(X: Any, graph: LabelledGraph, partition: Any, config: ClusterConfig) -> Numbers:
    """Scores of one tree over all nodes, and of the communities (n,) alone, on the nodes that the paper scores."""
    rows, _ = fill_zero_rows(X, config.zero_rows)
    labels, scored = graph.labels(), scored_nodes(graph, config.min_degree)
    Z = linkage(rows, config.method, progress=False)
    threshold = best_threshold(rows, Z)
    flat = cut(Z, threshold)
    return {
        "whole_DP": dendrogram_purity(Z, labels, scored),
        "whole_threshold": threshold,
        "whole_clusters": len(np.unique(flat[scored])),
        **agreement("whole", labels[scored], flat[scored]),
        **agreement("communities", labels[scored], np.asarray(partition)[scored]),
    }


def best_threshold(X: Any, Z: Any, every_level: int = EVERY_LEVEL) -> float:
    """Where the silhouette of a dendrogram Z (n-1, 4) is largest: of all levels, or of some in a large tree."""
    n = len(Z) + 1
    if n <= every_level:
        return cut_silhouette(X, Z)
    levels = silhouette_levels(X, Z, clusters=np.geomspace(2, n // 2, LEVELS).astype(np.int64))
    return float(levels.threshold[levels.best]) if len(levels.score) else cut_silhouette(X, Z)


def agreement(name: str, labels: npt.NDArray[np.int64], flat: npt.NDArray[Any]) -> Numbers:
    """Flat clusters against labels, both (n,)."""
    return {
        f"{name}_NMI": nmi(labels, flat),
        f"{name}_AMI": ami(labels, flat),
        f"{name}_ARI": ari(labels, flat),
    }
