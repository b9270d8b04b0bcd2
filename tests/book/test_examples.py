"""Examples are found in whatever transactions are at hand."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from btcnb.book.examples import GREY, example_payment, owner_names, payer_shades, plain_shape, uneven_payment
from btcnb.data import load_split_transactions

sys.path.insert(0, str(Path(__file__).parents[1] / "data"))
from builders import BTC, chain, ids


@pytest.fixture(scope="module")
def simulated():
    return load_split_transactions("train1", "tiny")


def test_with_truth_a_round_payment_is_shown(simulated):
    tx = example_payment(simulated)
    change = simulated.truth.change[tx]
    paid = simulated.outputs.loc[simulated.outputs["tx"] == tx, "value"].tolist()
    assert len(paid) == 2
    assert paid[1 - change] % 100_000 == 0


def test_without_truth_any_payment_of_that_shape_will_do(simulated):
    blind = replace(simulated, truth=None)
    tx = example_payment(blind)
    assert plain_shape(blind, 2, 2)[tx]
    assert set(payer_shades(blind, tx, "blue", "orange")) == {GREY}
    assert owner_names(blind)[0] == blind.addresses[0]


def test_a_chain_of_coinbases_has_an_example_too():
    txs = chain().coinbase(to="a", value=BTC).coinbase(to="b", value=BTC).build()
    assert example_payment(txs) in (0, 1)
    assert set(payer_shades(txs, 0, "blue", "orange")) == {GREY}


def test_owners_give_names_and_colours():
    txs = chain().pay(["a", "a2"], {"shop": BTC, "a3": BTC}).owners(ann="a a2 a3", shop="shop").build()
    shades = payer_shades(txs, 0, "blue", "orange")
    assert {name: shades[place] for name, place in ids(txs).items()} == {
        "a": "blue", "a2": "blue", "a3": "blue", "shop": "orange"
    }  # fmt: skip
    assert len(np.unique(owner_names(txs).astype(str))) == 2
    assert plain_shape(txs, 2, 2).tolist() == [True]


def test_an_uneven_payment_shows_how_inputs_share_an_output():
    even = chain().pay([("a", 5), ("b", 5)], {"c": 4, "d": 6})
    assert uneven_payment(even.build()) == 0
    assert uneven_payment(even.pay([("e", 9), ("f", 3)], {"g": 4, "h": 8}).build()) == 1
    assert uneven_payment(chain().pay(["a", "b"], {"c": 4}).build()) is None
