"""Refining a partition (the paper's section on detecting and mitigating cluster collapse).

A dendrogram inside each initial cluster, one threshold λ for all; merges at λ or above are suspicious and are undone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from btcnb import gates
from btcnb.cluster import _gate
from btcnb.cluster._gate import Float64, Int64
from btcnb.cluster._progress import Progress
from btcnb.cluster._trees import first_leaf
from btcnb.cluster.config import ClusterConfig, configured
from btcnb.cluster.cuts import global_threshold
from btcnb.cluster.forest import Forest, cut_forest, dendrograms, local_thresholds, merge_values


@dataclass(frozen=True)
class Refinement:
    """What `refine` found.

    partition:  int64 label per point, a refinement of the initial partition
    threshold:  λ; +inf if no cluster was large enough to say
    local:      table of clusters with at least n_min points: cluster, size, threshold
    forest:     the dendrogram of every initial cluster
    suspicious: table of undone merges, most suspicious first, with the columns
        cluster               the initial cluster that the merge held together
        height, value         its height, and what λ is compared with (the height or the inconsistency coefficient)
        excess                value - λ
        size_left, size_right points on either side, the larger side on the left
        left, right           position of the first point of either side
        suspicion             excess times balance; balance = 4ab / (a + b)² is 1 for halves, near 0 for a stray point
    zero_rows:  embeddings without a direction, see `ClusterConfig`
    """

    partition: Int64
    threshold: float
    local: pd.DataFrame
    forest: Forest
    suspicious: pd.DataFrame
    zero_rows: int = 0


def refine(
    X: Any,
    partition: Any,
    threshold: float | None = None,
    method: str = "average",
    cut: str = "silhouette",
    *,
    progress: Progress = None,
    **changes: Any,
) -> Refinement:
    """Split the clusters of a partition (n,) where the embeddings X (n, d) say that they hold more than one user.

    threshold: λ; None takes the size-weighted mean of local thresholds over clusters of at least n_min points
    method, cut: linkage ("average", "ward", "complete", "single") and rule ("silhouette", "gap", "inconsistency",
        "inconsistency-height")
    progress: as in `dendrograms`; changes: other fields of `ClusterConfig`
    """
    if threshold is not None:
        threshold = _gate.number(threshold, "threshold", 0.0, infinite=True)
    config = configured(None, {"method": method, "cut": cut, **changes})
    rows, zero_rows = _gate.directed(X, config.zero_rows)
    forest = dendrograms(rows, partition, config.method, memory_limit=config.memory_limit, progress=progress)
    local = np.full(len(forest), np.nan)
    if threshold is None:
        local, threshold = thresholds(rows, forest, config, progress)
    values = merge_values(forest, config.compared, config.depth)
    used = ~np.isnan(local)
    return Refinement(
        partition=cut_forest(forest, values, threshold),
        threshold=threshold,
        local=pd.DataFrame({"cluster": forest.clusters[used], "size": forest.sizes[used], "threshold": local[used]}),
        forest=forest,
        suspicious=suspicious_merges(forest, values, threshold),
        zero_rows=zero_rows,
    )


def thresholds(X: Any, forest: Forest, config: ClusterConfig, progress: Progress) -> tuple[Float64, float]:
    """Local thresholds of a forest and λ, +inf if no cluster is large enough to say."""
    local = local_thresholds(
        X, forest, config.cut, n_min=config.n_min, alpha=config.alpha, depth=config.depth, progress=progress
    )
    found = global_threshold(forest.sizes, local, config.n_min)
    return local, float("inf") if np.isnan(found) else found


def suspicious_merges(forest: Forest, values: Any, threshold: float) -> pd.DataFrame:
    """Merges with a value of at least λ, most suspicious first; see `Refinement` for the columns."""
    trees = gates.instance("forest", forest, Forest).trees()
    values = _gate.reals(values, "values", len(trees.height))
    threshold = _gate.number(threshold, "threshold", infinite=True)
    flagged = np.flatnonzero(values >= threshold)
    sides = trees.children[flagged]
    swapped = trees.size[sides[:, 1]] > trees.size[sides[:, 0]]
    sides[swapped] = sides[swapped, ::-1]
    sizes, points = trees.size[sides], forest.members[first_leaf(trees)[sides]]
    balance = 4.0 * sizes[:, 0] * sizes[:, 1] / (sizes.sum(axis=1) ** 2.0)
    excess = values[flagged] - threshold
    table = pd.DataFrame(
        {
            "cluster": forest.clusters[trees.tree_of_merge[flagged]],
            "height": trees.height[flagged],
            "value": values[flagged],
            "excess": excess,
            "size_left": sizes[:, 0],
            "size_right": sizes[:, 1],
            "left": points[:, 0],
            "right": points[:, 1],
            "suspicion": excess * balance,
        }
    )
    return table.sort_values(["suspicion", "excess"], ascending=False, kind="stable", ignore_index=True)
