from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from minibook import MiniBook


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MiniBook]:
    """A fresh miniature book, nothing executed."""
    monkeypatch.delenv("BTCNB_REAL_DATA", raising=False)
    yield MiniBook.create(tmp_path / "book")
