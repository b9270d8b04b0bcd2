"""Self-checks: right answers in every form, wrong ones with the reason, nothing given away; every exercise is whole."""

from __future__ import annotations

import ast
import math
import re
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pandas as pd
import pytest
from exercise_text import CHAPTERS, ROOT, Exercise, exercises

from btcnb.book import exercises as checking
from btcnb.book.exercises import (
    Check,
    CheckError,
    MisreadError,
    Sealed,
    all_hold,
    as_number,
    as_words,
    check,
    checks,
    compare_number,
    compare_numbers,
    compare_partition,
    compare_sets,
    judgement,
    seals_of,
    solved,
    wrong_answer,
)
from btcnb.book.small_chain import small_chain
from btcnb.build.editions import strip_solutions
from btcnb.data import heuristic_clusters
from btcnb.errors import ParameterError


def sealed(kind: str, answer: Any, name: str = "ex-99-x") -> Sealed:
    return Sealed(name, kind, tuple(seals_of(name, kind, answer)))


@pytest.mark.parametrize("answer", [7.5, np.float32(7.5), np.array([7.5]), np.array(7.5), pd.Series([7.5]), 7.501])
def test_a_number_in_any_form(answer: Any) -> None:
    assert compare_number(answer, 7.5) == ""


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
    assert words in compare_number(answer, 7.5)
    assert words in compare_numbers([1, answer], [1, 7.5])
    assert "number 2" in compare_numbers([1, answer], [1, 7.5])


@pytest.mark.parametrize("answer", ["7.5", None, True, [1, 2], float("nan"), {}, print])
def test_what_is_no_number(answer: Any) -> None:
    with pytest.raises(MisreadError):
        compare_number(answer, 7.5)


def test_zero_is_right_only_if_it_is_zero() -> None:
    assert compare_number(0, 0) == ""
    assert compare_number(0.5, 0) == "too large"
    assert compare_number(-0.5, 0) == "too small"


def test_numbers_by_name_and_of_the_wrong_count() -> None:
    assert compare_numbers({"a": 1, "b": 2}, [1, 2]) == ""
    assert compare_numbers(pd.Series([1, 2]), [1, 2]) == ""
    assert "2 of 2 are wrong" in compare_numbers((3, 4), [1, 2])
    with pytest.raises(MisreadError, match="2 numbers are wanted, not 3"):
        compare_numbers([1, 2, 3], [1, 2])


def test_names_in_any_order_and_case() -> None:
    assert compare_sets(as_words(["B", " a"]), {"a", "b"}) == ""
    assert compare_sets(as_words({"a"}), {"a", "b"}) == "something is missing"
    assert compare_sets(as_words({"a", "b", "c"}), {"a", "b"}) == "one entry does not belong"


def test_partitions_up_to_relabelling() -> None:
    right = [0, 0, 1, 1, 2]
    assert compare_partition([7, 7, "x", "x", None], right) == ""
    assert compare_partition([2, 2, 0, 0, 1], right) == ""
    assert "parted" in compare_partition([0, 3, 1, 1, 2], right)
    assert "in one part" in compare_partition([0, 0, 1, 1, 1], right)
    assert compare_partition([0, 1, 1, 0, 2], right).count(";") == 1
    with pytest.raises(MisreadError, match="one label for each of 5"):
        compare_partition([0, 1], right)


def test_a_sealed_number_and_how_it_is_wrong() -> None:
    found = sealed("number", 2.2678)
    for right in (2.2678, 2.27, 2.265, np.float64(2.268)):
        assert found(right) == ""
    assert "order of magnitude" in found(3.5)
    assert "too large" in found(70)
    assert "too small" in found(0.02)
    assert "share" in found(226.78)
    assert "sign" in found(-2.2678)
    assert "2.2" not in repr(found)


@pytest.mark.parametrize("value", [0, 1, -1, 9.996, 10.004, 1e-9, 123456, 0.99999, 5e7])
def test_rounding_is_no_fault_at_the_edge_of_a_cell(value: float) -> None:
    found = sealed("number", value)
    assert found(value) == ""
    assert found(float(f"{value:.3g}")) == ""
    assert found(wrong_answer(value)) != ""


def test_sealed_words_and_groups() -> None:
    chosen = sealed("words", ["flip", "sweep"])
    assert chosen({"Sweep", "flip"}) == ""
    assert "missing" in chosen({"flip"})
    assert "not belong" in chosen(["flip", "sweep", "dust"])
    listed = sealed("list", ["yes", "no"])
    assert listed([True, False]) == ""
    assert "number 1" in listed(["no", "no"])
    grouped = sealed("groups", [["a", "b"], ["c"]])
    assert grouped([{"c"}, {"b", "a"}]) == ""
    assert grouped([{"a"}, {"b", "c"}]) != ""


def test_a_seal_belongs_to_its_exercise() -> None:
    assert seals_of("ex-99-x", "number", 2) != seals_of("ex-99-y", "number", 2)


@pytest.mark.parametrize(
    "answer", [3, 0, "word", True, [1, 2], (1, "b"), {"a": 1}, {"a"}, np.arange(3.0), pd.Series([1, 2])]
)
def test_a_spoiled_answer_is_another_one(answer: Any) -> None:
    wrong = wrong_answer(answer)
    assert not np.array_equal(np.asarray(wrong, dtype=object), np.asarray(answer, dtype=object))


def test_spoiled_labels_are_another_partition() -> None:
    labels = np.arange(100) % 7
    assert "in one part" in compare_partition(wrong_answer(labels), labels)
    assert wrong_answer(lambda x: x)(1) != 1


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    def larger(answer: Any, limit: Any) -> str:
        return all_hold([(as_number(answer) > limit, "not larger")])

    entries = {
        "ex-99-larger": Check("a number above the limit", larger),
        "ex-99-anything": Check("anything", lambda answer: ""),
    }
    monkeypatch.setattr(checking, "checks", lambda: entries)


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


ALL = [pytest.param(path, each, id=each.label) for path in CHAPTERS for each in exercises(path)]


WRONG = (0.123, -77, [1] * 9, "something else", {"something else"}, [{"x"}], None, True, print)


def of_chapter(path: Path) -> dict[str, Check]:
    return {name: rule for name, rule in checks().items() if name[3:5] == path.name[:2]}


def test_every_chapter_has_exercises_of_rising_number() -> None:
    for path in CHAPTERS:
        text = path.read_text(encoding="utf-8")
        assert len(exercises(path)) == text.count("{exercise}") >= 3, path.name


@pytest.mark.parametrize(("path", "exercise"), ALL)
def test_an_exercise_has_its_parts(path: Path, exercise: Exercise) -> None:
    assert exercise.label.startswith(f"ex-{path.name[:2]}-")
    assert re.search(r"^\*\*Goal:\*\* \S.{10,}\. \*\*Difficulty:\*\* (★☆☆|★★☆|★★★)", exercise.statement, re.M)
    assert re.search(r"^:::\{admonition\} Hint\n:class: hint dropdown\n\n\S.{20,}", exercise.between, re.M)
    assert len(exercise.solution.split()) > 10


@pytest.mark.parametrize(("path", "exercise"), ALL)
def test_a_value_is_checked_and_the_solution_goes_through_the_same_check(path: Path, exercise: Exercise) -> None:
    asked = f'answer = ...  # your answer\nbook.check("{exercise.label}", answer)' in exercise.between
    proved = re.search(rf'book\.solved\(\s*"{exercise.label}"', exercise.solution_code) is not None
    known = exercise.label in of_chapter(path)
    assert (asked, proved, known) == (not exercise.discussed,) * 3


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_checks_belong_to_exercises_and_wrong_answers_are_refused(path: Path) -> None:
    labels = {each.label for each in exercises(path)}
    for name, rule in of_chapter(path).items():
        assert name in labels
        assert len(rule.form) > 5
        if isinstance(rule.judge, Sealed):
            for wrong in WRONG:
                assert judgement(name, wrong, {}).right is False, f"{name} takes {wrong!r}"


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_judge_asks_for_names_that_students_have(path: Path) -> None:
    """What a judge needs is bound outside of the solutions: the student edition can judge as well."""
    notebook = nbformat.read(path.with_suffix(".ipynb"), as_version=4)
    strip_solutions(notebook, path.stem)
    bound: set[str] = set()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            for node in ast.walk(ast.parse(cell.source)):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    bound.add(node.id)
                elif isinstance(node, ast.Import | ast.ImportFrom):
                    bound |= {alias.asname or alias.name for alias in node.names}
    for name, rule in of_chapter(path).items():
        if not isinstance(rule.judge, Sealed):
            assert set(rule.names()) <= bound, name


@pytest.mark.parametrize("path", [*CHAPTERS, *sorted((ROOT / "book").glob("*.md"))], ids=lambda path: path.stem)
def test_exercises_are_named_by_label_so_that_their_numbers_follow(path: Path) -> None:
    assert re.findall(r"[Ee]xercises? \d+\.\d+.*", path.read_text(encoding="utf-8")) == []
