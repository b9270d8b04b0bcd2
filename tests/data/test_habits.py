"""Marks dealt to wallets: shares come out by weight, whatever the weights are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from btcnb.data.simulate.disorder import NUMBER as MECHANISM
from btcnb.data.simulate.eras import ERAS
from btcnb.data.simulate.habits import OTHER_SCRIPT, careless, deal, marked, wallet_habits
from btcnb.data.simulate.programs import (
    CHANGE,
    CHANGE_SCRIPT,
    CHANGE_TO_MAIN,
    LEAST,
    LOCKTIME,
    NUMBER,
    PAYEE_PAYS,
    PROGRAMS,
    RBF,
    SCRIPT,
    VERSION,
    draw_user_programs,
    program_table,
)
from btcnb.data.simulate.scripts import ANY, P2PKH, P2SH_P2WPKH, SCRIPT_TYPE, WITNESS_BYTES

weights = st.lists(st.floats(0.001, 10.0), min_size=1, max_size=60).map(np.array)
shares = st.lists(st.floats(0.01, 1.0), min_size=1, max_size=6).map(lambda values: np.array(values) / sum(values))


@given(weights, shares, st.integers(0, 1000))
def test_no_category_gets_more_than_its_share_and_one_wallet(weight: np.ndarray, share: np.ndarray, seed: int) -> None:
    dealt = deal(np.random.default_rng(seed), weight, share)
    held = np.bincount(dealt, weights=weight, minlength=len(share))
    assert dealt.min() >= 0 and dealt.max() < len(share)
    assert (held <= share * weight.sum() + weight.max() + 1e-9).all()


def test_many_wallets_have_the_shares_to_a_thousandth() -> None:
    rng = np.random.default_rng(0)
    weight = rng.pareto(1.2, 5_000) + 0.1
    share = np.array([0.5, 0.3, 0.15, 0.04, 0.01])
    held = np.bincount(deal(rng, weight, share), weights=weight, minlength=5) / weight.sum()
    assert held == pytest.approx(share, abs=0.02)


def test_what_others_hold_already_is_taken_into_account() -> None:
    """Two categories of equal share, ten wallets of weight 1; ten of the first are held: all go to the second."""
    dealt = deal(np.random.default_rng(0), np.ones(10), np.array([0.5, 0.5]), taken=np.array([10.0, 0.0]))
    assert dealt.tolist() == [1] * 10


def test_a_large_wallet_does_not_go_where_it_would_not_fit() -> None:
    """Half of its weight must be missing: a wallet with 60 % of all is not dealt a mark of 10 %."""
    weight = np.array([6.0, *np.full(40, 0.1)])
    for seed in range(20):
        assert deal(np.random.default_rng(seed), weight, np.array([0.1, 0.9]))[0] == 1


@pytest.mark.parametrize("year", list(ERAS))
def test_wallets_have_the_marks_of_their_year(year: str) -> None:
    rng, era = np.random.default_rng(1), ERAS[year]
    programs = draw_user_programs(rng, 4_000)
    weight = rng.pareto(1.6, 4_000) + 0.3
    rows = wallet_habits(rng, era, programs, weight)
    kinds, expected = era.marks()
    marks = np.column_stack([rows[:, [VERSION, LOCKTIME, RBF]], WITNESS_BYTES[rows[:, SCRIPT]] > 0])
    held = [weight[(marks == np.array(kind)).all(axis=1)].sum() / weight.sum() for kind in kinds]
    assert held == pytest.approx(expected, abs=0.02)
    kept = [column for column in range(rows.shape[1]) if column not in (VERSION, LOCKTIME, RBF, SCRIPT)]
    assert np.array_equal(rows[:, kept], program_table()[programs][:, kept])  # the rest is the program's


def test_coinjoin_wallets_keep_their_own_marks_and_tills_hand_out_every_type() -> None:
    rng = np.random.default_rng(2)
    names = ["wasabi", "samourai", "joinmarket", "deposits", "home", "web-legacy"]
    programs = np.array([NUMBER[name] for name in names])
    rows = wallet_habits(rng, ERAS["2020"], programs, np.ones(len(names)))
    own = [place for place, program in enumerate(programs) if PROGRAMS[program].marked]
    assert own == [0, 1, 2]
    assert np.array_equal(rows[own], program_table()[programs[own]])
    assert (rows[:, SCRIPT] == ANY).tolist() == [False, False, False, True, True, False]


def test_a_careless_wallet_changes_one_habit() -> None:
    rows = program_table()[[NUMBER["web-legacy"]] * 5]
    names = ["", "fixed-change", "fee-from-payee", "overspending", "other-change-type"]
    told = careless(rows, np.array([MECHANISM[name] for name in names]))
    differs = [np.flatnonzero(new != old).tolist() for new, old in zip(told, rows, strict=True)]
    assert differs == [[], [CHANGE], [PAYEE_PAYS], [LEAST], [CHANGE_SCRIPT]]
    assert told[1, CHANGE] == CHANGE_TO_MAIN
    assert told[4, CHANGE_SCRIPT] == OTHER_SCRIPT[P2PKH] == P2SH_P2WPKH


def test_the_other_type_of_change_shows_on_the_chain() -> None:
    for script, other in enumerate(OTHER_SCRIPT):
        assert SCRIPT_TYPE[script] != SCRIPT_TYPE[other]


def test_new_marks_leave_everything_else_alone() -> None:
    rows = program_table()[[NUMBER["single-address"]] * 300]
    told = marked(np.random.default_rng(0), ERAS["2021"], rows, np.ones(300))
    kept = [column for column in range(rows.shape[1]) if column not in (VERSION, LOCKTIME, RBF, SCRIPT)]
    assert np.array_equal(told[:, kept], rows[:, kept])
    assert len(np.unique(told[:, VERSION])) == 2
