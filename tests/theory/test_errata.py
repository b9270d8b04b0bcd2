"""The errata page cites tests by name: every one of them exists, and every statement row has one."""

from __future__ import annotations

import re
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
PAGE = (PROJECT / "book" / "errata.md").read_text()
TESTS = {
    name
    for path in Path(__file__).parent.glob("test_*.py")
    for name in re.findall(r"^def (test_\w+)", path.read_text(), re.M)
}


def test_every_cited_test_exists():
    cited = set(re.findall(r"`(test_\w+)`", PAGE))
    assert len(cited) > 10
    assert [name for name in sorted(cited) if not any(known.startswith(name) for known in TESTS)] == []


def test_every_row_names_its_test():
    rows = [
        line
        for line in PAGE.splitlines()
        if line.startswith("| ") and not line.startswith(("| :", "| statement", "| where", "| in the"))
    ]
    assert len(rows) == 10
    assert [row[:60] for row in rows if "`test_" not in row.split(" | ")[-1]] == []
