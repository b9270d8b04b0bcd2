"""What a chain looks like from outside: shares worked out by hand, the table of real blocks, and real blocks again."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from builders import BTC, RBF, chain

from btcnb.data import chain_measures as measures
from btcnb.data.intervals import SPLITS
from btcnb.data.readers.blocks import read_blocks
from btcnb.data.simulator.parameters import ERAS
from btcnb.errors import ParameterError

PROJECT = Path(__file__).parents[2]
BLOCKS = Path(os.environ.get("BTCNB_REAL_DATA") or "no-real-data") / "mainnet-blocks"
TYPES = {"a": "pubkeyhash", "a2": "pubkeyhash", "shop": "scripthash", "w": "witness_v0_keyhash", "w2": "pubkeyhash"}


@pytest.fixture(scope="module")
def found() -> dict[str, float]:
    """A coinbase, which does not count, and four payments: two of two outputs, one of one, one of three."""
    txs = (
        chain(types=TYPES)
        .coinbase(to="pool", value=50 * BTC)
        # version 1, no marks, legacy; 0.3 bitcoin is round to 7 zeros, the rest is not
        .pay([("a", 50_000_777)], {"shop": 30_000_000, "a2": 20_000_000 + 277}, version=1)
        # version 2, lock time, RBF, SegWit; two inputs, the input address is paid back, nothing is round
        .pay([("w", 600_001), ("w", 700_001)], {"w": 900_001, "shop": 300_001}, lock_time=9, sequence=RBF, block="same")
        # one output
        .pay([("a", 400_000), ("a2", 1), ("w", 2)], {"shop": 400_000})
        # three outputs, one an OP_RETURN; shop is paid twice in this block
        .pay([("a", 90_000)], [("shop", 1_000), (None, 0), ("w2", 2_000)], block="same")
        .build()
    )
    return measures.chain_measures(txs)


def test_shapes_by_hand(found: dict[str, float]) -> None:
    assert [found[name] for name in measures.SHAPES] == [25.0, 50.0, 25.0, 50.0, 50.0, 0.0]
    assert found["inputs a transaction, mean"] == (1 + 2 + 3 + 1) / 4
    assert found["outputs a transaction, mean"] == (2 + 2 + 1 + 3) / 4
    assert found["inputs a transaction, 99th percentile"] == pytest.approx(2.97)  # 2 and 3, 97 % of the way


def test_marks_by_hand(found: dict[str, float]) -> None:
    assert [found[name] for name in measures.MARKS] == [50.0, 50.0, 50.0, 50.0]
    assert found[measures.PAID_BACK] == 50.0
    prints = {name: value for name, value in found.items() if ": marks " in name}
    assert len(prints) == 16
    assert {name for name, value in prints.items() if value} == {
        measures.fingerprint_name(False, False, False, False),
        measures.fingerprint_name(True, True, True, True),
    }


def test_roundness_by_hand(found: dict[str, float]) -> None:
    """One of two payments has exactly one round output, to the seventh zero."""
    assert [found[measures.round_name(zeros)] for zeros in measures.ZEROS] == [50.0] * 6


def test_types_notes_and_reuse_by_hand(found: dict[str, float]) -> None:
    outputs = [found[measures.type_name("outputs", name)] for name in measures.SHOWN_TYPES]
    assert outputs == [25.0, 50.0, 12.5, 0.0]  # of 8: a2 and w2, shop four times, w, none; one OP_RETURN
    inputs = [found[measures.type_name("inputs", name)] for name in measures.SHOWN_TYPES]
    assert inputs == pytest.approx([400 / 7, 0.0, 300 / 7, 0.0])
    assert found[measures.op_return_name(2)] == 0.0
    assert found[measures.op_return_name(3)] == 25.0
    # payments to an address, the coinbase's included: 8; shop is paid twice in each of the two blocks
    assert found["outputs to an address paid twice in its block, %"] == pytest.approx(100 * 4 / 8)


def test_two_equally_round_outputs_do_not_tell() -> None:
    txs = chain().pay([("a", 300_000)], {"b": 100_000, "c": 200_000}).pay([("a", 30_100)], {"b": 20_000, "c": 10_100})
    found = measures.chain_measures(txs.build())
    assert [found[measures.round_name(zeros)] for zeros in measures.ZEROS] == [0.0, 50.0, 50.0, 0.0, 0.0, 0.0]


def test_a_wrapped_segwit_input_shows_by_its_weight() -> None:
    txs = (
        chain(default_type="scripthash")
        .pay([("a", 100)], {"b": 50, "c": 50}, size=250, virtual_size=168)
        .pay([("d", 100)], {"b": 50, "e": 50}, size=300, virtual_size=300)
    )
    assert measures.has_witness(txs.build()).tolist() == [True, False]


def test_a_chain_of_coinbases_has_nothing_to_count() -> None:
    found = measures.chain_measures(chain().coinbase(to="pool").build())
    assert np.isnan(found["inputs a transaction, mean"])
    assert np.isnan(found[measures.round_name(2)])
    assert np.isnan([value for name, value in found.items() if ": marks " in name]).all()


def test_the_table_of_real_blocks_is_complete(found: dict[str, float]) -> None:
    for year in measures.YEARS:
        real = measures.real_chain(year)
        assert set(real) == set(found)
        assert sum(real[name] for name in measures.SHAPES[:3]) == pytest.approx(100, abs=0.01)
        assert sum(real[name] for name in measures.SHAPES[3:]) == pytest.approx(100, abs=0.01)
        assert sum(value for name, value in real.items() if ": marks " in name) == pytest.approx(100, abs=0.01)
        shown = sum(real[measures.type_name("outputs", name)] for name in measures.SHOWN_TYPES)
        assert 88 < shown <= 100  # the rest is OP_RETURN and what nobody uses
        assert all(0 <= value <= 100 for name, value in real.items() if name.endswith("%"))
        marks = sum(value for name, value in real.items() if ": marks " in name and "SegWit" in name)
        assert marks == pytest.approx(real[measures.MARKS[3]], abs=0.01)
    assert measures.real_chain(2020) == measures.real_chain("2020")


def test_fee_rates_of_the_intervals_are_those_of_real_blocks() -> None:
    for name, split in SPLITS.items():
        assert split.fee_rate == round(measures.real_chain(name)[measures.FEE_RATE], 1)


def test_unknown_periods_are_refused() -> None:
    with pytest.raises(ParameterError, match="2019, 2020, 2021"):
        measures.real_chain("1999")


@pytest.mark.filterwarnings("ignore")  # what the reader finds remarkable in these blocks is tested with the reader
@pytest.mark.skipif(not BLOCKS.is_dir(), reason=f"real blocks not found at {BLOCKS}; set BTCNB_REAL_DATA")
def test_real_blocks_of_2019_give_the_numbers_of_the_table() -> None:
    txs = read_blocks(BLOCKS, end=ERAS["2020"].first_block - 1, missing="ignore", progress=False)
    year = pd.to_datetime(txs.transactions["block_timestamp"], unit="s").dt.year.to_numpy()
    assert measures.chain_measures(txs.select(year == 2019)) == pytest.approx(measures.real_chain("2019"), rel=1e-5)
