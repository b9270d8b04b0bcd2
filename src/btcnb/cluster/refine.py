"""Refining a partition (the paper's section on detecting and mitigating cluster collapse).

A dendrogram inside each initial cluster, one threshold λ for all; merges at λ or above are suspicious and are undone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numba import njit

from btcnb.cluster._rows import Float64, Int64
from btcnb.cluster.cuts import N_MIN, global_threshold
from btcnb.cluster.forest import Forest, cut_forest, dendrograms, local_thresholds, merge_values
from btcnb.errors import ParameterError


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
    """

    partition: Int64
    threshold: float
    local: pd.DataFrame
    forest: Forest
    suspicious: pd.DataFrame


def refine(
    X: Any,
    partition: Any,
    threshold: float | None = None,
    method: str = "average",
    cut: str = "silhouette",
    *,
    n_min: int = N_MIN,
    alpha: float = 1.0,
    depth: int = 2,
    criterion: str | None = None,
    memory_limit: int | None = None,
) -> Refinement:
    """Split the clusters of a partition (n,) where the embeddings X (n, d) say that they hold more than one user.

    threshold: λ; None takes the size-weighted mean of local thresholds over clusters of at least n_min points
    method, cut: linkage ("average", "ward", "complete", "single") and rule ("silhouette", "gap", "inconsistency"
    with alpha, depth) criterion: what λ is compared with, "distance" or "inconsistent"; None takes heights except
    for the inconsistency rule, whose
        thresholds are coefficients. The paper's wording allows "distance" there too: then hardly anything is cut.
    """
    if criterion is None:
        criterion = "inconsistent" if cut == "inconsistency" else "distance"
    if criterion not in ("distance", "inconsistent"):
        raise ParameterError(f"criterion is {criterion!r}; choose distance or inconsistent.")
    if threshold is not None and not threshold > 0:
        raise ParameterError(f"threshold is {threshold}; λ must be positive.")
    forest = dendrograms(X, partition, method, memory_limit=memory_limit)
    local = np.full(len(forest), np.nan)
    if threshold is None:
        local = local_thresholds(X, forest, cut, n_min=n_min, alpha=alpha, depth=depth)
        threshold = global_threshold(forest.sizes, local, n_min)
        threshold = float("inf") if np.isnan(threshold) else threshold
    values = merge_values(forest, criterion, depth)
    used = ~np.isnan(local)
    return Refinement(
        partition=cut_forest(forest, values, threshold),
        threshold=float(threshold),
        local=pd.DataFrame({"cluster": forest.clusters[used], "size": forest.sizes[used], "threshold": local[used]}),
        forest=forest,
        suspicious=suspicious_merges(forest, values, threshold),
    )


def suspicious_merges(forest: Forest, values: Float64, threshold: float) -> pd.DataFrame:
    """Merges with a value of at least λ, most suspicious first; see `Refinement` for the columns."""
    flagged = np.flatnonzero(values >= threshold)
    tree = forest.tree_of_merge()[flagged]
    sizes, points = _sides(forest.members, forest.offsets, forest.merges, flagged, tree)
    balance = 4.0 * sizes[:, 0] * sizes[:, 1] / (sizes.sum(axis=1) ** 2.0)
    table = pd.DataFrame(
        {
            "cluster": forest.clusters[tree],
            "height": forest.merges[flagged, 2],
            "value": values[flagged],
            "excess": values[flagged] - threshold,
            "size_left": sizes[:, 0],
            "size_right": sizes[:, 1],
            "left": points[:, 0],
            "right": points[:, 1],
            "suspicion": (values[flagged] - threshold) * balance,
        }
    )
    return table.sort_values(["suspicion", "excess"], ascending=False, kind="stable", ignore_index=True)


@njit(cache=True)
def _sides(members: Any, offsets: Any, merges: Any, flagged: Any, tree: Any) -> Any:
    """Sizes and first points of the two sides of every flagged merge, the larger side on the left."""
    sizes = np.empty((len(flagged), 2), dtype=np.int64)
    points = np.empty((len(flagged), 2), dtype=np.int64)
    lowest = np.empty(0, dtype=np.int64)
    current = -1
    for f in range(len(flagged)):
        t = tree[f]
        first, n = offsets[t], offsets[t + 1] - offsets[t]
        Z = merges[first - t : first - t + n - 1]
        if t != current:  # flagged merges come tree by tree
            current = t
            lowest = np.empty(2 * n - 1, dtype=np.int64)
            for leaf in range(n):
                lowest[leaf] = members[first + leaf]
            for m in range(n - 1):
                lowest[n + m] = min(lowest[int(Z[m, 0])], lowest[int(Z[m, 1])])
        m = flagged[f] - (first - t)
        for side in range(2):
            node = int(Z[m, side])
            sizes[f, side] = 1 if node < n else int(Z[node - n, 3])
            points[f, side] = lowest[node]
        if sizes[f, 1] > sizes[f, 0]:
            sizes[f, 0], sizes[f, 1] = sizes[f, 1], sizes[f, 0]
            points[f, 0], points[f, 1] = points[f, 1], points[f, 0]
    return sizes, points
