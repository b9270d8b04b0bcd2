"""Every exercise has a goal, a difficulty, a hint and a solution; if its answer is a value, a self-check as well."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import nbformat
import pytest
from exercise_text import CHAPTERS, ROOT, Exercise, exercises

from btcnb.book.checking import checks, judgement
from btcnb.book.exercises import seals
from btcnb.build.editions import strip_solutions

ALL = [pytest.param(path, each, id=each.label) for path in CHAPTERS for each in exercises(path)]
SEALED = seals.Number | seals.Numbers | seals.Words | seals.Groups
WRONG = (0.123, -77, [1] * 9, "something else", {"something else"}, [{"x"}], None, True, print)


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
    known = exercise.label in checks(path.name[:2])
    assert (asked, proved, known) == (not exercise.discussed,) * 3


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_checks_belong_to_exercises_and_wrong_answers_are_refused(path: Path) -> None:
    labels = {each.label for each in exercises(path)}
    for name, rule in checks(path.name[:2]).items():
        assert name in labels
        assert len(rule.form) > 5
        if isinstance(rule.judge, SEALED):
            assert rule.judge.name == name, "a seal is salted with the name of its exercise"
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
    for name, rule in checks(path.name[:2]).items():
        if not isinstance(rule.judge, SEALED):
            assert set(rule.names()) <= bound, name


@pytest.mark.parametrize("path", [*CHAPTERS, *sorted((ROOT / "book").glob("*.md"))], ids=lambda path: path.stem)
def test_exercises_are_named_by_label_so_that_their_numbers_follow(path: Path) -> None:
    assert re.findall(r"[Ee]xercises? \d+\.\d+.*", path.read_text(encoding="utf-8")) == []
