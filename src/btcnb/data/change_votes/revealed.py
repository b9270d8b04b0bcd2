"""Change that later transactions reveal: the ground truth that needs no owner.

If one of two outputs is later spent together with the senders' other coins, it was their change. Möser and Narayanan
build 35 million such cases; their steps are followed here, but for the two clusters they drop by name (Mt. Gox and
LocalBitcoins have no counterpart in other data).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numba import njit

from btcnb import paper
from btcnb.data.change_votes.two_outputs import (
    BoolArray,
    TwoOutputs,
    first_seen,
    input_clusters,
    multi_input_clusters,
    two_outputs,
)
from btcnb.data.heuristics import heuristic_merges
from btcnb.data.transactions import UNKNOWN, IntArray, Transactions
from btcnb.errors import DataError
from btcnb.gates import flag, instance

MIXED_SHARE = 0.1
"""A cluster is dropped when so many of its transactions pay both outputs to itself: something else goes on there."""
NEVER = np.iinfo(np.int64).max


class KnownChange(NamedTuple):
    """Transactions with two outputs of which one is known to be change."""

    tx: IntArray  # (G,) ids, ascending
    change: IntArray  # (G,) index 0 or 1 of the change output


class RevealedChange(NamedTuple):
    """The ground truth and what is left. Arrays of shape (G,) are aligned with `tx`."""

    tx: IntArray  # ids, ascending
    change: IntArray  # index 0 or 1 of the change output
    cluster: IntArray  # of the senders, by common inputs: rows of one cluster belong to one fold
    change_fresh: BoolArray  # the change address is first seen in this transaction
    spend_fresh: BoolArray  # so is the other output's address
    remaining: IntArray  # ids of the eligible transactions with no output in the senders' cluster
    steps: dict[str, int]  # how many transactions each step left

    @property
    def known(self) -> KnownChange:
        return KnownChange(self.tx, self.change)


def revealed_change(txs: Transactions, both_spent: bool = True) -> RevealedChange:
    """Change outputs that common inputs reveal, but had not yet revealed when the transaction was made.

    Candidates have exactly two outputs, both spent in the data, no input address among them, and exactly one output in
    the senders' cluster (common inputs only, detected CoinJoins skipped). Clusters of which at least 10 % of the
    transactions they send (our reading of "their transactions") have two outputs, both to the cluster itself, are
    dropped. Of the rest those count whose change address common inputs had not joined with the senders by then; that
    includes all fresh ones.

    both_spent: False lets in payments whose other output is not spent in the data. Scattered blocks have hardly any
        with both spent; what is let in has no fingerprint votes.
    """
    instance("txs", txs, Transactions)
    flag("both_spent", both_spent)
    base, two = multi_input_clusters(txs), two_outputs(txs)
    own = np.where(one_sender(txs, base)[two.tx], input_clusters(txs, two.tx, base), UNKNOWN)
    address = txs.outputs["address"].to_numpy()[two.rows]
    inside = (base[address] == own[:, None]) & (address >= 0)
    remaining = two.tx[(own >= 0) & ~inside.any(axis=1)]
    shown = inside.sum(axis=1) == 1
    candidate = shown & (txs.spent_by()[two.rows] != UNKNOWN).all(axis=1) if both_spent else shown
    clean = candidate & ~_mixed(txs, base)[np.maximum(own, 0)]
    rows = np.flatnonzero(clean)
    change = inside[rows].argmax(axis=1)
    changed = address[rows, change]
    known_since = joined_at(txs, _a_sender(txs)[two.tx[rows]], changed)
    unknown_then = known_since > two.tx[rows]
    rows, change, changed = rows[unknown_then], change[unknown_then], changed[unknown_then]
    seen, tx = first_seen(txs), two.tx[rows]
    fresh = seen[changed] == tx
    return RevealedChange(
        tx=tx,
        change=change.astype(np.int64),
        cluster=own[rows],
        change_fresh=fresh,
        spend_fresh=seen[address[rows, 1 - change]] == tx,
        remaining=remaining,
        steps={
            "eligible": len(two.tx),
            "one output with the senders": int(shown.sum()),
            "candidates": int(candidate.sum()),
            "without mixed clusters": int(clean.sum()),
            "not yet known": len(tx),
            "of these fresh": int(fresh.sum()),
        },
    )


def true_change(txs: Transactions) -> KnownChange:
    """The change that the source tells (`truth.change`), for eligible transactions that have one."""
    instance("txs", txs, Transactions)
    told = None if txs.truth is None else txs.truth.change
    if told is None:
        raise DataError(txs.source, "truth.change", "is missing", "simulate, or tell which output is change")
    two = two_outputs(txs)
    first = txs.outputs["index"].to_numpy()[two.rows]  # `change` counts as the outputs' own index does
    matches = first == told[two.tx][:, None]
    some = matches.any(axis=1)
    return KnownChange(two.tx[some], matches[some].argmax(axis=1).astype(np.int64))


def freshness(revealed: RevealedChange) -> pd.DataFrame:
    """How often change and payment went to fresh addresses: change_fresh, spend_fresh, ours, published (shares)."""
    instance("revealed", revealed, RevealedChange)
    table = paper.table("moser_freshness")
    total = max(len(revealed.tx), 1)
    ours = [
        ((revealed.change_fresh == row.change_fresh) & (revealed.spend_fresh == row.spend_fresh)).sum() / total
        for row in table.itertuples()
    ]
    shares = table["millions"] / table["millions"].sum()
    return table[["change_fresh", "spend_fresh"]].assign(ours=ours, published=shares)


def joined_at(txs: Transactions, a: IntArray, b: IntArray) -> IntArray:
    """Per pair of addresses the transaction by whose common inputs they are first in one cluster; `NEVER` if none."""
    merges = heuristic_merges(txs, rules=("common_input",))
    tx, left, right = (merges[name].to_numpy(dtype=np.int64, copy=True) for name in ("tx", "address_a", "address_b"))
    since: IntArray = _joined_at(txs.num_addresses, (tx, left, right), np.array(a), np.array(b))
    return since


@njit(cache=True)
def _joined_at(size: Any, merges: Any, a: Any, b: Any) -> Any:
    """Union by size without path compression: a root's link keeps its time, and paths are short."""
    tx, left, right = merges
    parent, members, since = np.arange(size), np.ones(size, dtype=np.int64), np.full(size, NEVER)
    for k in range(len(tx)):
        one, other = left[k], right[k]
        while parent[one] != one:
            one = parent[one]
        while parent[other] != other:
            other = parent[other]
        if one == other:
            continue
        if members[one] < members[other]:
            one, other = other, one
        parent[other], since[other] = one, tx[k]
        members[one] += members[other]
    found = np.full(len(a), NEVER)
    for k in range(len(a)):
        one, other, last = a[k], b[k], np.int64(-1)
        while one != other and not (since[one] == NEVER and since[other] == NEVER):
            if since[one] <= since[other]:  # times rise towards the root: the younger link can wait
                last, one = since[one], parent[one]
            else:
                last, other = since[other], parent[other]
        if one == other:
            found[k] = last
    return found


def _mixed(txs: Transactions, base: IntArray) -> BoolArray:
    """Per cluster: whether it pays both outputs to itself too often. At least one entry."""
    size = int(base.max()) + 1 if len(base) else 1
    every = np.flatnonzero(~txs.transactions["is_coinbase"].to_numpy())
    own = input_clusters(txs, every, base)
    sent = np.bincount(own[own >= 0], minlength=size)
    start = txs.output_offsets()
    pairs = every[np.diff(start)[every] == 2]
    two = TwoOutputs(pairs, start[pairs])
    address, sender = txs.outputs["address"].to_numpy()[two.rows], input_clusters(txs, pairs, base)
    both = (
        ((address >= 0) & (base[address] == sender[:, None])).all(axis=1) if len(base) else np.zeros(len(pairs), bool)
    )
    return np.bincount(sender[both], minlength=size) >= MIXED_SHARE * np.maximum(sent, 1)


def one_sender(txs: Transactions, base: IntArray) -> BoolArray:
    """Per transaction: whether the known input addresses lie in one cluster, as they do outside CoinJoins."""
    address, tx = txs.inputs["address"].to_numpy(), txs.inputs["tx"].to_numpy()
    rows = np.flatnonzero(address >= 0)
    first = input_clusters(txs, np.arange(len(txs)), base)
    one = np.ones(len(txs), dtype=bool)
    one[tx[rows][base[address[rows]] != first[tx[rows]]]] = False
    return one


def _a_sender(txs: Transactions) -> IntArray:
    """Per transaction its first known input address, -1 where none is known."""
    return input_clusters(txs, np.arange(len(txs)), np.arange(txs.num_addresses))
