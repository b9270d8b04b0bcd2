"""Running a sweep: what is not recorded yet is computed, and recorded run by run by this process alone.

    planned = plan(read_grid("experiments/ablation.yaml"), Records("results/sweeps/ablation.jsonl"))
    run([planned], LocalWorkers(measure, jobs=2))

A run that fails is recorded with its error and does not stop the others; the next sweep tries it again. A sweep that is
killed loses the runs in progress only. Two sweeps on one file share the work: a run is claimed before it starts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from btcnb.experiments.recipe import Job
from btcnb.experiments.sweep.identity import run_id, run_of
from btcnb.experiments.sweep.planning import Plan
from btcnb.experiments.sweep.progress import Progress
from btcnb.experiments.sweep.records import DONE, FAILED, FIELDS, FORMAT, OTHER_VERSION, Claim, Record
from btcnb.experiments.sweep.work import Outcome, made_here

POLL_SECONDS = 1.0
DIGITS = 7


class Workers(Protocol):
    """Where runs are computed: `LocalWorkers` here, `DaskWorkers` elsewhere."""

    @property
    def slots(self) -> int:
        """Runs at a time."""

    @property
    def free(self) -> int:
        """Runs that can start now."""

    def submit(self, job: Job) -> None: ...

    def finished(self, timeout: float) -> list[tuple[Job, Outcome]]:
        """Jobs that are over, after at most `timeout` seconds."""

    def close(self) -> None:
        """End everything, also the runs in progress."""


@dataclass
class _Sweep:
    """The state of a sweep: what waits, what runs, who has claimed it."""

    workers: Workers
    progress: Progress
    waiting: deque[tuple[Plan, Job]]
    running: dict[int, tuple[Plan, Claim]] = field(default_factory=dict)
    warned: set[str] = field(default_factory=set)

    def start(self) -> None:
        """Start what can start now; what another process has claimed goes to the end of the queue."""
        for _ in range(len(self.waiting)):
            if self.workers.free < 1:
                return
            planned, job = self.waiting.popleft()
            claim = planned.records.claim(run_id(job))
            if claim is None:
                self.waiting.append((planned, job))
            elif (other := _since(planned, job)) is not None:
                claim.release(recorded=True)
                self.progress.run(_what(planned, job), other["seconds"], other["error"], elsewhere=True)
            else:
                self.running[id(job)] = planned, claim
                self.workers.submit(job)

    def collect(self) -> None:
        """Record what is over. A claim ends when its run stands in the file."""
        for job, outcome in self.workers.finished(POLL_SECONDS):
            planned, claim = self.running[id(job)]
            record = as_record(planned, job, outcome)
            planned.records.append(record)
            del self.running[id(job)]
            claim.release(recorded=True)
            for sentence in outcome.warnings:
                if sentence not in self.warned:
                    self.warned.add(sentence)
                    self.progress.warn(sentence)
            self.progress.run(_what(planned, job), outcome.seconds, record["error"])


def run(plans: Sequence[Plan], workers: Workers, progress: Progress | None = None) -> Progress:
    """Compute and record what the plans have to do; the counts of what was done.

    Whatever ends it early (Ctrl-C, a full disk) ends the workers too; what is recorded stays.
    """
    waiting = deque((planned, job) for planned in plans for job in planned.todo)
    progress = progress or Progress(len(waiting), workers.slots)
    sweep = _Sweep(workers, progress, waiting)
    try:
        for planned in plans:
            for record in planned.renamed:
                planned.records.append(record)
        while sweep.waiting or sweep.running:
            sweep.start()
            if sweep.waiting or sweep.running:
                sweep.collect()
    finally:
        workers.close()
        for _, claim in sweep.running.values():
            claim.release()
        progress.close()
    return progress


def as_record(planned: Plan, job: Job, outcome: Outcome) -> Record:
    """One flat record. A metric may not have the name of another field: that is an error of the run."""
    made = outcome.made if outcome.made.versions else made_here()  # the latter: of a worker that was lost
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
        "measure": job.measure,
        "method": job.method,
        "state": FAILED if error else DONE,
        "error": error,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": made.versions,
        "data": data,
        "seconds": round(outcome.seconds, 3),
        "commit": made.commit,
        **flat,
        **{name: _shortened(value) for name, value in metrics.items()},
    }


def _shortened(value: Any) -> Any:
    """A measured number with `DIGITS` digits: more says nothing, and a thousand of them stand in a record."""
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _since(planned: Plan, job: Job) -> Record | None:
    """The newest record of a run that was made after the plan, by another sweep."""
    later = [record for record in planned.records.read()[planned.known :] if record["state"] != OTHER_VERSION]
    return next((record for record in reversed(later) if run_of(record) == run_id(job)), None)


def _what(planned: Plan, job: Job) -> str:
    return f"{planned.grid.name} · {job.row} · seed {job.seed}"
