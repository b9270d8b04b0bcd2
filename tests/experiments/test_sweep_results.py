"""What records say: one line a run, differences by seed, tables, all checked by hand."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from btcnb.data import Source
from btcnb.errors import BtcnbError, DataError, ParameterError
from btcnb.experiments import recipe
from btcnb.experiments.recipe import Job
from btcnb.experiments.sweep import paired, records_frame, summary, table
from btcnb.experiments.sweep.comparing import counts, failures, metrics_of
from btcnb.experiments.sweep.identity import run_id
from btcnb.experiments.sweep.records import FORMAT, Records
from btcnb.experiments.sweep.reporting import Wanted, report, state_of_affairs


def record(row: str, seed: int, rate: float = 0.001, state: str = "done", **metrics: Any) -> dict[str, Any]:
    made = Job(row, seed, recipe(Source(size="tiny", seed=seed), seed, learning_rate=rate))
    head = {"format": FORMAT, "grid": "g", "row": row, "seed": seed, "run": run_id(made), "measure": "scores"}
    how = {"method": "trained", "state": state, "error": "no." if state == "failed" else "", "made": "2026-01-01"}
    then = {"versions": "btcnb 1", "data": f"d{seed}", "seconds": 1.0}
    return {**head, **how, **then, **made.recipe.flat(), **metrics}


def written(folder: Path, records: list[dict[str, Any]], name: str = "g") -> Path:
    kept = Records(folder / f"{name}.jsonl")
    for each in records:
        kept.append(each)
    return kept.path


TWO_ROWS = [
    *(record("gat", seed, DP=dp) for seed, dp in ((1, 0.5), (2, 0.7), (3, 0.9))),
    *(record("other", seed, 0.002, DP=dp) for seed, dp in ((3, 0.6), (2, 0.5), (1, 0.4))),
]


def test_the_newest_done_record_of_a_run_wins(tmp_path: Path) -> None:
    path = written(tmp_path, [record("gat", 1, DP=0.1), record("gat", 1, DP=0.2), record("gat", 1, state="failed")])
    frame = records_frame(path)
    assert frame[["row", "seed", "DP"]].to_numpy().tolist() == [["gat", 1, 0.2]]


def test_records_with_a_digest_of_code_and_records_with_a_commit_count_alike(tmp_path: Path) -> None:
    path = written(tmp_path, [record("gat", 1, code="b951794b"), record("gat", 2, commit="v1-3-g0123abc")])
    assert records_frame(path)["seed"].tolist() == [1, 2]
    assert counts(Records(path).read())["done"] == 2 and metrics_of(records_frame(path)) == []


def test_rows_stay_together_and_seeds_in_order(tmp_path: Path) -> None:
    frame = records_frame(written(tmp_path, TWO_ROWS))
    assert list(zip(frame["row"], frame["seed"], strict=True)) == [
        (row, s) for row in ("gat", "other") for s in (1, 2, 3)
    ]


def test_a_row_whose_settings_changed_is_not_mixed(tmp_path: Path) -> None:
    """Seeds 1 and 2 were made with the old rate, seed 1 again with the new one."""
    older = [record("gat", seed, 0.001, DP=0.1) for seed in (1, 2)]
    frame = records_frame(written(tmp_path, [*older, record("gat", 1, 0.005, DP=0.9)]))
    assert frame[["seed", "DP"]].to_numpy().tolist() == [[1, 0.9]]


def test_other_versions_and_failures_are_counted_and_left_out(tmp_path: Path) -> None:
    records = [
        record("gat", 1),
        record("gat", 2),
        record("gat", 3, state="failed"),
        record("gat", 4, data="before"),
        {**record("other", 4, 0.002), "data": "after"},
        {"format": 0},
    ]
    path = written(tmp_path, records)
    expected = {"done": 3, "failed": 1, "other data": 1, "other version": 1}
    assert counts(Records(path).read()) == expected
    assert [(each["row"], each["seed"]) for each in failures(Records(path).read())] == [("gat", 3)]
    assert len(records_frame(path)) == 4


def test_no_records(tmp_path: Path) -> None:
    frame = records_frame(tmp_path / "none.jsonl")
    assert len(frame) == 0 and {"row", "seed"} <= set(frame.columns)
    assert summary(frame, ["DP"]).empty and sum(counts([]).values()) == 0


def test_differences_are_paired_by_seed(tmp_path: Path) -> None:
    """0.1, 0.2 and 0.3: mean 0.2, standard deviation 0.1, and t for 2 degrees of freedom at 95 % is 4.3027."""
    found = paired(records_frame(written(tmp_path, TWO_ROWS)), "gat", "other", "DP")
    half = 4.302653 * 0.1 / math.sqrt(3)
    assert found.n == 3 and found.mean == pytest.approx(0.2)
    assert (found.low, found.high) == (pytest.approx(0.2 - half), pytest.approx(0.2 + half))


def test_seeds_without_a_number_do_not_count(tmp_path: Path) -> None:
    records = [*TWO_ROWS, record("gat", 4, DP=None), record("other", 4, 0.002, DP=0.5), record("gat", 5, DP=0.5)]
    frame = records_frame(written(tmp_path, records))
    assert paired(frame, "gat", "other", "DP").n == 3
    lines = summary(frame, ["DP"]).set_index("row")
    assert lines["n"].to_dict() == {"gat": 4, "other": 4}


def test_one_pair_has_no_interval_and_none_no_mean(tmp_path: Path) -> None:
    frame = records_frame(written(tmp_path, [record("a", 1, DP=0.5), record("b", 1, 0.002, DP=0.2)]))
    one = paired(frame, "a", "b", "DP")
    assert one.mean == pytest.approx(0.3) and one.n == 1 and math.isnan(one.low) and math.isnan(one.high)
    frame.loc[0, "seed"] = 2
    assert paired(frame, "a", "b", "DP").n == 0 and math.isnan(paired(frame, "a", "b", "DP").mean)


def test_a_summary_has_mean_spread_and_number(tmp_path: Path) -> None:
    frame = records_frame(written(tmp_path, TWO_ROWS))
    gat, other = summary(frame, ["DP"], against="other").to_dict("records")
    assert (gat["row"], gat["metric"], gat["n"], gat["pairs"]) == ("gat", "DP", 3, 3)
    assert (gat["mean"], gat["sd"], gat["difference"]) == tuple(map(pytest.approx, (0.7, 0.2, 0.2)))
    assert (other["mean"], other["sd"], other["difference"]) == tuple(map(pytest.approx, (0.5, 0.1, 0.0)))


def test_unknown_rows_and_metrics_are_named(tmp_path: Path) -> None:
    frame = records_frame(written(tmp_path, TWO_ROWS))
    with pytest.raises(ParameterError, match="there is no row 'sage'; there are gat, other"):
        paired(frame, "gat", "sage", "DP")
    with pytest.raises(ParameterError, match="no run has the metric 'XX'; there are DP"):
        summary(frame, ["XX"])
    with pytest.raises(BtcnbError):
        summary(frame, 3)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="row gat: a seed stands there twice; compare records of one grid at a time"):
        summary(pd.concat([frame, frame]), ["DP"])
    assert metrics_of(frame) == ["DP"]


# --- tables ---


@pytest.fixture
def compared(tmp_path: Path) -> pd.DataFrame:
    extra = [record("a_b & c|d", 1, 0.003, NMI=12_345.6)]
    frame = records_frame(written(tmp_path, [*TWO_ROWS, *extra]))
    return summary(frame, ["DP", "NMI"], against="other")


def test_text(compared: pd.DataFrame) -> None:
    lines = table(compared, "text", "other").splitlines()
    assert lines[0].split() == ["row", "n", "DP", "DP", "−", "other", "NMI", "NMI", "−", "other"]
    assert lines[1].split("  ")[0] == "gat" and "0.700 ± 0.200  +0.200 [-0.048, +0.448]" in lines[1]
    assert "0.500 ± 0.100" in lines[2] and "[" not in lines[2] and "12,346" in lines[3]


def test_markdown(compared: pd.DataFrame) -> None:
    lines = table(compared, "markdown", "other").splitlines()
    assert lines[1] == "| --- | ---: | ---: | ---: | ---: | ---: |"
    assert lines[2] == "| gat | 3 | 0.700 ± 0.200 | +0.200 [-0.048, +0.448] | – | – |"
    assert lines[4].startswith(r"| a_b & c\|d | 1 | – |")


def test_latex(compared: pd.DataFrame, tmp_path: Path) -> None:
    text = table(compared, "latex", "other")
    assert r"a\_b \& c|d & 1 & -- & -- & 12,346 & -- \\" in text
    assert r"gat & 3 & 0.700 $\pm$ 0.200 & +0.200 [-0.048, +0.448] & -- & -- \\" in text
    assert text.startswith("\\begin{tabular}{lrrrrr}\n") and text.endswith("\\end{tabular}\n")


def test_csv_has_all_digits(compared: pd.DataFrame) -> None:
    lines = list(csv.DictReader(io.StringIO(table(compared, "csv"))))
    assert (
        len(lines) == 6 and lines[0]["row"] == "gat" and float(lines[0]["difference"]) == pytest.approx(0.2, abs=1e-12)
    )
    with pytest.raises(ParameterError, match="form is 'pdf', but must be one of 'text', 'markdown', 'latex', 'csv'"):
        table(compared, "pdf")


# --- several grids ---


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


def test_a_report_without_anything_to_show(tmp_path: Path) -> None:
    path = written(tmp_path, [record("gat", 1, state="failed")])
    assert report([path], Wanted()) == "" and report([path], Wanted(form="csv")) == ""
    with pytest.raises(ParameterError, match="there is no row 'gat'; there are no records of runs that are done"):
        report([path], Wanted(rows=["gat"]))
    assert state_of_affairs(path) == ["g: 1 failed.", "  failed: gat · seed 1: no."]
