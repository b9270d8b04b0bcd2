"""`btcnb sweep` and `btcnb results`: what is refused, what is said, and one real sweep of the smallest size."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import pytest

from btcnb.build.cli import main

GRID = """
name: smallest
words: the smallest sweep there is
measure: scores
size: tiny
seeds: 1
rows:
  gat: {}
  louvain: {method: louvain}
  diverges: {learning_rate: 1e30, epochs: 4}
"""


@pytest.fixture
def grid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BTCNB_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "smallest.yaml"
    path.write_text(GRID)
    return path


def test_a_dry_run_lists_and_writes_nothing(grid: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", str(grid), "--dry-run", "--results", "found", "--seeds", "1,7", "--only", "gat"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "smallest: 2 runs, 0 recorded, 2 to do.",
        "smallest · gat · seed 1",
        "smallest · gat · seed 7",
    ]
    assert not Path("found").exists()


@pytest.mark.parametrize(
    ("arguments", "said", "status"),
    [
        (["sweep", "nothing.yaml"], "nothing.yaml: file: cannot be read", 1),
        (["sweep", "smallest.yaml", "--jobs", "0"], "--jobs 0: a whole number of at least 1.", 2),
        (["sweep", "smallest.yaml", "--only", "gta"], "there is no row 'gta'; did you mean 'gat'.", 1),
        (["sweep", "smallest.yaml", "smallest.yaml"], "two of the grids are called 'smallest'", 2),
        (["sweep", "smallest.yaml", "--seeds", "0"], "seeds: is 0;", 1),
        (["results", "--results", "found"], "found: records: there are none; make some with `btcnb sweep`.", 1),
        (["results", "smallest.yaml", "--results", "found"], "there are none of a grid 'smallest'", 1),
    ],
)
def test_what_is_refused(
    grid: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str, status: int
) -> None:
    assert main(arguments) == status
    told = capsys.readouterr().err
    assert told.startswith("btcnb: ") and said in told and told.count("\n") == 1


@pytest.mark.parametrize("seeds", ["many", "1,two"])
def test_seeds_that_are_no_numbers(grid: Path, capsys: pytest.CaptureFixture[str], seeds: str) -> None:
    assert main(["sweep", str(grid), "--seeds", seeds]) == 2
    assert "is neither a number nor a list such as 1,4,9" in capsys.readouterr().err


def test_without_dask(grid: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(["sweep", str(grid), "--results", "found", "--scheduler", "tcp://127.0.0.1:8786"]) == 2
    assert "--scheduler needs Dask, which is not installed" in capsys.readouterr().err


def test_a_real_sweep_is_recorded_resumed_and_compared(grid: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", str(grid), "--results", "found", "--jobs", "2"]) == 1
    told = capsys.readouterr()
    lines = told.out.splitlines()
    assert lines[0] == "smallest: 3 runs, 0 recorded, 3 to do." and len(lines) == 4  # then one line a run
    assert lines[-1].endswith("2 done, 1 failed, 0 to go") and "btcnb: Runs that failed: 1" in told.err
    records = [json.loads(line) for line in Path("found/smallest.jsonl").read_text().splitlines()]
    errors = {each["error"] for each in records if each["row"] == "diverges"}
    assert all("epoch" in error and "step" in error and "lower learning_rate" in error for error in errors)
    assert {each["data"] for each in records if each["seed"] == 1 and each["state"] == "done"} != {""}

    assert main(["sweep", str(grid), "--results", "found", "--only", "gat", "louvain"]) == 0
    assert "smallest: 2 runs, 2 recorded, 0 to do." in capsys.readouterr().out

    assert main(["results", str(grid), "--results", "found", "--against", "louvain", "--metric", "NMI"]) == 0
    told = capsys.readouterr()
    assert "smallest: 2 done, 1 failed." in told.out and "failed: diverges · seed 1: " in told.out
    assert [line.split()[0] for line in told.out.splitlines()[-3:]] == ["row", "gat", "louvain"]
    options = ["--results", "found", "--format", "csv", "--out", "table.csv"]
    assert main(["results", "smallest", *options]) == 0 and "written: table.csv" in capsys.readouterr().err
    table = list(csv.DictReader(io.StringIO(Path("table.csv").read_text())))
    (by_hand,) = [each["NMI"] for each in records if each["row"] == "gat"]
    (found,) = [float(each["mean"]) for each in table if (each["row"], each["metric"]) == ("gat", "NMI")]
    assert found == by_hand
