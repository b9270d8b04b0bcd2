"""The file of the simulator's numbers: each has a source and a meaning, and names refer to what exists."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from btcnb.data.simulator.parameters import ERAS, FILE, MECHANISMS, PROGRAM_NUMBER, PROGRAMS, numbers

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
