"""Answers to the book's own questions on a page: a table, rules folded below, nothing for the scoreboard."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from btcnb.book import output
from btcnb.book.answers import answered
from btcnb.errors import ParameterError


def transfer(grid: str) -> pd.DataFrame:
    """Taught by simulation or by real blocks is all the same, and far better than untrained."""
    assert grid == "transfer"
    lines = [
        {"row": row, "seed": seed, "state": "done"}
        | {f"{exam}.{score}": level + 0.001 * seed for exam in ("real", "simulated") for score in ("DP", "NMI", "ARI")}
        for row, level in (("simulated", 0.8), ("real", 0.801), ("untrained", 0.5))
        for seed in range(5)
    ]
    return pd.DataFrame(lines)


def test_questions_are_answered_with_evidence_and_rule(shown: list[dict[str, Any]]) -> None:
    found = {each.question.id: each for each in answered("17", transfer)}
    assert found["Q171"].answer == found["Q172"].answer == found["Q174"].answer == "yes"
    assert found["Q175"].answer == "cannot be tested here"
    table, rules = (bundle["text/markdown"] for bundle in shown)
    assert "✔ **yes**" in table and "5 seeds" in table and "no finished run of “both”" in table
    assert "within ±0.02" in rules and "2026-11-17" in rules
    assert all(output.RECORD_MIME not in bundle for bundle in shown), "they are no claims of the paper"


def test_without_records_nothing_is_answered(shown: list[dict[str, Any]]) -> None:
    assert {each.answer for each in answered("17", lambda grid: None)} == {"cannot be tested here"}
    with pytest.raises(ParameterError, match="asks no question"):
        answered("99", lambda grid: None)
