"""`btcnb store`: what is kept, and what goes."""

from __future__ import annotations

from pathlib import Path

import pytest
from minibook import MiniBook

from btcnb.store import kept


@kept
def twice(number: int) -> int:
    return 2 * number


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BTCNB_CACHE", str(tmp_path / "cache"))
    assert [twice(1), twice(2)] == [2, 4]
    return tmp_path / "cache"


def test_the_store_is_listed_with_sizes(book: MiniBook, store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for action in ((), ("list",)):
        assert book.btcnb("store", *action) == 0
        told = capsys.readouterr().out
        assert told.count("twice") == 2 and "number=1" in told and "current" in told
        assert "2 results, 0.0 MB, in" in told


def test_pruning_takes_what_is_damaged_old_or_everything(
    book: MiniBook, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = next(store.rglob("entry.json"))
    manifest.write_text(manifest.read_text()[:-20])
    for arguments, gone in (((), 1), (("--older-than", "1"), 0), (("--all",), 1)):
        assert book.btcnb("store", "prune", *arguments) == 0
        assert capsys.readouterr().out.startswith(f"{gone} results removed")
    assert book.btcnb("store", "prune", "--older-than", "nan") == 2
    assert book.btcnb("store") == 0
    assert "0 results" in capsys.readouterr().out
