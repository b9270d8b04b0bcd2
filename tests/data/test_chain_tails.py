"""What a chain looks like from outside, by hand: shapes, marks, tails; and the table of real blocks."""

from __future__ import annotations

import pytest
from builders import RBF, chain

from btcnb.data.chain_measures import (
    MARKS,
    PAID_BACK,
    SHAPES,
    TAIL,
    YEARS,
    any_input,
    chain_measures,
    has_witness,
    real_chain,
    tail_name,
)


def test_shapes_and_marks_by_hand() -> None:
    txs = (
        chain()
        .coinbase()
        .pay([("a", 10)], {"b": 4, "c": 6}, version=1, lock_time=99)
        .pay([("d", 5), ("e", 5)], {"f": 4, "d": 6}, sequence=RBF)
        .pay([("h", 5)], {"i": 5})
        .pay([("j", 9)], {"k": 3, "l": 3, "m": 3})
        .build()
    )
    found = chain_measures(txs)
    assert [found[name] for name in (*SHAPES, *MARKS)] == [25, 50, 25, 50, 50, 0, 50, 50, 50, 100]
    assert found[PAID_BACK] == 50
    assert [found[tail_name("outputs", least)] for least in TAIL] == [75, 25, 0, 0, 0, 0, 0, 0, 0]
    assert [found[tail_name("inputs", least)] for least in TAIL] == [25, 0, 0, 0, 0, 0, 0, 0, 0]
    assert any_input(txs, (txs.inputs["value"] == 9).to_numpy()).tolist() == [False, False, False, False, True]


def test_a_witness_shows_by_its_type_or_by_bytes_that_weigh_less() -> None:
    payment = [("a", 10)], {"b": 4, "c": 6}
    assert has_witness(chain().pay(*payment).build()).all()
    assert not has_witness(chain(default_type="pubkeyhash").pay(*payment).build()).any()
    wrapped = chain(default_type="scripthash").pay(*payment, size=247, virtual_size=166).build()
    assert has_witness(wrapped).all()


def test_tails_of_real_blocks_fall_and_agree_with_the_shapes() -> None:
    for year in YEARS:
        real = real_chain(year)
        for side in ("inputs", "outputs"):
            tail = [real[tail_name(side, least)] for least in TAIL]
            assert tail == sorted(tail, reverse=True) and tail[-1] > 0
        assert real[tail_name("outputs", 2)] == pytest.approx(100 - real[SHAPES[0]], abs=1e-3)
        assert real[tail_name("outputs", 3)] == pytest.approx(real[SHAPES[2]], abs=1e-3)
