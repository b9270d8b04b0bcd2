"""What computations cost: how often a call runs, how costs grow, and records of benchmarks as a table."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from btcnb.book import costs
from btcnb.book.costs import COLUMNS, exponent, measure, recorded_stages, whole_tree_costs


def test_the_fastest_run_counts_and_all_are_run():
    calls = []
    cost = measure(lambda: calls.append(1), repeats=3)
    assert len(calls) == 3 and 0 <= cost.seconds < 1


def test_a_slow_call_runs_once(monkeypatch):
    monkeypatch.setattr(costs, "SLOW", -1.0)
    calls = []
    measure(lambda: calls.append(1), repeats=5)
    assert len(calls) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps a high-water mark that can be reset")
def test_memory_is_seen_although_it_was_given_back():
    size = 60_000_000
    assert 0.8 * size < measure(lambda: np.ones(size, dtype=np.uint8).sum(), repeats=2).extra_bytes < 2 * size


def test_the_exponent_of_a_power_law():
    n = np.array([800, 100, 200, 400])
    assert exponent(n, 3e-6 * n.astype(float) ** 2) == pytest.approx(2)
    assert exponent(n, [8, 1000, 2, 4]) == pytest.approx(1)  # the three largest sizes only
    assert exponent(n, [8, 0, 0, 4]) == pytest.approx(1)  # a zero was below what can be measured
    assert math.isnan(exponent(n, [1, 0, 0, 0])) and math.isnan(exponent([], []))


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


def test_the_cost_of_a_whole_tree_is_continued_by_its_power_law() -> None:
    """Seconds n²/1e6 at 1,000 and 4,000 rows: 100 s = 1/36 h at 10,000. A thousand bytes a row, of the largest."""
    whole = {"benchmark": "linkage", "task": "whole tree", "shape": "trained", "stage": "ours", "start_mb": 1.0}
    records = [
        whole | {"rows": 1_000, "n": 1_000, "cpu_seconds": 1.0, "peak_mb": 50.0},
        whole | {"rows": 4_000, "n": 4_000, "cpu_seconds": 16.0, "peak_mb": 1.0 + 4_000_000 / 2**20},
        whole | {"rows": 9_000, "n": 9_000, "cpu_seconds": 0.1, "peak_mb": 9.0, "resumed": True},
        whole | {"rows": 9_000, "n": 9_000, "cpu_seconds": 0.1, "peak_mb": 9.0, "shape": "uniform"},
    ]
    (line,) = whole_tree_costs(records, [10_000]).to_dict("records")
    assert line == pytest.approx({"points": 10_000, "CPU hours": 1 / 36, "GB": 0.01, "exponent": 2.0})
    assert whole_tree_costs(records[:1], [10]).empty and whole_tree_costs(None, [10]).empty
