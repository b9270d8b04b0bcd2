"""How often rules fire, counted by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from builders import BTC, chain

from btcnb.data import HeuristicConfig, SimulationConfig, Transactions, heuristic_merges, simulate
from btcnb.data.firing import CLUSTERS, COMPARABLE, PER_THOUSAND, at_once, rule_firing

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
    assert txs.transactions["block_number"].nunique() == 1
    assert heuristic_merges(txs, ["change"]).empty
