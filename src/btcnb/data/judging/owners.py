"""Partitions of addresses against the true owners: which clusters hold strangers, and how many pairs are right.

Addresses whose owner nobody knows (-1) are left out of every count.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.data.change_votes import published_votes, rule_precision
from btcnb.data.heuristics import HeuristicConfig
from btcnb.data.transactions import Transactions

IntArray = npt.NDArray[np.int64]


def owners_in(labels: IntArray, owner: IntArray) -> pd.DataFrame:
    """Per cluster with a known owner: `addresses` (of known owners) and `owners`, indexed by label."""
    known = owner >= 0
    grouped = pd.Series(owner[known]).groupby(labels[known])
    return pd.DataFrame({"addresses": grouped.size(), "owners": grouped.nunique()})


def pair_scores(labels: IntArray, owner: IntArray) -> tuple[float, float]:
    """Precision and recall over pairs of addresses; NaN where there is no pair to count."""
    known = owner >= 0
    both = pd.DataFrame({"label": labels[known], "owner": owner[known]})
    right, together, same = (_pairs(both.groupby(columns).size()) for columns in (["label", "owner"], "label", "owner"))
    return right / together if together else float("nan"), right / same if same else float("nan")


def pieces_per_owner(labels: IntArray, owner: IntArray) -> float:
    """Clusters over which an owner is scattered, on average; NaN where no owner is known."""
    known = owner >= 0
    both = pd.DataFrame({"label": labels[known], "owner": owner[known]}).drop_duplicates()
    return len(both) / both["owner"].nunique() if len(both) else float("nan")


def against_owners(labels: IntArray, owner: IntArray) -> dict[str, float]:
    """One row of a table that compares partitions. A cluster has collapsed when it holds several owners.

    clusters, largest (share of addresses in the largest cluster), collapsed (clusters), in_collapsed (share of
    addresses in them), most_owners (in one cluster), precision, recall (pairs)
    """
    held = owners_in(labels, owner)
    number = max(int(held["addresses"].sum()), 1)
    over = held["owners"] > 1
    precision, recall = pair_scores(labels, owner)
    return {
        "clusters": len(held),
        "largest": float(held["addresses"].max()) / number if len(held) else float("nan"),
        "collapsed": int(over.sum()),
        "in_collapsed": float(held.loc[over, "addresses"].sum()) / number,
        "most_owners": int(held["owners"].max()) if len(held) else 0,
        "precision": precision,
        "recall": recall,
    }


def _pairs(sizes: pd.Series) -> float:
    count = sizes.to_numpy(dtype=np.float64)
    return float((count * (count - 1) / 2).sum())


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
