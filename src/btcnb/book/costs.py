"""What computations cost: seconds and memory measured while a chapter runs, and what benchmarks have recorded."""

from __future__ import annotations

import ctypes
import gc
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

SLOW = 30.0  # seconds after which one run says enough; the first run may have to wait for memory of the machine
COLUMNS = ["benchmark", "task", "shape", "stage", "n", "seconds", "extra MB"]


class Cost(NamedTuple):
    """The fewest seconds of all runs, and the most bytes that one added to the process (NaN off Linux)."""

    seconds: float
    extra_bytes: float


def measure(call: Callable[[], Any], repeats: int = 1) -> Cost:
    """Run `call` up to `repeats` times, once if it is slow. Memory is the rise of the process's high-water mark."""
    seconds: list[float] = []
    extra: list[float] = []
    while not seconds or (len(seconds) < repeats and seconds[-1] <= SLOW):
        _reset_peak()
        before, started = _peak(), time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started)
        extra.append(_peak() - before)
    return Cost(min(seconds), max(extra))


def exponent(n: npt.ArrayLike, cost: npt.ArrayLike, last: int = 3) -> float:
    """p of cost ~ n^p, fitted to the `last` largest sizes with a cost above zero; NaN for fewer than two sizes."""
    size, value = np.asarray(n, dtype=np.float64), np.asarray(cost, dtype=np.float64)
    order = np.argsort(size)
    kept = order[value[order] > 0][-last:]
    if len(np.unique(size[kept])) < 2:
        return float("nan")
    return float(np.polyfit(np.log(size[kept]), np.log(value[kept]), 1)[0])


def _reset_peak() -> None:
    """Give freed memory back, or it would not count again, and reset the high-water mark."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _peak() -> float:
    """Largest memory of this process since the mark was reset, in bytes; NaN where the system does not tell."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM"):
                return 1024.0 * int(line.split()[1])
    return float("nan")


def recorded_stages(*benchmarks: Sequence[Mapping[str, Any]] | None) -> pd.DataFrame:
    """One row per timed stage: the fewest seconds and the most extra memory of its repeats, `COLUMNS` as columns.

    benchmarks: contents of files of `results/benchmarks/` (flat records with benchmark, stage, n, seconds, peak_mb
                and start_mb); None, a file that is not there, adds nothing. Whole runs ("total") and records of an
                error are left out.
    """
    records = [record for records in benchmarks for record in records or () if "error" not in record]
    rows = [
        {"task": "", "shape": "", **record, "extra MB": record["peak_mb"] - record["start_mb"]}
        for record in records
        if record["stage"] != "total"
    ]
    table = pd.DataFrame(rows, columns=COLUMNS)
    table["stage"] = table["stage"].str.rstrip(" 0123456789")  # repeats of a stage are numbered
    return table.groupby(COLUMNS[:-2], as_index=False).agg({"seconds": "min", "extra MB": "max"})


def whole_tree_costs(records: Sequence[Mapping[str, Any]] | None, points: Sequence[int]) -> pd.DataFrame:
    """What trees of so many points would cost, by the records of whole trees of trained embeddings.

    CPU seconds are continued by the power law that fits them best (its exponent is a column), memory by what a point of
    the largest record takes. Runs that were resumed do not count; with fewer than two others the table is empty.
    """
    wanted = {"task": "whole tree", "shape": "trained", "stage": "ours"}
    own = [
        record
        for record in records or ()
        if wanted.items() <= record.items() and "error" not in record and not record.get("resumed")
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
