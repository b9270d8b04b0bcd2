"""Trained here, tested there: encoders taught by simulated or by real graphs, on a simulated and on a real test graph.

    transfer_simulated(job)["real.DP"]        # taught by the simulated world of the job, tested on real blocks

A job's recipe names the simulated world; the real chain is the one at hand (`real_source`). A measure's name says who
teaches. Seed i is world i, initialisation i, tuples i and communities i; the real graph is one and the same, so an
interval over seeds says how much initialisations and simulated worlds differ, never how much real chains do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from btcnb import gates
from btcnb.cluster import (
    ari,
    coarse_partition,
    communities,
    dendrograms,
    fill_zero_rows,
    forest_purity,
    nmi,
    scored_nodes,
    tune_resolution,
)
from btcnb.cluster.evaluate import evaluation
from btcnb.cluster.scores import ami
from btcnb.data import AddressGraph, Source, load_graph, real_source
from btcnb.data.sources import role_facts
from btcnb.experiments.recipe import COMMUNITIES, Job, Recipe, baseline
from btcnb.experiments.stages import TRAINING, StageTimer, coarse, community_baseline, trained
from btcnb.learn import PreparedGraph, Run, TrainConfig, disjoint_union, embed, prepare, train
from btcnb.store import kept

Numbers = dict[str, float | int | str | None]
FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]

TEACHERS = ("simulated", "real", "both", "side by side")
"""Who teaches: three graphs of one kind; all six in turn; or one encoder of each kind, their embeddings in one row."""
METHODS = ("trained", "untrained", *COMMUNITIES)


def transfer_simulated(job: Job) -> Numbers:
    """Taught by the job's simulated world. Methods without training look at each test graph by itself."""
    return transfer(job, "simulated")


def transfer_real(job: Job) -> Numbers:
    """Taught by real blocks."""
    return transfer(job, "real")


def transfer_both(job: Job) -> Numbers:
    """Taught by three simulated and three real graphs in turn, as many steps in all as by three."""
    return transfer(job, "both")


def transfer_side_by_side(job: Job) -> Numbers:
    """Two encoders, one taught by simulated and one by real graphs: cosine distances are the means of theirs."""
    return transfer(job, "side by side")


def transfer(job: Job, teacher: str) -> Numbers:
    """Scores on both test graphs, `simulated.DP` and `real.DP`, and what the real graph is (`real.data`, heights, …).

    DP, NMI, AMI, ARI are against heuristic clusters, on nodes that the paper scores; `real.whole_DP` is the purity of
    one tree over the whole real graph; `simulated.owner_ARI` is against the owners of the simulated world.
    """
    gates.choice("method", job.method, METHODS), gates.choice("teacher", teacher, TEACHERS)
    chain, laps = real_source(), StageTimer()
    with laps("graphs"):
        tests = {"simulated": load_graph(job.recipe.source, "test"), "real": load_graph(chain, "test")}
    if job.method in COMMUNITIES:
        numbers = _by_communities(job, chain, tests, laps)
    else:
        numbers = _by_encoders(job, chain, tests, _encoders(job, chain, teacher, laps), laps)
    told = {f"real.{name}": value for name, value in role_facts(chain, "test").items()}
    return numbers | laps.record() | told | {"data": tests["simulated"].fingerprint()}


def encoder_of(recipe: Recipe, chain: Source, teacher: str) -> Run:
    """The encoder that one kind of graphs (`simulated`, `real`, `both`) has taught by the recipe's settings."""
    gates.instance("recipe", recipe, Recipe), gates.instance("chain", chain, Source)
    if gates.choice("teacher", teacher, TEACHERS[:3]) == "simulated":
        return trained(recipe)
    return _trained_on_real(chain, recipe.train) if teacher == "real" else _trained_on_both(recipe, chain)


@kept
def _trained_on_real(chain: Source, config: TrainConfig) -> Run:
    graphs = [load_graph(chain, role) for role in TRAINING]
    return train(config, graphs, valid=load_graph(chain, "valid"), progress=False)


@kept
def _trained_on_both(recipe: Recipe, chain: Source) -> Run:
    """Simulated and real graphs take turns; the validation loss is that of both validation graphs side by side."""
    graphs = [graph for role in TRAINING for graph in (load_graph(recipe.source, role), load_graph(chain, role))]
    steering = [_prepared(load_graph(recipe.source, "valid"), recipe), _prepared(load_graph(chain, "valid"), recipe)]
    return train(recipe.train, graphs, valid=disjoint_union(steering)[0], progress=False)


def _prepared(graph: AddressGraph, recipe: Recipe) -> PreparedGraph:
    config = recipe.train
    return prepare(graph, config.symmetrise, config.edge_features, config.landmarks, unit=config.unit)


def _encoders(job: Job, chain: Source, teacher: str, laps: StageTimer) -> list[Run]:
    with laps("train"):
        if job.method == "untrained":
            return [trained(baseline(job.recipe, "untrained"))]
        teachers = ("simulated", "real") if teacher == "side by side" else (teacher,)
        runs = [encoder_of(job.recipe, chain, each) for each in teachers]
    laps.seconds["train"] = sum(float(run.record["seconds"]) for run in runs)  # also where the store had them
    return runs


def _by_encoders(
    job: Job, chain: Source, tests: Mapping[str, AddressGraph], runs: list[Run], laps: StageTimer
) -> Numbers:
    told = ("epochs_run", "best_epoch", "best_loss", "valid_loss")
    numbers: Numbers = {name: runs[-1].record[name] for name in told}
    for name, graph in tests.items():
        with laps("embed"):
            X = in_one_row([embed(run.model, graph) for run in runs])
        with laps("coarse"):
            found = coarse(job.recipe) if name == "simulated" else _coarse(chain, job.recipe, job.seed)
        with laps("evaluate"):
            result = evaluation(X, graph, partition=found, config=job.recipe.cluster, seed=job.seed, progress=False)
            numbers |= {f"{name}.{key}": value for key, value in _of_record(result.record).items()}
            numbers |= agreement(name, graph, result.partition, job.recipe)
        if name == "real":
            with laps("thorough"):
                numbers["real.whole_DP"] = _whole_purity(X, graph, job.recipe)
    return numbers


def _by_communities(job: Job, chain: Source, tests: Mapping[str, AddressGraph], laps: StageTimer) -> Numbers:
    """Communities of each test graph, at the resolution that is best on the validation graph of its own kind."""
    with laps("train"):
        found = {
            "simulated": community_baseline(job.recipe.source, job.method, job.seed),
            "real": _real_communities(chain, job.method, job.seed),
        }
    numbers: Numbers = {}
    for name, (flat, resolution) in found.items():
        numbers |= {f"{name}.resolution": resolution} | agreement(name, tests[name], flat, job.recipe)
    return numbers


def in_one_row(embeddings: list[FloatArray]) -> FloatArray:
    """Embeddings (n, d_i) with unit rows, or zeros, as one (n, Σ d_i): cosine distances are the means of theirs."""
    if len(embeddings) == 1:
        return embeddings[0]
    return np.asarray(np.concatenate(embeddings, axis=1) / np.sqrt(len(embeddings)), dtype=np.float32)


def agreement(name: str, graph: AddressGraph, flat: IntArray, recipe: Recipe) -> Numbers:
    """Flat clusters (n,) against the heuristics' on the nodes that are scored, and against owners, where known."""
    scored = scored_nodes(graph, recipe.cluster.min_degree)
    mine, theirs = flat[scored], graph.labels()[scored]
    scores: Numbers = {"NMI": nmi(theirs, mine), "AMI": ami(theirs, mine), "ARI": ari(theirs, mine)}
    scores["found"] = len(np.unique(mine))
    if graph.truth is not None:
        owner = graph.truth[scored]
        scores["owner_ARI"] = ari(owner[owner >= 0], mine[owner >= 0])
    return {f"{name}.{key}": value for key, value in scores.items()}


def _of_record(record: Mapping[str, Any]) -> Numbers:
    kept = ("scored_nodes", "zero_rows", "communities", "threshold")
    return {name: record[name] for name in kept} | {"DP": record["purity"]}


def _whole_purity(X: FloatArray, graph: AddressGraph, recipe: Recipe) -> float:
    rows, _ = fill_zero_rows(X, recipe.cluster.zero_rows)
    tree = dendrograms(rows, np.zeros(len(rows), dtype=np.int64), recipe.cluster.method, progress=False)
    return forest_purity(tree, graph.labels(), scored_nodes(graph, recipe.cluster.min_degree))


@kept
def _real_communities(chain: Source, method: str, seed: int) -> tuple[IntArray, float]:
    resolution, _ = tune_resolution(load_graph(chain, "valid"), method, seed=seed)
    return communities(load_graph(chain, "test"), method, resolution, seed), resolution


def _coarse(chain: Source, recipe: Recipe, seed: int) -> IntArray:
    settings = recipe.cluster
    return coarse_partition(
        load_graph(chain, "test"), settings.max_size, settings.resolution, seed=seed, method=settings.coarse
    )
