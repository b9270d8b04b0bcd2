"""One job in, one flat set of numbers out: what a sweep runs.

    job = Job("gat", seed=1, recipe=recipe(Source(seed=1), seed=1))
    measure(job)["DP"]

Seed i is economy i, initialisation i, tuples i: five seeds show how much graphs differ, not only initialisations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from btcnb.cluster import coarse_partition
from btcnb.cluster.evaluate import evaluation
from btcnb.data import ROLES, AddressGraph, load_graph, real_source
from btcnb.errors import ParameterError
from btcnb.experiments.coinjoin_trial import mixing
from btcnb.experiments.moser_measure import moser
from btcnb.experiments.pairs import entity
from btcnb.experiments.panel import (
    FloatArray,
    Numbers,
    effective_rank,
    far_lookalikes,
    flat_scores,
    other_degrees,
    side_by_side,
    whole_purity,
    whole_tree_scores,
)
from btcnb.experiments.quality import refinement_numbers
from btcnb.experiments.recipe import COMMUNITIES, NO_EMBEDDING, Job, Recipe, baseline
from btcnb.experiments.repulsion import mixing_economy
from btcnb.experiments.stages import StageTimer, coarse, community_baseline, trained
from btcnb.experiments.transfer import transfer
from btcnb.experiments.wrong_change import flipped
from btcnb.learn import BASELINES, embed, prepare


def measure(job: Job) -> Numbers:
    """The numbers of a job, flat; `seconds.STAGE` and `peak_mb.STAGE` are among them, and `data`, the graph's mark."""
    if job.measure not in MEASURES:
        raise ParameterError(f"there is no measure {job.measure!r:.80}; there are {', '.join(MEASURES)}.")
    return MEASURES[job.measure](job, **dict(job.arguments))


def scores(job: Job, thorough: bool = False) -> Numbers:
    """The paper's scores on the test graph, and the same against true owners.

    thorough: also what they hide: one tree over the whole graph, other smallest degrees, far look-alikes
    """
    timer, config = StageTimer(), job.recipe.cluster
    graph = _graphs(job, timer)
    if job.method in COMMUNITIES:
        with timer("train"):
            found, resolution = community_baseline(job.recipe.source, job.method, job.seed)
        numbers: Numbers = {"resolution": resolution, "nodes": graph.num_nodes}
        return numbers | flat_scores(graph, found, config.min_degree) | timer.record() | {"data": graph.fingerprint()}
    X, numbers = _embedding(job, timer, graph)
    with timer("coarse"):
        communities = coarse(job.recipe)
    with timer("evaluate"):
        result = evaluation(X, graph, partition=communities, config=config, seed=job.seed, progress=False)
    flat = result.partition
    if job.method == "shuffled":
        flat = np.random.default_rng([job.seed, 5]).permutation(flat)
    else:
        numbers |= _of_evaluation(result.record)
    numbers |= flat_scores(graph, flat, config.min_degree)
    if thorough and job.method != "shuffled":
        with timer("thorough"):
            numbers |= other_degrees(graph, flat, config.min_degree)
            numbers |= {"whole_DP": whole_purity(X, graph, config)} | far_lookalikes(X, graph, job.seed)
    return numbers | timer.record() | {"data": graph.fingerprint()}


def refinement(job: Job) -> Numbers:
    """What the encoder's embedding does to the heuristic clusters, against true owners."""
    timer = StageTimer()
    graph = _graphs(job, timer)
    X = _embedding(job, timer, graph)[0]
    with timer("refine"):
        numbers = refinement_numbers(X, graph, job.recipe, job.seed)
    return numbers | timer.record() | {"data": graph.fingerprint()}


def whole_tree(job: Job, graph: str = "simulated") -> Numbers:
    """The paper's scores, those of one tree over the whole test graph, and those of the communities alone.

    graph: `simulated`, or `real`: the real test graph (`real_source`), embedded by what a simulated world has taught
    """
    if job.method in NO_EMBEDDING or (graph == "real" and job.method not in ("trained", "untrained")):
        raise ParameterError(f"the measure 'whole_tree' has no embedding by the method {job.method!r} ({graph} graph).")
    timer, config = StageTimer(), job.recipe.cluster
    if graph == "real":
        with timer("graphs"):
            test = load_graph(real_source(), "test")
    else:
        test = _graphs(job, timer)
    X, numbers = _embedding(job, timer, test)
    with timer("coarse"):
        communities = coarse(job.recipe) if graph == "simulated" else _communities(test, job)
    with timer("evaluate"):
        result = evaluation(X, test, partition=communities, config=config, seed=job.seed, progress=False)
    numbers |= _of_evaluation(result.record) | flat_scores(test, result.partition, config.min_degree)
    with timer("whole"):
        numbers |= whole_tree_scores(X, test, communities, config)
    return numbers | timer.record() | {"data": test.fingerprint()}


def _communities(graph: AddressGraph, job: Job) -> Any:
    settings = job.recipe.cluster
    return coarse_partition(
        graph, settings.max_size, settings.resolution, seed=job.seed, method=settings.coarse, progress=False
    )


MEASURES: dict[str, Callable[..., Numbers]] = {
    "scores": scores,
    "refinement": refinement,
    "whole_tree": whole_tree,
    "flipped": flipped,
    "moser": moser,
    "transfer": transfer,
    "entity": entity,
    "mixing": mixing,
    "mixing_economy": mixing_economy,
}
"""What can be measured. A new measurement is a function of a job, and of its `arguments`, and a line here."""


def _graphs(job: Job, timer: StageTimer) -> AddressGraph:
    """All five graphs are made, or read from the store, before training's clock starts; hands back the test graph."""
    with timer("graphs"):
        return [load_graph(job.recipe.source, role) for role in ROLES][-1]


def _embedding(job: Job, timer: StageTimer, graph: AddressGraph) -> tuple[FloatArray, Numbers]:
    """Embeddings of the test graph by the job's method, and what training says of itself."""
    config = job.recipe.train
    if job.method == "features":
        with timer("embed"):
            x = prepare(graph, config.symmetrise, landmarks=config.landmarks, unit=config.unit).x.numpy()
        return x, {"rank": effective_rank(x)}
    recipe = baseline(job.recipe, job.method) if job.method in BASELINES else job.recipe
    with timer("train"):
        run = trained(recipe)
    timer.seconds["train"] = float(run.record["seconds"])  # also where the store had it
    with timer("embed"):
        X = embed(run.model, graph)
    if job.method == "agreeing":
        X = side_by_side([X, *(embed(trained(other).model, graph) for other in _companions(recipe))])
    told = {name: run.record[name] for name in ("epochs_run", "best_epoch", "best_loss", "valid_loss")}
    steps = int(run.record["epochs_run"]) * recipe.train.steps_per_epoch
    told["seconds_per_step"] = float(run.record["seconds"]) / steps if steps else float("nan")
    return X, told | {"rank": effective_rank(X)}


def _companions(recipe: Recipe) -> list[Recipe]:
    """The other encoders of the method `agreeing`."""
    return [replace(recipe, supervision=("common_input",)), baseline(recipe, "untrained")]


def _of_evaluation(record: dict[str, Any]) -> Numbers:
    kept: Numbers = {name: record[name] for name in ("nodes", "scored_nodes", "zero_rows", "communities", "threshold")}
    return kept | {
        "DP": record["purity"],
        "DP_sampled": record["purity_sampled"],
        "DP_sampled_error": record["purity_sampled_error"],
        "purity_error": abs(record["purity_sampled"] - record["purity"]),
        **{f"seconds.{stage}": round(record[f"seconds_{stage}"], 4) for stage in ("linkage", "cut", "scores")},
    }
