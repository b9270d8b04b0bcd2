"""Trained here, tested there: encoders taught by simulated or by real graphs, on a simulated and on a real test graph.

    transfer(job, "simulated")["real.DP"]    # taught by the simulated world of the job, tested on real blocks

A job's recipe names the simulated world; the real chain is the one at hand (`real_source`). The argument `teacher`
says who teaches. Seed i is world i, initialisation i, tuples i and communities i; the real graph is one and the same,
so an interval over seeds says how much initialisations and simulated worlds differ, never how much real chains do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from btcnb.cluster import (
    coarse_partition,
    communities,
    tune_resolution,
)
from btcnb.cluster.evaluate import evaluation
from btcnb.data import AddressGraph, Source, load_graph, real_source
from btcnb.data.sources import role_facts
from btcnb.errors import ParameterError
from btcnb.experiments.panel import FloatArray, IntArray, Numbers, flat_scores, side_by_side, whole_purity
from btcnb.experiments.recipe import COMMUNITIES, Job, Recipe, baseline
from btcnb.experiments.stages import TRAINING, StageTimer, coarse, community_baseline, trained
from btcnb.learn import PreparedGraph, Run, TrainConfig, disjoint_union, embed, prepare, train
from btcnb.store import kept

TEACHERS = ("simulated", "real", "both", "side by side")
"""Who teaches: three graphs of one kind; all six in turn; or one encoder of each kind, their embeddings in one row."""
METHODS = ("trained", "untrained", *COMMUNITIES)


def transfer(job: Job, teacher: str) -> Numbers:
    """Scores on both test graphs, `simulated.DP` and `real.DP`, and what the real graph is (`real.data`, heights, …).

    DP, NMI, AMI, ARI are against heuristic clusters, on nodes that the paper scores; `real.whole_DP` is the purity of
    one tree over the whole real graph; `simulated.owner_ARI` is against the owners of the simulated world.
    """
    if job.method not in METHODS or teacher not in TEACHERS:
        raise ParameterError(f"transfer knows the methods {', '.join(METHODS)} and the teachers {', '.join(TEACHERS)}.")
    chain, timer = real_source(), StageTimer()
    with timer("graphs"):
        tests = {"simulated": load_graph(job.recipe.source, "test"), "real": load_graph(chain, "test")}
    if job.method in COMMUNITIES:
        numbers = _by_communities(job, chain, tests, timer)
    else:
        numbers = _by_encoders(job, chain, tests, _encoders(job, chain, teacher, timer), timer)
    told = {f"real.{name}": value for name, value in role_facts(chain, "test").items()}
    return numbers | timer.record() | told | {"data": tests["simulated"].fingerprint()}


def encoder_of(recipe: Recipe, chain: Source, teacher: str) -> Run:
    """The encoder that one kind of graphs (`simulated`, `real`, `both`) has taught by the recipe's settings."""
    if teacher == "simulated":
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


def _encoders(job: Job, chain: Source, teacher: str, timer: StageTimer) -> list[Run]:
    with timer("train"):
        if job.method == "untrained":
            return [trained(baseline(job.recipe, "untrained"))]
        teachers = ("simulated", "real") if teacher == "side by side" else (teacher,)
        runs = [encoder_of(job.recipe, chain, each) for each in teachers]
    timer.seconds["train"] = sum(float(run.record["seconds"]) for run in runs)  # also where the store had them
    return runs


def _by_encoders(
    job: Job, chain: Source, tests: Mapping[str, AddressGraph], runs: list[Run], timer: StageTimer
) -> Numbers:
    told = ("epochs_run", "best_epoch", "best_loss", "valid_loss")
    numbers: Numbers = {name: runs[-1].record[name] for name in told}
    for name, graph in tests.items():
        with timer("embed"):
            X = _in_one_row([embed(run.model, graph) for run in runs])
        with timer("coarse"):
            found = coarse(job.recipe) if name == "simulated" else _coarse(chain, job.recipe, job.seed)
        with timer("evaluate"):
            result = evaluation(X, graph, partition=found, config=job.recipe.cluster, seed=job.seed, progress=False)
            numbers |= {f"{name}.{key}": value for key, value in _of_record(result.record).items()}
            numbers |= agreement(name, graph, result.partition, job.recipe)
        if name == "real":
            with timer("thorough"):
                numbers["real.whole_DP"] = whole_purity(X, graph, job.recipe.cluster)
    return numbers


def _by_communities(job: Job, chain: Source, tests: Mapping[str, AddressGraph], timer: StageTimer) -> Numbers:
    """Communities of each test graph, at the resolution that is best on the validation graph of its own kind."""
    with timer("train"):
        found = {
            "simulated": community_baseline(job.recipe.source, job.method, job.seed),
            "real": _real_communities(chain, job.method, job.seed),
        }
    numbers: Numbers = {}
    for name, (flat, resolution) in found.items():
        numbers |= {f"{name}.resolution": resolution} | agreement(name, tests[name], flat, job.recipe)
    return numbers


def _in_one_row(embeddings: list[FloatArray]) -> FloatArray:
    """Embeddings (n, d_i) with unit rows, or zeros, as one (n, Σ d_i): cosine distances are the means of theirs."""
    return embeddings[0] if len(embeddings) == 1 else side_by_side(embeddings)


def agreement(name: str, graph: AddressGraph, flat: IntArray, recipe: Recipe) -> Numbers:
    """Flat clusters (n,) against the heuristics' on the nodes that are scored, and against owners, where known."""
    found = flat_scores(graph, flat, recipe.cluster.min_degree)
    told = {"NMI": "NMI", "AMI": "AMI", "ARI": "ARI", "clusters": "found", "owner_ARI": "owner_ARI"}
    return {f"{name}.{told[key]}": value for key, value in found.items() if key in told}


def _of_record(record: Mapping[str, Any]) -> Numbers:
    kept = ("scored_nodes", "zero_rows", "communities", "threshold")
    return {name: record[name] for name in kept} | {"DP": record["purity"]}


@kept
def _real_communities(chain: Source, method: str, seed: int) -> tuple[IntArray, float]:
    resolution, _ = tune_resolution(load_graph(chain, "valid"), method, seed=seed)
    return communities(load_graph(chain, "test"), method, resolution, seed), resolution


def _coarse(chain: Source, recipe: Recipe, seed: int) -> IntArray:
    settings = recipe.cluster
    return coarse_partition(
        load_graph(chain, "test"), settings.max_size, settings.resolution, seed=seed, method=settings.coarse
    )
