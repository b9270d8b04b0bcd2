"""Chapters executed side by side, each lane a worker process; the caller hears every event as it happens."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path

from btcnb.build.child import end_child, start_child
from btcnb.build.worker import CellStarted, Event, Failed, Job, serve

_TICK = 0.5  # seconds between two looks at the clock while nothing happens
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass
class _Lane:
    process: SpawnProcess
    connection: Connection
    job: Job | None = None
    last: CellStarted | None = None


def execute(jobs: Sequence[Job], lanes: int, log: Path, on_event: Callable[[Event | None], None]) -> None:
    """Execute all `jobs`, at most `lanes` at a time, in the order given.

    `on_event(event)` is called for each event, and `on_event(None)` twice a second. Whatever ends this function, an
    exception of the callback or Ctrl-C among them, ends the workers and their kernels too.
    """
    waiting = list(jobs)
    running: list[_Lane] = []
    try:
        while waiting or any(lane.job for lane in running):
            while waiting and len(running) < lanes:
                running.append(_open_lane(log))
            for lane in running:
                if lane.job is None and waiting:
                    lane.job, lane.last = waiting.pop(0), None
                    with contextlib.suppress(ConnectionError):  # a worker that is gone already: heard of below
                        lane.connection.send(lane.job)
            _listen(running, on_event)
    finally:
        for lane in running:
            end_child(lane.process)
            lane.connection.close()


def _open_lane(log: Path) -> _Lane:
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    process = start_child(serve, theirs, log=log)
    theirs.close()  # so that the end of the worker reads as the end of the stream
    return _Lane(process, ours)


def _listen(running: list[_Lane], on_event: Callable[[Event | None], None]) -> None:
    ready = wait([lane.connection for lane in running if lane.job], timeout=_TICK)
    for lane in [lane for lane in running if lane.connection in ready]:
        try:
            event: Event = lane.connection.recv()
        except (EOFError, ConnectionError):
            event = _lost(lane)
            running.remove(lane)
        if isinstance(event, CellStarted):
            lane.last = event
        else:
            lane.job = None
        on_event(event)
    on_event(None)


def _lost(lane: _Lane) -> Failed:
    """The worker itself is gone: killed from outside, most often for want of memory."""
    lane.process.join()
    lane.connection.close()
    assert lane.job is not None
    at = lane.last or CellStarted(lane.job.chapter, 0, 0, "")
    code = lane.process.exitcode
    how = f"killed by signal {-code}" if code is not None and code < 0 else f"exit status {code}"
    return Failed(lane.job.chapter, at.cell, at.cells, at.first_line, f"the process that ran it ended: {how}", 0.0)


def chapter_environment(source: Path, records: Path, preset: str, lanes: int) -> dict[str, str]:
    """The environment of the kernels: the project's own package first, a fair share of the cores, no surprises.

    `BTCNB_PRESET` and `BTCNB_RECORDS` tell a chapter the preset and the folder of the chapters' records.
    """
    threads = str(max(1, cores() // lanes))
    inherited: Mapping[str, str] = os.environ
    path = [str(source), *filter(None, [inherited.get("PYTHONPATH", "")])]
    return {
        "PYTHONPATH": os.pathsep.join(path),
        "PYTHONHASHSEED": "0",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "JUPYTER_PREFER_ENV_PATH": "1",
        "BTCNB_PRESET": preset,
        "BTCNB_RECORDS": str(records),
        **{name: min(threads, inherited.get(name, threads), key=_as_number) for name in _THREAD_VARIABLES},
    }


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _as_number(text: str) -> float:
    return float(text) if text.isdigit() and int(text) > 0 else float("inf")
