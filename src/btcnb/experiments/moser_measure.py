"""One world measured: Möser and Narayanan's votes, forest and clusters, as a sweep runs it.

The forest learns from the economies train1, train2, train3 and valid, whole intervals of them, and works on test, an
economy with other transactions, addresses and owners.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import spearmanr

from btcnb.data import HeuristicConfig, Transactions, heuristic_clusters, load_transactions
from btcnb.data.change_votes import (
    HEURISTICS,
    UNIVERSAL,
    ChangeVotes,
    KnownChange,
    RevealedChange,
    change_votes,
    input_clusters,
    multi_input_clusters,
    published_votes,
    revealed_change,
    true_change,
    vote_scores,
)
from btcnb.data.judging.entity_pairs import EntityGraph, entity_graphs, interval_config, local_heuristics
from btcnb.experiments.change_forest import (
    TEACHERS,
    ChangeForest,
    ForestConfig,
    HeldOut,
    OutputRows,
    fit_forest,
    gathered,
    held_out,
    labelled_rows,
)
from btcnb.experiments.coinjoin import known_mixes, owners
from btcnb.experiments.moser import (
    THRESHOLDS,
    ChangeDecisions,
    change_decisions,
    cluster_numbers,
    compared_clusters,
    confusion_sweep,
    moser_clusters,
    right_merges,
)
from btcnb.experiments.pairs import DrawnPairs, Numbers, counts_by_draw, pair_scores
from btcnb.experiments.recipe import Job
from btcnb.experiments.stages import StageTimer

IntArray = npt.NDArray[np.int64]
Clustering = Callable[[EntityGraph], IntArray]

REPEATS = 3
"""Splits by cluster over which held-out scores are averaged."""
TRUE_TRANSACTIONS = 30_000
"""As many as the paper trains on; here with the change that the simulator tells."""
ENTITY_GRAPHS = 150
SCORES = ("auc", "accuracy", "choice", "tpr", "fpr")
RATES = ("coverage", "TPR", "FPR", "remaining", "remaining_spent")


class ChainVotes(NamedTuple):
    """A chain with its votes and what common inputs reveal in it."""

    votes: ChangeVotes
    revealed: RevealedChange
    transactions: int


def chain_votes(txs: Transactions, both_spent: bool = True) -> ChainVotes:
    """Votes and revealed change of one chain."""
    return ChainVotes(change_votes(txs), revealed_change(txs, both_spent), len(txs))


def pooled_scores(chains: Sequence[ChainVotes]) -> pd.DataFrame:
    """`vote_scores` over all transactions of several chains, and the column `comparable`.

    comparable: coverage of the remaining transactions, as it compares with the published one: of universal heuristics
        over all of them, of fingerprints over those with both outputs spent (94 % of the published count have)
    """
    starts = np.cumsum([0, *(each.transactions for each in chains)])
    parts = list(zip(chains, starts, strict=False))
    votes = ChangeVotes(
        np.concatenate([each.votes.tx + start for each, start in parts]),
        np.concatenate([each.votes.votes for each in chains]),
        np.concatenate([each.votes.both_spent for each in chains]),
    )
    known = KnownChange(
        np.concatenate([each.revealed.tx + start for each, start in parts]),
        np.concatenate([each.revealed.change for each in chains]),
    )
    table = vote_scores(votes, known, np.concatenate([each.revealed.remaining + start for each, start in parts]))
    universal = table.index.isin(UNIVERSAL)
    return table.assign(comparable=np.where(universal, table["remaining"], table["remaining_spent"]))


def rank_agreement(table: pd.DataFrame) -> dict[str, float]:
    """Spearman's rank correlation with the published figures, over heuristics whose definition is known.

    table: of `pooled_scores`; NaN where fewer than three heuristics can be compared
    """
    theirs = published_votes().loc[table.index]
    known = (theirs["reading"] != "unknown").to_numpy()
    found = {}
    for name, ours, published in (
        ("TPR", "TPR", "TPR"),
        ("FPR", "FPR", "FPR"),
        ("coverage", "comparable", "remaining"),
    ):
        both = pd.DataFrame({"ours": table[ours], "theirs": theirs[published]})[known].dropna()
        enough = len(both) >= 3 and np.ptp(both["ours"]) > 0
        found[name] = float(spearmanr(both["ours"], both["theirs"]).statistic) if enough else float("nan")
    return found


def vote_numbers(table: pd.DataFrame) -> dict[str, float]:
    """The rates flat, `votes.NAME.RATE`, and `votes.rank_RATE` beside the published ones."""
    rates = table[list(RATES)].to_dict("index")
    flat = {f"votes.{name}.{rate}": float(value) for name in HEURISTICS for rate, value in rates[name].items()}
    return flat | {f"votes.rank_{name}": value for name, value in rank_agreement(table).items()}


def moser(job: Job) -> Numbers:
    """Votes, held-out scores, merges at several thresholds, clusters, entity labels and CoinJoins of one world."""
    timer, source = StageTimer(), job.recipe.source
    with timer("graphs"):
        teachers = [load_transactions(source, role, sampled=False) for role in TEACHERS]
        txs = load_transactions(source, "test", sampled=False)
    config = ForestConfig(seed=job.seed)
    with timer("votes"):
        chains = [chain_votes(each) for each in (*teachers, txs)]
        numbers: Numbers = {**vote_numbers(pooled_scores(chains)), **_counts(chains)}
    with timer("train"):
        rows = gathered([_revealed(each, found) for each, found in zip(teachers, chains, strict=False)])
        numbers |= forest_numbers(rows, config)
        forest = fit_forest(rows, config)
        numbers |= {"universal.threshold": forest.universal_threshold, "rows.silent": rows.silent}
    with timer("true"):
        true = true_rows(teachers, TRUE_TRANSACTIONS, job.seed)
        numbers |= _repeat_mean("true", [held_out(true, config, seed=job.seed, short=False)])
        numbers["true.transactions"] = true.transactions
    with timer("clusters"):
        decisions = change_decisions(txs, forest, chains[-1].votes)
        base = multi_input_clusters(txs)
        numbers |= _flat("decisions", decisions.counts) | _flat(
            "merging", moser_clusters(txs, forest, decisions=decisions, base=base).counts
        )
        for name, labels in compared_clusters(txs, forest, decisions, base).items():
            numbers |= _flat(name, cluster_numbers(txs, base, labels))
        for at in THRESHOLDS:
            numbers |= _flat(f"at.{at:g}", right_merges(txs, decisions.above(at)))
        for share, both in confusion_sweep(txs, forest, decisions, seed=job.seed).items():
            for how, found in both.items():
                numbers |= _flat(f"confused.{share:g}.{how}", found)
    with timer("labels"):
        makers = entity_clusterings(txs, forest, decisions)
        numbers |= entity_scores(txs, makers, ENTITY_GRAPHS, seed=job.seed)
        for name, labels in coinjoin_clusters(txs, forest, decisions).items():
            numbers[f"coinjoin.{name}.TN"] = kept_apart(txs, labels)
    return numbers | timer.record() | {"data": txs.fingerprint()[:16]}


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


def _revealed(txs: Transactions, found: ChainVotes) -> OutputRows:
    return labelled_rows(txs, found.revealed.known, found.revealed.cluster, found.votes)


def _counts(chains: list[ChainVotes]) -> Numbers:
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
        means = np.mean([each.scores[method] for each in found], axis=0)
        numbers |= _flat(name or method, dict(zip(SCORES, means.tolist(), strict=False)))
    return numbers


def _flat(name: str, found: dict[str, float] | dict[str, int]) -> Numbers:
    return {f"{name}.{key}": value for key, value in found.items()}


def entity_scores(
    txs: Transactions, clusterings: Mapping[str, Clustering], transactions: int = 200, draws: int = 5, seed: int = 0
) -> Numbers:
    """The paper's test with entity labels for several clusterings on the same local graphs and pairs.

    Shares of all pairs of all draws, `NAME.TP`, FP, FN, TN, and bACC, F1 of those; `graphs` and `pairs` are counts.
    """
    counts = {name: np.zeros((draws, 4), dtype=np.int64) for name in clusterings}
    graphs = 0
    for graph in entity_graphs(txs, transactions=transactions, draws=draws, seed=seed):
        graphs += 1
        labels = np.stack([make(graph) for make in clusterings.values()])
        for found, more in zip(counts.values(), counts_by_draw(labels, DrawnPairs.of(graph)), strict=True):
            found += more
    numbers: Numbers = {}
    for name, found in counts.items():
        shares = pair_scores(name, found, pooled=True)
        numbers |= {key: float("nan") if share is None else float(share) / 100 for key, share in shares.items()}
        numbers |= {f"{name}.graphs": graphs, f"{name}.pairs": int(found.sum())}
    return numbers


def entity_clusterings(txs: Transactions, forest: ChangeForest, decisions: ChangeDecisions) -> dict[str, Clustering]:
    """Heuristics, common inputs and Möser–Narayanan on local graphs; `moser` decides on change in the whole chain (as a
    table of votes made beforehand does), `moser_local` sees nothing but the local transactions."""
    heuristics = local_heuristics(txs)
    return {
        "heuristics": lambda graph: heuristics(graph.txs),
        "common": lambda graph: multi_input_clusters(graph.txs),
        "moser": lambda graph: moser_clusters(graph.txs, forest, decisions=decisions.local(graph.transactions)).labels,
        "moser_local": lambda graph: moser_clusters(graph.txs, forest).labels,
    }


def coinjoin_clusters(txs: Transactions, forest: ChangeForest, decisions: ChangeDecisions) -> dict[str, IntArray]:
    """The heuristics and Möser–Narayanan without any detector of CoinJoins, and both with it (`guarded`)."""
    config = interval_config(txs)
    open_ = HeuristicConfig(price_usd=config.price_usd, exclude_coinjoins=False)
    base = heuristic_clusters(txs, rules=("common_input",), config=open_)
    return {
        "heuristics": heuristic_clusters(txs, config=open_),
        "moser": moser_clusters(txs, forest, decisions=decisions, base=base).labels,
        "guarded_heuristics": heuristic_clusters(txs, config=config),
        "guarded_moser": moser_clusters(txs, forest, decisions=decisions).labels,
    }


def kept_apart(txs: Transactions, labels: IntArray) -> float:
    """Of the pairs of input addresses of true CoinJoins with two owners, the share in two clusters; NaN of none."""
    mixes, owner = known_mixes(txs), owners(txs)
    address, tx = txs.inputs["address"].to_numpy(), txs.inputs["tx"].to_numpy()
    rows = (mixes != "")[tx] & (address >= 0)
    rows[rows] = owner[address[rows]] >= 0
    table = pd.DataFrame({"tx": tx[rows], "address": address[rows]}).drop_duplicates()
    table = table.assign(owner=owner[table["address"]], label=labels[table["address"]])
    every, owned, joined, both = (
        _pairs(table.groupby(columns).size())
        for columns in (["tx"], ["tx", "owner"], ["tx", "label"], ["tx", "owner", "label"])
    )
    return 1 - (joined - both) / (every - owned) if every > owned else float("nan")


def _pairs(sizes: pd.Series[int]) -> float:
    count = sizes.to_numpy(dtype=np.float64)
    return float((count * (count - 1) / 2).sum())
