"""The rules that every chain keeps: a chain that keeps them, and chains that break one each."""

from dataclasses import replace

import numpy as np
import pytest
from builders import BTC, chain

from btcnb.data import Source, load_transactions
from btcnb.data.chain_measures import ledger_rules, satoshi_per_transaction, spends
from btcnb.data.intervals import subsidy


@pytest.fixture(scope="module")
def simulated():
    return load_transactions(Source(size="tiny"), "train1", sampled=False)


def test_a_simulated_chain_keeps_them_all(simulated):
    table = ledger_rules(simulated)
    assert (table["violations"] == 0).all()
    assert (table["checked"] > 0).all()
    assert len(ledger_rules(simulated, whole_blocks=False)) == len(table) - 1


def test_a_fee_that_does_not_fit_is_counted_once(simulated):
    wrong = simulated.transactions.copy()
    place = int(np.flatnonzero(~wrong["is_coinbase"])[3])
    wrong.loc[place, "fee"] += 1
    found = ledger_rules(replace(simulated, transactions=wrong)).set_index("rule")["violations"]
    assert found["inputs = outputs + fee"] == 1
    assert found["coinbase = subsidy + fees of its block"] == 1


def test_what_the_source_does_not_tell_is_not_checked():
    txs = chain().coinbase(to="pool", value=50 * BTC).pay("pool", {"ann": 50 * BTC}).build()
    inputs = txs.inputs.assign(value=-1)
    table = ledger_rules(replace(txs, inputs=inputs), whole_blocks=False).set_index("rule")
    assert table.loc["inputs = outputs + fee"].tolist() == [0, 0]
    assert satoshi_per_transaction(replace(txs, inputs=inputs))[0].tolist() == [0, -1]


def test_a_coin_spent_before_it_exists_and_one_spent_twice():
    txs = chain().coinbase(to="a", value=BTC).pay("a", {"b": BTC}).pay("b", {"c": BTC}).build()
    assert [side.tolist() for side in spends(txs)] == [[0, 1], [1, 2]]
    early = txs.inputs.assign(spent_output=[2, 2])  # both spend the last output, one of them before it is made
    table = ledger_rules(replace(txs, inputs=early), whole_blocks=False).set_index("rule")["violations"]
    assert table["no output is spent twice"] == 1
    assert table["no coin is spent before it exists"] == 2


def test_subsidies_halve():
    assert subsidy([0, 209_999, 210_000, 630_000]).tolist() == [50 * BTC, 50 * BTC, 25 * BTC, 625_000_000]
