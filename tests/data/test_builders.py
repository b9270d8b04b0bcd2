"""The scenario builder itself: a story with amounts one can add up by hand."""

from __future__ import annotations

import pytest
from builders import BTC, chain, groups, ids


def test_a_payment_spends_the_coin_and_leaves_the_fee():
    txs = chain().coinbase(to="pool", value=50 * BTC).pay("pool", {"alice": 20 * BTC, "pool2": 29 * BTC}).build()
    assert list(txs.addresses) == ["pool", "alice", "pool2"]
    assert txs.transactions["fee"].tolist() == [0, BTC]
    assert txs.transactions["block_number"].tolist() == [100, 101]
    assert txs.inputs["spent_output"].tolist() == [0]
    assert txs.spent_by().tolist() == [1, -1, -1]
    assert txs.truth is None


def test_a_name_without_coins_is_funded_from_outside():
    txs = chain().pay(["a", "b"], {"c": 3, "d": 2}, fee=2).build()
    assert txs.inputs["value"].tolist() == [4, 3]
    assert txs.inputs["spent_output"].tolist() == [-1, -1]
    assert txs.inputs["spent_transaction_hash"].notna().all()
    assert txs.transactions["fee"].tolist() == [2]


def test_outside_coins_repeated_outputs_op_return_and_sweep():
    txs = chain().pay([("a", 9)], [("b", 4), ("b", 4), (None, 0)]).sweep("b", "c", fee=1).build()
    assert txs.outputs["address"].tolist() == [1, 1, -1, 2]
    assert txs.inputs["value"].tolist() == [9, 4, 4]
    assert txs.transactions["fee"].tolist() == [1, 1]
    assert txs.outputs["value"].iloc[-1] == 7


def test_blocks_owners_and_groups():
    txs = (
        chain(start_block=7)
        .coinbase("m")
        .pay("m", {"a": 1, "b": 2}, block="same", coinjoin="wasabi2", change=1)
        .pay("a", {"c": 1}, block=20)
        .owners(alice="a c", miner=["m"])
        .build()
    )
    assert list(zip(txs.transactions["block_number"], txs.transactions["index"], strict=True)) == [
        (7, 0),
        (7, 1),
        (20, 1),
    ]
    assert txs.truth is not None
    assert groups(txs, txs.truth.owner) == {frozenset("ac"), frozenset("m"), frozenset("b")}
    assert txs.truth.coinjoin.tolist() == ["", "wasabi2", ""]
    assert txs.truth.change.tolist() == [-1, 1, -1]
    assert ids(txs)["c"] == 3


def test_a_payment_that_does_not_add_up_is_refused():
    with pytest.raises(ValueError, match="inputs hold 3, outputs need 5"):
        chain().pay([("a", 3)], {"b": 5})
    with pytest.raises(ValueError, match="not after"):
        chain(5).coinbase("a").coinbase("b", block=5)
