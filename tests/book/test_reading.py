"""Chapters declare what they read by reading it; what other chapters of a build have recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from btcnb.book import reading
from btcnb.book.reading import chapter_pages, recorded_verdicts
from btcnb.errors import DataError
from btcnb.store.reads import ABSENT, recording


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(reading, "RESULTS", tmp_path)
    return tmp_path


def test_records_are_parsed_and_noted(folder: Path) -> None:
    (folder / "benchmarks").mkdir()
    (folder / "benchmarks" / "one.json").write_text('[{"seconds": 2}]')
    (folder / "two.csv").write_text("rule,share\nNA,0.5\nb,\n")
    with recording() as reads:
        assert reading.results("benchmarks/one") == [{"seconds": 2}]
        table = reading.results("two")
    assert table["rule"].tolist() == ["NA", "b"]
    assert table["share"].isna().tolist() == [False, True]
    assert sorted(Path(path).name for path in reads) == ["one.json", "two.csv"]


def test_an_absent_record_is_noted_as_absent(folder: Path) -> None:
    with recording() as reads:
        assert reading.results("three") is None
    assert set(reads.values()) == {ABSENT}


def test_a_broken_record_is_named(folder: Path) -> None:
    (folder / "one.json").write_text("[{")
    with pytest.raises(DataError, match=r"one\.json: record: cannot be read"):
        reading.results("one")


def test_real_data_is_found_through_the_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(reading.REAL_DATA, str(folder))
    assert reading.real_data("dumplings") is None
    (folder / "dumplings").mkdir()
    assert reading.real_data("dumplings") == folder / "dumplings"


def test_real_data_is_looked_for_nowhere_else(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No folder beside the project counts; the reading is noted, so that setting the variable runs a chapter again."""
    monkeypatch.delenv(reading.REAL_DATA, raising=False)
    monkeypatch.setattr(reading, "ROOT", folder / "project")
    (folder / "shared" / "data" / "dumplings").mkdir(parents=True)
    with recording() as reads:
        assert reading.real_data("dumplings") is None
    assert set(reads.values()) == {ABSENT}


def test_verdicts_of_a_build_are_found_by_chapter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = {"kind": "verdict", "claim": "A", "verdict": "partly", "evidence": "3 of 5", "where": "Table 1"}
    (tmp_path / "05_theorem.json").write_text(json.dumps([{"kind": "data_source", "source": "x"}, verdict]))
    (tmp_path / "06_none.json").write_text("[]")
    monkeypatch.setenv(reading.BUILD_RECORDS, str(tmp_path))
    assert recorded_verdicts() == {"05": [verdict], "06": []}
    (tmp_path / "07_torn.json").write_text('[{"kind": "verdict"}]')
    with pytest.raises(DataError, match=r"07_torn\.json"):
        recorded_verdicts()
    monkeypatch.delenv(reading.BUILD_RECORDS)
    assert recorded_verdicts() == {}, "a chapter that runs alone has no records"


def test_pages_are_those_of_the_chapters() -> None:
    assert chapter_pages()["11"] == "11_ablation.html" and len(chapter_pages()) >= 18
