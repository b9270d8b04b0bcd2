"""Records of benchmarks as a table."""

from __future__ import annotations

import json
from pathlib import Path

from btcnb.book.recorded import COLUMNS, recorded_stages

BENCHMARKS = Path(__file__).resolve().parents[2] / "results" / "benchmarks"


def record(stage, seconds, peak=300.0, **more):
    return {"benchmark": "b", "n": 10, "stage": stage, "seconds": seconds, "peak_mb": peak, "start_mb": 200.0, **more}


def test_repeats_become_one_row_and_totals_none():
    table = recorded_stages([record("ours 0", 2.0), record("ours 1", 1.0, peak=350.0), record("total", 9.0)])
    assert table.to_numpy().tolist() == [["b", "", "", "ours", 10, 1.0, 150.0]]


def test_files_that_are_not_there_and_runs_that_failed_add_nothing():
    failed = {"benchmark": "b", "n": 10, "stage": "total", "error": "no result within 5 s"}
    table = recorded_stages(None, [failed], [record("ours", 1.0, task="t", shape="s")])
    assert list(table.columns) == COLUMNS and len(table) == 1
    assert list(recorded_stages(None).columns) == COLUMNS and recorded_stages(None).empty


def test_the_records_of_this_project_can_be_read():
    for name in ("linkage", "silhouette", "purity"):
        table = recorded_stages(json.loads((BENCHMARKS / f"{name}.json").read_text(encoding="utf-8")))
        assert len(table) and (table["seconds"] > 0).all() and not table["stage"].eq("total").any()
