"""A first look stands beside the verdict of the records, and gives none of its own."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from btcnb.book import output
from btcnb.book.looks import Look, first_look
from btcnb.errors import ParameterError


def ablation(grid: str) -> pd.DataFrame:
    """In every world the untrained encoder is below Louvain and Leiden: C061 does not hold."""
    assert grid == "ablation"
    lines = [
        {"row": row, "seed": seed, "state": "done", "NMI": level + 0.001 * seed, "ARI": level + 0.002 * seed}
        for row, level in (("untrained", 0.5), ("louvain", 0.6), ("leiden", 0.7))
        for seed in range(5)
    ]
    return pd.DataFrame(lines)


def test_the_records_give_the_verdict_whatever_one_run_saw(shown: list[dict[str, Any]]) -> None:
    first_look([Look("C061", [True, True], "NMI 0.7 against 0.6")], ablation)
    (page,) = (bundle["text/markdown"] for bundle in shown)
    assert "| yes |" in page and "NMI 0.7 against 0.6" in page
    assert "✘ not reproduced (chapter 11)" in page
    assert all(output.RECORD_MIME not in bundle for bundle in shown), "the scoreboard must not count it twice"


@pytest.mark.parametrize(
    ("holds", "says"), [([True], "yes"), ([True, False], "in part"), ([False, False], "no"), ([], "nothing")]
)
def test_a_look_says_how_many_of_its_parts_hold(holds: list[bool], says: str) -> None:
    assert Look("C061", holds, "").says == says


def test_without_records_the_verdict_is_open(shown: list[dict[str, Any]]) -> None:
    first_look([Look("C061", [False], "one run")], lambda grid: None)
    assert "– cannot be tested here (chapter 11)" in shown[0]["text/markdown"]


def test_a_claim_that_there_is_not_is_refused() -> None:
    with pytest.raises(ParameterError, match="C999"):
        Look("C999", [True], "")
