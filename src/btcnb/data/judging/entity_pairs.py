"""The paper's test with entity labels: are addresses of one name together, and those of two names apart?

Section "Additional Experiments with Independent Ground-Truth Labels": transactions that involve at least two labelled
addresses are drawn; each is given its surroundings (`sample_around`) as a graph of its own; at most five labelled pairs
a graph are drawn, and a clustering of that graph is right where it joins a pair of one name or parts a pair of two.
The drawing of pairs is repeated, the transactions stay.

    for graph in entity_graphs(txs): ...          # for any method: the local chain, and the pairs to be judged
    entity_counts(txs).mean                       # the heuristics', in % of all pairs
    entity_counts(txs, cluster=my_clusters).mean  # anybody's: a function from local transactions to labels
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.data.graph_construction import rules_at
from btcnb.data.heuristics import HeuristicConfig, heuristic_clusters
from btcnb.data.intervals import price_near
from btcnb.data.sampling import Surroundings
from btcnb.data.transactions import IntArray, Transactions
from btcnb.errors import DataError
from btcnb.paper import balanced_accuracy, macro_f1

Among = Literal["transaction", "graph"]

PAIRS_PER_GRAPH = 5
"""Most pairs that one graph contributes to a draw (Section 6.3)."""
COUNTS = ("TP", "FP", "FN", "TN")
"""A pair of one name is positive; a pair in one cluster is predicted positive."""


class EntityGraph(NamedTuple):
    """The surroundings of one labelled transaction and the pairs of addresses to be judged there."""

    transaction: int  # id in the whole chain
    txs: Transactions  # the local transactions
    transactions: IntArray  # (T,) ids in the whole chain of the local transactions
    addresses: IntArray  # (A,) ids in the whole chain of the local addresses
    pairs: tuple[IntArray, ...]  # one (at most 5, 2) array of local address ids per draw
    same: tuple[npt.NDArray[np.bool_], ...]  # per draw and pair: whether both have one name


class EntityCounts(NamedTuple):
    """Right and wrong pairs. `by_draw` has one row per draw: TP, FP, FN, TN in % of its pairs, bACC, F1, pairs."""

    by_draw: pd.DataFrame
    transactions: int

    @property
    def mean(self) -> pd.Series:
        return self.by_draw.mean()


def entity_counts(
    txs: Transactions,
    *,
    transactions: int = 500,
    draws: int = 5,
    seed: int = 0,
    pairs: Among = "transaction",
    config: HeuristicConfig | None = None,
    cluster: Callable[[Transactions], IntArray] | None = None,
) -> EntityCounts:
    """The paper's table of entity labels for one clustering, the heuristics' where none is given.

    transactions, draws, seed, pairs: as in `entity_graphs`
    config:  thresholds of the heuristics; default: the pipeline's, with the price of the chain's first block
    cluster: local transactions -> one label per address, instead of the heuristics (`config` then plays no part)
    """
    judge = local_heuristics(txs, config) if cluster is None else cluster
    counts = np.zeros((draws, len(COUNTS)), dtype=np.int64)
    number = 0
    for graph in entity_graphs(txs, transactions=transactions, draws=draws, seed=seed, pairs=pairs):
        labels = judge(graph.txs)
        counts += [pair_counts(labels, *drawn) for drawn in zip(graph.pairs, graph.same, strict=True)]
        number += 1
    return EntityCounts(_shares(counts), number)


def entity_graphs(
    txs: Transactions,
    *,
    transactions: int = 500,
    draws: int = 5,
    seed: int = 0,
    pairs: Among = "transaction",
) -> Iterator[EntityGraph]:
    """Surroundings of randomly drawn transactions with at least two labelled addresses, in chain order.

    transactions: how many are drawn, without repetition; all, where the chain has fewer
    draws:        how often pairs are drawn, each time at most five a graph without repetition
    pairs:        among the labelled addresses of the drawn transaction, or of all its surroundings (the paper's
                  "labeled pairs per graph" may mean either)
    What is drawn for a transaction depends on `seed` and on that transaction only.
    """
    name = _names(txs)
    candidates = _labelled_transactions(txs, name)
    rng = np.random.default_rng(seed)
    number = min(transactions, len(candidates))
    chosen = np.sort(rng.choice(candidates, number, replace=False))
    return _graphs(txs, chosen, name, draws, seed, pairs)


def labelled_transactions(txs: Transactions) -> IntArray:
    """Ids of the transactions that can be drawn: those with at least two distinct labelled addresses, ascending."""
    return _labelled_transactions(txs, _names(txs))


def local_heuristics(txs: Transactions, config: HeuristicConfig | None = None) -> Callable[[Transactions], IntArray]:
    """The paper's heuristics on local transactions; the default takes the price of the whole chain's first block."""
    chosen = interval_config(txs) if config is None else config
    return lambda local: heuristic_clusters(local, config=chosen)


def interval_config(txs: Transactions) -> HeuristicConfig:
    """The pipeline's thresholds with the price of the paper's interval in which the chain begins, if it does in one."""
    blocks = txs.transactions["block_number"]
    return rules_at(price_near(int(blocks.iloc[0])) if len(blocks) else None)


def pair_counts(labels: IntArray, pairs: IntArray, same: npt.NDArray[np.bool_]) -> IntArray:
    """TP, FP, FN, TN of (k, 2) pairs of addresses under one label per address."""
    together = labels[pairs[:, 0]] == labels[pairs[:, 1]]
    found = [together & same, together & ~same, ~together & same, ~together & ~same]
    return np.array([int(kind.sum()) for kind in found], dtype=np.int64)


def _graphs(
    txs: Transactions, chosen: IntArray, name: IntArray, draws: int, seed: int, pairs: Among
) -> Iterator[EntityGraph]:
    around = Surroundings.of(txs, seed=seed)
    for tx in chosen.tolist():
        piece = around.piece(tx)
        own = name[piece.addresses]
        if pairs == "graph":
            labelled = np.flatnonzero(own >= 0)
        else:
            labelled = _labelled_of(piece.txs, int(np.searchsorted(piece.transactions, tx)), own)
        drawn = [_draw(labelled, np.random.default_rng([seed, tx, draw])) for draw in range(draws)]
        same = tuple(own[each[:, 0]] == own[each[:, 1]] for each in drawn)
        yield EntityGraph(tx, *piece, tuple(drawn), same)


def _draw(addresses: IntArray, rng: np.random.Generator) -> IntArray:
    """At most five of all pairs of n addresses, uniformly and without repetition, (k, 2)."""
    n = len(addresses)
    total = n * (n - 1) // 2
    chosen = rng.choice(total, min(total, PAIRS_PER_GRAPH), replace=False)
    # pair number q = j(j-1)/2 + i stands for i < j
    j = ((1 + np.sqrt(8 * chosen.astype(np.float64) + 1)) / 2).astype(np.int64)
    j -= j * (j - 1) // 2 > chosen  # where the root was rounded up
    return np.stack([addresses[chosen - j * (j - 1) // 2], addresses[j]], axis=1)


def _names(txs: Transactions) -> IntArray:
    """Per address the number of its public name, -1 where it has none."""
    label = None if txs.truth is None else txs.truth.label
    if label is None:
        raise DataError(txs.source, "truth.label", "is missing", "give public names of addresses, or simulate")
    text = np.asarray(label, dtype=object)
    return np.where(text == "", -1, pd.factorize(text)[0]).astype(np.int64)


def _labelled_transactions(txs: Transactions, name: IntArray) -> IntArray:
    """Ids of the transactions with at least two distinct labelled addresses on either side."""
    sides: list[Any] = [txs.inputs, txs.outputs]
    tx = np.concatenate([side["tx"].to_numpy() for side in sides])
    address = np.concatenate([side["address"].to_numpy() for side in sides])
    labelled = address >= 0
    labelled[labelled] = name[address[labelled]] >= 0
    found = pd.DataFrame({"tx": tx[labelled], "address": address[labelled]}).drop_duplicates()
    several = np.flatnonzero(np.bincount(found["tx"], minlength=len(txs)) >= 2)
    if not len(several):
        problem = "no transaction has two labelled addresses"
        raise DataError(txs.source, "truth.label", problem, "take more transactions, or label more addresses")
    return several


def _labelled_of(txs: Transactions, tx: int, name: IntArray) -> IntArray:
    """Labelled addresses of one transaction, ascending."""
    sides = ((txs.inputs, txs.input_offsets()), (txs.outputs, txs.output_offsets()))
    found = [table["address"].to_numpy()[start[tx] : start[tx + 1]] for table, start in sides]
    address = np.unique(np.concatenate(found))
    address = address[address >= 0]
    return address[name[address] >= 0]


def _shares(counts: IntArray) -> pd.DataFrame:
    number = counts.sum(axis=1)
    table = pd.DataFrame(100 * counts / number[:, None], columns=list(COUNTS)).rename_axis("draw")
    for score, of in (("bACC", balanced_accuracy), ("F1", macro_f1)):
        table[score] = [of(*row) for row in table[list(COUNTS)].to_numpy()]
    return table.assign(pairs=number)
