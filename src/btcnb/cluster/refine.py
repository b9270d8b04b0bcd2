"""Refining a partition (the paper's section on detecting and mitigating cluster collapse), and its settings.

A dendrogram inside each initial cluster, one threshold λ for all. Merges at λ or above are suspicious and are undone.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import Field

from btcnb.cluster.communities import MAX_SIZE
from btcnb.cluster.scores import MIN_DEGREE
from btcnb.configuration import Real, Whole, configuration
from meanlink import CUTS, Forest, cut_forest, dendrograms, global_threshold, local_thresholds
from meanlink.cuts import N_MIN
from meanlink.forest import first_leaf, merge_values
from meanlink.progress import Progress
from meanlink.purity import MOST_PAIRS, PAIRS

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]
LARGEST = 2**31 - 1
"""Largest count that every library below accepts."""

Count = Annotated[Whole, Field(ge=1, le=LARGEST)]


@configuration
class ClusterConfig:
    """How embeddings become clusters and scores. The defaults are the paper's.

    coarse, max_size, resolution: the coarse partition, see `coarse_partition` (its `method` is `coarse` here)
    method: linkage, see `linkage`
    cut: rule of the local thresholds, see `CUTS`
    n_min: smallest cluster that takes part in λ; alpha, depth: of the inconsistency rules
    criterion: what λ is compared with; None takes the rule's own
    min_degree: nodes of a smaller degree are not scored; pairs: of the sampled purity
    zero_rows: what happens to embeddings of zeros, which have no direction, see `fill_zero_rows`
    """

    coarse: Literal["igraph", "leidenalg", "louvain-igraph", "louvain-networkx"] = "igraph"
    max_size: Count = MAX_SIZE
    resolution: Annotated[Real, Field(gt=0)] = 1.0
    method: Literal["average", "ward", "complete", "single"] = "average"
    cut: Literal["silhouette", "gap", "inconsistency", "inconsistency-height"] = "silhouette"
    n_min: Annotated[Whole, Field(ge=2, le=LARGEST)] = N_MIN
    alpha: Annotated[Real, Field(gt=0)] = 1.0
    depth: Count = 2
    criterion: Literal["distance", "inconsistent"] | None = None
    min_degree: Annotated[Whole, Field(ge=0, le=LARGEST)] = MIN_DEGREE
    pairs: Annotated[Whole, Field(ge=2, le=MOST_PAIRS)] = PAIRS
    zero_rows: Literal["fixed", "refuse"] = "fixed"

    @property
    def compared(self) -> str:
        """What λ is compared with."""
        return self.criterion or CUTS[self.cut].criterion


@dataclass(frozen=True)
class Refinement:
    """The result of `refine`.

    partition:  int64 label per point, a refinement of the initial partition
    threshold:  λ; +inf if no cluster has `n_min` points
    local:      table of clusters with at least n_min points: cluster, size, threshold
    forest:     the dendrogram of every initial cluster
    suspicious: table of undone merges, most suspicious first, with the columns
        cluster               the initial cluster that the merge held together
        height, value         its height, and what λ is compared with (the height or the inconsistency coefficient)
        excess                value - λ
        size_left, size_right points on either side, the larger side on the left
        left, right           position of the first point of either side
        suspicion             excess times balance; balance = 4ab / (a + b)² is 1 for halves, near 0 for a stray point
    zero_rows:  embeddings without a direction, see `fill_zero_rows`
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
    method, cut, changes: fields of `ClusterConfig`
    progress: as in `dendrograms`
    """
    config = ClusterConfig(method=method, cut=cut, **changes)  # type: ignore[arg-type]
    rows, zero_rows = fill_zero_rows(X, config.zero_rows)
    forest = dendrograms(rows, partition, config.method, progress=progress)
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
    """Local thresholds of a forest (k,) and λ, +inf if no cluster has `n_min` points."""
    local = local_thresholds(
        X, forest, config.cut, n_min=config.n_min, alpha=config.alpha, depth=config.depth, progress=progress
    )
    found = global_threshold(forest.sizes, local, config.n_min)
    return local, float("inf") if np.isnan(found) else found


def suspicious_merges(forest: Forest, values: Float64, threshold: float) -> pd.DataFrame:
    """Merges with a value of at least λ, most suspicious first; see `Refinement` for the columns."""
    trees = forest.trees()
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


def fill_zero_rows(X: Any, how: str = "fixed") -> tuple[npt.NDArray[Any], int]:
    """Embeddings (n, d) in which rows of zeros have a direction, and the number of these rows.

    how: "fixed" gives all of them the same random direction, in a copy, and warns. It has a cosine distance of about 1
        to everything in high dimensions: an address about which a network says nothing is near no other, except those
        about which it says nothing either. "refuse" changes nothing, so that `linkage` refuses the rows.
    """
    rows = np.asarray(X)
    zero = ~rows.any(axis=1)
    found = int(zero.sum())
    if not found or how == "refuse":
        return rows, 0
    direction = np.random.default_rng(0).normal(size=rows.shape[1])
    rows = rows.astype(np.result_type(rows.dtype, np.float32))
    rows[zero] = direction / np.linalg.norm(direction)
    warnings.warn(f"{found:,} of {len(rows):,} rows of X are all zeros; they share one fixed direction.", stacklevel=3)
    return rows, found
