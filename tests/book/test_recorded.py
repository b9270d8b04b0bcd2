"""Records of benchmarks as a table."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from btcnb.book.recorded import COLUMNS, partition_words, recorded_partitions, recorded_stages, whole_tree_costs

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


def test_partitions_are_told_graph_by_graph_with_what_they_score():
    scored = {"size": "big", "nodes": 90, "modularity": 0.7, "communities": 5, "purity": 0.6, "nmi": 0.5, "ari": 0.4}
    runs = [
        record("coarse", 2.0, **scored, method="igraph"),
        record("total", 9.0, **scored, method="igraph"),
        {"stage": "total", "size": "big", "method": "leidenalg", "error": "no result within 5 s"},
        record("coarse", 1.0, **{**scored, "size": "small", "nodes": 9}, method="igraph"),
    ]
    table = recorded_partitions(runs)
    assert table["graph"].tolist() == ["small", "big", "big"]
    assert table["communities by"].tolist() == ["igraph", "igraph", "leidenalg"]
    assert table["seconds"].tolist()[:2] == [1.0, 2.0] and math.isnan(table["seconds"][2])
    assert table["nodes"].tolist() == [9, 90, 90] and math.isnan(table["DP"][2])
    assert recorded_partitions(None).empty


def test_words_compare_only_graphs_that_both_programs_finished():
    scores = {"size": "g", "nodes": 9, "modularity": 0.7, "communities": 5, "purity": 0.6, "nmi": 0.5, "ari": 0.4}
    ours = record("coarse", 2.0, **scores, method="igraph")
    theirs = record("coarse", 50.0, **{**scores, "modularity": 0.69, "purity": 0.65}, method="leidenalg")
    words = partition_words(recorded_partitions([ours, theirs]))
    assert "igraph's way takes 2.0 s, leidenalg's 25 times as long; modularity is 0.700 and 0.690" in words
    assert "DP by -0.050, NMI by +0.000, ARI by +0.000" in words
    assert "No graph has been partitioned by both" in partition_words(recorded_partitions([ours]))


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
