"""One world measured: Möser and Narayanan's votes, forest and clusters, as a sweep runs it.

The forest learns from the economies train1, train2, train3 and valid, whole intervals of them, and works on test, an
economy with other transactions, addresses and owners.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from btcnb.data import Transactions, load_transactions
from btcnb.data.change_votes import change_votes, input_clusters, multi_input_clusters, true_change
from btcnb.experiments.change_forest import (
    ForestConfig,
    OutputRows,
    fit_forest,
    gathered,
    labelled_rows,
)
from btcnb.experiments.change_scores import FPR_POINTS, HeldOut, held_out, scored, tpr_at
from btcnb.experiments.moser import change_decisions, moser_merges
from btcnb.experiments.moser_trials import (
    cluster_numbers,
    coinjoin_clusters,
    compared_clusters,
    confusion_sweep,
    entity_clusterings,
    entity_scores,
    kept_apart,
    threshold_sweep,
)
from btcnb.experiments.moser_votes import Counted, counted, pooled_scores, vote_numbers
from btcnb.experiments.recipe import Job
from btcnb.experiments.stages import StageTimer

Numbers = dict[str, float | int | str | None]

TEACHERS = ("train1", "train2", "train3", "valid")
REPEATS = 3
"""Splits by cluster over which held-out scores are averaged."""
TRUE_TRANSACTIONS = 30_000
"""As many as the paper trains on; here with the change that the simulator tells."""
ENTITY_GRAPHS = 150


def moser(job: Job) -> Numbers:
    """Votes, held-out scores, merges at several thresholds, clusters, entity labels and CoinJoins of one world."""
    laps, source = StageTimer(), job.recipe.source
    with laps("graphs"):
        teachers = [load_transactions(source, role, sampled=False) for role in TEACHERS]
        txs = load_transactions(source, "test", sampled=False)
    config = ForestConfig(seed=job.seed)
    with laps("votes"):
        chains = [counted(each) for each in (*teachers, txs)]
        numbers: Numbers = {**vote_numbers(pooled_scores(chains)), **_counts(chains)}
    with laps("train"):
        rows = gathered([_revealed(each, found) for each, found in zip(teachers, chains, strict=False)])
        numbers |= forest_numbers(rows, config)
        forest = fit_forest(rows, config)
        numbers |= {"universal.threshold": forest.universal_threshold, "rows.silent": rows.dropped["without any vote"]}
        own = _revealed(txs, chains[-1])
        numbers |= _flat("transfer", scored(own.y, forest.full.predict_proba(own.X)[:, 1])._asdict())
    with laps("true"):
        told = true_rows(teachers, TRUE_TRANSACTIONS, job.seed)
        numbers |= _repeat_mean("true", [held_out(told, config, seed=job.seed, short=False)])
        numbers["true.transactions"] = told.transactions
    with laps("clusters"):
        decisions = change_decisions(txs, forest, chains[-1].votes)
        base = multi_input_clusters(txs)
        numbers |= _flat("decisions", decisions.counts) | _flat(
            "merging", moser_merges(txs, forest, decisions=decisions, base=base).counts
        )
        for name, labels in compared_clusters(txs, forest, decisions, base).items():
            numbers |= _flat(name, cluster_numbers(txs, base, labels))
        for at, found in threshold_sweep(txs, decisions).items():
            numbers |= _flat(f"at.{at:g}", found)
        for share, both in confusion_sweep(txs, forest, decisions, seed=job.seed).items():
            for how, found in both.items():
                numbers |= _flat(f"confused.{share:g}.{how}", found)
    with laps("labels"):
        makers = entity_clusterings(txs, forest, decisions)
        for name, found in entity_scores(txs, makers, ENTITY_GRAPHS, seed=job.seed).items():
            numbers |= _flat(name, found)
        for name, labels in coinjoin_clusters(txs, forest, decisions).items():
            numbers[f"coinjoin.{name}.TN"] = kept_apart(txs, labels)
    return numbers | laps.record() | {"data": txs.fingerprint()[:16]}


def forest_numbers(rows: OutputRows, config: ForestConfig, repeats: int = REPEATS) -> Numbers:
    """Held-out scores, means over splits by cluster; `ungrouped.*` the same split transaction by transaction."""
    seeds = [config.seed + i for i in range(repeats)]
    numbers = _repeat_mean("", [held_out(rows, config, seed=seed) for seed in seeds])
    numbers |= _repeat_mean("ungrouped", [held_out(rows, config, False, seed, short=False) for seed in seeds])
    groups = np.bincount(np.unique(rows.group, return_inverse=True)[1].reshape(-1))
    return numbers | {
        "rows.transactions": rows.transactions,
        "rows.clusters": len(groups),
        "rows.largest_cluster": float(groups.max() / groups.sum()),
        "rows.base_rate": rows.base_rate,
    }


def true_rows(chains: list[Transactions], number: int, seed: int) -> OutputRows:
    """Rows of at most `number` transactions whose change the source tells, drawn at random over all chains."""
    parts = []
    for txs in chains:
        known = true_change(txs)
        senders = input_clusters(txs, known.tx, multi_input_clusters(txs))
        parts.append(labelled_rows(txs, known, senders, change_votes(txs)))
    rows = gathered(parts)
    keep = np.zeros(rows.transactions, dtype=bool)
    chosen = np.random.default_rng(seed).permutation(rows.transactions)[:number]
    keep[chosen] = True
    return rows.of(np.repeat(keep, 2))


def _revealed(txs: Transactions, found: Counted) -> OutputRows:
    return labelled_rows(txs, found.revealed.known, found.revealed.cluster, found.votes)


def _counts(chains: list[Counted]) -> Numbers:
    """Steps of the ground truth, summed over chains."""
    steps = {name: sum(each.revealed.steps[name] for each in chains) for name in chains[0].revealed.steps}
    numbers: Numbers = {f"truth.{name}": value for name, value in steps.items()}
    spent: npt.NDArray[np.bool_] = np.concatenate([each.votes.both_spent for each in chains])
    remaining = sum(len(each.revealed.remaining) for each in chains)
    return numbers | {"truth.both_spent": float(spent.mean()), "truth.remaining": remaining}


def _repeat_mean(name: str, found: list[HeldOut]) -> Numbers:
    """Means over splits: `forest.auc`, … or, with a name, the forest's alone: `true.auc`, …"""
    numbers: Numbers = {}
    for method in ("forest",) if name else ("forest", "universal", "majority"):
        for score in ("auc", "accuracy", "choice", "tpr", "fpr"):
            values = [getattr(each.scores[method], score) for each in found]
            numbers[f"{name or method}.{score}"] = float(np.mean(values))
        for fpr in FPR_POINTS:
            values = [tpr_at(each.y, each.probability[method], fpr) for each in found]
            numbers[f"{name or method}.tpr_at.{fpr:g}"] = float(np.mean(values))
    return numbers


def _flat(name: str, found: dict[str, float] | dict[str, int]) -> Numbers:
    return {f"{name}.{key}": value for key, value in found.items()}
