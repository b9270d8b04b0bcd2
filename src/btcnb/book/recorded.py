"""What the scripts in `benchmarks/` have recorded, as one tidy table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

COLUMNS = ["benchmark", "task", "shape", "stage", "n", "seconds", "extra MB"]


def recorded_stages(*benchmarks: Sequence[Mapping[str, Any]] | None) -> pd.DataFrame:
    """One row per timed stage: the fewest seconds and the most extra memory of its repeats, `COLUMNS` as columns.

    benchmarks: contents of files of `results/benchmarks/` (flat records with benchmark, stage, n, seconds, peak_mb
                and start_mb); None, a file that is not there, adds nothing. Whole runs ("total") and records of an
                error are left out.
    """
    rows = [
        (
            record["benchmark"],
            record.get("task", ""),
            record.get("shape", ""),
            record["stage"].rstrip(" 0123456789"),  # repeats of a stage are numbered
            record["n"],
            record["seconds"],
            record["peak_mb"] - record["start_mb"],
        )
        for records in benchmarks
        for record in records or ()
        if record["stage"] != "total" and "error" not in record
    ]
    by = COLUMNS[:-2]
    return pd.DataFrame(rows, columns=COLUMNS).groupby(by, as_index=False).agg({"seconds": "min", "extra MB": "max"})


PARTITION_COLUMNS = {
    "size": "graph",
    "nodes": "nodes",
    "method": "communities by",
    "seconds": "seconds",
    "modularity": "modularity",
    "communities": "communities",
    "purity": "DP",
    "nmi": "NMI",
    "ari": "ARI",
}
"""Fields of a record of the coarse partition, and the columns they become."""


def recorded_partitions(records: Sequence[Mapping[str, Any]] | None) -> pd.DataFrame:
    """What each way to a coarse partition costs and what the same embedding then scores, smallest graph first.

    records: content of `results/benchmarks/coarse.json`, or None. A run that was given up has no scores (NaN).
    """
    rows = [
        {name: record.get(field, float("nan")) for field, name in PARTITION_COLUMNS.items()}
        for record in records or ()
        if record["stage"] == "coarse" or "error" in record
    ]
    table = pd.DataFrame(rows, columns=list(PARTITION_COLUMNS.values()))
    nodes = table.groupby("graph")["nodes"].transform("max")
    return table.assign(nodes=nodes).sort_values("nodes", kind="stable", ignore_index=True)


def partition_words(table: pd.DataFrame) -> str:
    """In words, per graph that both programs finished: how much faster ours is, and what the choice does to scores."""
    said = []
    for graph, two in table.dropna().groupby("graph", sort=False):
        both = two.set_index("communities by")
        if {"igraph", "leidenalg"} <= set(both.index):
            ours, theirs = both.loc["igraph"], both.loc["leidenalg"]
            moved = [f"{name} by {ours[name] - theirs[name]:+.3f}" for name in ("DP", "NMI", "ARI")]
            said.append(
                f"At size {graph} igraph's way takes {ours['seconds']:.1f} s, leidenalg's "
                f"{theirs['seconds'] / ours['seconds']:.0f} times as long; modularity is {ours['modularity']:.3f} and "
                f"{theirs['modularity']:.3f}. With igraph's communities instead of leidenalg's, scores move: "
                f"{', '.join(moved)}."
            )
    return " ".join(said) or "No graph has been partitioned by both yet: `benchmarks/coarse.py` does it."


def whole_tree_costs(records: Sequence[Mapping[str, Any]] | None, points: Sequence[int]) -> pd.DataFrame:
    """What trees of so many points would cost, by the records of whole trees of trained embeddings.

    CPU seconds are continued by the power law that fits them best (its exponent is a column), memory by what a point of
    the largest record takes. Runs that were resumed do not count; with fewer than two others the table is empty.
    """
    own = [
        record
        for record in records or ()
        if record.get("task") == "whole tree" and record.get("shape") == "trained" and record["stage"] == "ours"
        if "error" not in record and not record.get("resumed")
    ]
    columns = ["points", "CPU hours", "GB", "exponent"]
    if len({record["rows"] for record in own}) < 2:
        return pd.DataFrame(columns=columns)
    slope, start = np.polyfit(np.log([r["rows"] for r in own]), np.log([r["cpu_seconds"] for r in own]), 1)
    largest = max(own, key=lambda record: record["rows"])
    each = (largest["peak_mb"] - largest["start_mb"]) * 2**20 / largest["rows"] / 1e9
    hours = [float(np.exp(start + slope * np.log(n))) / 3600 for n in points]
    lines = [(n, spent, n * each, float(slope)) for n, spent in zip(points, hours, strict=True)]
    return pd.DataFrame(lines, columns=columns)
