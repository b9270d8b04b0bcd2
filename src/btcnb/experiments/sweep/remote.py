"""Workers on other machines: those of a Dask scheduler.

    dask scheduler                                           # anywhere
    dask worker tcp://host:8786 --nthreads 1 --nworkers 4    # on every machine, with the same btcnb installed
    btcnb sweep experiments/ablation.yaml --scheduler tcp://host:8786

Records are written here. The run of a worker that is lost is started again by Dask, on another one; after the number of
losses that the scheduler allows it (`distributed.scheduler.allowed-failures`) it is recorded as failed.
"""

from __future__ import annotations

import time
import uuid
from typing import Any

from btcnb.errors import DataError, ParameterError
from btcnb.experiments.recipe import Job
from btcnb.experiments.sweep.work import Measure, Outcome, attempt

CONNECT_SECONDS = 20
_KEPT = "run the same command again: the runs recorded so far are kept"


class DaskWorkers:
    """Takes as many jobs as the scheduler has workers (one where it has none yet), and hands back what came of them."""

    def __init__(self, measure: Measure, scheduler: str) -> None:
        try:
            import distributed
        except ImportError:
            raise ParameterError(
                "--scheduler needs Dask, which is not installed; pip install 'btcnb[dask]', or leave the option out."
            ) from None
        self._dask = distributed
        self._measure, self._address = measure, scheduler
        self._busy: dict[Any, tuple[Job, float]] = {}
        try:
            self._client = distributed.Client(scheduler, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            said = " ".join(str(error).split()).rstrip(".")
            raise DataError(
                scheduler, "scheduler", f"cannot be reached ({said})", "start it with `dask scheduler`"
            ) from None

    @property
    def slots(self) -> int:
        """Workers, counted anew: they come and go."""
        return max(1, len(self._client.scheduler_info(n_workers=-1)["workers"]))

    @property
    def free(self) -> int:
        return self.slots - len(self._busy)

    def submit(self, job: Job) -> None:
        key = f"btcnb-{job.row}-{job.seed}-{uuid.uuid4().hex}"  # a name of its own: Dask shares results of equal names
        future = self._client.submit(attempt, self._measure, job, key=key, pure=False)
        self._busy[future] = job, time.monotonic()

    def finished(self, timeout: float) -> list[tuple[Job, Outcome]]:
        """Jobs that are over, after at most `timeout` seconds."""
        if not self._busy:
            time.sleep(timeout)
            return []
        try:
            with self._client.as_current():
                self._dask.wait(list(self._busy), timeout=timeout, return_when="FIRST_COMPLETED")
        except TimeoutError:
            self._check()
            return []
        except self._dask.CancelledError:
            raise self._lost() from None
        return [self._taken(future) for future in list(self._busy) if future.status != "pending"]

    def close(self) -> None:
        """Take back what has not finished; the workers stay for others."""
        if self._client.status == "running" and self._busy:
            self._client.cancel(list(self._busy), force=True)
        self._busy = {}
        self._client.close()

    def _taken(self, future: Any) -> tuple[Job, Outcome]:
        job, started = self._busy.pop(future)
        if future.status in ("cancelled", "lost"):
            raise self._lost()
        error = future.exception()
        if error is None:
            return job, future.result()
        killed = isinstance(error, self._dask.scheduler.KilledWorker)
        said = "its workers were lost again and again" if killed else f"{type(error).__name__}: {error}"
        return job, Outcome(error=f"{said}.", seconds=time.monotonic() - started)

    def _check(self) -> None:
        if self._client.status not in ("running", "connecting"):
            raise self._lost()

    def _lost(self) -> DataError:
        return DataError(self._address, "scheduler", "the connection was lost", f"start it again and {_KEPT}")
