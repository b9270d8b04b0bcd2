"""Votes of several chains counted together, and how their rates rank beside the published ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from btcnb import gates
from btcnb.data import Transactions
from btcnb.data.change_votes import (
    HEURISTICS,
    UNIVERSAL,
    ChangeVotes,
    KnownChange,
    RevealedChange,
    change_votes,
    published_votes,
    revealed_change,
    vote_scores,
)

RATES = ("coverage", "TPR", "FPR", "remaining", "remaining_spent")


class Counted(NamedTuple):
    """A chain with its votes and what common inputs reveal in it."""

    votes: ChangeVotes
    revealed: RevealedChange


def counted(txs: Transactions, both_spent: bool = True) -> Counted:
    """Votes and revealed change of one chain."""
    return Counted(change_votes(txs), revealed_change(txs, both_spent))


def pooled_scores(chains: Sequence[Counted]) -> pd.DataFrame:
    """`vote_scores` over all transactions of several chains, and the column `comparable`.

    comparable: coverage of the remaining transactions, as it compares with the published one: of universal heuristics
        over all of them, of fingerprints over those with both outputs spent (94 % of the published count have)
    """
    gates.items("chains", chains)
    starts = np.cumsum([0] + [_length(each) for each in chains])
    votes = ChangeVotes(
        np.concatenate([each.votes.tx + start for each, start in zip(chains, starts, strict=False)]),
        np.concatenate([each.votes.votes for each in chains]),
        np.concatenate([each.votes.both_spent for each in chains]),
    )
    parts = [(each.revealed, start) for each, start in zip(chains, starts, strict=False)]
    known = KnownChange(
        np.concatenate([found.tx + start for found, start in parts]),
        np.concatenate([found.change for found, _ in parts]),
    )
    table = vote_scores(votes, known, np.concatenate([found.remaining + start for found, start in parts]))
    universal = table.index.isin(UNIVERSAL)
    return table.assign(comparable=np.where(universal, table["remaining"], table["remaining_spent"]))


def rank_agreement(table: pd.DataFrame) -> dict[str, float]:
    """Spearman's rank correlation with the published figures, over heuristics whose definition is known.

    table: of `pooled_scores`; NaN where fewer than three heuristics can be compared
    """
    theirs = published_votes().loc[table.index]
    known = (theirs["reading"] != "unknown").to_numpy()
    pairs = {"TPR": "TPR", "FPR": "FPR", "coverage": "remaining"}
    ours = {"TPR": "TPR", "FPR": "FPR", "coverage": "comparable"}
    found = {}
    for name, column in pairs.items():
        both = pd.DataFrame({"ours": table[ours[name]], "theirs": theirs[column]})[known].dropna()
        enough = len(both) >= 3 and np.ptp(both["ours"]) > 0
        found[name] = float(spearmanr(both["ours"], both["theirs"]).statistic) if enough else float("nan")
    return found


def vote_numbers(table: pd.DataFrame) -> dict[str, float]:
    """The rates flat, `votes.NAME.RATE`, and `votes.rank_RATE` beside the published ones."""
    rates = {rate: table[rate].to_numpy(dtype=np.float64) for rate in RATES}
    flat = {f"votes.{name}.{rate}": float(rates[rate][i]) for i, name in enumerate(HEURISTICS) for rate in RATES}
    return flat | {f"votes.rank_{name}": value for name, value in rank_agreement(table).items()}


def _length(each: Counted) -> int:
    """Room for the transaction ids of a chain."""
    ids = np.concatenate([each.votes.tx, each.revealed.tx, each.revealed.remaining])
    return int(ids.max()) + 1 if len(ids) else 0
