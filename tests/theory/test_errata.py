"""The errata page cites tests by number: every one exists, every row has one, and every listed test is cited."""

from __future__ import annotations

import re
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
PAGE = (PROJECT / "book" / "errata.md").read_text()
LISTED = {int(number): name for number, name in re.findall(r"^(\d+)\. `(test_\w+)`", PAGE, re.M)}
ROWS = [line for line in PAGE.splitlines() if re.match(r"\| [ECN]\d ", line)]
TESTS = {
    name
    for path in Path(__file__).parent.glob("test_*.py")
    for name in re.findall(r"^def (test_\w+)", path.read_text(), re.M)
}


def test_every_listed_test_exists():
    assert list(LISTED) == list(range(1, len(LISTED) + 1))
    assert [name for name in LISTED.values() if not any(known.startswith(name) for known in TESTS)] == []


def test_rows_and_list_match():
    assert len(ROWS) == 10
    cited = [set(map(int, re.findall(r"\d+", row.split(" | ")[-1]))) for row in ROWS]
    assert all(cited)
    assert set.union(*cited) == set(LISTED)


def test_every_row_is_explained():
    for row in ROWS:
        assert re.search(rf"^\*\*[^*]*{row[2:4]}", PAGE, re.M), row
