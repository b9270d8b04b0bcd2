"""Verdicts by rule on a page: table, folded rules, records for the build."""

from __future__ import annotations

import dataclasses
import datetime
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from btcnb import book, paper
from btcnb.book import judging, output, reading
from btcnb.errors import DataError, ParameterError
from btcnb.paper.claims import Change
from btcnb.store.reads import ABSENT, recording


@pytest.fixture
def sweeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(reading, "RESULTS", tmp_path)
    (tmp_path / "sweeps").mkdir()
    return tmp_path / "sweeps"


def write(path: Path, rows: dict[str, list[float | None]], metrics: tuple[str, ...] = ("DP", "NMI", "ARI")) -> None:
    lines = [
        {"format": 1, "grid": path.stem, "row": row, "seed": seed, "state": "done", **dict.fromkeys(metrics, value)}
        for row, values in rows.items()
        for seed, value in enumerate(values, 1)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def test_records_of_a_sweep_become_a_verdict_with_its_rule(shown: list[dict[str, Any]], sweeps: Path) -> None:
    write(sweeps / "ablation.jsonl", {"gae": [0.60, 0.61, 0.62], "untrained": [0.5, 0.5, 0.5]})
    with recording() as reads:
        (verdict,) = book.judged(["C063"])
    assert [Path(path).name for path in reads if "sweeps" in path] == ["ablation.jsonl"]
    assert (verdict.id, verdict.verdict, verdict.where) == ("C063", "reproduced", "Section 6.1")
    assert verdict.evidence.startswith("DP +0.110 (+0.085 to +0.135), NMI ") and verdict.evidence.endswith("; 3 seeds")
    record, page, rules = shown
    assert record[output.RECORD_MIME] == {
        "kind": "verdict",
        "id": "C063",
        "claim": paper.claim("C063").claim,
        "verdict": "reproduced",
        "evidence": verdict.evidence,
        "where": "Section 6.1",
    }
    assert (
        "| C063 | GAE beats the untrained GAT in DP, NMI and ARI. | Section 6.1 | ✔ **reproduced** |"
        in page["text/markdown"]
    )
    assert "✔ reproduced" in page["text/html"]
    assert ":class: dropdown" in rules["text/markdown"] and "<details>" in rules["text/html"]
    for form in ("text/markdown", "text/html"):
        assert "“gae” minus “untrained” in DP, NMI and ARI: above 0 with the whole interval" in rules[form]
        assert "2026-11-17" in rules[form] and "before the runs" in rules[form]


def test_without_records_nothing_is_decided_and_their_absence_is_noted(
    shown: list[dict[str, Any]], sweeps: Path
) -> None:
    with recording() as reads:
        found = book.judged(["C063", "C079"])
    assert [each.verdict for each in found] == ["cannot be tested here"] * 2
    assert found[0].evidence == "there are no records of the grid “ablation”"
    assert {state for path, state in reads.items() if "sweeps" in path} == {ABSENT}


def test_missing_numbers_decide_nothing(shown: list[dict[str, Any]], sweeps: Path) -> None:
    write(sweeps / "ablation.jsonl", {"gae": [0.60, None, 0.62], "untrained": [0.5, 0.5, 0.5]})
    (verdict,) = book.judged(["C063"])
    assert verdict.evidence == "DP of “gae” has no value for seed 2"


def test_what_is_true_by_construction_says_so(shown: list[dict[str, Any]]) -> None:
    (verdict,) = book.judged(["C079"], lambda _: None)
    assert verdict.evidence.endswith("(true by construction, so no evidence)")


def test_a_rule_that_was_changed_tells_when_and_why(
    shown: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = dataclasses.replace(
        paper.claim("C063"), changes=(Change(datetime.date(2026, 12, 1), "the <b>bound</b> was wrong"),)
    )
    monkeypatch.setattr(judging, "claim", {"C063": changed, "C064": paper.claim("C064")}.__getitem__)
    book.judged(["C063", "C064"], lambda _: None)
    rules = shown[-1]
    assert "| 2026-12-01: the &lt;b&gt;bound&lt;/b&gt; was wrong |" in rules["text/markdown"]
    assert "| 2026-11-17 | no |" in rules["text/markdown"]
    assert "&lt;b&gt;bound" in rules["text/html"]


def test_claims_that_a_chapter_judges_itself_are_refused(shown: list[dict[str, Any]]) -> None:
    with pytest.raises(ParameterError, match="C034 is judged by chapter 09 itself; leave it out"):
        book.judged(["C034"], lambda _: None)
    with pytest.raises(ParameterError, match="no claim 'C900'"):
        book.judged(["C900"], lambda _: None)
    with pytest.raises(ParameterError, match="must be a list"):
        book.judged("C063")
    assert shown == []


def test_a_sweep_is_a_table(sweeps: Path) -> None:
    (sweeps / "odd.json").write_text("[1]")
    with pytest.raises(DataError, match="results/sweeps/odd: record: is no table"):
        judging.sweep("odd")
    (sweeps / "torn.jsonl").write_text('{"row": "a"}\n{"row": ')
    with pytest.raises(DataError, match=r"torn\.jsonl: record: cannot be read"):
        judging.sweep("torn")
    (sweeps / "list.jsonl").write_text("[1]\n")
    with pytest.raises(DataError, match="a line holds no record"):
        judging.sweep("list")
    (sweeps / "two.jsonl").write_text('{"row": "a", "NMI": null}\n\n{"row": "b", "NMI": 0.5, "ARI": 1}\n')
    frame = judging.sweep("two")
    assert frame is not None and frame["row"].tolist() == ["a", "b"]
    assert frame[["NMI", "ARI"]].isna().to_numpy().tolist() == [[True, True], [False, False]]


def test_frames_must_be_tables(shown: list[dict[str, Any]]) -> None:
    with pytest.raises(ParameterError, match="the records of ablation"):
        book.judged(["C063"], lambda _: [1])  # type: ignore[arg-type, return-value]


def test_an_id_is_the_id_of_a_claim_and_old_verdicts_have_none(shown: list[dict[str, Any]]) -> None:
    with pytest.raises(ParameterError, match="is no id of a claim"):
        book.Verdict("claim", "partly", "e", id="63")
    book.verdicts([book.Verdict("one", "partly", "e", id="C063"), book.Verdict("two", "partly", "e")])
    assert "id" not in shown[1][output.RECORD_MIME]
    assert "|  | two |" in shown[2]["text/markdown"]


@pytest.mark.parametrize("grid", sorted({"ablation", "controls", "dimension", "alpha", "negatives", "refinement"}))
def test_the_sweeps_of_this_project_can_be_read(grid: str) -> None:
    frame = judging.sweep(grid)
    if frame is None:
        pytest.skip(f"there are no records of the grid {grid} yet")
    assert isinstance(frame, pd.DataFrame) and {"row", "seed", "state"} <= set(frame.columns)
