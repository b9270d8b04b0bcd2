"""Small pieces of a chain are what `select` gives."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pandas as pd
from builders import chain, ids
from hypothesis import given, settings
from hypothesis import strategies as st

from btcnb.data import SimulationConfig, Transactions, local_samples, sample_around, simulate
from btcnb.data.sampling import Surroundings
from btcnb.data.transactions import Cutter


def assert_same(left: Transactions, right: Transactions) -> None:
    for name in ("transactions", "inputs", "outputs"):
        pd.testing.assert_frame_equal(getattr(left, name), getattr(right, name))
    assert left.addresses.tolist() == right.addresses.tolist()
    assert left.source == right.source
    assert (left.truth is None) == (right.truth is None)
    if left.truth is not None and right.truth is not None:
        for field in fields(left.truth):
            if field.name != "entities":
                assert np.array_equal(getattr(left.truth, field.name), getattr(right.truth, field.name))
    assert left.fingerprint() == right.fingerprint()


CHAIN = simulate(SimulationConfig.preset("tiny", seed=3))


@settings(max_examples=40)
@given(st.sets(st.integers(0, len(CHAIN) - 1), max_size=60))
def test_a_piece_is_the_selection_of_its_transactions(chosen: set[int]) -> None:
    wanted = np.array(sorted(chosen), dtype=np.int64)
    piece = Cutter.of(CHAIN).cut(wanted)
    assert_same(piece.txs, CHAIN.select(wanted))
    assert piece.txs.addresses.tolist() == CHAIN.addresses[piece.addresses].tolist()
    assert piece.transactions.tolist() == wanted.tolist()


def test_a_lost_parent_leaves_its_hash_and_op_return_no_address() -> None:
    txs = (
        chain()
        .coinbase("a", value=9, hash="cb")
        .pay("a", [("b", 5), (None, 0), ("c", 4)], hash="t1")
        .pay("c", {"d": 4}, hash="t2")
        .build()
    )
    piece = Cutter.of(txs).cut(np.array([1]))
    assert piece.txs.inputs["spent_transaction_hash"].tolist() == ["cb"]
    assert piece.txs.inputs["spent_output"].tolist() == [-1]
    assert piece.txs.outputs["address"].tolist() == [1, -1, 2]
    assert piece.addresses.tolist() == [ids(txs)[name] for name in "abc"]
    assert_same(piece.txs, txs.select(np.array([1])))


def test_local_samples_are_those_of_each_seed_alone() -> None:
    rng = np.random.default_rng(0)
    seeds = rng.choice(len(CHAIN), 25, replace=False).tolist()
    for limits in ({}, {"depth": 2, "max_expanded": 3, "seed": 5}, {"max_expanded": 2, "keep_unexpanded": True}):
        for start, local in zip(seeds, local_samples(CHAIN, seeds, **limits), strict=True):
            assert_same(local, sample_around(CHAIN, start, **limits))


def test_seeds_keep_their_order_and_may_be_hashes() -> None:
    story = chain().coinbase("n0", value=5, hash="cb")
    for n in range(1, 9):
        story.pay(f"n{n - 1}", {f"n{n}": 5}, hash=f"t{n}")
    found = [local.transactions["hash"].tolist() for local in local_samples(story.build(), ["t7", 1, "t7"], depth=1)]
    assert found == [["t6", "t7", "t8"], ["cb", "t1", "t2"], ["t6", "t7", "t8"]]


def test_surroundings_know_where_they_came_from() -> None:
    around = Surroundings.of(CHAIN, seed=2)
    piece = around.piece(40)
    assert 40 in piece.transactions
    assert piece.transactions.tolist() == around.ids(40).tolist()
    assert CHAIN.transactions["hash"].to_numpy()[piece.transactions].tolist() == piece.txs.transactions["hash"].tolist()
