"""What a chain looks like from outside: shares worked out by hand, the table of real blocks, and real blocks again."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from builders import BTC, RBF, chain

from btcnb.data import Source, load_transactions
from btcnb.data import chain_measures as measures
from btcnb.data.intervals import SPLITS, subsidy
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


def test_a_chain_of_coinbases_has_nothing_to_count() -> None:
    found = measures.chain_measures(chain().coinbase(to="pool").build())
    assert np.isnan(found["inputs a transaction, mean"])
    assert np.isnan(found[measures.round_name(2)])
    of_two = [value for name, value in found.items() if name.startswith("of 2-output")]
    assert len(of_two) == 30 and np.isnan(of_two).all(), "no number stands for a share of nothing"


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


def test_tails_by_hand(found: dict[str, float]) -> None:
    assert [found[measures.tail_name("outputs", least)] for least in measures.TAIL] == [75, 25, 0, 0, 0, 0, 0, 0, 0]
    assert [found[measures.tail_name("inputs", least)] for least in measures.TAIL] == [50, 25, 0, 0, 0, 0, 0, 0, 0]


def test_a_witness_shows_by_its_type_or_by_bytes_that_weigh_less() -> None:
    payment = [("a", 10)], {"b": 4, "c": 6}
    assert measures.has_witness(chain().pay(*payment).build()).all()
    assert not measures.has_witness(chain(default_type="pubkeyhash").pay(*payment).build()).any()
    wrapped = chain(default_type="scripthash").pay(*payment, size=247, virtual_size=166).build()
    assert measures.has_witness(wrapped).all()


def test_tails_of_real_blocks_fall_and_agree_with_the_shapes() -> None:
    for year in measures.YEARS:
        real = measures.real_chain(year)
        for side in ("inputs", "outputs"):
            tail = [real[measures.tail_name(side, least)] for least in measures.TAIL]
            assert tail == sorted(tail, reverse=True) and tail[-1] > 0
        assert real[measures.tail_name("outputs", 2)] == pytest.approx(100 - real[measures.SHAPES[0]], abs=1e-3)
        assert real[measures.tail_name("outputs", 3)] == pytest.approx(real[measures.SHAPES[2]], abs=1e-3)


# --- the rules that every chain keeps ---


@pytest.fixture(scope="module")
def simulated():
    return load_transactions(Source(size="tiny"), "train1", sampled=False)


def test_a_simulated_chain_keeps_them_all(simulated):
    table = measures.ledger_rules(simulated)
    assert (table["violations"] == 0).all()
    assert (table["checked"] > 0).all()
    assert len(measures.ledger_rules(simulated, whole_blocks=False)) == len(table) - 1


def test_a_fee_that_does_not_fit_is_counted_once(simulated):
    wrong = simulated.transactions.copy()
    place = int(np.flatnonzero(~wrong["is_coinbase"])[3])
    wrong.loc[place, "fee"] += 1
    found = measures.ledger_rules(replace(simulated, transactions=wrong)).set_index("rule")["violations"]
    assert found["inputs = outputs + fee"] == 1
    assert found["coinbase = subsidy + fees of its block"] == 1


def test_what_the_source_does_not_tell_is_not_checked():
    txs = chain().coinbase(to="pool", value=50 * BTC).pay("pool", {"ann": 50 * BTC}).build()
    inputs = txs.inputs.assign(value=-1)
    table = measures.ledger_rules(replace(txs, inputs=inputs), whole_blocks=False).set_index("rule")
    assert table.loc["inputs = outputs + fee"].tolist() == [0, 0]
    assert measures.satoshi_per_transaction(replace(txs, inputs=inputs))[0].tolist() == [0, -1]


def test_a_coin_spent_before_it_exists_and_one_spent_twice():
    txs = chain().coinbase(to="a", value=BTC).pay("a", {"b": BTC}).pay("b", {"c": BTC}).build()
    assert [side.tolist() for side in measures.spends(txs)] == [[0, 1], [1, 2]]
    early = txs.inputs.assign(spent_output=[2, 2])  # both spend the last output, one of them before it is made
    table = measures.ledger_rules(replace(txs, inputs=early), whole_blocks=False).set_index("rule")["violations"]
    assert table["no output is spent twice"] == 1
    assert table["no coin is spent before it exists"] == 2


def test_subsidies_halve():
    assert subsidy([0, 209_999, 210_000, 630_000]).tolist() == [50 * BTC, 50 * BTC, 25 * BTC, 625_000_000]
