"""A recipe says completely what is computed: whose data, how an encoder is trained, how its embedding is clustered.

data = Source.of("simulated", size="quick")
mine = recipe(data, seed=3, encoder="sage", linkage="ward")     # any field of TrainConfig or ClusterConfig

A job is one run of a sweep: a recipe, the method that takes its encoder's place, and what is measured.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any

from btcnb import gates, sizes
from btcnb.cluster import ClusterConfig
from btcnb.data import DEFAULT_RULES, Source
from btcnb.data.heuristics import RULES
from btcnb.errors import ParameterError
from btcnb.experiments.sweep.records import defaults
from btcnb.learn import TrainConfig, baseline_config


@dataclass(frozen=True)
class Recipe:
    """Everything that a number in this book depends on, but for the code and the content of files."""

    source: Source
    train: TrainConfig
    cluster: ClusterConfig = field(default_factory=ClusterConfig)
    supervision: tuple[str, ...] = DEFAULT_RULES
    """rules whose clusters are the labels of training: the paper's are all that its graphs were clustered by"""

    def __post_init__(self) -> None:
        gates.instance("source", self.source, Source)
        gates.instance("train", self.train, TrainConfig)
        gates.instance("cluster", self.cluster, ClusterConfig)
        rules = [
            gates.choice("a rule of supervision", name, RULES) for name in gates.items("supervision", self.supervision)
        ]
        if not rules:
            raise ParameterError(f"supervision is empty; name some of {', '.join(RULES)}.")
        object.__setattr__(self, "supervision", tuple(name for name in RULES if name in rules))

    @property
    def id(self) -> str:
        """A short name: equal for equal recipes, in every process."""
        return hashlib.sha256(json.dumps(_tree(self), sort_keys=True).encode()).hexdigest()[:12]

    def flat(self) -> dict[str, Any]:
        """One plain value a field, for records and for provenance."""
        parts = {"source": asdict(self.source), "train": asdict(self.train), "cluster": asdict(self.cluster)}
        flat = {f"{part}.{name}": _plain(value) for part, entries in parts.items() for name, value in entries.items()}
        return flat | {"supervision": _plain(self.supervision)}


def recipe(source: Source, seed: int = 0, cluster: ClusterConfig | None = None, **changes: Any) -> Recipe:
    """The recipe of a source: the paper's settings at the source's size, then `changes`; those that are None are not.

    seed: of initialisation, tuples and neighbours; the world's own seed is the source's
    changes: fields of TrainConfig, or of ClusterConfig (a name that both have, such as `alpha`, is training's: give
        `cluster` for the other), or `supervision`
    """
    gates.instance("source", source, Source)
    base = ClusterConfig() if cluster is None else gates.instance("cluster", cluster, ClusterConfig)
    given = {name: value for name, value in changes.items() if value is not None}
    theirs = {item.name for item in fields(TrainConfig)}
    ours = {item.name for item in fields(ClusterConfig)} - theirs
    supervision = given.pop("supervision", DEFAULT_RULES)
    unknown = sorted(set(given) - ours - theirs)
    if unknown:
        known = sorted(ours | theirs | {"supervision"})
        raise ParameterError(f"a recipe has no field {unknown[0]!r}; it has {', '.join(known)}.")
    train = {**sizes.size(source.size).training, "seed": seed, **{n: v for n, v in given.items() if n in theirs}}
    settings = replace(base, **{n: v for n, v in given.items() if n in ours})
    return Recipe(source, TrainConfig(**train), settings, supervision)


def baseline(recipe: Recipe, name: str) -> Recipe:
    """The recipe of a baseline encoder (`untrained`, `gae` or `dgi`) trained where the given one is trained."""
    gates.instance("recipe", recipe, Recipe)
    return replace(recipe, train=baseline_config(name, recipe.train))


METHODS: dict[str, str] = {
    "trained": "the recipe's encoder, trained",
    "untrained": "the same encoder with the weights it starts from",
    "gae": "the same encoder trained as a graph auto-encoder",
    "dgi": "the same encoder trained by deep graph infomax",
    "features": "scaled features as they are: no graph, no training",
    "shuffled": "the trained encoder's clusters, dealt out to nodes at random",
    "agreeing": "three encoders side by side (trained, trained on common inputs, untrained)",
    "louvain": "Louvain's communities",
    "leiden": "Leiden's communities",
}
COMMUNITIES = ("louvain", "leiden")
NO_EMBEDDING = (*COMMUNITIES, "shuffled")
"""Methods that are flat clusters and nothing else: there is nothing to refine by."""


@dataclass(frozen=True)
class Job:
    """One run of a sweep: a recipe, the method that takes its encoder's place, and what is measured."""

    row: str
    seed: int
    recipe: Recipe
    method: str = "trained"
    measure: str = "scores"
    arguments: tuple[tuple[str, Any], ...] = ()
    """of the measure, by name"""

    def __post_init__(self) -> None:
        gates.text("row", self.row)
        gates.whole("seed", self.seed, "[0, 2147483647]")
        gates.instance("recipe", self.recipe, Recipe)
        gates.choice("method", self.method, METHODS)
        gates.text("measure", self.measure)
        if self.measure == "refinement" and self.method in NO_EMBEDDING:
            raise ParameterError(
                f"the measure 'refinement' needs an embedding, but the method {self.method!r} has none; "
                f"take one of {', '.join(name for name in METHODS if name not in NO_EMBEDDING)}."
            )


def _plain(value: Any) -> Any:
    return " ".join(map(str, value)) if isinstance(value, tuple | list) else value


_TAGS = {Recipe: "recipe", Source: "source", TrainConfig: "train-config", ClusterConfig: "cluster-config"}


LATER = ("whole", "prices", "impute")
"""Fields of a source that were added after recipes had ids; their defaults are false or empty."""


def _tree(value: Any) -> Any:
    """A recipe as JSON, from which its id is computed. Another form would give every recipe another id.

    So it also holds the fields that a class once had, at their default, and leaves out `LATER` ones at theirs.
    """
    if is_dataclass(value) and not isinstance(value, type):
        part = _TAGS[type(value)].removesuffix("-config") + "."
        names = {name.removeprefix(part): default for name, default in defaults().items() if name.startswith(part)}
        names = names or {item.name: None for item in fields(value)}  # the recipe itself
        held = {name: getattr(value, name, default) for name, default in names.items()}
        parts = [[name, _tree(field)] for name, field in held.items() if field or name not in LATER]
        return {"~": "object", "value": {"~": "dict", "value": parts}, "tag": _TAGS[type(value)]}
    if isinstance(value, tuple):
        return {"~": "tuple", "value": [_tree(item) for item in value]}
    return value
