"""Part III, second half: dendrograms of embeddings without the distance matrix, their cuts, and how good they are."""

from btcnb.cluster._engines import ENGINES
from btcnb.cluster.coarse import MAX_SIZE, coarse_partition
from btcnb.cluster.communities import GraphLike, LabelledGraph, communities, tune_resolution
from btcnb.cluster.config import ClusterConfig
from btcnb.cluster.cuts import (
    CUTS,
    cut,
    cut_gap,
    cut_inconsistency,
    cut_silhouette,
    flat,
    global_threshold,
)
from btcnb.cluster.evaluation import evaluate
from btcnb.cluster.forest import Forest, cut_forest, dendrograms, local_thresholds
from btcnb.cluster.levels import Levels, silhouette_levels
from btcnb.cluster.linkage import LINKAGES, linkage
from btcnb.cluster.purity import (
    dendrogram_purity,
    dendrogram_purity_sampled,
    forest_purity,
    forest_purity_sampled,
)
from btcnb.cluster.refine import Refinement, refine
from btcnb.cluster.scores import PairCounts, ari, nmi, pairwise_counts, pairwise_scores, scored_nodes
from btcnb.cluster.silhouette import silhouette, silhouette_samples

__all__ = [
    "CUTS",
    "ENGINES",
    "LINKAGES",
    "MAX_SIZE",
    "ClusterConfig",
    "Forest",
    "GraphLike",
    "LabelledGraph",
    "Levels",
    "PairCounts",
    "Refinement",
    "ari",
    "coarse_partition",
    "communities",
    "cut",
    "cut_forest",
    "cut_gap",
    "cut_inconsistency",
    "cut_silhouette",
    "dendrogram_purity",
    "dendrogram_purity_sampled",
    "dendrograms",
    "evaluate",
    "flat",
    "forest_purity",
    "forest_purity_sampled",
    "global_threshold",
    "linkage",
    "local_thresholds",
    "nmi",
    "pairwise_counts",
    "pairwise_scores",
    "refine",
    "scored_nodes",
    "silhouette",
    "silhouette_levels",
    "silhouette_samples",
    "tune_resolution",
]
