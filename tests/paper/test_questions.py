"""Questions beyond the paper: read with care, answered as claims are judged."""

from __future__ import annotations

import datetime
from typing import Any

import pandas as pd
import pytest

from btcnb.errors import DataError, ParameterError
from btcnb.paper.questions import answer, questions, read

DAY = datetime.date(2026, 11, 17)
RULE = {"kind": "compare", "grid": "g", "row": "a", "against": "b", "metrics": ["real.DP"], "sign": "+"}
ONE = {"id": "Q001", "chapter": "01", "question": "Is a better than b?", "rule": RULE}


def file(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"decided": DAY, "questions": list(entries)}


@pytest.mark.parametrize(("gain", "said"), [(0.1, "yes"), (-0.1, "no"), (None, "cannot be tested here")])
def test_an_answer_is_yes_or_no_or_nothing(gain: float | None, said: str) -> None:
    (one,) = read(file(ONE))
    rows = [(row, seed, 0.5 + (gain or 0) * (row == "a") + 0.001 * seed) for row in "ab" for seed in range(5)]
    frame = None if gain is None else pd.DataFrame(rows, columns=["row", "seed", "real.DP"])
    found = answer(one, lambda grid: frame)
    assert found.answer == said and found.question is one
    assert found.judgement.rule_text.startswith("“a” minus “b”")


def test_an_answer_may_hold_in_part() -> None:
    (one,) = read(file(ONE))
    rows = [(row, seed, (0.1 if row == "a" else 0.0) * (1 if seed else -3)) for row in "ab" for seed in range(5)]
    assert answer(one, lambda grid: pd.DataFrame(rows, columns=["row", "seed", "real.DP"])).answer == "in part"


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        ([{**ONE, "id": "C001"}], "write Q and three digits"),
        ([ONE, ONE], "stands there twice"),
        ([{**ONE, "more": 1}], "unknown field 'more'"),
        ([{**ONE, "rule": {"kind": "later", "plan": "some day"}}], "looks at no record"),
        ([{**ONE, "decided": "today"}], "give a date"),
    ],
)
def test_files_with_faults_are_refused(entries: list[dict[str, Any]], problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        read(file(*entries))


def test_the_questions_of_chapter_17_are_there_and_other_chapters_say_so() -> None:
    found = questions("17")
    assert [each.id for each in found] == [f"Q{number}" for number in range(171, 179)]
    assert all(each.question.endswith("?") for each in found)
    with pytest.raises(ParameterError, match=r"asks no question; there are some in 11, 17"):
        questions("01")
