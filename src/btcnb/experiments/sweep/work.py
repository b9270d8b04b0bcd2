"""What happens inside a worker process, here or on another machine: one run, on one thread, its error caught."""

from __future__ import annotations

import functools
import math
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from btcnb.errors import BtcnbError
from btcnb.experiments.recipe import Job
from btcnb.store.keys import commit, library_version, library_versions

Measure = Callable[[Job], dict[str, Any]]
MEASURES = "btcnb.experiments.measures"
"""The module of all measurements: the libraries that it imports decide numbers."""
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
"""The environment of a worker process: read when the libraries are loaded."""
WATCH_SECONDS = 1.0


@dataclass(frozen=True)
class Made:
    """What a run is computed by: versions of btcnb and of libraries in words, and the commit of the project."""

    versions: str = ""
    commit: str = ""


@dataclass(frozen=True)
class Outcome:
    """What came of a run: metrics, or the error in one sentence."""

    metrics: dict[str, Any] = field(default_factory=dict)
    error: str = ""
    seconds: float = 0.0
    made: Made = field(default_factory=Made)
    warnings: tuple[str, ...] = ()


@functools.cache
def made_here() -> Made:
    """Versions and commit as this process sees them when it asks first."""
    versions = {"btcnb": library_version("btcnb"), **library_versions([MEASURES])}
    return Made(", ".join(f"{name} {number}" for name, number in versions.items()), commit())


def attempt(measure: Measure, job: Job) -> Outcome:
    """Run a job. An error of the run is an outcome too; only the end of the process is not."""
    made, started = made_here(), time.monotonic()
    metrics: dict[str, Any] = {}
    error = ""
    with one_thread(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            metrics = {str(name): _value(name, value) for name, value in measure(job).items()}
        except BtcnbError as problem:
            error = str(problem)
        except Exception as problem:  # anything that the code of a run can do wrong
            error = f"{type(problem).__name__}: {problem}"
    told = tuple(dict.fromkeys(" ".join(str(each.message).split()) for each in caught))
    return Outcome(metrics, " ".join(error.split())[:1000], time.monotonic() - started, made, told)


@contextmanager
def one_thread() -> Iterator[None]:
    """A run has one thread: as many runs as there are cores, and numbers that do not depend on the machine."""
    import numba
    import torch
    from threadpoolctl import threadpool_limits

    before, compiled = torch.get_num_threads(), numba.get_num_threads()
    torch.set_num_threads(1)
    numba.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)
        numba.set_num_threads(compiled)


def settle(parent: int) -> None:
    """The first thing in a local worker: Ctrl-C is the parent's to answer, and nobody outlives the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow, args=(parent,), daemon=True).start()
    made_here()  # before anybody edits the source code


def _follow(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(WATCH_SECONDS)
    os._exit(1)


def _value(name: Any, value: Any) -> float | int | str | None:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    raise TypeError(f"the metric {name} is a {type(value).__name__}, but must be a number or text")
