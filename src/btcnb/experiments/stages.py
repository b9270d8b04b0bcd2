"""The stages of a recipe, each kept in the store: graphs → model → embeddings → partition → forest → scores.

A stage is keyed by the part of the recipe that decides it: another cut does not train again, another encoder does not
look for communities again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import psutil

from btcnb import gates
from btcnb.cluster import (
    Forest,
    ari,
    coarse_partition,
    communities,
    dendrograms,
    evaluate,
    nmi,
    scored_nodes,
    tune_resolution,
)
from btcnb.cluster.communities import BASELINES
from btcnb.data import DEFAULT_RULES, ROLES, AddressGraph, Source, load_clusters, load_graph
from btcnb.errors import ParameterError
from btcnb.experiments.recipe import COMMUNITIES, Recipe, baseline
from btcnb.learn import Run, TrainConfig, embed, train
from btcnb.store import kept

TRAINING = ("train1", "train2", "train3")


def trained(recipe: Recipe) -> Run:
    """The encoder of a recipe, trained on the three training graphs, steered by the validation graph."""
    recipe = gates.instance("recipe", recipe, Recipe)
    return _trained(recipe.source, recipe.train, recipe.supervision)


def embeddings(recipe: Recipe, role: str = "test") -> npt.NDArray[np.float32]:
    """One unit row per node of the role's graph, in its order, (N, d)."""
    recipe = _checked(recipe, role)
    return _embeddings(recipe.source, recipe.train, recipe.supervision, role)


def coarse(recipe: Recipe, role: str = "test") -> npt.NDArray[np.int64]:
    """The coarse partition of the role's graph, one community per node, (N,)."""
    settings = _checked(recipe, role).cluster
    return _coarse(recipe.source, role, settings.coarse, settings.max_size, settings.resolution)


def forest(recipe: Recipe, role: str = "test") -> Forest:
    """A dendrogram of the embeddings inside each community of the coarse partition."""
    recipe = _checked(recipe, role)
    return _forest(embeddings(recipe, role), recipe.cluster.method, coarse(recipe, role))


def scores(recipe: Recipe, role: str = "test") -> dict[str, Any]:
    """The paper's evaluation of the embedding on the role's graph: purity, NMI, ARI, λ, clusters, seconds."""
    return _scores(_checked(recipe, role), role)


def _checked(recipe: Recipe, role: str) -> Recipe:
    gates.choice("role", role, ROLES)
    return gates.instance("recipe", recipe, Recipe)


@kept
def _scores(recipe: Recipe, role: str) -> dict[str, Any]:
    return evaluate(
        embeddings(recipe, role),
        load_graph(recipe.source, role),
        partition=coarse(recipe, role),
        config=recipe.cluster,
        seed=recipe.train.seed,
    )


def community_baseline(
    source: Source, method: str, seed: int = 0, role: str = "test"
) -> tuple[npt.NDArray[np.int64], float]:
    """Communities of the role's graph without any features, and their resolution, tuned on the validation graph."""
    gates.choice("method", method, BASELINES), gates.choice("role", role, ROLES)
    seed = gates.whole("seed", seed, "[0, 2147483647]")
    return _community_baseline(gates.instance("source", source, Source), method, seed, role)


@kept
def _community_baseline(source: Source, method: str, seed: int, role: str) -> tuple[npt.NDArray[np.int64], float]:
    resolution, _ = tune_resolution(load_graph(source, "valid"), method, seed=seed)
    return communities(load_graph(source, role), method, resolution, seed), resolution


def training_graph(source: Source, role: str, supervision: tuple[str, ...] = DEFAULT_RULES) -> AddressGraph:
    """The graph of a role, its clusters made by the rules of `supervision` instead of all."""
    graph = load_graph(source, role)
    if supervision == DEFAULT_RULES:
        return graph
    clusters = graph.clusters.assign(alias=_by_node(graph, load_clusters(source, role, supervision)))
    return replace(graph, clusters=clusters)


def _by_node(graph: AddressGraph, labels: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Labels in the order of the nodes, in that of the rows of `clusters`."""
    place = pd.Index(graph.nodes["node_id"]).get_indexer(pd.Index(graph.clusters["node_id"]))
    return labels[place]


@kept
def _trained(source: Source, config: TrainConfig, supervision: tuple[str, ...]) -> Run:
    graphs = [training_graph(source, role, supervision) for role in TRAINING]
    return train(config, graphs, valid=training_graph(source, "valid", supervision), progress=False)


@kept
def _embeddings(
    source: Source, config: TrainConfig, supervision: tuple[str, ...], role: str
) -> npt.NDArray[np.float32]:
    return embed(_trained(source, config, supervision).model, load_graph(source, role))


@kept
def _coarse(source: Source, role: str, method: str, max_size: int, resolution: float) -> npt.NDArray[np.int64]:
    return coarse_partition(load_graph(source, role), max_size, resolution, seed=source.seed, method=method)


@kept
def _forest(X: npt.NDArray[np.float32], method: str, partition: npt.NDArray[np.int64]) -> Forest:
    return dendrograms(X, partition, method)


TABLE_ROWS = {
    "louvain": "Louvain",
    "leiden": "Leiden",
    "untrained": "Random GAT",
    "gae": "GAE",
    "dgi": "DGI",
    "trained": "GAT",
}
"""Methods by name, and what the paper's table of the ablation calls them."""


def compare(recipe: Recipe, methods: tuple[str, ...] = tuple(TABLE_ROWS), role: str = "test") -> pd.DataFrame:
    """DP, NMI and ARI against the heuristic clusters, a row for each method, as the paper's table of the ablation.

    Communities have no dendrogram, so their DP is NaN. Only nodes of the recipe's smallest degree or more are scored.
    """
    gates.instance("recipe", recipe, Recipe), gates.choice("role", role, ROLES)
    methods = tuple(gates.text("a method", name) for name in gates.items("methods", methods))
    unknown = [name for name in methods if name not in TABLE_ROWS]
    if unknown:
        raise ParameterError(f"there is no method {unknown[0]!r:.80}; there are {', '.join(TABLE_ROWS)}.")
    rows = {TABLE_ROWS[name]: _row(recipe, name, role) for name in methods}
    return pd.DataFrame.from_dict(rows, orient="index", columns=["DP", "NMI", "ARI"])


def _row(recipe: Recipe, name: str, role: str) -> tuple[float, float, float]:
    if name in COMMUNITIES:
        graph = load_graph(recipe.source, role)
        found, _ = community_baseline(recipe.source, name, recipe.train.seed, role)
        mask, labels = scored_nodes(graph, recipe.cluster.min_degree), graph.labels()
        return np.nan, nmi(labels[mask], found[mask]), ari(labels[mask], found[mask])
    result = scores(recipe if name == "trained" else baseline(recipe, name), role)
    return result["purity"], result["nmi"], result["ari"]


LOOK_SECONDS = 0.02
"""Seconds between two looks at the memory."""
MEGABYTE = 2.0**20


class StageTimer:
    """Seconds and peak memory of the stages of a run: `with timer("train"): …`; `record()` is flat."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.peak_mb: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        """Time a stage and note the highest resident memory of this process while it lasts; repeats add up."""
        done = threading.Event()
        process, peak = psutil.Process(), [0.0]

        def look() -> None:
            while not done.is_set():
                peak[0] = max(peak[0], process.memory_info().rss)
                done.wait(LOOK_SECONDS)

        watcher = threading.Thread(target=look, daemon=True)
        begin = time.perf_counter()
        watcher.start()
        try:
            yield
        finally:
            spent = time.perf_counter() - begin
            done.set()
            watcher.join()
            highest = max(peak[0], process.memory_info().rss) / MEGABYTE
            self.seconds[stage] = self.seconds.get(stage, 0.0) + spent
            self.peak_mb[stage] = max(self.peak_mb.get(stage, 0.0), highest)

    def record(self) -> dict[str, float]:
        seconds = {f"seconds.{stage}": round(value, 4) for stage, value in self.seconds.items()}
        return seconds | {f"peak_mb.{stage}": round(value, 1) for stage, value in self.peak_mb.items()}
