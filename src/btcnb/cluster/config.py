"""The settings of an evaluation or a refinement."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from btcnb.cluster.communities import MAX_SIZE
from btcnb.cluster.scores import MIN_DEGREE
from btcnb.configuration import Real, Whole, configuration
from meanlink.cuts import CUTS, N_MIN
from meanlink.purity import MOST_PAIRS, PAIRS

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
