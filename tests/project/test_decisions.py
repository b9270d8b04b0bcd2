"""The page of decisions names parameters: each exists, and no row leaves its reading or its switch open."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from btcnb import cluster, data, experiments, learn, theory
from btcnb.data import change_votes
from btcnb.experiments import change_forest, moser

ROOT = Path(__file__).parents[2]
ROWS = [
    [cell.strip() for cell in line.strip().strip("|").split(" | ")]
    for line in (ROOT / "book" / "decisions.md").read_text("utf-8").splitlines()
    if line.startswith("|") and not line.startswith(("| the paper", "| ---"))
]
CALLS = [(name, word) for row in ROWS for name, inside in re.findall(r"`(\w+)\((.*?)\)`", row[-1])
         for word in re.findall(r"(\w+)=…", inside)]  # fmt: skip
OTHERS: dict[str, Any] = {
    "evaluate": cluster.ClusterConfig,
    "refine": cluster.ClusterConfig,
    "recipe": learn.TrainConfig,
}
"""Where the further fields of a function with open keywords are declared."""
PLACES = (change_votes, change_forest, moser, data, learn, cluster, theory, experiments)


def parameters(name: str) -> set[str]:
    found = next(getattr(place, name) for place in PLACES if hasattr(place, name))
    names = {item.name for item in fields(found)} if is_dataclass(found) else set(inspect.signature(found).parameters)
    return names | ({item.name for item in fields(OTHERS[name])} if name in OTHERS else set())


@pytest.mark.parametrize(("name", "word"), CALLS)
def test_every_switch_exists(name: str, word: str) -> None:
    assert word in parameters(name)


def test_every_row_says_what_we_do_and_how_to_do_otherwise() -> None:
    assert len(ROWS) > 40
    for row in ROWS:
        assert len(row) == 3 and all(row), row
        assert "not switchable" in row[2] or re.search(r"`\w+\(\w+=…", row[2]), f"no switch: {row[2]}"


def test_switches_of_chapters_are_their_parameters() -> None:
    for chapter, word in (("03", "reading"), ("06", "endpoints")):
        text = next(ROOT.glob(f"notebooks/{chapter}_*.md")).read_text("utf-8")
        assert re.search(rf"^{word}: str = ", text, re.MULTILINE)
