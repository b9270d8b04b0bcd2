"""The transactions that change heuristics speak about: two outputs, of which at most one is change."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from btcnb.data.heuristics import HeuristicConfig, heuristic_clusters
from btcnb.data.transactions import SCRIPT_TYPES, IntArray, Transactions
from btcnb.gates import instance

BoolArray = npt.NDArray[np.bool_]

NULLDATA = SCRIPT_TYPES.index("nulldata")


class TwoOutputs(NamedTuple):
    """Eligible transactions in chain order. Output 0 of the k-th is row first[k] of `outputs`, output 1 the next."""

    tx: IntArray  # (E,)
    first: IntArray  # (E,)

    @property
    def rows(self) -> IntArray:
        """Rows of both outputs, (E, 2)."""
        return np.stack([self.first, self.first + 1], axis=1)


def two_outputs(txs: Transactions) -> TwoOutputs:
    """No coinbase, exactly two outputs, both spendable, and no input address among them.

    Where an input address is paid, its output is change beyond doubt, and heuristics have nothing to add.
    """
    instance("txs", txs, Transactions)
    start, kind = txs.output_offsets(), txs.outputs["script_type"].to_numpy()
    tx = np.flatnonzero((np.diff(start) == 2) & ~txs.transactions["is_coinbase"].to_numpy())
    first = start[tx]
    keep = (kind[first] != NULLDATA) & (kind[first + 1] != NULLDATA) & ~_pays_back(txs)[tx]
    return TwoOutputs(tx[keep], first[keep])


def multi_input_clusters(txs: Transactions) -> IntArray:
    """The base clustering: input addresses of one transaction belong together, unless it is a detected CoinJoin."""
    return heuristic_clusters(txs, rules=("common_input",), config=HeuristicConfig())


def input_clusters(txs: Transactions, tx: IntArray, clusters: IntArray) -> IntArray:
    """Per transaction the cluster of its first input with a known address, -1 where none is known."""
    address, sender = txs.inputs["address"].to_numpy(), txs.inputs["tx"].to_numpy()
    known = np.flatnonzero(address >= 0)[::-1]
    found = np.full(len(txs), -1, dtype=np.int64)
    found[sender[known]] = clusters[address[known]]  # from the last to the first: the first is written last
    return found[tx]


def first_seen(txs: Transactions) -> IntArray:
    """Per address the first transaction that shows it, as sender or receiver. What came before the data is unknown."""
    seen = np.full(txs.num_addresses + 1, len(txs), dtype=np.int64)  # the last slot catches address -1
    for table in (txs.inputs, txs.outputs):
        address, tx = table["address"].to_numpy()[::-1], table["tx"].to_numpy()[::-1]
        earliest = np.full(len(seen), len(txs), dtype=np.int64)
        earliest[address] = tx  # rows are in chain order: the last write is the earliest
        seen = np.minimum(seen, earliest)
    return seen[:-1]


def receipts(txs: Transactions) -> IntArray:
    """Per address the number of outputs that pay it."""
    address = txs.outputs["address"].to_numpy()
    return np.bincount(address[address >= 0], minlength=txs.num_addresses).astype(np.int64)


def unique_index(candidate: BoolArray) -> npt.NDArray[np.int8]:
    """From (E, 2) outputs that cannot be ruled out to votes (E,): the index of the only one left, else -1."""
    vote = np.where(candidate[:, 1], 1, 0).astype(np.int8)
    return np.where(candidate[:, 0] != candidate[:, 1], vote, np.int8(-1)).astype(np.int8)


def _pays_back(txs: Transactions) -> BoolArray:
    """Per transaction: whether an output goes to one of its input addresses."""
    wide = np.int64(max(txs.num_addresses, 1))
    sides = []
    for table in (txs.inputs, txs.outputs):
        address = table["address"].to_numpy()
        sides.append((table["tx"].to_numpy() * wide + address)[address >= 0])
    found = np.zeros(len(txs), dtype=bool)
    found[np.intersect1d(*sides) // wide] = True
    return found
