"""Mistakes made by hand: a share of the change guesses names the payee, and refinement has to find the strangers.

In the simulated worlds heuristics fail as real ones are known to fail, and most wrong links come from keepers who spend
the coins of several owners together. Here a tidy world is damaged in the one way that a classroom would think of first:
the guess which output is change is wrong, now and then, at random. Nothing else is.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.cluster import fill_zero_rows
from btcnb.data import (
    DEFAULT_RULES,
    ROLES,
    AddressGraph,
    HeuristicConfig,
    Source,
    Transactions,
    heuristic_merges,
    load_graph,
    load_transactions,
)
from btcnb.data.components import components
from btcnb.errors import ParameterError
from btcnb.experiments.quality import best_silhouette, cuts, flags, quality
from btcnb.experiments.recipe import Job, baseline
from btcnb.experiments.refine import Refiner, refined
from btcnb.experiments.stages import TRAINING, StageTimer, trained
from btcnb.learn import Run, TrainConfig, embed, train
from btcnb.store import kept

Numbers = dict[str, float | int | str | None]
IntArray = npt.NDArray[np.int64]
METHODS = ("trained", "untrained")
SCORES = ("ari", "precision", "recall", "clusters")


def flipped_clusters(txs: Transactions, share: float, seed: int = 0, config: HeuristicConfig | None = None) -> IntArray:
    """Heuristic clusters, one label per address, in which a share of the change guesses is wrong.

    A guess is a merge of a sender with one of the two outputs of its payment. Transactions are drawn with probability
    `share`; in those the sender is merged with the other output, whatever rule made the guess. Merges of common inputs
    are left alone.
    """
    merges = heuristic_merges(txs, DEFAULT_RULES, config)
    other = _other_output(txs, merges)
    wrong = np.random.default_rng([seed, 17]).random(len(txs)) < share
    flip = (other >= 0) & wrong[merges["tx"].to_numpy(dtype=np.int64)]
    guessed = merges["address_b"].to_numpy(dtype=np.int64)
    return components(txs.num_addresses, merges["address_a"].to_numpy(dtype=np.int64), np.where(flip, other, guessed))


def _other_output(txs: Transactions, merges: pd.DataFrame) -> IntArray:
    """Of every merge with one of two output addresses the other one's; -1 where the merge is no such guess."""
    address = txs.outputs["address"].to_numpy(dtype=np.int64)
    start = txs.output_offsets()
    at = merges["tx"].to_numpy(dtype=np.int64)
    two = start[at + 1] - start[at] == 2
    first, second = (np.where(two, address[np.minimum(start[at] + k, len(address) - 1)], -1) for k in (0, 1))
    guessed = merges["address_b"].to_numpy(dtype=np.int64)
    is_guess = two & (merges["rule"].to_numpy() != "common_input")
    return np.where(is_guess & (guessed == first), second, np.where(is_guess & (guessed == second), first, -1))


def flipped(job: Job, share: float) -> Numbers:
    """What an encoder does to flipped clusters of the test graph, against true owners; names as in `refining.cuts`.

    The paper's encoder is trained on flipped clusters too; one trained on common inputs, or not at all, never sees one.
    """
    if job.method not in METHODS:
        raise ParameterError(f"flipped clusters need an encoder: {' or '.join(METHODS)}, not {job.method!r}.")
    timer = StageTimer()
    with timer("graphs"):
        graph = [load_graph(job.recipe.source, role) for role in ROLES][-1]
    with timer("train"):
        run = _run(job, share)
    with timer("embed"):
        rows, _ = fill_zero_rows(embed(run.model, graph), job.recipe.cluster.zero_rows)
    with timer("refine"):
        numbers = _refined(rows, graph, _flipped(job.recipe.source, "test", share, job.seed), job.seed)
    return numbers | timer.record() | {"data": graph.fingerprint()}


def _run(job: Job, share: float) -> Run:
    recipe = job.recipe
    if job.method == "untrained":
        return trained(baseline(recipe, "untrained"))
    if recipe.supervision != DEFAULT_RULES:
        return trained(recipe)
    return _trained_on_flips(recipe.source, recipe.train, share, job.seed)


def _refined(rows: npt.NDArray[np.float32], graph: AddressGraph, labels: IntArray, seed: int) -> Numbers:
    owners = np.asarray(graph.truth)
    found = refined(rows, labels, Refiner("addresses", "local"), progress=False)
    one = best_silhouette(rows, found)
    numbers: Numbers = {"lambda.threshold": found.threshold, "silhouette.threshold": one}
    for name, partition in (("heuristics", labels), *cuts(found, labels, one, seed)):
        judged = quality(partition, owners, information=False)
        numbers |= {f"{name}.{field}": getattr(judged, field) for field in SCORES}
    return numbers | flags(found, owners)


@kept
def _flipped(source: Source, role: str, share: float, seed: int) -> IntArray:
    config = HeuristicConfig(price_usd=source.economy(role).price_usd)
    return flipped_clusters(load_transactions(source, role), share, seed * len(ROLES) + ROLES.index(role), config)


@kept
def _trained_on_flips(source: Source, config: TrainConfig, share: float, seed: int) -> Run:
    graphs = [_with(load_graph(source, role), _flipped(source, role, share, seed)) for role in (*TRAINING, "valid")]
    return train(config, graphs[:-1], valid=graphs[-1], progress=False)


def _with(graph: AddressGraph, labels: IntArray) -> AddressGraph:
    """The graph with other clusters, one label per node."""
    place = pd.Index(graph.nodes["node_id"]).get_indexer(pd.Index(graph.clusters["node_id"]))
    return replace(graph, clusters=graph.clusters.assign(alias=labels[place]))
