"""Verdicts by rule on a page: table, folded rules, records for the build; first looks; answers to questions."""

from __future__ import annotations

import dataclasses
import datetime
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from btcnb import book, paper
from btcnb.book import judging, page, reading
from btcnb.book.judging import Look, answered, first_look
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
    record, table, rules = shown
    assert record[page.RECORD_MIME] == {
        "kind": "verdict",
        "id": "C063",
        "claim": paper.claim("C063").claim,
        "verdict": "reproduced",
        "evidence": verdict.evidence,
        "where": "Section 6.1",
    }
    assert (
        "| C063 | GAE beats the untrained GAT in DP, NMI and ARI. | Section 6.1 | ✔ **reproduced** |"
        in table["text/markdown"]
    )
    assert "✔ **reproduced**" in table["text/html"]
    assert ":class: dropdown" in rules["text/markdown"]
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
    assert shown == []


def test_a_sweep_is_a_table(sweeps: Path) -> None:
    (sweeps / "odd.json").write_text("[1]")
    with pytest.raises(DataError, match="results/sweeps/odd: record: is no table"):
        reading.sweep("odd")
    (sweeps / "torn.jsonl").write_text('{"row": "a"}\n{"row": ')
    with pytest.raises(DataError, match=r"torn\.jsonl: record: cannot be read"):
        reading.sweep("torn")
    (sweeps / "list.jsonl").write_text("[1]\n")
    with pytest.raises(DataError, match="a line holds no record"):
        reading.sweep("list")
    (sweeps / "two.jsonl").write_text('{"row": "a", "NMI": null}\n\n{"row": "b", "NMI": 0.5, "ARI": 1}\n')
    frame = reading.sweep("two")
    assert frame is not None and frame["row"].tolist() == ["a", "b"]
    assert frame[["NMI", "ARI"]].isna().to_numpy().tolist() == [[True, True], [False, False]]


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
    (table,) = (bundle["text/markdown"] for bundle in shown)
    assert "| yes |" in table and "NMI 0.7 against 0.6" in table
    assert "✘ not reproduced (chapter 11)" in table
    assert all(page.RECORD_MIME not in bundle for bundle in shown), "the scoreboard must not count it twice"


@pytest.mark.parametrize(
    ("holds", "says"), [([True], "yes"), ([True, False], "in part"), ([False, False], "no"), ([], "nothing")]
)
def test_a_look_says_how_many_of_its_parts_hold(holds: list[bool], says: str) -> None:
    assert Look("C061", holds, "").says == says


def test_without_records_the_verdict_is_open(shown: list[dict[str, Any]]) -> None:
    first_look([Look("C061", [False], "one run")], lambda grid: None)
    assert "– cannot be tested here (chapter 11)" in shown[0]["text/markdown"]


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
    found = {asked.id: said for asked, said, _ in answered("17", transfer)}
    assert found["Q171"] == found["Q172"] == found["Q174"] == "yes"
    assert found["Q175"] == "cannot be tested here"
    table, rules = (bundle["text/markdown"] for bundle in shown)
    assert "✔ **yes**" in table and "5 seeds" in table and "no finished run of “both”" in table
    assert "within ±0.02" in rules and "2026-11-17" in rules
    assert all(page.RECORD_MIME not in bundle for bundle in shown), "they are no claims of the paper"


def test_without_records_nothing_is_answered(shown: list[dict[str, Any]]) -> None:
    assert {said for _, said, _ in answered("17", lambda grid: None)} == {"cannot be tested here"}
    with pytest.raises(ParameterError, match="asks no question"):
        answered("99", lambda grid: None)
