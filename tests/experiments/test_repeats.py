"""Runs that were made twice: what moved, and what must not be compared."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from btcnb.errors import ParameterError
from btcnb.experiments.repeats import moved


def record(row: str, seed: int, score: float, **more: Any) -> dict[str, Any]:
    values = {"DP": score, "NMI": score / 2, "ARI": 0.1}
    return {"row": row, "seed": seed, "run": f"{row}/{seed}", "commit": "v1", "state": "done", **values, **more}


FIRST = pd.DataFrame([record("gat", 1, 0.80), record("gat", 2, 0.70), record("sage", 1, 0.60)])


def test_distances_are_taken_run_by_run_whatever_their_sign() -> None:
    again = pd.DataFrame([record("sage", 1, 0.60), record("gat", 1, 0.82), record("gat", 2, 0.66)])
    found = moved(FIRST, again)
    assert list(found["model"]) == ["GraphSAGE", "GAT"] and list(found["runs"]) == [1, 2]
    assert found["DP, mean"].tolist() == pytest.approx([0.0, 0.03])
    assert found["DP, most"].tolist() == pytest.approx([0.0, 0.04])
    assert found["NMI, most"].tolist() == pytest.approx([0.0, 0.02])


@pytest.mark.parametrize("other", [{"commit": "v2"}, {"run": "another recipe"}, {"state": "failed"}])
def test_runs_of_another_commit_or_recipe_and_failed_ones_do_not_count(other: dict[str, Any]) -> None:
    again = pd.DataFrame([record("gat", 1, 0.82), record("gat", 2, 0.1, **other)])
    (line,) = moved(FIRST, again).to_dict("records")
    assert line["runs"] == 1 and line["DP, most"] == pytest.approx(0.02)


def test_records_without_a_commit_are_compared() -> None:
    older = FIRST.drop(columns="commit")
    assert moved(older, older)["runs"].tolist() == moved(FIRST, older)["runs"].tolist() == [2, 1]


def test_without_a_second_record_there_is_no_line() -> None:
    assert moved(FIRST, None).empty and moved(None, FIRST).empty
    assert list(moved(FIRST, None).columns[:3]) == ["model", "runs", "DP, mean"]


def test_records_without_the_metric_are_refused() -> None:
    with pytest.raises(ParameterError, match="no field 'AMI'"):
        moved(FIRST, FIRST, ["AMI"])
