"""Workers on this machine: `jobs` processes of joblib's loky, each with one run at a time.

Every process has an executor of its own: when one is killed (out of memory, by hand) only its run is lost.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import FIRST_COMPLETED, Future, wait

from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.process_executor import BrokenProcessPool

from btcnb.experiments.recipe import Job
from btcnb.experiments.sweep.work import ONE_THREAD, Measure, Outcome, attempt, settle

LOST = "the worker was lost (killed, or out of memory)"


class LocalWorkers:
    """Takes jobs while it has a free slot, and hands back what came of them."""

    def __init__(self, measure: Measure, jobs: int) -> None:
        self.slots = jobs
        self._measure = measure
        self._idle: list[ProcessPoolExecutor] = []
        self._busy: dict[Future[Outcome], tuple[Job, ProcessPoolExecutor, float]] = {}

    @property
    def free(self) -> int:
        return self.slots - len(self._busy)

    def submit(self, job: Job) -> None:
        process = self._idle.pop() if self._idle else self._process()
        try:
            future = process.submit(attempt, self._measure, job)
        except BrokenProcessPool:  # killed while it had nothing to do
            process = self._process()
            future = process.submit(attempt, self._measure, job)
        self._busy[future] = job, process, time.monotonic()

    def finished(self, timeout: float) -> list[tuple[Job, Outcome]]:
        """Jobs that are over, after at most `timeout` seconds."""
        if not self._busy:
            time.sleep(timeout)
            return []
        over, _ = wait(self._busy, timeout, FIRST_COMPLETED)
        return [self._taken(future) for future in over]

    def close(self) -> None:
        """End all processes, and the runs that are in them."""
        for _, process, _ in self._busy.values():
            process.shutdown(wait=True, kill_workers=True)
        for process in self._idle:
            process.shutdown(wait=True)
        self._idle, self._busy = [], {}

    def _process(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, initializer=settle, initargs=(os.getpid(),), env=ONE_THREAD)

    def _taken(self, future: Future[Outcome]) -> tuple[Job, Outcome]:
        job, process, started = self._busy.pop(future)
        try:
            outcome = future.result()
        except Exception as error:  # the process is gone, or its result cannot be sent
            process.shutdown(wait=True, kill_workers=True)
            said = LOST if isinstance(error, BrokenProcessPool) else f"{type(error).__name__}: {error}"
            return job, Outcome(error=f"{said}.", seconds=time.monotonic() - started)
        self._idle.append(process)
        return job, outcome
