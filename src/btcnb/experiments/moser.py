"""Möser and Narayanan's clusters: common inputs, then the change that a forest is sure of, under cannot-links.

    forest = train_forest([txs])
    moser_clusters(other, forest).labels                  # one label per address, for any transactions
    decisions = change_decisions(chain, forest)           # or decide once in a whole chain …
    moser_clusters(piece, forest, decisions=decisions.local(ids))   # … and cluster pieces of it

A merge joins the cluster of the senders with the address of the output taken for change. An output that is almost
surely no change puts a cannot-link between the two; merges are taken in the order of the transactions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.data import Transactions, heuristic_clusters, load_transactions
from btcnb.data.change_votes import (
    ChangeVotes,
    change_votes,
    constrained_merges,
    input_clusters,
    multi_input_clusters,
    one_sender,
    permissive_clusters,
    services_together,
    true_change,
)
from btcnb.data.components import components
from btcnb.data.judging.entity_pairs import interval_config
from btcnb.data.judging.owners import against_owners
from btcnb.errors import DataError
from btcnb.experiments.change_forest import TEACHERS, ChangeForest, ForestConfig, train_forest
from btcnb.experiments.local import Clusters
from btcnb.experiments.recipe import Recipe

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
How = Literal["constrained", "naive"]
Numbers = dict[str, float]

THRESHOLDS = (0.5, 0.7, 0.9, 0.95, 0.99, 0.995)
CONFUSED = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5)
"""Shares of decisions that are turned round, to see what wrong merges do."""
CONFUSED_NUMBERS = ("largest", "swallowed", "most_owners", "precision")
CLUSTER_NUMBERS = ("largest", "in_collapsed", "most_owners", "precision", "recall")


class ChangeDecisions(NamedTuple):
    """What a forest says of each transaction with two outputs and a vote; a row a transaction, in chain order."""

    tx: IntArray  # (D,) ids
    probability: FloatArray  # (D, 2) of being change, per output
    change: IntArray  # (D,) index of the output taken for change, -1 for none
    not_change: BoolArray  # (D, 2) outputs that are almost surely not change
    full: BoolArray  # (D,) which forest spoke: the full one, or the universal one
    counts: dict[str, int]  # eligible, silent, undecided, both_above, decided, forbidden

    def local(self, transactions: IntArray) -> ChangeDecisions:
        """The decisions on some transactions, renumbered 0, 1, … in the order of `transactions` (ascending ids)."""
        inside = np.isin(self.tx, transactions)
        found = self._replace(**{name: getattr(self, name)[inside] for name in self._fields if name != "counts"})
        return found._replace(tx=np.searchsorted(transactions, found.tx).astype(np.int64))

    def above(self, threshold: float) -> ChangeDecisions:
        """The same probabilities decided at another threshold, for both forests alike."""
        over = self.probability > threshold
        change = np.where(over.sum(axis=1) == 1, over.argmax(axis=1), -1).astype(np.int64)
        return self._replace(change=change)


class MoserClusters(NamedTuple):
    """Clusters and how they came about."""

    labels: IntArray  # one per address
    base: IntArray  # one per address, by common inputs alone
    counts: dict[str, int]
    """decided: transactions with an output taken for change; known: those where common inputs already show an output
    of the senders; unknown: those without one known sender, or with an output without address; merges: the rest, of
    which merged, joined (already in one cluster), blocked; cannot_links: between two clusters"""


def change_decisions(txs: Transactions, forest: ChangeForest, votes: ChangeVotes | None = None) -> ChangeDecisions:
    """Which output of each eligible transaction is change, which is not; both or none above the threshold: no answer.

    votes: of `txs`, where they are at hand
    """
    votes = change_votes(txs) if votes is None else votes
    probability = forest.probabilities(txs, votes)
    spoken = np.isfinite(probability).all(axis=1)
    probability, full = probability[spoken], votes.both_spent[spoken]
    over = probability > forest.threshold(votes)[spoken][:, None]
    below = probability < forest.config.negative
    change = np.where(over.sum(axis=1) == 1, over.argmax(axis=1), -1).astype(np.int64)
    counts = {
        "eligible": len(votes),
        "silent": int((~spoken).sum()),
        "undecided": int((~over.any(axis=1)).sum()),
        "both_above": int(over.all(axis=1).sum()),
        "decided": int((change >= 0).sum()),
        "forbidden": int(below.sum()),
    }
    return ChangeDecisions(votes.tx[spoken], probability, change, below, full, counts)


def moser_clusters(
    txs: Transactions,
    forest: ChangeForest,
    *,
    decisions: ChangeDecisions | None = None,
    base: IntArray | None = None,
    how: How = "constrained",
) -> MoserClusters:
    """Clusters by common inputs and confident change, `constrained` by cannot-links or `naive`.

    txs:       any transactions; a local piece knows only the spends that it holds
    decisions: of these transactions, where they were made before (in the whole chain, say)
    base:      clusters of common inputs (one label per address, 0..k-1), where they are at hand
    """
    found = change_decisions(txs, forest) if decisions is None else decisions
    clusters = multi_input_clusters(txs) if base is None else np.asarray(base, dtype=np.int64)
    own, outputs, counts = _targets(txs, found, clusters)
    size = int(clusters.max()) + 1 if len(clusters) else 0
    merge = (found.change >= 0) & (own >= 0)
    merges = own[merge], outputs[merge, found.change[merge]]
    apart = found.not_change & (own >= 0)[:, None]
    links = np.broadcast_to(own[:, None], outputs.shape)[apart], outputs[apart]
    counts = {"decided": int((found.change >= 0).sum()), **counts, "merges": int(merge.sum())}
    if how == "naive":
        return MoserClusters(components(size, *merges)[clusters], clusters, counts)
    done = constrained_merges(size, merges, links)
    counts |= done.counts | {"cannot_links": len(links[0])}
    return MoserClusters(done.labels[clusters], clusters, counts)


def _targets(
    txs: Transactions, decisions: ChangeDecisions, clusters: IntArray
) -> tuple[IntArray, IntArray, dict[str, int]]:
    """The senders' cluster (D,), -1 where nothing is to be merged, and the outputs' clusters (D, 2)."""
    tx = decisions.tx
    first = txs.output_offsets()[tx]
    address = txs.outputs["address"].to_numpy()[np.stack([first, first + 1], axis=1)]
    own = np.where(one_sender(txs, clusters)[tx], input_clusters(txs, tx, clusters), -1)
    outputs = clusters[np.maximum(address, 0)] if len(clusters) else np.zeros_like(address)
    unknown = (own < 0) | (address < 0).any(axis=1)
    known = ~unknown & (outputs == own[:, None]).any(axis=1)
    decided = decisions.change >= 0
    counts = {"known": int((known & decided).sum()), "unknown": int((unknown & decided).sum())}
    return np.where(unknown | known, -1, own), outputs, counts


def moser_on(recipe: Recipe, chain: Transactions) -> Clusters:
    """A function from pieces of `chain` to one label per address; the forest is taught by the recipe's source."""
    teachers = [load_transactions(recipe.source, role, sampled=False) for role in TEACHERS]
    forest = train_forest(teachers, ForestConfig(seed=recipe.train.seed))
    decisions = change_decisions(chain, forest)
    place = pd.Index(chain.transactions["hash"])
    if not place.is_unique:  # two coinbases of the first years have the hashes of earlier ones
        twice = place[place.duplicated()][0]
        raise DataError(chain.source, "transactions.hash", f"{twice} occurs twice", "leave the later one out")

    def clusters(local: Transactions) -> IntArray:
        hashes = local.transactions["hash"]
        ids = place.get_indexer(pd.Index(hashes)).astype(np.int64)
        if (ids < 0).any():
            problem = f"{hashes.iloc[int((ids < 0).argmax())]} is not in the chain that was judged"
            raise DataError(local.source, "transactions", problem, "cut the piece out of that chain")
        return moser_clusters(local, forest, decisions=decisions.local(ids)).labels

    return clusters


def right_merges(txs: Transactions, decisions: ChangeDecisions) -> Numbers:
    """Of the outputs taken for change, the share that is (precision); of all true change, the share found (recall).

    merges: outputs taken for change. True change is what the source tells (`truth.change`) of eligible transactions.
    """
    known = true_change(txs)
    change = pd.Series(known.change, index=known.tx).reindex(decisions.tx, fill_value=-2).to_numpy()
    right = change == decisions.change
    number = int((decisions.change >= 0).sum())
    return {
        "merges": number,
        "precision": float(right.sum()) / number if number else float("nan"),
        "recall": float(right.sum()) / len(known.tx) if len(known.tx) else float("nan"),
    }


def compared_clusters(
    txs: Transactions, forest: ChangeForest, decisions: ChangeDecisions, base: IntArray | None = None
) -> dict[str, IntArray]:
    """One label per address, five ways: common inputs, the paper's heuristics, every only fresh output (permissive),
    confident change (naive), confident change under cannot-links (moser)."""
    base = multi_input_clusters(txs) if base is None else base
    return {
        "common": base,
        "heuristics": heuristic_clusters(txs, config=interval_config(txs)),
        "permissive": permissive_clusters(txs, base=base),
        "naive": moser_clusters(txs, forest, decisions=decisions, base=base, how="naive").labels,
        "moser": moser_clusters(txs, forest, decisions=decisions, base=base).labels,
    }


def cluster_numbers(txs: Transactions, base: IntArray, labels: IntArray) -> Numbers:
    """A partition against owners, and how many named services have their home in one cluster of it."""
    found = against_owners(labels, txs.truth.owner)  # type: ignore[union-attr]
    together = services_together(txs, base, labels)
    return {name: found[name] for name in CLUSTER_NUMBERS} | {
        "clusters": found["clusters"],
        "services": together.services,
        "swallowed": together.swallowed,
    }


def confused(decisions: ChangeDecisions, share: float, seed: int = 0) -> ChangeDecisions:
    """Decisions of which a share is turned round: the payment is taken for change and the change for the payment.

    A forest that is sure and wrong says both: it merges the wrong address, and its cannot-link stands where the merge
    should be.
    """
    rng = np.random.default_rng(seed)
    turned = (rng.random(len(decisions.change)) < share) & (decisions.change >= 0)
    return decisions._replace(
        change=np.where(turned, 1 - decisions.change, decisions.change),
        probability=np.where(turned[:, None], decisions.probability[:, ::-1], decisions.probability),
        not_change=np.where(turned[:, None], decisions.not_change[:, ::-1], decisions.not_change),
    )


def confusion_sweep(
    txs: Transactions,
    forest: ChangeForest,
    decisions: ChangeDecisions,
    shares: Sequence[float] = CONFUSED,
    seed: int = 0,
) -> dict[float, dict[str, Numbers]]:
    """Per share of decisions turned round: `naive` and `moser`, each with the numbers of its clusters and `blocked`.

    An economy of a few days has few merges that the forest is sure of; so here it decides wherever one output is above
    1/2 and the other is not, which is nearly everywhere. Cannot-links stay those of the sure answers.
    """
    base = multi_input_clusters(txs)
    decisions = decisions.above(0.5)
    ways: dict[str, How] = {"naive": "naive", "moser": "constrained"}
    found: dict[float, dict[str, Numbers]] = {}
    for share in shares:
        wrong = confused(decisions, share, seed)
        found[share] = {}
        for name, how in ways.items():
            made = moser_clusters(txs, forest, decisions=wrong, base=base, how=how)
            numbers = cluster_numbers(txs, base, made.labels)
            found[share][name] = {kept: numbers[kept] for kept in CONFUSED_NUMBERS}
            found[share][name]["blocked"] = float(made.counts.get("blocked", 0))
    return found
