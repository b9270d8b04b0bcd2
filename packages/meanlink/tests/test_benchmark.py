"""The benchmark: its rows, its guard against contenders that take too much, and its table."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

import meanlink

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))  # where processes of its own find it, too
import compare as benchmark


def options(**changes: object) -> Namespace:
    given = {"dimension": 8, "seed": 0, "rows": None, "memory": 4.0, "timeout": 300.0}
    return Namespace(**(given | changes))


def test_the_rows_are_those_of_their_seed_and_have_copies_and_close_pairs() -> None:
    X = benchmark.trained_like(2_000, 16, seed=3)
    assert X.shape == (2_000, 16) and X.dtype == np.float32
    np.testing.assert_array_equal(X, benchmark.trained_like(2_000, 16, seed=3))
    assert not np.array_equal(X, benchmark.trained_like(2_000, 16, seed=4))
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0, atol=1e-6)
    heights = meanlink.linkage(X)[:, 2]
    assert 10 <= (heights == 0.0).sum() <= 200  # exact copies
    assert np.quantile(heights, 0.1) < 1e-4 and heights[-1] > 0.3
    assert len(benchmark.trained_like(1)) == 1


def test_a_small_run_from_the_command_to_its_files(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- benchmark -->\nold\n<!-- /benchmark -->\nafter\n", encoding="utf-8")
    np.save(tmp_path / "rows.npy", 3 * benchmark.trained_like(300, 8))
    files = ["--json", str(tmp_path / "out.json"), "--readme", str(page), "--rows", str(tmp_path / "rows.npy")]
    benchmark.main(["200", "--tasks", "linkage", *files])
    records = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert [record["contender"] for record in records] == list(benchmark.CONTENDERS["linkage"])
    for record in records:
        assert record["status"] in ("measured", "not installed"), record
        if record["status"] == "measured" and record["contender"] not in ("meanlink", "genieclust"):
            assert record["difference"] < 1e-9 and record["times_ours"] > 0
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n<!-- benchmark -->\n| task |") and text.endswith("<!-- /benchmark -->\nafter\n")
    assert "old" not in text and text.count("\n| linkage | 200 |") == len(records)


def test_who_takes_too_much_is_stopped_and_named() -> None:
    assert benchmark.measured("linkage", "pdist + SciPy", 10**6, options())[0]["status"] == "needs 7451 GB"
    record, found = benchmark.measured("linkage", "pdist + SciPy", 500, options(timeout=0.0))
    assert record["status"] == "more than 0 s" and found is None and "seconds" not in record


def test_the_plot_has_a_line_per_contender_and_leaves_out_what_was_not_measured() -> None:
    pytest.importorskip("matplotlib")
    records = [
        {"task": "linkage", "contender": name, "n": n, "seconds": n / 1000, "extra_mb": 1.0}
        for name in benchmark.CONTENDERS["linkage"]
        for n in (100, 1000)
    ]
    del records[-1]["seconds"]
    seconds, memory = benchmark.figure(records).axes
    assert [line.get_label() for line in seconds.lines] == list(benchmark.CONTENDERS["linkage"])
    assert [line.get_xdata().tolist() for line in seconds.lines] == 4 * [[100, 1000]] + [[100]]
    assert [line.get_ydata().tolist() for line in memory.lines] == 5 * [[1.0, 1.0]]
