"""How often heuristics fire and fail: counted by hand, and on small economies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from builders import BTC, chain

from btcnb.data import (
    HeuristicConfig,
    SimulationConfig,
    Source,
    Transactions,
    heuristic_merges,
    load_transactions,
    simulate,
)
from btcnb.data import heuristic_measures as heuristic_measures_module
from btcnb.data.change_votes import HEURISTICS, supercluster
from btcnb.data.heuristic_measures import (
    CLUSTERS,
    COMPARABLE,
    PER_THOUSAND,
    at_once,
    failures,
    heuristic_measures,
    rule_firing,
)
from btcnb.data.judging.entity_pairs import entity_counts
from btcnb.errors import DataError

CHAIN = simulate(SimulationConfig.preset("tiny", seed=3))


def test_the_whole_table() -> None:
    values = pd.Series(heuristic_measures(CHAIN, transactions=30))
    assert values.index.is_unique
    shares = values[~values.index.str.contains("number")].dropna()
    assert shares.between(0, 100).all()
    assert values["supercluster (local): services"] == 100 * supercluster(CHAIN).share
    counts = entity_counts(CHAIN, transactions=30).mean
    assert values["entity pairs of the transaction: TP"] == counts["TP"]
    assert values["entity pairs of the transaction: transactions, number"] == 30
    assert {f"{name}: {rate}" for name in HEURISTICS for rate in ("TPR", "FPR", "remaining")} <= set(values.index)
    by_rule = values.index.str.startswith("wrong merges by") & values.index.str.endswith("of all wrong")
    by_mechanism = values.index.str.startswith("wrong merges in")
    for part in (by_rule, by_mechanism):
        assert values[part].sum() == pytest.approx(100 if values["wrong merges"] else 0)


def test_parts_can_be_chosen() -> None:
    both = heuristic_measures(CHAIN, ("supercluster", "rules"))
    assert both == pytest.approx(heuristic_measures(CHAIN, ("supercluster",)) | heuristic_measures(CHAIN, ("rules",)))


# --- along the dial ---


def test_a_mistake_in_three_merges() -> None:
    story = chain().pay(["a", "b"], {"x": 1}).pay(["b", "c"], {"y": 1}).pay(["d", "e"], {"z": 1})
    row = failures(story.owners(anna="a b", carl="c", dora="d e").build())
    assert row["wrong"] == pytest.approx(1 / 3)
    assert row["precision"] == pytest.approx(2 / 4)  # a-b and d-e of a-b, a-c, b-c, d-e
    assert row["in_collapsed"] == pytest.approx(3 / 5)  # of five addresses with a known owner
    assert row["most_owners"] == 2
    assert np.isnan(row["TP"]) and np.isnan(row["services"])  # nobody has a public name


def test_an_error_that_public_names_do_not_explain_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    story = chain().pay(["a", "b"], {"x": 1}).owners(anna="a b").build()

    def broken(*_: object, **__: object) -> None:
        raise DataError("chain", "inputs", "are in disorder", "sort them")

    for name in ("supercluster", "entity_counts"):
        with monkeypatch.context() as patch:
            patch.setattr(heuristic_measures_module, name, broken)
            with pytest.raises(DataError, match="are in disorder"):
                failures(story)


def test_owners_are_needed() -> None:
    with pytest.raises(DataError, match="truth"):
        failures(chain().pay("a", {"b": 1}).build())


def test_turning_the_dial_makes_it_worse() -> None:
    tidy, bad = (
        failures(load_transactions(Source.of(size="tiny", seed=3, disorder=setting), "train1", sampled=False))
        for setting in (0.0, 2.0)
    )
    assert tidy["wrong"] == tidy["in_collapsed"] == tidy["FP"] == 0
    assert tidy["precision"] == 1
    assert bad["wrong"] > 0
    assert bad["precision"] < 1
    assert bad["FP"] > 0
    assert sum(bad[name] for name in ("TP", "FP", "FN", "TN")) == pytest.approx(100)


# --- how often rules fire ---

CENT = HeuristicConfig(price_usd=10_000.0)  # a round amount ends with four zeros


def payments() -> Transactions:
    """A coinbase and four payments: a plain one to a reused shop, a round one, one of two inputs, one with return."""
    return (
        chain()
        .coinbase(to="pool", value=50 * BTC)
        .pay([("a", 1_234_567)], {"shop": 999_999, "a2": 234_568})  # change: the shop is paid again
        .pay([("b", 1_234_567)], {"shop": 1_000_000, "b2": 234_567})  # round; nobody is paid again
        .pay([("c", 600), ("d", 700)], {"e": 1_200, "c2": 100})  # both inputs were needed
        .pay([("f", 900)], {"f": 400, "g": 500})  # pays itself back: no shape
        .build()
    )


def test_every_quantity_by_hand() -> None:
    found = rule_firing(payments(), CENT)
    assert list(found) == [*PER_THOUSAND, *CLUSTERS]
    quarter = 250.0  # one of four transactions that are no coinbase
    assert found["common_input fires"] == quarter
    assert found["shape of change"] == 2 * quarter
    assert found["change fires"] == quarter
    assert found["round_value fires"] == quarter
    assert found["shape of forced_merge"] == quarter
    assert found["forced_merge fires"] == quarter
    assert found["clusters of two or more"] == 3 * quarter
    assert found["largest cluster"] == 3  # c, d, c2
    assert found["addresses in them, %"] == pytest.approx(100 * 7 / payments().num_addresses)


def test_unknown_values_silence_forced_merge_only() -> None:
    txs = payments()
    hidden = replace(txs, inputs=txs.inputs.assign(value=-1), transactions=txs.transactions.assign(fee=-1))
    known, unknown = rule_firing(txs, CENT), rule_firing(hidden, CENT)
    assert np.isnan(unknown["forced_merge fires"])
    assert {name: unknown[name] for name in PER_THOUSAND[:-1]} == {name: known[name] for name in PER_THOUSAND[:-1]}


def test_blocks_far_apart_compare() -> None:
    """What is called comparable does not change when a chain is cut into single blocks."""
    txs = simulate(SimulationConfig(blocks=20, transactions_per_block=12, users=150, exchanges=6, merchants=6, pools=2))
    block = txs.transactions["block_number"].to_numpy()
    parts = [txs.select(block == height) for height in np.unique(block)]
    weight = np.array([(~part.transactions["is_coinbase"]).sum() for part in parts])
    whole = rule_firing(txs)
    for name in COMPARABLE[:-1]:  # forced_merge is scaled to known values, of which every simulated one is
        rates = np.array([rule_firing(part)[name] for part in parts])
        assert whole[name] == pytest.approx((rates * weight).sum() / weight.sum()), name


def test_nothing_comes_later_in_one_block() -> None:
    txs = at_once(payments())
    assert set(txs.transactions["block_number"]) == {payments().transactions["block_number"].iloc[0]}
    assert heuristic_merges(txs, ["change"]).empty
