"""The nine features of an output by hand, and the rows they make beside the votes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from builders import chain

from btcnb.data.change_votes import (
    COLUMNS,
    EXTRA,
    HEURISTICS,
    UNIVERSAL,
    UNIVERSAL_COLUMNS,
    change_votes,
    extra_features,
    has_vote,
    output_rows,
    universal,
)
from btcnb.errors import DataError, ParameterError


def test_there_are_35_inputs_and_18_without_spending_transactions() -> None:
    assert (len(COLUMNS), len(EXTRA), len(UNIVERSAL_COLUMNS)) == (35, 9, 18)
    assert COLUMNS[: len(HEURISTICS)] == HEURISTICS
    assert (*UNIVERSAL, *EXTRA) == UNIVERSAL_COLUMNS


def test_nine_features_by_hand() -> None:
    story = chain(start_block=2016, types={"a": "pubkeyhash", "b": "witness_v0_keyhash"})
    txs = story.pay([("a", 50), ("b", 60)], {"x": 25, "y": 75}, version=1, lock_time=7, virtual_size=4).build()
    found = dict(zip(EXTRA, extra_features(txs, np.array([0])).T.tolist(), strict=True))
    assert found == {
        "value_share": [0.25, 0.75],
        "output_index": [0, 1],
        "fee_per_byte": [2, 2],  # 10 // 4
        "output_total": [100, 100],
        "version": [1, 1],
        "segwit": [1, 1],  # one input has a witness
        "locktime": [1, 1],
        "inputs": [2, 2],
        "epoch": [2, 2],  # 2016 // 1008
    }


def test_what_is_not_told_is_minus_one_and_nothing_is_nan() -> None:
    txs = chain(types={"u": "unknown"}).pay([("u", 9)], {"x": 0, "y": 0}).build()
    hidden = replace(txs, transactions=txs.transactions.assign(fee=-1))
    found = dict(zip(EXTRA, extra_features(hidden, np.array([0])).T.tolist(), strict=True))
    assert found["fee_per_byte"] == found["segwit"] == [-1, -1]
    assert found["value_share"] == [0.5, 0.5]  # both are worth nothing


def test_rows_hold_signed_votes_and_features() -> None:
    txs = chain().pay("a", {"x": 5_000, "y": 1_234_567}).pay("b", {"p": 11, "q": 13}).build()
    votes = change_votes(txs)
    rows = output_rows(txs, votes)
    assert rows.shape == (4, 35) and rows.dtype == np.float32
    assert rows[:, COLUMNS.index("power_of_ten_3")].tolist() == [-1, 1, 0, 0]
    assert has_vote(rows).tolist() == [True, True, False, False]
    assert has_vote(rows, ("address_type",)).tolist() == [False] * 4
    assert universal(rows).shape == (4, 18)
    assert universal(rows)[:, -9:].tolist() == rows[:, -9:].tolist()
    assert np.isfinite(rows).all()


def test_a_chain_without_two_outputs_has_no_rows() -> None:
    txs = chain().coinbase("m").pay("a", {"b": 1}).build()
    assert output_rows(txs, change_votes(txs)).shape == (0, 35)


def test_bad_input_is_named() -> None:
    txs = chain().pay("a", {"b": 1}).pay("c", {"x": 1, "y": 1}).build()
    with pytest.raises(ParameterError, match="not two outputs"):
        extra_features(txs, np.array([0]))
    for outside in (-1, 2):
        with pytest.raises(ParameterError, match="outside 0 to 1"):
            extra_features(txs, np.array([outside]))
    with pytest.raises(ParameterError, match="must be a ChangeVotes"):
        output_rows(txs, None)  # type: ignore[arg-type]
    hidden = replace(txs, outputs=txs.outputs.assign(value=-1))
    with pytest.raises(DataError, match=r"outputs\.value"):
        extra_features(hidden, np.array([1]))
