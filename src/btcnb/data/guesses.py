"""How often a guess of change is right: the paper's rules on a chain with owners, their published kin beside them."""

from __future__ import annotations

import pandas as pd

from btcnb.data.change_votes import published_votes, rule_precision
from btcnb.data.heuristics import HeuristicConfig
from btcnb.data.transactions import Transactions

ONLY_FRESH = {"local": 0.960, "global": 0.949}
"""Precision of "the only fresh output is change" in both variants (Möser and Narayanan's public notebooks); no vote of
the 26, so it does not stand in their table."""


def guesses_of_change(txs: Transactions, config: HeuristicConfig | None = None) -> pd.DataFrame:
    """Per rule that names a change output: what `rule_precision` gives, and kin, published_low, published_high.

    kin: the published heuristic that is nearest to the rule, in words; the two last columns: its precision on real
    transactions whose change later became known, the lowest and highest of its variants.
    """
    published = published_votes()["precision"]
    round_ones = published[published.index.str.startswith("power_of_ten")]
    optimal = published[["optimal_change", "optimal_change_with_fee"]]
    kin = {
        "change": ("the only fresh output", min(ONLY_FRESH.values()), max(ONLY_FRESH.values())),
        "round_value": ("the output that is not round", round_ones.min(), round_ones.max()),
        "forced_merge": ("the output below the smallest input", optimal.min(), optimal.max()),
    }
    columns = ["kin", "published_low", "published_high"]
    return rule_precision(txs, config).join(pd.DataFrame.from_dict(kin, orient="index", columns=columns))
