"""How right are the votes? The rates that Möser and Narayanan publish, and the paper's own rules against the truth."""

from __future__ import annotations

import numpy as np
import pandas as pd

from btcnb import paper
from btcnb.data.change_votes.revealed import KnownChange
from btcnb.data.change_votes.votes import HEURISTICS, ChangeVotes
from btcnb.data.heuristics import HeuristicConfig, heuristic_merges
from btcnb.data.transactions import IntArray, Transactions
from btcnb.errors import DataError
from btcnb.gates import instance

CHANGE_RULES = ("change", "round_value", "forced_merge")
"""The rules of the paper's pipeline that name a change output."""


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
    instance("votes", votes, ChangeVotes)
    instance("known", known, KnownChange)
    found = votes.of(known.tx).votes
    right, voted = found == known.change[:, None], found >= 0
    with np.errstate(invalid="ignore"):
        table = pd.DataFrame(
            {
                "coverage": voted.sum(axis=0) / np.float64(len(found)),
                "TPR": right.sum(axis=0) / np.float64(len(found)),
                "FPR": (voted & ~right).sum(axis=0) / np.float64(len(found)),
                "precision": right.sum(axis=0) / voted.sum(axis=0).astype(np.float64),
            },
            index=pd.Index(HEURISTICS, name="heuristic"),
        )
        if remaining is not None:
            others = votes.of(remaining)
            for name, rows in (("remaining", others.votes), ("remaining_spent", others.votes[others.both_spent])):
                table[name] = (rows >= 0).sum(axis=0) / np.float64(len(rows))
    return table


def rule_precision(txs: Transactions, config: HeuristicConfig | None = None) -> pd.DataFrame:
    """The paper's own change rules against the truth, indexed by rule.

    votes: outputs that the rule took for change; `owner`: share of them that the sender owns (where both are known);
    `change`: share of them that are the change output, where `truth.change` names one.
    """
    instance("txs", txs, Transactions)
    if txs.truth is None:
        raise DataError(txs.source, "truth", "is missing", "simulate, or attach owners")
    merges = heuristic_merges(txs, rules=CHANGE_RULES, config=config)
    outputs = txs.outputs[["tx", "address", "index"]]
    named = merges.merge(outputs, left_on=["tx", "address_b"], right_on=["tx", "address"])
    flipped = merges.merge(outputs, left_on=["tx", "address_a"], right_on=["tx", "address"])
    # in a star the output may be the centre, once per other address: it is one vote all the same
    flipped = flipped.rename(columns={"address_a": "address_b", "address_b": "address_a"})
    votes = pd.concat([named, flipped]).drop_duplicates(["tx", "rule", "address_b"])
    owner, told = txs.truth.owner, txs.truth.change
    ends = votes[["tx", "address_a", "address_b"]].astype(np.int64)  # of no votes, pandas forgets the type
    ours, theirs = owner[ends["address_b"].to_numpy()], owner[ends["address_a"].to_numpy()]
    change = np.full(len(votes), -1) if told is None else told[ends["tx"].to_numpy()]
    votes = votes.assign(
        owner=pd.Series(ours == theirs, index=votes.index).where((ours >= 0) & (theirs >= 0)).astype("boolean"),
        change=pd.Series(votes["index"].to_numpy() == change, index=votes.index).where(change >= 0).astype("boolean"),
    )
    grouped = votes.groupby("rule")
    table = pd.DataFrame(
        {"votes": grouped.size(), "owner": grouped["owner"].mean(), "change": grouped["change"].mean()},
    )
    return (
        table.reindex(pd.Index(CHANGE_RULES, name="rule"))
        .fillna({"votes": 0})
        .astype({"votes": "int64", "owner": "float64", "change": "float64"})
    )
