"""Change that is known, and how right the votes are about it.

If one of two outputs is later spent together with the senders' other coins, it was their change: a ground truth that
needs no owner. Möser and Narayanan build 35 million such cases; their steps are followed here, but for the two clusters
they drop by name (Mt. Gox and LocalBitcoins have no counterpart in other data).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numba import njit

from btcnb import paper
from btcnb.data.change_votes.votes import (
    HEURISTICS,
    BoolArray,
    ChangeVotes,
    first_seen,
    input_clusters,
    multi_input_clusters,
    two_outputs,
)
from btcnb.data.heuristics import HeuristicConfig, heuristic_merges
from btcnb.data.transactions import UNKNOWN, IntArray, Transactions
from btcnb.errors import DataError

MIXED_SHARE = 0.1
"""A cluster is dropped when so many of its transactions pay both outputs to itself: something else goes on there."""
NEVER = np.iinfo(np.int64).max
CHANGE_RULES = ("change", "round_value", "forced_merge")
"""The rules of the paper's pipeline that name a change output."""


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
    base, two = multi_input_clusters(txs), two_outputs(txs)
    own = np.where(one_sender(txs, base)[two.tx], input_clusters(txs, two.tx, base), UNKNOWN)
    address = txs.outputs["address"].to_numpy()[two.rows]
    inside = (base[address] == own[:, None]) & (address >= 0)
    remaining = two.tx[(own >= 0) & ~inside.any(axis=1)]
    shown = inside.sum(axis=1) == 1
    candidate = shown & (txs.spent_by()[two.rows] != UNKNOWN).all(axis=1) if both_spent else shown
    clean = candidate & ~_mixed_clusters(txs, base)[np.maximum(own, 0)]
    rows = np.flatnonzero(clean)
    change = inside[rows].argmax(axis=1)
    sender = input_clusters(txs, two.tx[rows], np.arange(txs.num_addresses))
    later = joined_at(txs, sender, address[rows, change]) > two.tx[rows]
    rows, change = rows[later], change[later]
    seen, tx = first_seen(txs), two.tx[rows]
    fresh = seen[address[rows, change]] == tx
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


def one_sender(txs: Transactions, base: IntArray) -> BoolArray:
    """Per transaction: whether the known input addresses lie in one cluster, as they do outside CoinJoins."""
    address, tx = txs.inputs["address"].to_numpy(), txs.inputs["tx"].to_numpy()
    rows = np.flatnonzero(address >= 0)
    first = input_clusters(txs, np.arange(len(txs)), base)
    one = np.ones(len(txs), dtype=bool)
    one[tx[rows][base[address[rows]] != first[tx[rows]]]] = False
    return one


def _mixed_clusters(txs: Transactions, base: IntArray) -> BoolArray:
    """Per cluster: whether it pays both outputs to itself too often. At least one entry."""
    size = int(base.max()) + 1 if len(base) else 1
    start = txs.output_offsets()
    sender = input_clusters(txs, np.arange(len(txs)), base)  # a coinbase has none
    sent = np.bincount(sender[sender >= 0], minlength=size)
    tx = np.flatnonzero((np.diff(start) == 2) & (sender >= 0))
    address = txs.outputs["address"].to_numpy()[np.stack([start[tx], start[tx] + 1], axis=1)]
    both = ((address >= 0) & (base[address] == sender[tx, None])).all(axis=1)
    return np.bincount(sender[tx[both]], minlength=size) >= MIXED_SHARE * np.maximum(sent, 1)


def joined_at(txs: Transactions, a: IntArray, b: IntArray) -> IntArray:
    """Per pair of addresses the transaction by whose common inputs they are first in one cluster; `NEVER` if none."""
    links = heuristic_merges(txs, rules=("common_input",))
    tx, left, right = (links[name].to_numpy(dtype=np.int64, copy=True) for name in ("tx", "address_a", "address_b"))
    since: IntArray = _joined_at(txs.num_addresses, (tx, left, right), np.array(a), np.array(b))
    return since


@njit(cache=True)
def _joined_at(size: Any, links: Any, a: Any, b: Any) -> Any:
    """Union by size without path compression: a root's link keeps its time, and paths are short."""
    tx, left, right = links
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


def true_change(txs: Transactions) -> KnownChange:
    """The change that the source tells (`truth.change`), for eligible transactions that have one."""
    told = None if txs.truth is None else txs.truth.change
    if told is None:
        raise DataError(txs.source, "truth.change", "is missing", "simulate, or tell which output is change")
    two = two_outputs(txs)
    index = txs.outputs["index"].to_numpy()[two.rows]  # `change` counts as the outputs' own index does
    matches = index == told[two.tx][:, None]
    some = matches.any(axis=1)
    return KnownChange(two.tx[some], matches[some].argmax(axis=1).astype(np.int64))


def freshness(revealed: RevealedChange) -> pd.DataFrame:
    """How often change and payment went to fresh addresses: change_fresh, spend_fresh, ours, published (shares)."""
    table = paper.table("moser_freshness")
    total = max(len(revealed.tx), 1)
    ours = [
        ((revealed.change_fresh == row.change_fresh) & (revealed.spend_fresh == row.spend_fresh)).sum() / total
        for row in table.itertuples()
    ]
    shares = table["millions"] / table["millions"].sum()
    return table[["change_fresh", "spend_fresh"]].assign(ours=ours, published=shares)


# --- how right the votes are ---


def published_votes() -> pd.DataFrame:
    """Möser and Narayanan's figures, indexed by heuristic: group, TPR, FPR, remaining, precision, reading.

    TPR and FPR are right and wrong votes over all 35.26 million ground-truth transactions, `remaining` the share of
    other transactions that get a vote, `precision` the share of right votes (where published). `reading` says whether
    the definition is `told` by their notebooks, `inferred`, or `unknown` (then our figures do not compare).
    """
    return paper.table("moser_votes").set_index("heuristic")


def vote_scores(votes: ChangeVotes, known: KnownChange, remaining: IntArray | None = None) -> pd.DataFrame:
    """Per heuristic, over transactions with known change: coverage, TPR (right/all), FPR (wrong/all), precision.

    remaining: ids of transactions without known change; `remaining` is then the share of them that gets a vote, and
        `remaining_spent` the share of those with both outputs spent. In a short interval many outputs are not yet
        spent, and fingerprints are silent there; in the published count 94 % of the transactions had both spent.
    NaN where there is nothing to count.
    """
    found = votes.of(known.tx).votes
    voted, right = (flags.sum(axis=0) for flags in (found >= 0, found == known.change[:, None]))
    number = np.float64(len(found))
    with np.errstate(invalid="ignore"):
        columns = {
            "coverage": voted / number,
            "TPR": right / number,
            "FPR": (voted - right) / number,
            "precision": right / voted.astype(np.float64),
        }
        if remaining is not None:
            others = votes.of(remaining)
            for name, rows in (("remaining", others.votes), ("remaining_spent", others.votes[others.both_spent])):
                columns[name] = (rows >= 0).sum(axis=0) / np.float64(len(rows))
    return pd.DataFrame(columns, index=pd.Index(HEURISTICS, name="heuristic"))


def rule_precision(txs: Transactions, config: HeuristicConfig | None = None) -> pd.DataFrame:
    """The paper's own change rules against the truth, indexed by rule.

    votes: outputs that the rule took for change; `owner`: share of them that the sender owns (where both are known);
    `change`: share of them that are the change output, where `truth.change` names one.
    """
    if txs.truth is None:
        raise DataError(txs.source, "truth", "is missing", "simulate, or attach owners")
    links = heuristic_merges(txs, rules=CHANGE_RULES, config=config)
    outputs = txs.outputs[["tx", "address", "index"]]
    # in a star the output may be the centre, once per other address: it is one vote all the same
    flipped = links.rename(columns={"address_a": "address_b", "address_b": "address_a"})
    ends = [each.merge(outputs, left_on=["tx", "address_b"], right_on=["tx", "address"]) for each in (links, flipped)]
    votes = pd.concat(ends).drop_duplicates(["tx", "rule", "address_b"])
    owner, told = txs.truth.owner, txs.truth.change
    ours, theirs = owner[votes["address_b"].to_numpy()], owner[votes["address_a"].to_numpy()]
    change = np.full(len(votes), -1) if told is None else told[votes["tx"].to_numpy()]
    votes["owner"] = np.where((ours >= 0) & (theirs >= 0), ours == theirs, np.nan)
    votes["change"] = np.where(change >= 0, votes["index"] == change, np.nan)
    table = votes.groupby("rule").agg(votes=("tx", "size"), owner=("owner", "mean"), change=("change", "mean"))
    return table.reindex(pd.Index(CHANGE_RULES, name="rule")).fillna({"votes": 0}).astype({"votes": "int64"})
