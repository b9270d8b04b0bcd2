"""The pages that are notebooks (benchmarks, verdicts, status) on small records; numbers filled into prose."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from btcnb.book import page, reading
from btcnb.build.fingerprint import Fingerprint, Stamp
from btcnb.build.notebooks import load_pages, notebook_from_text
from btcnb.build.pages import fill, measured, provenance_box
from btcnb.build.project import Project, UsageError

ROOT = Path(__file__).resolve().parents[2]
LINKAGE = {"task": "average linkage", "shape": "clustered", "speed_up": 16.4, "memory_ratio": 59.0}
VERDICT = {"kind": "verdict", "claim": "a | S_max.", "where": "Table 1", "verdict": "partly", "evidence": "0.5"}


class Page:
    """Runs the code cells of a page, one after the other; `text` is what they show."""

    def __init__(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cells = [c.source for c in notebook_from_text(ROOT / f"book/{name}.md").cells if c.cell_type == "code"]
        self.shown: list[str] = []
        self.names: dict[str, Any] = {}
        monkeypatch.setattr(page, "display", lambda bundle, raw: self.shown.append(bundle["text/markdown"]))
        monkeypatch.setattr("IPython.display.display", lambda value: self.shown.append(value.data))

    def run(self, cells: int | None = None) -> str:
        for source in self.cells[:cells]:
            exec(source, self.names)
        return "\n".join(self.shown)


@pytest.fixture
def benchmarks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Page:
    (tmp_path / "benchmarks").mkdir()
    monkeypatch.setattr(reading, "RESULTS", tmp_path)
    return Page("benchmarks", monkeypatch)


def write(folder: Path, name: str, content: Any) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    (folder / "benchmarks" / f"{name}.json").write_text(text, errors="surrogateescape")


def test_the_pages_are_notebooks_and_every_benchmark_has_its_section() -> None:
    assert {page.name for page in load_pages(Project(ROOT))} == {"benchmarks", "verdicts", "status"}
    text = (ROOT / "book" / "benchmarks.md").read_text(encoding="utf-8")
    recorded = {path.stem for path in (ROOT / "results" / "benchmarks").glob("*.json")}
    assert set(re.findall(r'^all_numbers\("(\w+)"\)$', text, re.MULTILINE)) == recorded


def test_a_benchmark_says_common_things_once_and_numbers_in_rows(benchmarks: Page, tmp_path: Path) -> None:
    row = {"benchmark": "linkage", "n": 20_000, "cores": 2, "numpy": "2.4", "code": "abc", "commit": "def"}
    records = [
        {**row, "stage": "ours", "seconds": 2.125, "peak_mb": 1234.5},
        {**row, "stage": "<b>", "seconds": 17.0, "peak_mb": 3400.0},
        {"benchmark": "linkage", "stage": "ratio", "value": 8.0},
    ]
    write(tmp_path, "linkage", records)
    assert benchmarks.run(2) == "", "no race among these records"
    benchmarks.names["all_numbers"]("linkage")
    (page,) = benchmarks.shown
    assert page.startswith("::::{dropdown} All numbers of linkage") and "n 20,000:" in page
    assert "| stage | time (s) | peak memory (MB) |\n| :--- | ---: | ---: |\n| ours | 2.12 | 1,234 |" in page
    assert "| linkage | ratio | 8 |" in page and "&lt;b&gt;" in page and "<" not in page
    assert "Measured with cores 2, numpy 2.4." in page and "abc" not in page and "def" not in page


@pytest.mark.parametrize("content", ["[{", "[1]", '{"a": 1}', "\udcff"])
def test_a_damaged_record_is_said_on_the_page(benchmarks: Page, tmp_path: Path, content: str) -> None:
    write(tmp_path, "linkage", content)
    assert benchmarks.run(2) == ""
    benchmarks.names["all_numbers"]("linkage")
    assert "linkage.json" in benchmarks.shown[0] and "cannot be read" in benchmarks.shown[0]


def test_of_several_sizes_the_largest_counts(benchmarks: Page, tmp_path: Path) -> None:
    write(tmp_path, "linkage", [{**LINKAGE, "n": 10, "speed_up": 2.0}, {**LINKAGE, "n": 20}, {**LINKAGE, "n": 5}])
    page = benchmarks.run(1)
    assert page.count('scope="row"') == 1 and "<b>16 ×</b>" in page and "<b>59 ×</b>" in page


@pytest.mark.parametrize(
    "odd", [{"speed_up": None}, {"memory_ratio": "many"}, {"shape": "bits"}, {"task": "agreement"}]
)
def test_records_that_are_no_race_are_left_out(benchmarks: Page, tmp_path: Path, odd: dict[str, object]) -> None:
    write(tmp_path, "linkage", [{**LINKAGE, **odd}])
    assert benchmarks.run(1) == ""


def test_bars_grow_with_the_logarithm(benchmarks: Page, tmp_path: Path) -> None:
    write(tmp_path, "linkage", [{**LINKAGE, "speed_up": 10.0, "memory_ratio": 100.0}])
    write(tmp_path, "silhouette", [{"task": "silhouette", "speed_up": 0.5}])
    page = benchmarks.run(1)
    assert '<i style="width:50%"></i><b>10 ×</b>' in page and '<i style="width:100%"></i><b>100 ×</b>' in page
    assert '<i style="width:0%"></i><b>0.5 ×</b></td><td>–</td>' in page, "a slower one is said, and has no bar"


def states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *chapters: dict[str, Any]) -> None:
    """A build of these chapters: their records are in `records`, how they stand in `states.json`."""
    (tmp_path / "records").mkdir()
    for chapter in chapters:
        if "records" in chapter:
            (tmp_path / "records" / f"{chapter['name']}.json").write_text(json.dumps(chapter.pop("records")))
    (tmp_path / "states.json").write_text(json.dumps({"preset": "quick", "chapters": chapters}))
    monkeypatch.setenv("BTCNB_RECORDS", str(tmp_path / "records"))
    monkeypatch.setenv("BTCNB_STATES", str(tmp_path / "states.json"))


def chapter(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "title": "A", "in_toc": True, "executed": True, **fields}


def test_verdicts_are_counted_and_listed_by_chapter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = {**VERDICT, "id": "C002", "verdict": "reproduced", "evidence": "<svg onload=x> {doc}`a`"}
    hidden = chapter("99_b", in_toc=False, records=[VERDICT])
    first = chapter("01_a", records=[VERDICT, known, {"kind": "data_source"}])
    states(tmp_path, monkeypatch, first, hidden, chapter("02_c", executed=False))
    page = Page("verdicts", monkeypatch).run()
    assert "| {doc}`/notebooks/01_a` | 1 | 1 | 0 | 0 | – |" in page and "| all | 1 | 1 | 0 | 0 |" in page
    assert ":::{dropdown} 01 · A (2)" in page and "99" not in page
    assert "- ◐ **partly** · a | <i>S</i><sub>max</sub> (Table 1). *Evidence:* 0.5" in page
    assert "- ✔ **reproduced** · C002: a |" in page and "&lt;svg onload=x&gt; \\{doc\\}`a`" in page


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"kind": "whose", "source": "economies", "simulated": True}, "simulated"),
        ({"kind": "whose", "source": "read from mine", "simulated": False}, "read from mine"),
        ({"kind": "data_source", "source": "180 recorded runs (simulated economies)"}, "simulated"),
        ({"kind": "data_source", "source": "recorded runs (simulated, but for moser_real)"}, "simulated and real"),
        ({"kind": "data_source", "source": "synthetic points on the unit sphere"}, "–"),
    ],
)
def test_a_chapter_says_whose_data_its_verdicts_rest_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record: dict[str, Any], said: str
) -> None:
    states(tmp_path, monkeypatch, chapter("01_a", records=[record, VERDICT]))
    assert f"| 0 | 1 | 0 | 0 | {said} |" in Page("verdicts", monkeypatch).run()


def test_without_verdicts_the_page_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    states(tmp_path, monkeypatch, chapter("01_a", records=[{"kind": "data_source"}]))
    assert Page("verdicts", monkeypatch).run() == "No chapter has been executed yet."


def test_the_status_page_lists_every_chapter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = {
        "since": ["code of btcnb.data"], "parameters": {"epochs": 6, "seed": 1}, "changed": ["epochs"],
        "seconds": 7.31, "cells": 5, "finished": "2026-01-31T17:05:00+00:00", "commit": "abc",
        "versions": {"python": "3.12.1"}, "machine": "Linux, 2 cores",
    }  # fmt: skip
    other = {**done, "since": [], "changed": [], "seconds": 3723.0, "commit": "def"}
    states(tmp_path, monkeypatch, chapter("01_a", **done), chapter("02_b", **other), chapter("03_c", executed=False))
    page = Page("status", monkeypatch).run()
    assert "Preset `quick`: 2 of 3 chapters executed, in 1:02:10\u00a0h altogether." in page
    row = "executed; changed since: code of btcnb.data | 2026-01-31 17:05 UTC | 7.3\u00a0s | 5 | `epochs = 6` |"
    assert f"| {{doc}}`/notebooks/01_a` | {row}" in page
    assert "| executed | 2026-01-31 17:05 UTC | 1:02:03\u00a0h | 5 | none |" in page
    assert "| {doc}`/notebooks/03_c` | not executed | – | – | – | – |" in page
    assert "| python | 3.12.1 |" in page and "| commit | abc, def |" in page


ROWS = [
    {"shape": "tight", "n": 20000, "stage": "ours", "speed_up": 16.44, "seconds": 2.1},
    {"shape": "tight", "n": 20000, "stage": "their own", "speed_up": 16.44, "seconds": 35.1},
    {"shape": "loose", "n": 65000, "stage": "ours", "seconds": 23.0},
]


def filled(tmp_path: Path, text: str) -> str:
    (tmp_path / "linkage.json").write_text(json.dumps(ROWS))
    return fill(text, "page.md", {"repository": "https://x", "measured": measured(tmp_path)})


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ('{{ measured("linkage", "speed_up") }} times', "16.4 times"),
        ('{{ measured("linkage", "speed_up", "{:.0f}") }}', "16"),
        ('{{ measured("linkage", "seconds", "{:.1f}", shape="loose") }} s', "23.0 s"),
        ('{{ measured("linkage", "seconds", "{:.1f}", stage="their own") }} s', "35.1 s"),
        ('{{measured("linkage", "n", n=65000)}} rows', "65,000 rows"),
        ("see {{ repository }} and {one} {#1}\n", "see https://x and {one} {#1}\n"),
    ],
)
def test_numbers_in_prose_come_from_records(tmp_path: Path, text: str, made: str) -> None:
    assert filled(tmp_path, text) == made


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{{ measured("linkage", "seconds") }}', "page.md: linkage.seconds means 3 numbers"),
        ('{{ measured("linkage", "seconds", shape="none") }}', "means 0 numbers"),
        ('{{ measured("other", "seconds") }}', "results/benchmarks/other.json cannot be read"),
        ("{{ nothing }}", "page.md: cannot be filled in: 'nothing' is undefined"),
        ("{{ measured( }}", "page.md: cannot be filled in"),
    ],
)
def test_what_is_not_one_number_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        filled(tmp_path, text)


def test_provenance_prints_the_whole_recipe() -> None:
    stamp = Stamp(
        "08_training", "quick", Fingerprint("", ""), {}, "", "", "", {"seed": 3}, ["seed"], 1.0, 1,
        "2026-01-31T17:05:00+00:00", "unknown", {}, "",
    )  # fmt: skip
    box = provenance_box(stamp, [{"kind": "recipe", "id": "abc", "fields": {"train.epochs": 3, "source.size": "tiny"}}])
    assert "`abc`: `train.epochs = 3, source.size = tiny`" in box and "| seed | 3 |" in box
    assert "`seed = 3` (changed)" in box and "2026-01-31 17:05 UTC, 1 code cells in 1.0\u00a0s" in box
    assert "none: the parameters decide all numbers" in provenance_box(stamp, [])
