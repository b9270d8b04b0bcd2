"""A recipe says completely what is computed: whose data, how an encoder is trained, how its embedding is clustered.

data = Source.of("simulated", size="quick")
mine = recipe(data, seed=3, encoder="sage", linkage="ward")     # any field of TrainConfig or ClusterConfig
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from btcnb import sizes
from btcnb.cluster import MAX_SIZE
from btcnb.cluster.cuts import N_MIN
from btcnb.cluster.purity import PAPER_PAIRS
from btcnb.cluster.scores import MIN_DEGREE
from btcnb.data import Source
from btcnb.errors import ParameterError
from btcnb.learn import TrainConfig, baseline_config
from btcnb.store import fingerprint, storable


@storable("coarse-config")
@dataclass(frozen=True)
class CoarseConfig:
    """The partition inside whose parts dendrograms are built."""

    coarse: str = "leiden"
    """method of the coarse partition"""
    max_size: int = MAX_SIZE
    """nodes in a community, at most"""
    resolution: float = 1.0
    """resolution of the communities"""


@storable("cluster-config")
@dataclass(frozen=True)
class ClusterConfig(CoarseConfig):
    """How an embedding becomes a partition, and which nodes are scored."""

    linkage: str = "average"
    """linkage of the dendrograms"""
    cut: str = "silhouette"
    """rule of the local thresholds"""
    n_min: int = N_MIN
    """smallest cluster that takes part in the global threshold λ"""
    cut_alpha: float = 1.0
    """α of the inconsistency rule"""
    min_degree: int = MIN_DEGREE
    """smallest degree of a node that is scored"""
    pairs: int = PAPER_PAIRS
    """pairs of the sampled dendrogram purity"""

    def coarsely(self) -> CoarseConfig:
        """The part that decides the coarse partition."""
        return CoarseConfig(self.coarse, self.max_size, self.resolution)


@storable("recipe")
@dataclass(frozen=True)
class Recipe:
    """Everything that a number in this book depends on, but for the code and the content of files."""

    source: Source
    train: TrainConfig
    cluster: ClusterConfig = ClusterConfig()

    @property
    def id(self) -> str:
        """A short name: equal for equal recipes, in every process."""
        return fingerprint(self)[:12]

    def flat(self) -> dict[str, Any]:
        """One plain value a field, for records and for provenance."""
        parts = {"source": asdict(self.source), "train": asdict(self.train), "cluster": asdict(self.cluster)}
        return {f"{part}.{name}": _plain(value) for part, entries in parts.items() for name, value in entries.items()}


def recipe(source: Source, seed: int = 0, **changes: Any) -> Recipe:
    """The recipe of a source: the paper's settings at the source's size, then `changes`; those that are None are not.

    seed: of initialisation, tuples and neighbours; the world's own seed is the source's
    """
    given = {name: value for name, value in changes.items() if value is not None}
    ours = {field.name for field in fields(ClusterConfig)}
    theirs = {field.name for field in fields(TrainConfig)}
    unknown = sorted(set(given) - ours - theirs)
    if unknown:
        known = ", ".join(sorted(ours | theirs))
        raise ParameterError(f"a recipe has no field {unknown[0]!r}; it has {known}.")
    train = {**sizes.size(source.size).training, "seed": seed, **{n: v for n, v in given.items() if n in theirs}}
    return Recipe(source, TrainConfig(**train), ClusterConfig(**{n: v for n, v in given.items() if n in ours}))


def baseline(recipe: Recipe, name: str) -> Recipe:
    """The recipe of a baseline encoder (`untrained`, `gae` or `dgi`) trained where the given one is trained."""
    return replace(recipe, train=baseline_config(name, recipe.train))


def _plain(value: Any) -> Any:
    return " ".join(map(str, value)) if isinstance(value, tuple | list) else value
