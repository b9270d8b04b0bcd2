"""Records: whole files or none, whatever happens while one is written; and what `btcnb results` makes of them."""

from __future__ import annotations

import csv
import errno
import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from btcnb.data import Source
from btcnb.errors import DataError, ParameterError
from btcnb.experiments import recipe
from btcnb.experiments.recipe import Job
from btcnb.experiments.sweep import records as module
from btcnb.experiments.sweep.records import FIELDS, FORMAT, OTHER_VERSION, Records, run_id
from btcnb.experiments.sweep.report import Wanted, frame_of, metrics_of, report, state_of_affairs, summary


def plain(row: str = "gat", **changes: Any) -> dict[str, Any]:
    values: dict[type, Any] = {str: "x", int: 1, float: 0.5}
    return {name: values[kind] for name, kind in FIELDS.items()} | {"row": row, "state": "done", **changes}


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return Records(tmp_path / "results" / "ablation.jsonl")


def test_a_line_each_in_the_order_of_appending(records: Records) -> None:
    assert records.read() == []
    records.append(plain("gat", DP=0.5))
    records.append(plain("größer", state="failed", DP=None), plain("third"))
    assert [each["row"] for each in records.read()] == ["gat", "größer", "third"]
    assert records.path.read_text(encoding="utf-8").count("\n") == 3
    assert "größer" in records.path.read_text(encoding="utf-8")
    records.append()
    assert len(records.read()) == 3


def test_no_number_is_null(records: Records) -> None:
    records.append(plain(DP=float("nan"), NMI=float("inf"), ARI=0.25))
    assert (records.read()[0]["DP"], records.read()[0]["NMI"], records.read()[0]["ARI"]) == (None, None, 0.25)


def test_locks_are_not_for_git(records: Records) -> None:
    records.append(plain())
    assert (records.path.parent / ".locks" / ".gitignore").read_text() == "*\n"
    assert [path.name for path in records.path.parent.glob("*") if path.is_file()] == ["ablation.jsonl"]


@pytest.mark.parametrize("damage", [b"not json\n", b"[1]\n", b"\xff\n", b"[" * 100_000 + b"\n", b'{"row": "ha'])
def test_a_damaged_line_is_named(records: Records, damage: bytes) -> None:
    records.append(plain("first"))
    records.path.write_bytes(records.path.read_bytes() + damage)
    with pytest.raises(DataError, match=re.escape(f"{records.path}: line 2: is no record; remove the line")):
        records.read()


@pytest.mark.parametrize(
    "changes",
    [{"format": 0}, {"format": 2}, {"format": True}, {"seed": "1"}, {"state": "half"}, {"run": None}, {"data": 3}],
)
def test_records_of_another_version_are_marked(records: Records, changes: dict[str, Any]) -> None:
    records.append(plain("old", **changes), plain("new"))
    assert [each["state"] for each in records.read()] == [OTHER_VERSION, "done"]
    assert records.read()[0]["row"] == "old"


def test_a_record_without_a_needed_field_is_of_another_version(records: Records) -> None:
    records.append(*({key: value for key, value in plain().items() if key != name} for name in FIELDS))
    assert {each["state"] for each in records.read()} == {OTHER_VERSION}


@pytest.mark.parametrize("problem", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_what_is_not_on_the_disk_is_not_in_the_file(
    records: Records, monkeypatch: pytest.MonkeyPatch, problem: BaseException
) -> None:
    records.append(plain("first"))
    before = records.path.read_bytes()

    def fails(file: int) -> None:
        raise problem

    monkeypatch.setattr(module.os, "fsync", fails)
    with pytest.raises(DataError if isinstance(problem, OSError) else KeyboardInterrupt):
        records.append(plain("second"))
    assert records.path.read_bytes() == before
    assert [path.name for path in records.path.parent.iterdir() if path.is_file()] == ["ablation.jsonl"]


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file stands where the folder should be")
    with pytest.raises(DataError, match="records: cannot be written"):
        Records(tmp_path / "results" / "a.jsonl").append(plain())
    (tmp_path / "a.jsonl").mkdir()
    with pytest.raises(DataError, match="records: cannot be written"):
        Records(tmp_path / "a.jsonl").append(plain())
    with pytest.raises(DataError, match="records: cannot be read"):
        Records(tmp_path / "a.jsonl").read()


APPENDING = f"""
import runpy, sys
Records = runpy.run_path({module.__file__!r})["Records"]  # not its package, which imports networks
records = Records(sys.argv[1])
line = records.read()[0]
for number in range(100):
    records.append(line | dict(row=sys.argv[2], seed=number))
"""


def test_processes_that_append_at_once(records: Records) -> None:
    records.append(plain("first"))
    command = [sys.executable, "-c", APPENDING, str(records.path)]
    both = [subprocess.Popen([*command, name]) for name in ("a", "b")]
    assert [process.wait(timeout=300) for process in both] == [0, 0]
    found = records.read()
    assert len(found) == 201
    for name in ("a", "b"):
        assert [each["seed"] for each in found if each["row"] == name] == list(range(100))


# --- what `btcnb results` shows ---


def record(row: str, seed: int, rate: float = 0.001, state: str = "done", **metrics: Any) -> dict[str, Any]:
    made = Job(row, seed, recipe(Source(size="tiny", seed=seed), seed, learning_rate=rate))
    head = {"format": FORMAT, "grid": "g", "row": row, "seed": seed, "run": run_id(made), "measure": "scores"}
    how = {"method": "trained", "state": state, "error": "no." if state == "failed" else "", "made": "2026-01-01"}
    then = {"versions": "btcnb 1", "data": f"d{seed}", "seconds": 1.0}
    return {**head, **how, **then, **made.recipe.flat(), **metrics}


def written(folder: Path, records: list[dict[str, Any]], name: str = "g") -> Path:
    kept = Records(folder / f"{name}.jsonl")
    kept.append(*records)
    return kept.path


TWO_ROWS = [
    *(record("gat", seed, DP=dp) for seed, dp in ((1, 0.5), (2, 0.7), (3, 0.9))),
    *(record("other", seed, 0.002, DP=dp) for seed, dp in ((3, 0.6), (2, 0.5), (1, 0.4))),
]


def test_the_newest_done_record_of_a_run_wins_and_settings_are_not_mixed(tmp_path: Path) -> None:
    runs = [record("gat", 1, DP=0.1), record("gat", 1, DP=0.2), record("gat", 1, state="failed")]
    assert frame_of(written(tmp_path, runs))[["row", "seed", "DP"]].to_numpy().tolist() == [["gat", 1, 0.2]]
    older = [record("gat", seed, 0.001, DP=0.1) for seed in (1, 2)]
    frame = frame_of(written(tmp_path, [*older, record("gat", 1, 0.005, DP=0.9)], "rates"))
    assert frame[["seed", "DP"]].to_numpy().tolist() == [[1, 0.9]]


def test_rows_stay_together_and_seeds_in_order(tmp_path: Path) -> None:
    frame = frame_of(written(tmp_path, TWO_ROWS))
    places = list(zip(frame["row"], frame["seed"], strict=True))
    assert places == [(row, seed) for row in ("gat", "other") for seed in (1, 2, 3)]
    assert metrics_of(frame) == ["DP"]


def test_other_versions_and_failures_are_counted_and_left_out(tmp_path: Path) -> None:
    moved = [record("gat", 4, data="before"), {**record("other", 4, 0.002), "data": "after"}]
    runs = [record("gat", 1), record("gat", 2), record("gat", 3, state="failed"), *moved, {"format": 0}]
    path = written(tmp_path, runs)
    assert state_of_affairs(path) == [
        "g: 3 done, 1 failed, 1 other data, 1 other version.",
        "  failed: gat · seed 3: no.",
    ]
    assert len(frame_of(path)) == 4
    assert state_of_affairs(tmp_path / "none.jsonl") == ["none: no records."]


def test_a_summary_has_mean_spread_number_and_paired_differences(tmp_path: Path) -> None:
    """0.1, 0.2 and 0.3: mean 0.2, standard deviation 0.1, and t for 2 degrees of freedom at 95 % is 4.3027."""
    runs = [*TWO_ROWS, record("gat", 4, DP=None), record("other", 4, 0.002, DP=0.5)]
    frame = frame_of(written(tmp_path, runs))
    gat, other = summary(frame, Wanted(metrics=["DP"], against="other")).to_dict("records")
    assert (gat["row"], gat["metric"], gat["n"], gat["pairs"]) == ("gat", "DP", 3, 3)
    assert (gat["mean"], gat["sd"], gat["difference"]) == tuple(map(pytest.approx, (0.7, 0.2, 0.2)))
    assert gat["high"] - gat["difference"] == pytest.approx(4.302653 * 0.1 / 3**0.5)
    assert other["n"] == 4 and other["difference"] == pytest.approx(0.0)


@pytest.fixture
def compared(tmp_path: Path) -> Path:
    return written(tmp_path, [*TWO_ROWS, record("a_b & c|d", 1, 0.003, NMI=12_345.6)])


def table(path: Path, form: str) -> str:
    return report([path], Wanted(metrics=["DP", "NMI"], against="other", form=form))


def test_text(compared: Path) -> None:
    lines = table(compared, "text").splitlines()
    assert lines[0].split() == ["row", "n", "DP", "DP", "−", "other", "NMI", "NMI", "−", "other"]
    assert lines[1].split("  ")[0] == "gat" and "0.700 ± 0.200  +0.200 [-0.048, +0.448]" in lines[1]
    assert "0.500 ± 0.100" in lines[2] and "[" not in lines[2] and "12,346" in lines[3]


def test_markdown(compared: Path) -> None:
    lines = table(compared, "markdown").splitlines()
    assert lines[1] == "| --- | ---: | ---: | ---: | ---: | ---: |"
    assert lines[2] == "| gat | 3 | 0.700 ± 0.200 | +0.200 [-0.048, +0.448] | – | – |"
    assert lines[4].startswith(r"| a_b & c\|d | 1 | – |")


def test_latex(compared: Path) -> None:
    text = table(compared, "latex")
    assert r"a\_b \& c|d & 1 & -- & -- & 12,346 & -- \\" in text
    assert r"gat & 3 & 0.700 $\pm$ 0.200 & +0.200 [-0.048, +0.448] & -- & -- \\" in text
    assert text.startswith("\\begin{tabular}{lrrrrr}\n") and text.endswith("\\end{tabular}\n")


def test_csv_has_all_digits(compared: Path) -> None:
    lines = list(csv.DictReader(io.StringIO(table(compared, "csv"))))
    assert len(lines) == 6 and lines[0]["row"] == "gat"
    assert float(lines[0]["difference"]) == pytest.approx(0.2, abs=1e-12)


def test_a_report_of_two_grids(tmp_path: Path) -> None:
    paths = [written(tmp_path, TWO_ROWS, "one"), written(tmp_path, [record("gat", 1, purity=0.25)], "two")]
    lines = report(paths, Wanted()).splitlines()
    assert [line.split()[0] for line in lines if line] == ["one", "row", "gat", "other", "two", "row", "gat"]
    assert "purity" in lines[-2]  # none of the paper's metrics: then all
    only = report(paths, Wanted(rows=["other"], metrics=["DP"], against="gat")).splitlines()
    assert [line.split()[0] for line in only] == ["row", "other", "gat"]
    ordered = report(paths[:1], Wanted(order=["other", "gat"])).splitlines()
    assert [line.split()[0] for line in ordered] == ["row", "other", "gat"]
    rows = list(csv.DictReader(io.StringIO(report(paths, Wanted(form="csv")))))
    assert [(each["grid"], each["row"], each["metric"]) for each in rows] == [
        ("one", "gat", "DP"), ("one", "other", "DP"), ("two", "gat", "purity")]  # fmt: skip


def test_what_nobody_has_recorded_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, [record("gat", 1, state="failed")])
    assert report([path], Wanted()) == "" and report([path], Wanted(form="csv")) == ""
    with pytest.raises(ParameterError, match="there is no row 'gat'; there are no records of runs that are done"):
        report([path], Wanted(rows=["gat"]))
    other = written(tmp_path, TWO_ROWS, "other")
    with pytest.raises(ParameterError, match="there is no metric 'XX'; there are DP"):
        report([other], Wanted(metrics=["XX"]))
