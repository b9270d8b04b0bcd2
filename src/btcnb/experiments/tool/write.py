"""The folder that `btcnb refine` leaves: two tables, a summary and a report, all of them or none."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from btcnb.data.readers.files import replacing
from btcnb.data.tables import plain
from btcnb.errors import DataError
from btcnb.experiments.tool.report import report
from btcnb.experiments.tool.run import Outcome, stage

FLAGGED, PARTITION, SUMMARY, REPORT = "flagged.csv", "partition.csv", "summary.json", "report.html"
FILES = frozenset({FLAGGED, PARTITION, SUMMARY, REPORT})
PACKAGES = ("btcnb", "numpy", "pandas", "scipy", "numba", "torch", "torch_geometric")
FORMAT = 1


def require_place(out: str | Path, force: bool = False) -> Path:
    """Where the folder may be written: nothing, an empty folder, or with `force` an earlier result and nothing else."""
    try:
        target = Path(out).expanduser().resolve()
        if target.is_dir():
            held = sorted(entry.name for entry in target.iterdir())
        elif target.exists():
            raise DataError(target, "out", "is a file", "name a folder")
        else:
            held = []
        above = next(folder for folder in (target, *target.parents) if folder.exists())
        blocked = not above.is_dir() or not os.access(above if above != target else target.parent, os.W_OK)
    except (OSError, ValueError, RuntimeError) as error:  # the last: a home that is not known, links in a circle
        raise DataError(plain(out), "out", f"cannot be used ({error})", "name another folder") from error
    if blocked:
        raise DataError(target, "out", "cannot be written", "name another folder")
    if held and not force:
        raise DataError(target, "out", "is not empty", "name another folder, or replace an earlier result by --force")
    if strange := [name for name in held if name not in FILES]:
        problem = f"holds {strange[0]}, which is no result of this command"
        raise DataError(target, "out", problem, "name another folder: this one is never replaced")
    return target


def write(
    outcome: Outcome, out: str | Path, top: int = 12, force: bool = False, tell: Callable[[str], None] | None = None
) -> Path:
    """Write the four files beside the folder, then rename: readers see all of them or what was there before.

    top: merges listed and clusters drawn in the report
    """
    target = require_place(out, force)
    with replacing(target, folder=True) as part:
        with stage("write", outcome.timer, tell or (lambda line: None)):
            flagged_table(outcome).to_csv(part / FLAGGED, index=False, lineterminator="\n")
            partition_table(outcome).to_csv(part / PARTITION, index=False, lineterminator="\n")
            (part / REPORT).write_text(report(outcome, top), encoding="utf-8")
        text = json.dumps(summary(outcome), indent=1, ensure_ascii=False, allow_nan=False)
        (part / SUMMARY).write_text(text + "\n", encoding="utf-8")
    return target


def flagged_table(outcome: Outcome) -> pd.DataFrame:
    """Suspicious merges, most suspicious first, with an example address of either side."""
    table, names = outcome.found.flagged, outcome.material.names
    return pd.DataFrame(
        {
            "cluster": outcome.material.titles[table["cluster"].to_numpy(dtype=np.int64)],
            **{name: table[name] for name in ("height", "threshold", "excess", "size_left", "size_right")},
            "address_left": names[table["left"].to_numpy(dtype=np.int64)],
            "address_right": names[table["right"].to_numpy(dtype=np.int64)],
            "suspicion": table["suspicion"],
        }
    )


def partition_table(outcome: Outcome) -> pd.DataFrame:
    """Every address with its cluster and its refined cluster, the latter numbered by first appearance."""
    return pd.DataFrame(
        {
            "address": outcome.material.names,
            "cluster": outcome.material.titles[outcome.material.labels],
            "refined_cluster": pd.factorize(outcome.found.partition)[0],
        }
    )


def summary(outcome: Outcome) -> dict[str, Any]:
    """What was done, by what, and what it cost; plain values. An infinite threshold (nothing is split) is null."""
    encoder, request = outcome.encoder, outcome.request
    refiner = {name: _finite(value) for name, value in asdict(outcome.refiner).items()}
    seconds, memory = outcome.timer.seconds, outcome.timer.peak_mb
    return {
        "format": FORMAT,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "source": {
            "path": str(request.source),
            "kind": outcome.kind,
            "blocks": list(outcome.blocks),
            "price_usd": outcome.price_usd,
            "data": outcome.material.graph.fingerprint(),
            "clusters": _whose(outcome),
        },
        "recipe": refiner,
        "threshold": _finite(outcome.found.threshold),
        "counts": outcome.counts(),
        "encoder": {
            "file": "of the package" if request.encoder is None else str(request.encoder),
            "digest": encoder.digest,
            "made": encoder.made,
        },
        "notes": list(outcome.notes),
        "seconds": {name: round(value, 3) for name, value in seconds.items()},
        "peak_mb": {name: round(value, 1) for name, value in memory.items()},
        "total": {"seconds": round(sum(seconds.values()), 3), "peak_mb": round(max(memory.values()), 1)},
        "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
    }


def _whose(outcome: Outcome) -> str:
    """Whose the initial clusters are."""
    if outcome.request.clusters is not None:
        return str(outcome.request.clusters)
    return "heuristic" if outcome.transactions is not None else "of the release"


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
