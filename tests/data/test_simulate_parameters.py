"""The file of the simulator's numbers, and the marks that wallets are dealt from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from btcnb.data.simulator.parameters import (
    ANY,
    CHANGE_TO_MAIN,
    ERAS,
    FILE,
    MECHANISM_NUMBER,
    MECHANISMS,
    P2PKH,
    P2SH_P2WPKH,
    PROGRAM_NUMBER,
    PROGRAMS,
    WITNESS_BYTES,
    numbers,
)
from btcnb.data.simulator.tables import SCRIPT_TYPE
from btcnb.data.simulator.wallets import (
    HABITS,
    OTHER_SCRIPT,
    deal,
    draw_user_programs,
    program_habits,
    wallet_habits,
    with_marks,
    with_mechanisms,
)

WORLD: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))


def test_every_number_has_a_source_and_a_meaning() -> None:
    for section, entries in WORLD["numbers"].items():
        for name, entry in entries.items():
            if name != "source":
                assert set(entry) <= {"value", "source", "words"}, (section, name)
                assert entry.get("source", entries["source"]) in WORLD["sources"], (section, name)
                assert entry["words"], (section, name)
    for table in ("programs", "eras"):
        assert WORLD[table]["source"] in WORLD["sources"]
    assert all(mechanism.source for mechanism in MECHANISMS)


def test_every_source_is_cited() -> None:
    cited = {WORLD["programs"]["source"], WORLD["eras"]["source"]}
    cited |= {entry["source"] for entry in WORLD["mechanisms"].values()}
    for entries in WORLD["numbers"].values():
        cited |= {entries["source"], *(entry["source"] for entry in entries.values() if "source" in entry)}
    assert set(WORLD["sources"]) <= cited


def test_shares_of_programs_and_habits_are_shares() -> None:
    assert sum(program.share for program in PROGRAMS) == pytest.approx(1)
    assert all(0 <= program.reuse[0] <= program.reuse[1] <= 1 for program in PROGRAMS)
    assert sum(numbers("users").habits.values()) <= 1
    assert sum(numbers("whirlpool").popularity) == pytest.approx(1)


def test_names_of_programs_exist() -> None:
    exchanges, merchants = numbers("exchanges"), numbers("merchants")
    named = {name for programs in exchanges.hot_programs.values() for name in programs}
    named |= {name for programs in merchants.programs.values() for name in programs}
    named |= {*exchanges.deposit_programs, *numbers("users").privacy_programs}
    assert named <= set(PROGRAM_NUMBER)
    styles = {*exchanges.largest, *exchanges.large, *exchanges.small, *exchanges.custodian_styles}
    assert styles <= set(exchanges.hot_programs) == set(exchanges.batch_most)


def test_eras_follow_one_another() -> None:
    firsts = [era.first_block for era in ERAS.values()]
    assert firsts == sorted(firsts) and firsts[0] == 0


# marks of wallets ---------------------------------------------------------------------------------------------------

KEPT = [name for name in HABITS.names or () if name not in ("version", "locktime", "rbf", "script")]
"""Habits that are the program's."""

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
    dealt = deal(np.random.default_rng(0), np.ones(10), np.array([0.5, 0.5]), held=np.array([10.0, 0.0]))
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
    marks = np.column_stack([rows["version"], rows["locktime"], rows["rbf"], WITNESS_BYTES[rows["script"]] > 0])
    held = [weight[(marks == np.array(kind)).all(axis=1)].sum() / weight.sum() for kind in kinds]
    assert held == pytest.approx(expected, abs=0.02)
    assert np.array_equal(rows[KEPT], program_habits()[programs][KEPT])


def test_coinjoin_wallets_keep_their_own_marks_and_tills_hand_out_every_type() -> None:
    rng = np.random.default_rng(2)
    names = ["wasabi", "samourai", "joinmarket", "deposits", "home", "web-legacy"]
    programs = np.array([PROGRAM_NUMBER[name] for name in names])
    rows = wallet_habits(rng, ERAS["2020"], programs, np.ones(len(names)))
    own = [place for place, program in enumerate(programs) if PROGRAMS[program].marked]
    assert own == [0, 1, 2]
    assert np.array_equal(rows[own], program_habits()[programs[own]])
    assert (rows["script"] == ANY).tolist() == [False, False, False, True, True, False]


def test_a_careless_wallet_changes_one_habit() -> None:
    rows = program_habits()[[PROGRAM_NUMBER["web-legacy"]] * 5]
    names = ["", "fixed-change", "fee-from-payee", "overspending", "other-change-type"]
    habits = with_mechanisms(rows, np.array([MECHANISM_NUMBER[name] for name in names]))
    differs = [[n for n in HABITS.names or () if new[n] != old[n]] for new, old in zip(habits, rows, strict=True)]
    assert differs == [[], ["change"], ["payee_pays_fee"], ["least_inputs"], ["change_script"]]
    assert habits["change"][1] == CHANGE_TO_MAIN
    assert habits["change_script"][4] == OTHER_SCRIPT[P2PKH] == P2SH_P2WPKH


def test_the_other_type_of_change_shows_on_the_chain() -> None:
    for script, other in enumerate(OTHER_SCRIPT):
        assert SCRIPT_TYPE[script] != SCRIPT_TYPE[other]


def test_new_marks_leave_everything_else_alone() -> None:
    rows = program_habits()[[PROGRAM_NUMBER["single-address"]] * 300]
    habits = with_marks(np.random.default_rng(0), ERAS["2021"], rows, np.ones(300))
    assert np.array_equal(habits[KEPT], rows[KEPT])
    assert len(np.unique(habits["version"])) == 2
