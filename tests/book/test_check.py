"""Self-checks: right answers in every form, wrong ones with the reason, and nothing given away."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from btcnb.book import checking
from btcnb.book.checking import CheckError, check, judgement, solved
from btcnb.book.exercises import seals, ways
from btcnb.book.exercises.rule import Check
from btcnb.book.exercises.spoil import spoiled
from btcnb.book.small_chain import small_chain
from btcnb.data import heuristic_clusters
from btcnb.errors import ParameterError


@pytest.mark.parametrize("answer", [7.5, np.float32(7.5), np.array([7.5]), np.array(7.5), pd.Series([7.5]), 7.501])
def test_a_number_in_any_form(answer: Any) -> None:
    assert ways.number(answer, 7.5) == ""


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (8.0, "too large"),
        (7.0, "too small"),
        (80.0, "far too large"),
        (-7.5, "sign"),
        (750, "per cent, where a share"),
        (0.075, "a share, where per cent"),
        (7.5e8, "satoshi, where bitcoin"),
        (7.5e-8, "bitcoin, where satoshi"),
    ],
)
def test_how_a_number_is_wrong(answer: float, words: str) -> None:
    assert words in ways.number(answer, 7.5)
    assert words in ways.numbers([1, answer], [1, 7.5])
    assert "number 2" in ways.numbers([1, answer], [1, 7.5])


@pytest.mark.parametrize("answer", ["7.5", None, True, [1, 2], float("nan"), {}, print])
def test_what_is_no_number(answer: Any) -> None:
    with pytest.raises(ways.MisreadError):
        ways.number(answer, 7.5)


def test_zero_is_right_only_if_it_is_zero() -> None:
    assert ways.number(0, 0) == ""
    assert ways.number(0.5, 0) == "too large"
    assert ways.number(-0.5, 0) == "too small"


def test_numbers_by_name_and_of_the_wrong_count() -> None:
    assert ways.numbers({"a": 1, "b": 2}, [1, 2]) == ""
    assert ways.numbers(pd.Series([1, 2]), [1, 2]) == ""
    assert "2 of 2 are wrong" in ways.numbers((3, 4), [1, 2])
    with pytest.raises(ways.MisreadError, match="2 numbers are wanted, not 3"):
        ways.numbers([1, 2, 3], [1, 2])


def test_names_in_any_order_and_case() -> None:
    assert ways.names(["B", " a"], {"a", "b"}) == ""
    assert ways.names({"a"}, {"a", "b"}) == "something is missing"
    assert ways.names({"a", "b", "c"}, {"a", "b"}) == "one entry does not belong"


def test_partitions_up_to_relabelling() -> None:
    right = [0, 0, 1, 1, 2]
    assert ways.partition([7, 7, "x", "x", None], right) == ""
    assert ways.partition([2, 2, 0, 0, 1], right) == ""
    assert "parted" in ways.partition([0, 3, 1, 1, 2], right)
    assert "in one part" in ways.partition([0, 0, 1, 1, 1], right)
    assert ways.partition([0, 1, 1, 0, 2], right).count(";") == 1
    with pytest.raises(ways.MisreadError, match="one label for each of 5"):
        ways.partition([0, 1], right)


def test_a_sealed_number_and_how_it_is_wrong() -> None:
    sealed = seals.Number("ex-99-x", seals.seal_number("ex-99-x", 2.2678))
    for right in (2.2678, 2.27, 2.265, np.float64(2.268)):
        assert sealed(right) == ""
    assert "order of magnitude" in sealed(3.5)
    assert "too large" in sealed(70)
    assert "too small" in sealed(0.02)
    assert "share" in sealed(226.78)
    assert "sign" in sealed(-2.2678)
    assert "2.2" not in repr(sealed)


@pytest.mark.parametrize("value", [0, 1, -1, 9.996, 10.004, 1e-9, 123456, 0.99999, 5e7])
def test_rounding_is_no_fault_at_the_edge_of_a_cell(value: float) -> None:
    sealed = seals.Number("ex-99-x", seals.seal_number("ex-99-x", value))
    assert sealed(value) == ""
    assert sealed(float(f"{value:.3g}")) == ""
    assert sealed(spoiled(value)) != ""


def test_sealed_words_and_groups() -> None:
    chosen = seals.Words("ex-99-x", seals.seal_words("ex-99-x", ["flip", "sweep"]))
    assert chosen({"Sweep", "flip"}) == ""
    assert "missing" in chosen({"flip"})
    assert "not belong" in chosen(["flip", "sweep", "dust"])
    listed = seals.Words("ex-99-x", seals.seal_words("ex-99-x", ["yes", "no"], ordered=True), ordered=True)
    assert listed([True, False]) == ""
    assert "number 1" in listed(["no", "no"])
    grouped = seals.Groups("ex-99-x", seals.seal_groups("ex-99-x", [["a", "b"], ["c"]]))
    assert grouped([{"c"}, {"b", "a"}]) == ""
    assert grouped([{"a"}, {"b", "c"}]) != ""


def test_a_seal_belongs_to_its_exercise() -> None:
    assert seals.seal_number("ex-99-x", 2) != seals.seal_number("ex-99-y", 2)


@pytest.mark.parametrize(
    "answer", [3, 0, "word", True, [1, 2], (1, "b"), {"a": 1}, {"a"}, np.arange(3.0), pd.Series([1, 2])]
)
def test_a_spoiled_answer_is_another_one(answer: Any) -> None:
    wrong = spoiled(answer)
    assert not np.array_equal(np.asarray(wrong, dtype=object), np.asarray(answer, dtype=object))


def test_spoiled_labels_are_another_partition() -> None:
    labels = np.arange(100) % 7
    assert "in one part" in ways.partition(spoiled(labels), labels)
    assert spoiled(lambda x: x)(1) != 1


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    def larger(answer: Any, limit: Any) -> str:
        return ways.all_hold([(ways.as_number(answer) > limit, "not larger")])

    entries = {
        "ex-99-larger": Check("a number above the limit", larger),
        "ex-99-anything": Check("anything", lambda answer: ""),
    }
    monkeypatch.setattr(checking, "checks", lambda chapter: entries if chapter == "99" else {})


@pytest.mark.usefixtures("table")
class TestCheck:
    def test_not_answered_yet_says_what_is_wanted(self) -> None:
        found = judgement("ex-99-larger", ..., {})
        assert found.right is None
        assert found.words == "Not answered yet. Wanted: a number above the limit."

    def test_judged_by_the_chapters_variables(self) -> None:
        assert judgement("ex-99-larger", 5, {"limit": 4}).right is True
        assert judgement("ex-99-larger", 5, {"limit": 6}).words == "Wrong: not larger."

    def test_a_variable_that_is_missing(self) -> None:
        found = judgement("ex-99-larger", 5, {})
        assert found.right is None
        assert "`limit`" in found.words

    def test_an_answer_of_another_kind_is_wrong_and_no_error(self) -> None:
        found = judgement("ex-99-larger", "five", {"limit": 4})
        assert found.right is False
        assert "a number above the limit" in found.words

    def test_the_caller_s_variables_are_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        shown: list[str] = []
        monkeypatch.setattr(checking, "show", lambda markdown, fallback: shown.append(markdown))
        exec("check('ex-99-larger', 5)", {"check": check, "limit": 4})
        exec("check('ex-99-larger', 5)", {"check": check, "limit": 9})
        check("ex-99-larger", 5, limit=4)
        assert [re.search("[✔✘]", text)[0] for text in shown] == ["✔", "✘", "✔"]  # type: ignore[index]

    def test_a_solution_that_is_refused_stops_the_build(self) -> None:
        solved("ex-99-larger", 5, wrong=3, limit=4)
        with pytest.raises(CheckError, match="refuses the solution"):
            solved("ex-99-larger", 3, limit=4)

    def test_a_check_that_takes_everything_stops_the_build(self) -> None:
        with pytest.raises(CheckError, match="takes a wrong answer"):
            solved("ex-99-anything", 3)

    def test_an_unknown_exercise(self) -> None:
        with pytest.raises(ParameterError, match="ex-99-larger"):
            check("ex-99-lager", 5)
        with pytest.raises(ParameterError):
            check("no exercise", 5)


def test_small_chains() -> None:
    txs = small_chain([({"a": 50, "b": 30}, {"shop": 60, "rest": 15}), ({"b": 9, "c": 1}, {"shop": 10})])
    assert list(txs.addresses) == ["a", "b", "shop", "rest", "c"]
    assert txs.transactions["fee"].tolist() == [5, 0]
    labels = heuristic_clusters(txs, ["common_input"])
    assert labels[0] == labels[1] == labels[4] != labels[2]
    with pytest.raises(ParameterError, match="payment 0 pays out 1 satoshi more"):
        small_chain([({"a": 1}, {"b": 2})])
    assert math.isclose(txs.inputs["value"].sum(), 90)
