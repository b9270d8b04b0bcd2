"""The table of realism: every part measured on a small economy agrees with what it is made of."""

from __future__ import annotations

import numpy as np
import pytest

from btcnb.data import SimulationConfig, simulate
from btcnb.data.change_votes import HEURISTICS, supercluster_share
from btcnb.data.entity_pairs import entity_counts
from btcnb.data.realism import PARTS, realism
from btcnb.errors import ParameterError

CHAIN = simulate(SimulationConfig.preset("tiny", seed=3))


def test_the_whole_table() -> None:
    table = realism(CHAIN, transactions=30)
    assert table["quantity"].is_unique
    assert set(table["part"]) == set(PARTS)
    values = table.set_index("quantity")
    shares = values[~values.index.str.contains("number")]
    for column in ("ours", "published"):
        known = shares[column].dropna()
        assert known.between(0, 100).all()
    assert values.loc["supercluster (local): services", "ours"] == 100 * supercluster_share(CHAIN)
    counts = entity_counts(CHAIN, transactions=30).mean
    assert values.loc["entity pairs of the transaction: TP", ["ours", "published"]].tolist() == [counts["TP"], 42.6]
    assert values.loc["entity pairs of the transaction: transactions, number", "ours"] == 30
    assert values.loc["optimal_change: TPR", "published"] == pytest.approx(30.6)
    assert values.loc["supercluster (local): services", "published"] == pytest.approx(60.8, abs=0.05)
    assert {f"{name}: {rate}" for name in HEURISTICS for rate in ("TPR", "FPR", "remaining")} <= set(values.index)
    by_rule = values.index.str.startswith("wrong merges by") & values.index.str.endswith("of all wrong")
    by_mechanism = values.index.str.startswith("wrong merges in")
    wrong = values.loc["wrong merges", "ours"]
    for part in (by_rule, by_mechanism):
        assert values.loc[part, "ours"].sum() == pytest.approx(100 if wrong else 0)
    assert np.isnan(values.loc["wrong merges", "published"])


def test_parts_can_be_chosen() -> None:
    assert set(realism(CHAIN, ("supercluster", "rules"))["part"]) == {"supercluster", "rules"}
    with pytest.raises(ParameterError, match="parts"):
        realism(CHAIN, ("luck",))
