"""The pages that are made of records."""

import json
from pathlib import Path
from types import SimpleNamespace

from btcnb.build.render import _layout
from btcnb.build.reports import benchmarks_page, verdicts_page


def test_a_benchmark_says_common_things_once_and_numbers_in_rows(tmp_path: Path) -> None:
    row = {"benchmark": "linkage", "n": 20_000, "cores": 2, "numpy": "2.4"}
    records = [
        {**row, "stage": "ours", "seconds": 2.125, "peak_mb": 1234.5},
        {**row, "stage": "fastcluster", "seconds": 17.0, "peak_mb": 3400.0},
        {"benchmark": "linkage", "stage": "ratio", "value": 8.0},
    ]
    (tmp_path / "linkage.json").write_text(json.dumps(records))
    page = benchmarks_page(tmp_path)
    assert "## Linkage" in page
    assert "n 20,000:" in page
    assert "| stage | time (s) | peak memory (MB) |\n| :--- | ---: | ---: |\n| ours | 2.12 | 1,234 |" in page
    assert "| linkage | ratio | 8 |" in page
    assert "Measured with cores 2, numpy 2.4." in page


def test_verdicts_are_listed_by_chapter_with_their_evidence() -> None:
    chapter = SimpleNamespace(name="01_a", in_toc=True)
    hidden = SimpleNamespace(name="99_b", in_toc=False)
    entry = {"kind": "verdict", "claim": "a | b", "where": "Table 1", "verdict": "partly", "evidence": "0.5"}
    page = verdicts_page([(chapter, [entry, {"kind": "data_source"}]), (hidden, [entry])])
    assert page.count("partly") == 1
    assert "| {doc}`/notebooks/01_a` | a \\| b | Table 1 | **partly** | 0.5 |" in page
    assert "No chapter has been executed yet." in verdicts_page([])


def test_a_new_style_sheet_makes_the_rendering_start_from_nothing(tmp_path: Path) -> None:
    output = SimpleNamespace(source=lambda edition: tmp_path)
    (tmp_path / "book").mkdir()
    for name, text in {"_config.yml": "a", "_toc.yml": "b", "book/page.md": "# P", "book/style.css": "p {}"}.items():
        (tmp_path / name).write_text(text)
    before = _layout(output, "full")
    (tmp_path / "book" / "page.md").write_text("# Another text of the same page")
    assert _layout(output, "full") == before
    (tmp_path / "book" / "style.css").write_text("p { color: red }")
    assert _layout(output, "full") != before
