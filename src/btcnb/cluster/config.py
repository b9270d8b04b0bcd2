"""The settings of an evaluation or a refinement, in one place."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from btcnb import gates
from btcnb.cluster import _gate
from btcnb.cluster._engines import ENGINES
from btcnb.cluster.coarse import MAX_SIZE
from btcnb.cluster.cuts import CRITERIA, CUTS, N_MIN
from btcnb.cluster.linkage import LINKAGES
from btcnb.cluster.purity import MOST_PAIRS, PAPER_PAIRS
from btcnb.cluster.scores import MIN_DEGREE
from btcnb.errors import ParameterError
from btcnb.store import storable


@storable("cluster-config")
@dataclass(frozen=True)
class ClusterConfig:
    """How embeddings become clusters and scores; the defaults are the paper's. Checked when made.

    coarse, max_size, resolution: the coarse partition, see `coarse_partition` (its `method` is `coarse` here)
    method: linkage, see `linkage`
    cut: rule of the local thresholds, see `CUTS`: "silhouette", "gap", "inconsistency", "inconsistency-height"
    n_min: smallest cluster that takes part in λ; alpha, depth: of the inconsistency rules
    criterion: what λ is compared with, "distance" or "inconsistent"; None takes the rule's own
    min_degree: nodes of a smaller degree are not scored; pairs: of the sampled purity
    zero_rows: embeddings of zeros have no direction. "fixed" gives them one that they share, near nobody else's, counts
        them and warns; "refuse" raises `DataError`
    memory_limit: of each linkage; it never changes a number
    """

    coarse: str = "igraph"
    max_size: int = MAX_SIZE
    resolution: float = 1.0
    method: str = "average"
    cut: str = "silhouette"
    n_min: int = N_MIN
    alpha: float = 1.0
    depth: int = 2
    criterion: str | None = None
    min_degree: int = MIN_DEGREE
    pairs: int = PAPER_PAIRS
    zero_rows: str = "fixed"
    memory_limit: int | None = None

    def __post_init__(self) -> None:
        _gate.choice(self.coarse, "coarse", ENGINES)
        _gate.whole(self.max_size, "max_size", 1)
        _gate.number(self.resolution, "resolution", 0.0)
        _gate.choice(self.method, "method", LINKAGES)
        _gate.choice(self.cut, "cut", CUTS)
        _gate.whole(self.n_min, "n_min", 2)
        _gate.number(self.alpha, "alpha", 0.0)
        _gate.whole(self.depth, "depth", 1)
        if self.criterion is not None:
            _gate.choice(self.criterion, "criterion", CRITERIA)
        _gate.whole(self.min_degree, "min_degree", 0)
        _gate.whole(self.pairs, "pairs", 2, MOST_PAIRS)
        _gate.choice(self.zero_rows, "zero_rows", _gate.ZERO_ROWS)
        if self.memory_limit is not None:
            _gate.whole(self.memory_limit, "memory_limit", 1, 2**63)

    @property
    def compared(self) -> str:
        """What λ is compared with."""
        return self.criterion or CUTS[self.cut].criterion


def configured(config: ClusterConfig | None, changes: dict[str, Any]) -> ClusterConfig:
    """A configuration (None: the defaults) with some fields changed; unknown fields are named."""
    unknown = sorted(set(changes) - {field.name for field in fields(ClusterConfig)})
    if unknown:
        known = ", ".join(field.name for field in fields(ClusterConfig))
        raise ParameterError(f"there is no setting {unknown[0]!r}; known are {known}.")
    base = ClusterConfig() if config is None else gates.instance("config", config, ClusterConfig)
    return replace(base, **changes)
