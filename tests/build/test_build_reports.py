"""The pages that are made of records."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from btcnb.build.fingerprint import Fingerprint, Stamp
from btcnb.build.project import Project
from btcnb.build.provenance import provenance_box
from btcnb.build.render import _rest
from btcnb.build.reports import benchmarks_page, current_code, measured_code, verdicts_page
from btcnb.store.reach import Package


def test_a_benchmark_says_common_things_once_and_numbers_in_rows(tmp_path: Path) -> None:
    row = {"benchmark": "linkage", "n": 20_000, "cores": 2, "numpy": "2.4"}
    records = [
        {**row, "stage": "ours", "seconds": 2.125, "peak_mb": 1234.5},
        {**row, "stage": "fastcluster", "seconds": 17.0, "peak_mb": 3400.0},
        {"benchmark": "linkage", "stage": "ratio", "value": 8.0},
    ]
    (tmp_path / "linkage.json").write_text(json.dumps(records))
    page = benchmarks_page(tmp_path, lambda name: None)
    assert "## Average linkage" in page and "::::{dropdown} All numbers of linkage" in page
    assert "<table" not in page, "no race among these records"
    assert "n 20,000:" in page
    assert "| stage | time (s) | peak memory (MB) |\n| :--- | ---: | ---: |\n| ours | 2.12 | 1,234 |" in page
    assert "| linkage | ratio | 8 |" in page
    assert "Measured with cores 2, numpy 2.4." in page


CHAPTER = SimpleNamespace(name="01_a", number="01", title="A", in_toc=True, reads_records=False)


def test_verdicts_are_counted_and_listed_by_chapter_with_their_evidence() -> None:
    hidden = SimpleNamespace(name="99_b", number="99", title="B", in_toc=False, reads_records=False)
    entry = {"kind": "verdict", "claim": "a | S_max.", "where": "Table 1", "verdict": "partly", "evidence": "0.5"}
    known = {**entry, "id": "C002", "verdict": "reproduced"}
    page = verdicts_page([(CHAPTER, [entry, known, {"kind": "data_source"}]), (hidden, [entry])])
    assert "| {doc}`/notebooks/01_a` | 1 | 1 | 0 | 0 | – |" in page
    assert "| all | 1 | 1 | 0 | 0 |" in page
    assert ":::{dropdown} 01 · A (2)" in page
    assert "- ◐ **partly** · a | <i>S</i><sub>max</sub> (Table 1). *Evidence:* 0.5" in page
    assert "- ✔ **reproduced** · C002: a |" in page and page.count("0.5") == 2
    assert "No chapter has been executed yet." in verdicts_page([])
    assert "No chapter has been executed yet." in verdicts_page([(CHAPTER, [{"kind": "data_source"}])])


def test_text_from_records_is_escaped(tmp_path: Path) -> None:
    entry = {
        "kind": "verdict",
        "claim": "M < 1",
        "where": "",
        "verdict": "partly",
        "evidence": "<svg onload=x> {doc}`a`",
    }
    page = verdicts_page([(CHAPTER, [entry])])
    assert "· M &lt; 1." in page
    assert "&lt;svg onload=x&gt; \\{doc\\}`a`" in page
    (tmp_path / "a.json").write_text(
        json.dumps([{"stage": "<b>", "n": 1, "host": "<i>", "machine": "<u>"}, {"stage": "x", "n": 1, "host": "<i>"}])
    )
    assert "<" not in benchmarks_page(tmp_path, lambda name: None)


@pytest.mark.parametrize("content", ["[{", "[1]", '{"a": 1}', "\udcff", "[" * 100_000])
def test_a_damaged_record_is_said_on_the_page(tmp_path: Path, content: str) -> None:
    (tmp_path / "linkage.json").write_text(content, errors="surrogateescape")
    assert "`results/benchmarks/linkage.json` cannot be read" in benchmarks_page(tmp_path, lambda name: None)


def test_a_record_older_than_the_code_it_measures_is_marked(tmp_path: Path) -> None:
    files = {
        "src/btcnb/__init__.py": "",
        "src/btcnb/cut.py": "def cut():\n    return 1\n\n\ndef other():\n    return 1\n",
        "benchmarks/cut.py": "from btcnb.cut import cut\n\ncut()\n",
        "results/benchmarks/old.json": '[{"benchmark": "old", "seconds": 1.0}]',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    project = Project(tmp_path)
    records, script = tmp_path / "results/benchmarks", tmp_path / "benchmarks/cut.py"
    code = measured_code(script, Package(tmp_path / "src/btcnb"))
    (records / "cut.json").write_text(json.dumps([{"benchmark": "cut", "seconds": 1.0, "code": code}]))
    module = tmp_path / "src/btcnb/cut.py"
    module.write_text(files["src/btcnb/cut.py"].replace("def other():\n    return 1", "def other():\n    return 2"))
    page = benchmarks_page(records, current_code(project))
    assert "Measured before" not in page and code not in page
    module.write_text(files["src/btcnb/cut.py"].replace("return 1", "return 3", 1))
    assert benchmarks_page(records, current_code(project)).count("Measured before") == 1


def test_a_new_style_sheet_makes_the_rendering_start_from_nothing(tmp_path: Path) -> None:
    (tmp_path / "book").mkdir()
    for name, text in {"_config.yml": "a", "_toc.yml": "b", "book/page.md": "# P", "book/style.css": "p {}"}.items():
        (tmp_path / name).write_text(text)
    before = _rest(Project(tmp_path / "none"), tmp_path, True)
    (tmp_path / "book" / "page.md").write_text("# Another text of the same page")
    assert _rest(Project(tmp_path / "none"), tmp_path, True) == before
    (tmp_path / "book" / "style.css").write_text("p { color: red }")
    assert _rest(Project(tmp_path / "none"), tmp_path, True) != before


def test_a_chapter_says_whose_data_its_verdicts_rest_on() -> None:
    entry = {"kind": "verdict", "claim": "c", "where": "w", "verdict": "partly", "evidence": "e"}
    page = verdicts_page([(CHAPTER, [{"kind": "whose", "source": "economies", "simulated": True}, entry])])
    assert "| 0 | 1 | 0 | 0 | simulated |" in page
    page = verdicts_page([(CHAPTER, [{"kind": "whose", "source": "read from mine", "simulated": False}, entry])])
    assert "| read from mine |" in page
    assert "| 0 | 1 | 0 | 0 | – |" in verdicts_page([(CHAPTER, [entry])])


def test_without_a_word_on_whose_data_the_data_sources_tell_its_kind() -> None:
    entry = {"kind": "verdict", "claim": "c", "where": "w", "verdict": "partly", "evidence": "e"}
    for source, said in (
        ("180 recorded runs (simulated economies)", "simulated"),
        ("recorded runs (simulated, but for moser_real)", "simulated and real"),
        ("synthetic points on the unit sphere", "–"),
    ):
        page = verdicts_page([(CHAPTER, [{"kind": "data_source", "source": source}, entry])])
        assert f"| 0 | 1 | 0 | 0 | {said} |" in page


def test_provenance_prints_the_whole_recipe() -> None:
    stamp = Stamp(
        chapter="08_training",
        preset="quick",
        fingerprint=Fingerprint(text="", parameters=""),
        reads={},
        real_data="",
        notebook="",
        records="",
        parameters={},
        changed=[],
        seconds=1.0,
        cells=1,
        finished="2026-01-31T17:05:00+00:00",
        commit="unknown",
        versions={},
        machine="",
    )
    box = provenance_box(stamp, [{"kind": "recipe", "id": "abc", "fields": {"train.epochs": 3, "source.size": "tiny"}}])
    assert "`abc`: `train.epochs = 3, source.size = tiny`" in box
    assert "none: all that decides" in provenance_box(stamp, [])
