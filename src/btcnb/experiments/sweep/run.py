"""Running a sweep: what is not recorded yet is computed, and recorded run by run by this process alone.

    planned = plan(read_grid("experiments/ablation.yaml"), Records("results/sweeps/ablation.jsonl"))
    run([planned], LocalWorkers(measure, jobs=2))

A run that fails is recorded with its error and does not stop the others; the next sweep tries it again. A worker that
is killed loses its own run; a sweep that is killed loses the runs in progress. Two sweeps on one file share the work:
a run is claimed before it starts. Each run in progress is a thread of joblib here; it waits for a process.

    dask scheduler                                           # anywhere
    dask worker tcp://host:8786 --nthreads 1 --nworkers 4    # on every machine, with the same btcnb installed
    btcnb sweep experiments/ablation.yaml --scheduler tcp://host:8786
"""

from __future__ import annotations

import functools
import math
import os
import queue
import signal
import sys
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, TextIO

import numpy as np
from filelock import Timeout
from joblib import Parallel, delayed
from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.process_executor import BrokenProcessPool
from tqdm import tqdm

from btcnb.errors import BtcnbError, DataError, ParameterError
from btcnb.experiments.recipe import Job
from btcnb.experiments.sweep.records import DONE, FAILED, FIELDS, FORMAT, Plan, Record, measured_as, run_id
from btcnb.store.keys import commit, library_version, library_versions

Measure = Callable[[Job], dict[str, Any]]
MEASURES = "btcnb.experiments.measures"
"""The module of all measurements: the libraries that it imports decide numbers."""
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
"""The environment of a worker process: read when the libraries are loaded."""
WATCH_SECONDS = 1.0
CONNECT_SECONDS = 20
REMOTE_SLOTS = 256
"""Runs that a Dask scheduler is given at a time: workers may come and go."""
DIGITS = 7
LOST = "the worker was lost (killed, or out of memory)"


# ---- inside a worker process, here or on another machine


@dataclass(frozen=True)
class Outcome:
    """What came of a run: metrics, or the error in one sentence; and by what it was computed."""

    metrics: dict[str, Any] = field(default_factory=dict)
    error: str = ""
    seconds: float = 0.0
    versions: str = ""
    commit: str = ""
    warnings: tuple[str, ...] = ()


@functools.cache
def versions_here() -> tuple[str, str]:
    """Versions of btcnb and of libraries in words, and the commit, as this process sees them when it asks first."""
    versions = {"btcnb": library_version("btcnb"), **library_versions([MEASURES])}
    return ", ".join(f"{name} {number}" for name, number in versions.items()), commit()


def attempt(measure: Measure, job: Job) -> Outcome:
    """Run a job. An error of the run is an outcome too; only the end of the process is not."""
    made, started = versions_here(), time.monotonic()
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
    return Outcome(metrics, " ".join(error.split())[:1000], time.monotonic() - started, *made, told)


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


def _settle(parent: int) -> None:
    """The first thing in a local worker: Ctrl-C is the parent's to answer, and nobody outlives the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow, args=(parent,), daemon=True).start()
    versions_here()  # before anybody edits the source code


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


# ---- where runs are computed


class Workers(Protocol):
    """`LocalWorkers` here, `DaskWorkers` elsewhere."""

    slots: int
    """runs at a time"""

    def compute(self, job: Job) -> Outcome:
        """Run a job elsewhere and wait for it; called by `slots` threads at a time."""

    def close(self) -> None:
        """End everything, also the runs in progress."""


class LocalWorkers:
    """Processes of joblib's loky. Each is alone in its pool: when one is killed, only its run is lost."""

    def __init__(self, measure: Measure, jobs: int) -> None:
        self.slots = jobs
        self._measure = measure
        self._idle: queue.SimpleQueue[ProcessPoolExecutor] = queue.SimpleQueue()
        self._all: set[ProcessPoolExecutor] = set()

    def compute(self, job: Job) -> Outcome:
        started = time.monotonic()
        process = self._idle.get() if not self._idle.empty() else self._process()
        try:
            outcome = process.submit(attempt, self._measure, job).result()
        except Exception as error:  # the process is gone, or its result cannot be sent
            self._all.discard(process)
            process.shutdown(wait=False, kill_workers=True)
            said = LOST if isinstance(error, BrokenProcessPool) else f"{type(error).__name__}: {error}"
            return Outcome(error=f"{said}.", seconds=time.monotonic() - started)
        self._idle.put(process)
        return outcome

    def close(self) -> None:
        for process in list(self._all):
            process.shutdown(wait=True, kill_workers=True)

    def _process(self) -> ProcessPoolExecutor:
        process = ProcessPoolExecutor(1, initializer=_settle, initargs=(os.getpid(),), env=ONE_THREAD)
        self._all.add(process)
        return process


class DaskWorkers:
    """The workers of a Dask scheduler; they may come and go.

    The run of a worker that is lost is started again by Dask, on another one; after the number of losses that the
    scheduler allows it (`distributed.scheduler.allowed-failures`) it is recorded as failed.
    """

    slots = REMOTE_SLOTS

    def __init__(self, measure: Measure, scheduler: str) -> None:
        try:
            import distributed
        except ImportError:
            raise ParameterError(
                "--scheduler needs Dask, which is not installed; pip install 'btcnb[dask]', or leave the option out."
            ) from None
        self._killed = distributed.scheduler.KilledWorker
        self._measure, self._address = measure, scheduler
        try:
            self._client = distributed.Client(scheduler, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            said = " ".join(str(error).split()).rstrip(".")
            problem = f"cannot be reached ({said})"
            raise DataError(scheduler, "scheduler", problem, "start it with `dask scheduler`") from None

    def compute(self, job: Job) -> Outcome:
        started = time.monotonic()
        key = f"btcnb-{job.row}-{job.seed}-{uuid.uuid4().hex}"  # a name of its own: Dask shares results of equal names
        future = self._client.submit(attempt, self._measure, job, key=key, pure=False)
        try:
            outcome: Outcome = future.result()
            return outcome
        except self._killed:
            said = "its workers were lost again and again"
        except Exception as error:
            if future.status in ("cancelled", "lost") or self._client.status != "running":
                raise DataError(
                    self._address,
                    "scheduler",
                    "the connection was lost",
                    "start it again and run the same command again: the runs recorded so far are kept",
                ) from None
            said = f"{type(error).__name__}: {error}"
        return Outcome(error=f"{said}.", seconds=time.monotonic() - started)

    def close(self) -> None:
        """Take back what has not finished; the workers stay for others."""
        self._client.cancel(list(self._client.futures.values()), force=True) if self._client.status == "running" else 0
        self._client.close()


# ---- the sweep


class Progress:
    """Counts the runs of a sweep: a bar that keeps up to date on a terminal, exactly one plain line a run elsewhere."""

    def __init__(self, total: int, stream: TextIO | None = None) -> None:
        self.total, self.done, self.failed, self._elsewhere = total, 0, 0, 0
        self._started = time.monotonic()
        self._warned: set[str] = set()
        self._stream = sys.stdout if stream is None else stream
        layout = "{desc}|{bar}| {n_fmt}/{total_fmt}{postfix}"
        live = self._stream.isatty()
        self._bar = tqdm(total=total, file=self._stream, bar_format=layout, dynamic_ncols=True) if live else None

    @property
    def counts(self) -> str:
        """Runs done, failed and to go, and how long the rest will take by the runs of this sweep so far."""
        left = self.total - self.done - self.failed
        parts = [f"{self.done} done", f"{self.failed} failed", f"{left} to go"]
        here = self.done + self.failed - self._elsewhere
        if here and left:
            parts.append(f"about {duration((time.monotonic() - self._started) / here * left)} left")
        return ", ".join(parts)

    def run(self, what: str, record: Record, elsewhere: bool, warned: Sequence[str] = ()) -> None:
        """A run is over: `what` says which; `elsewhere`, another process made it and its time says nothing here."""
        for sentence in (each for each in warned if each not in self._warned):
            self._warned.add(sentence)
            self._write(f"warning: {sentence}", sys.stderr)
        seconds, error = record["seconds"], record["error"].rstrip(".")
        self.failed += bool(error)
        self.done += not error
        self._elsewhere += elsewhere
        how = f"failed after {duration(seconds)} ({error})" if error else duration(seconds)
        if self._bar is None:
            clock = datetime.now().strftime("%Y-%m-%d %H:%M:%S")
            print(f"{clock} · {what} · {how} · {self.counts}", file=self._stream, flush=True)
            return
        if error:
            self._write(f"{what} · {how}", self._stream)
        self._bar.set_description_str(self.counts)
        self._bar.update()

    def _write(self, sentence: str, stream: TextIO) -> None:
        if self._bar is None:
            print(sentence, file=stream, flush=True)
        else:
            self._bar.write(sentence, file=self._stream)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


def duration(seconds: float) -> str:
    """0:07, 12:30, 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def run(plans: Sequence[Plan], workers: Workers, stream: TextIO | None = None) -> Progress:
    """Compute and record what the plans have to do; the counts of what was done.

    Whatever ends it early (Ctrl-C, a full disk) ends the workers too; what is recorded stays.
    """
    waiting = [(planned, job) for planned in plans for job in planned.todo]
    progress = Progress(len(waiting), stream)
    stopped = threading.Event()
    try:
        for planned in plans:
            planned.records.append(*planned.renamed)
        for patient in (False, True):  # runs that another sweep has claimed are waited for at the end
            threads = Parallel(n_jobs=workers.slots, backend="threading", return_as="generator_unordered")
            tasks = [delayed(_one)(planned, job, workers, patient, stopped) for planned, job in waiting]
            waiting = []
            for planned, job, record, told in threads(tasks):
                if record is None:
                    waiting.append((planned, job))
                    continue
                elsewhere = told is None
                progress.run(f"{planned.grid.name} · {job.row} · seed {job.seed}", record, elsewhere, told or ())
    finally:
        stopped.set()
        workers.close()
        progress.close()
    return progress


Done = tuple[Plan, Job, "Record | None", "tuple[str, ...] | None"]
"""A run, its record (None: another sweep computes it), and the warnings it gave (None: another sweep made it)."""


def _one(planned: Plan, job: Job, workers: Workers, patient: bool, stopped: threading.Event) -> Done:
    """Claim a run, compute and record it, in a thread of its own."""
    claim = planned.records.lock(run_id(job))
    try:
        claim.acquire(timeout=-1 if patient else 0)
    except Timeout:
        return planned, job, None, None
    try:
        other = planned.since(job)
        if other is not None or stopped.is_set():
            return planned, job, other, None
        outcome = workers.compute(job)
        if stopped.is_set():
            return planned, job, None, None
        record = as_record(planned, job, outcome)
        planned.records.append(record)
        Path(claim.lock_file).unlink(missing_ok=True)  # who still waits for it reads the records first
        return planned, job, record, outcome.warnings
    finally:
        claim.release()


def as_record(planned: Plan, job: Job, outcome: Outcome) -> Record:
    """One flat record. A metric may not have the name of another field: that is an error of the run."""
    versions, commit = (outcome.versions, outcome.commit) if outcome.versions else versions_here()  # a lost worker
    flat, metrics = job.recipe.flat(), dict(outcome.metrics)
    data, error = str(metrics.pop("data", None) or ""), outcome.error
    clash = sorted({*FIELDS, "commit", *flat} & set(metrics))
    if clash:
        error, metrics = f"the metric {clash[0]!r} has the name of a field of records.", {}
    return {
        "format": FORMAT,
        "grid": planned.grid.name,
        "row": job.row,
        "seed": job.seed,
        "run": run_id(job),
        "measure": measured_as(job),
        "method": job.method,
        "state": FAILED if error else DONE,
        "error": error,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions,
        "data": data,
        "seconds": round(outcome.seconds, 3),
        "commit": commit,
        **flat,
        **{name: _shortened(value) for name, value in metrics.items()},
    }


def _shortened(value: Any) -> Any:
    """A measured number with `DIGITS` digits: more says nothing, and a thousand of them stand in a record."""
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
