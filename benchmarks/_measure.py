"""Time and peak memory of a stage, measured in a child process of its own, kept as flat records.

A benchmark is a script with one `main`. It calls `in_child(function, ...)` for each thing it wants to measure: the
function runs in a fresh process, so memory never leaks from one measurement into another, and a failure (out of memory,
killed) is an error here and not the end of the benchmark. A function marks its parts with `stage("name")`.
The rows end in `results/benchmarks/NAME.json`, from which the book reads them.

    def linkage_of(n: int) -> float:            # module level: the child imports it
        X = points(n)                           # not part of any stage, so not timed
        with stage("ours"):
            Z = linkage(X)
        return float(Z[-1, 2])

    run = in_child(linkage_of, 20_000, warm_up=(linkage_of, 50))
    write("cluster", rows("cluster", run, n=20_000))
"""

from __future__ import annotations

import gc
import json
import math
import multiprocessing
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import psutil

from btcnb.store.keys import commit

PROJECT = Path(__file__).resolve().parent.parent
RESULTS = PROJECT / "results" / "benchmarks"
PACKAGES = (
    "btcnb",
    "meanlink",
    "numpy",
    "scipy",
    "pandas",
    "numba",
    "scikit-learn",
    "igraph",
    "leidenalg",
    "torch",
    "torch_geometric",
)
MEGABYTE = 2.0**20


@dataclass
class Stage:
    """One timed part: wall and CPU seconds, the highest resident memory while it ran, and that before it began (MB)."""

    name: str
    seconds: float
    cpu_seconds: float
    peak_mb: float
    start_mb: float


@dataclass
class Run:
    """What a child process did: the function's value, its stages (the whole call is the stage "total"), or an error."""

    value: Any = None
    stages: list[Stage] = field(default_factory=list)
    error: str | None = None

    def __getitem__(self, name: str) -> Stage:
        return next(stage for stage in self.stages if stage.name == name)


_stages: list[Stage] = []


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Time the block and record the highest memory reached inside it. Stages nest; an outer peak covers the inner."""
    gc.collect()
    with _Peak() as memory:
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    _stages.append(Stage(name, wall, cpu, memory.peak, memory.start))


def touch(size: float) -> None:
    """Use so many bytes once and give them back, before anybody's clock starts.

    A virtual machine may have to ask its host for memory that it touches for the first time, and that can take longer
    than the work. A peer that fills a matrix must not pay for it.
    """
    np.ones(int(size), dtype=np.uint8)


def in_child(
    function: Callable[..., Any],
    *args: Any,
    warm_up: tuple[Any, ...] | None = None,
    timeout: float | None = None,
    **kwargs: Any,
) -> Run:
    """Run `function(*args, **kwargs)` in a fresh process and measure it.

    warm_up: `(function, *args)` called before the clock starts, to keep compilation and imports out of the time.
    timeout: seconds after which the child is ended; the run then carries an error instead of a value.
    Function, arguments and value must pickle.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(theirs, function, args, kwargs, warm_up))
    child.start()
    theirs.close()
    run = Run(error=f"no result within {timeout} s")
    if ours.poll(timeout):
        try:
            run = ours.recv()
        except EOFError:
            child.join()
            run = Run(error=f"the process ended with status {child.exitcode}")
    if run.error is not None and child.is_alive():
        child.terminate()
    child.join()
    return run


def rows(benchmark: str, run: Run, **config: Any) -> list[dict[str, Any]]:
    """One flat record per stage of a run: the configuration, the measurement, the machine and the versions."""
    head = {"benchmark": benchmark, **config}
    tail = {"cores": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version(), **_versions()}
    if run.error is not None:
        return [{**head, "stage": "total", "error": run.error, **tail}]
    return [
        {
            **head,
            "stage": part.name,
            "seconds": round(part.seconds, 4),
            "cpu_seconds": round(part.cpu_seconds, 4),
            "peak_mb": round(part.peak_mb, 1),
            "start_mb": round(part.start_mb, 1),
            **tail,
        }
        for part in run.stages
    ]


def write(name: str, records: Sequence[dict[str, Any]]) -> Path:
    """Replace `results/benchmarks/NAME.json` by these records, in one step; each carries the commit it measured."""
    records = [{"commit": commit(), **record} for record in records]
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    partial = path.with_suffix(".partial")
    partial.write_text("[\n" + ",\n".join(json.dumps(record) for record in records) + "\n]\n", encoding="utf-8")
    partial.replace(path)
    return path


def show(records: Sequence[dict[str, Any]], columns: Sequence[str]) -> None:
    """Print records as an aligned text table."""
    cells = [[_text(record.get(column)) for column in columns] for record in records]
    widths = [max(len(column), *(len(row[i]) for row in cells)) for i, column in enumerate(columns)]
    for row in [list(columns), *cells]:
        print("  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)), flush=True)


def growth(small: float, large: float, size_ratio: float) -> float:
    """The exponent p of time ~ size^p between two measurements; 1 is linear growth."""
    return math.log(large / small) / math.log(size_ratio)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.3g}"
    return (
        f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else "" if value is None else str(value)
    )


def _child(pipe: Any, function: Any, args: Any, kwargs: Any, warm_up: tuple[Any, ...] | None) -> None:
    try:
        if warm_up is not None:
            warm_up[0](*warm_up[1:])
        _stages.clear()
        with stage("total"):
            value = function(*args, **kwargs)
        pipe.send(Run(value, list(_stages)))
    except BaseException as error:  # the parent decides what a failure means; here it is only passed on
        traceback.print_exc(file=sys.stderr)
        pipe.send(Run(error=f"{type(error).__name__}: {error}"))
    finally:
        pipe.close()


class _Peak:
    """The highest resident memory of this process inside a `with` block, in MB.

    Linux keeps a high-water mark that can be reset, so a block's own peak is exact, also while compiled code holds the
    interpreter. Windows keeps one that cannot be reset: it is that of the process so far. Elsewhere it is what the
    process has when a block begins or ends.
    """

    _open: ClassVar[list[_Peak]] = []

    def __enter__(self) -> _Peak:
        self._collect()
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        self.start = self.peak = _high_water()
        self._open.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._collect()
        self._open.remove(self)

    def _collect(self) -> None:
        for block in self._open:  # the mark is shared: before it is reset, every open block takes note of it
            block.peak = max(block.peak, _high_water())


def _high_water() -> float:
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
    used = psutil.Process().memory_info()
    return float(getattr(used, "peak_wset", used.rss)) / MEGABYTE


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found
