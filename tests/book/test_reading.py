"""Chapters declare what they read by reading it."""

from __future__ import annotations

from pathlib import Path

import pytest

from btcnb.book import reading
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
