"""Möser and Narayanan's clusters: common inputs, then the change that a forest is sure of, under cannot-links.

    forest = train_forest([txs])
    moser_clusters(other, forest)                         # one label per address, for any transactions
    decisions = change_decisions(chain, forest)           # or decide once in a whole chain …
    moser_clusters(piece, forest, decisions=decisions.local(ids))   # … and cluster pieces of it

A merge joins the cluster of the senders with the address of the output taken for change. An output that is almost
surely no change puts a cannot-link between the two; merges are taken in the order of the transactions.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from btcnb import gates
from btcnb.data import Transactions
from btcnb.data.change_votes import (
    ChangeVotes,
    change_votes,
    constrained_merges,
    input_clusters,
    multi_input_clusters,
    naive_merges,
    one_sender,
)
from btcnb.errors import ParameterError
from btcnb.experiments.change_forest import ChangeForest

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
How = Literal["constrained", "naive"]


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
        ids = np.asarray(transactions, dtype=np.int64)
        if (np.diff(ids) <= 0).any():
            raise ParameterError("transactions must be ids in ascending order, none of them twice.")
        place = np.searchsorted(ids, self.tx)
        inside = place < len(ids)
        inside[inside] = ids[place[inside]] == self.tx[inside]
        return ChangeDecisions(
            place[inside].astype(np.int64),
            self.probability[inside],
            self.change[inside],
            self.not_change[inside],
            self.full[inside],
            self.counts,
        )

    def above(self, threshold: float) -> ChangeDecisions:
        """The same probabilities decided at another threshold, for both forests alike."""
        over = self.probability > gates.real("threshold", threshold, "[0.5, 1)")
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
    gates.instance("forest", forest, ChangeForest)
    votes = change_votes(txs) if votes is None else gates.instance("votes", votes, ChangeVotes)
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
) -> IntArray:
    """One label per address: common inputs and confident change, `constrained` by cannot-links or `naive`.

    txs:       any transactions; a local piece knows only the spends that it holds
    decisions: of these transactions, where they were made before (in the whole chain, say)
    base:      clusters of common inputs (one label per address, 0..k-1), where they are at hand
    """
    return moser_merges(txs, forest, decisions=decisions, base=base, how=how).labels


def moser_merges(
    txs: Transactions,
    forest: ChangeForest,
    *,
    decisions: ChangeDecisions | None = None,
    base: IntArray | None = None,
    how: How = "constrained",
) -> MoserClusters:
    """`moser_clusters`, and how many merges were done, were not needed, and were blocked."""
    gates.instance("txs", txs, Transactions)
    gates.choice("how", how, get_args(How))
    found = change_decisions(txs, forest) if decisions is None else decisions
    clusters = multi_input_clusters(txs) if base is None else np.asarray(base, dtype=np.int64)
    if len(clusters) != txs.num_addresses:
        raise ParameterError(f"base has {len(clusters)} labels, but there are {txs.num_addresses} addresses.")
    own, outputs, counts = _targets(txs, found, clusters)
    size = int(clusters.max()) + 1 if len(clusters) else 0
    merge = (found.change >= 0) & (own >= 0)
    merges = own[merge], outputs[merge, found.change[merge]]
    apart = found.not_change & (own >= 0)[:, None]
    links = np.broadcast_to(own[:, None], outputs.shape)[apart], outputs[apart]
    counts = {"decided": int((found.change >= 0).sum()), **counts, "merges": int(merge.sum())}
    if how == "naive":
        return MoserClusters(naive_merges(size, merges)[clusters], clusters, counts)
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
