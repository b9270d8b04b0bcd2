"""The verdict on every claim, from the committed records: `verdicts.csv` changes only with the rules or the records."""

from __future__ import annotations

import csv
import functools
import json
from pathlib import Path
from typing import Any

import pandas as pd

from btcnb import paper
from btcnb.paper.board import scoreboard

ROOT = Path(__file__).resolve().parents[2]


@functools.cache
def read(grid: str) -> pd.DataFrame | None:
    path = ROOT / "results" / "sweeps" / f"{grid}.jsonl"
    if not path.exists():
        return None
    return pd.DataFrame.from_records([json.loads(line) for line in path.read_text().splitlines()])


def test_the_157_verdicts_are_those_that_were_given() -> None:
    recorded: dict[str, list[dict[str, Any]]] = {}  # by chapters that judge by their own code
    with (ROOT / "results" / "verdicts.csv").open() as file:
        for line in csv.DictReader(file):
            recorded.setdefault(line["chapter"], []).append({**line, "evidence": ""})
    board = scoreboard(paper.claims(), read, recorded)
    with Path(__file__).with_name("verdicts.csv").open() as file:
        given = {line["id"]: line["verdict"] for line in csv.DictReader(file)}
    assert dict(zip(board["id"], board["verdict"], strict=True)) == given
    assert len(given) == 157
