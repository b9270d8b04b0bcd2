"""One job in, one flat set of numbers out: what a sweep runs.

    job = Job("gat", seed=1, recipe=recipe(Source(seed=1), seed=1))
    measure(job)["DP"]

Seed i is economy i, initialisation i, tuples i: five seeds show how much graphs differ, not only initialisations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from btcnb import gates
from btcnb.cluster import ari, dendrograms, fill_zero_rows, forest_purity, nmi, scored_nodes
from btcnb.cluster.evaluate import evaluation
from btcnb.cluster.scores import ami
from btcnb.data import ROLES, AddressGraph, load_graph
from btcnb.errors import ParameterError
from btcnb.experiments.coinjoin_economy import mixing_economy
from btcnb.experiments.flips import flipped_8, flipped_20
from btcnb.experiments.lookalikes import far_lookalikes
from btcnb.experiments.moser_measure import moser
from btcnb.experiments.pairs import entity, entity_table
from btcnb.experiments.quality import quality, refinement_numbers
from btcnb.experiments.recipe import COMMUNITIES, NO_EMBEDDING, Job, Recipe, baseline
from btcnb.experiments.repulsion import mixing
from btcnb.experiments.stages import StageTimer, coarse, community_baseline, trained
from btcnb.experiments.transfer import transfer_both, transfer_real, transfer_side_by_side, transfer_simulated
from btcnb.experiments.whole_tree import whole_tree_numbers
from btcnb.experiments.whole_tree_real import whole_tree_real
from btcnb.learn import BASELINES, embed, prepare

Numbers = dict[str, float | int | str | None]
FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]

OTHER_DEGREES = (0, 1, 3)
"""Smallest degrees of scored nodes besides the paper's 2."""


def measure(job: Job) -> Numbers:
    """The numbers of a job, flat; `seconds.STAGE` and `peak_mb.STAGE` are among them, and `data`, the graph's mark."""
    gates.instance("job", job, Job)
    return MEASURES[gates.choice("measure", job.measure, MEASURES)](job)


def scores(job: Job) -> Numbers:
    """The paper's scores on the test graph, and the same against true owners."""
    return _scores(job, thorough=False)


def thorough(job: Job) -> Numbers:
    """`scores`, and what they hide: one tree over the whole graph, other smallest degrees, far look-alikes."""
    return _scores(job, thorough=True)


def refinement(job: Job) -> Numbers:
    """What the encoder's embedding does to the heuristic clusters, against true owners."""
    laps = StageTimer()
    graph = _graphs(job, laps)
    X = _embedding(job, laps, graph)[0]
    with laps("refine"):
        numbers = refinement_numbers(X, graph, job.recipe, job.seed)
    return numbers | laps.record() | {"data": graph.fingerprint()}


def whole_tree(job: Job) -> Numbers:
    """The paper's scores, those of one tree over the whole test graph, and those of the communities alone."""
    if job.method in NO_EMBEDDING:
        raise ParameterError(f"the measure 'whole_tree' needs an embedding, but the method {job.method!r} has none.")
    laps = StageTimer()
    graph = _graphs(job, laps)
    X, numbers = _embedding(job, laps, graph)
    with laps("coarse"):
        communities = coarse(job.recipe)
    with laps("evaluate"):
        result = evaluation(X, graph, partition=communities, config=job.recipe.cluster, seed=job.seed, progress=False)
    numbers |= _of_evaluation(result.record) | _agreement(graph, result.partition, job.recipe)
    with laps("whole"):
        numbers |= whole_tree_numbers(X, graph, communities, job.recipe.cluster)
    return numbers | laps.record() | {"data": graph.fingerprint()}


MEASURES: dict[str, Callable[[Job], Numbers]] = {
    "scores": scores,
    "thorough": thorough,
    "refinement": refinement,
    "whole_tree": whole_tree,
    "whole_tree_real": whole_tree_real,
    "flipped_8": flipped_8,
    "flipped_20": flipped_20,
    "moser": moser,
    "transfer_simulated": transfer_simulated,
    "transfer_real": transfer_real,
    "transfer_both": transfer_both,
    "transfer_side_by_side": transfer_side_by_side,
    "entity": entity,
    "entity_table": entity_table,
    "mixing": mixing,
    "mixing_repelled": partial(mixing, repulsion=True),
    "mixing_without_joinmarket": partial(mixing, repulsion=True, without="joinmarket"),
    "mixing_without_whirlpool": partial(mixing, repulsion=True, without="whirlpool"),
    "mixing_economy": mixing_economy,
}
"""What can be measured. A new measurement is a function of a job and a line here."""


def _scores(job: Job, thorough: bool) -> Numbers:
    laps = StageTimer()
    graph = _graphs(job, laps)
    if job.method in COMMUNITIES:
        with laps("train"):
            found, resolution = community_baseline(job.recipe.source, job.method, job.seed)
        numbers: Numbers = {"resolution": resolution, "nodes": graph.num_nodes}
        return numbers | _agreement(graph, found, job.recipe) | laps.record() | {"data": graph.fingerprint()}
    X, numbers = _embedding(job, laps, graph)
    with laps("coarse"):
        communities = coarse(job.recipe)
    with laps("evaluate"):
        result = evaluation(X, graph, partition=communities, config=job.recipe.cluster, seed=job.seed, progress=False)
    flat = result.partition
    if job.method == "shuffled":
        flat = np.random.default_rng([job.seed, 5]).permutation(flat)
    else:
        numbers |= _of_evaluation(result.record)
    numbers |= _agreement(graph, flat, job.recipe)
    if thorough and job.method != "shuffled":
        with laps("thorough"):
            numbers |= _thorough(X, graph, flat, job)
    return numbers | laps.record() | {"data": graph.fingerprint()}


def _graphs(job: Job, laps: StageTimer) -> AddressGraph:
    """All five graphs are made, or read from the store, before training's clock starts; hands back the test graph."""
    with laps("graphs"):
        return [load_graph(job.recipe.source, role) for role in ROLES][-1]


def _embedding(job: Job, laps: StageTimer, graph: AddressGraph) -> tuple[FloatArray, Numbers]:
    """Embeddings of the test graph by the job's method, and what training says of itself."""
    config = job.recipe.train
    if job.method == "features":
        with laps("embed"):
            x = prepare(graph, config.symmetrise, landmarks=config.landmarks, unit=config.unit).x.numpy()
        return x, {"rank": effective_rank(x)}
    recipe = baseline(job.recipe, job.method) if job.method in BASELINES else job.recipe
    with laps("train"):
        run = trained(recipe)
    laps.seconds["train"] = float(run.record["seconds"])  # also where the store had it
    with laps("embed"):
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


def side_by_side(embeddings: Sequence[FloatArray]) -> FloatArray:
    """Embeddings (n, d_i) in one, (n, Σ d_i): its cosine distances are the means of theirs. Rows of zeros stay zero."""
    rows = [X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), np.finfo(np.float32).tiny) for X in embeddings]
    return np.asarray(np.concatenate(rows, axis=1) / np.float32(np.sqrt(len(rows))), dtype=np.float32)


def effective_rank(X: Any) -> float:
    """exp of the entropy of the normalised singular values of X (n, d): how many dimensions an embedding uses."""
    rows = gates.array("X", X, 2).astype(np.float64)
    values = np.sqrt(np.clip(np.linalg.eigvalsh(rows.T @ rows), 0.0, None))
    share = values[values > 0] / max(values.sum(), np.finfo(float).tiny)
    return float(np.exp(-(share * np.log(share)).sum())) if len(share) else 0.0


def _of_evaluation(record: dict[str, Any]) -> Numbers:
    kept: Numbers = {name: record[name] for name in ("nodes", "scored_nodes", "zero_rows", "communities", "threshold")}
    return kept | {
        "DP": record["purity"],
        "DP_sampled": record["purity_sampled"],
        "DP_sampled_error": record["purity_sampled_error"],
        "purity_error": abs(record["purity_sampled"] - record["purity"]),
        **{f"seconds.{stage}": round(record[f"seconds_{stage}"], 4) for stage in ("linkage", "cut", "scores")},
    }


def _agreement(graph: AddressGraph, flat: IntArray, recipe: Recipe) -> Numbers:
    """Flat clusters against the heuristics' and against owners, on the nodes that the paper scores."""
    scored = scored_nodes(graph, recipe.cluster.min_degree)
    mine, theirs = flat[scored], graph.labels()[scored]
    numbers: Numbers = {
        "clusters": len(np.unique(mine)),
        "NMI": nmi(theirs, mine),
        "AMI": ami(theirs, mine),
        "ARI": ari(theirs, mine),
    }
    if graph.truth is None:
        return numbers
    found = quality(mine, graph.truth[scored])
    return numbers | {
        "owner_NMI": found.nmi,
        "owner_AMI": found.ami,
        "owner_ARI": found.ari,
        "precision": found.precision,
        "recall": found.recall,
    }


def _thorough(X: FloatArray, graph: AddressGraph, flat: IntArray, job: Job) -> Numbers:
    labels, config = graph.labels(), job.recipe.cluster
    numbers: Numbers = {}
    for degree in OTHER_DEGREES:
        mask = scored_nodes(graph, degree)
        numbers |= {
            f"NMI_degree_{degree}": nmi(labels[mask], flat[mask]),
            f"ARI_degree_{degree}": ari(labels[mask], flat[mask]),
            f"clusters_degree_{degree}": len(np.unique(flat[mask])),
        }
    scored = scored_nodes(graph, config.min_degree)
    for degree, mask in ((0, scored_nodes(graph, 0)), (config.min_degree, scored)):
        numbers[f"labels_per_node_degree_{degree}"] = len(np.unique(labels[mask])) / int(mask.sum())
    rest = scored & (labels != np.bincount(labels[scored]).argmax())  # without the largest cluster
    if rest.any():
        for name, score in (("NMI", nmi), ("ARI", ari)):
            numbers[f"{name}_largest_shift"] = abs(
                score(labels[scored], flat[scored]) - score(labels[rest], flat[rest])
            )
    rows, _ = fill_zero_rows(X, config.zero_rows)
    tree = dendrograms(rows, np.zeros(len(rows), dtype=np.int64), config.method, progress=False)
    return numbers | {"whole_DP": forest_purity(tree, labels, scored)} | far_lookalikes(X, graph, job.seed)
