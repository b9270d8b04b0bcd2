"""A measure that takes no time and does what its row is called; and workers that are no processes.

Every run writes a line to `ran` in the folder `SWEEP_FAKES`: which run, in which process.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numba
import torch
from threadpoolctl import threadpool_info

from btcnb.errors import DataError
from btcnb.experiments.recipe import Job
from btcnb.experiments.sweep.run import Measure, Outcome, attempt

GRID = """
name: fakes
size: tiny
seeds: {seeds}
rows:
"""


def fake(job: Job) -> dict[str, Any]:
    """DP is the seed's tenth, and one more in rows called `better`; NMI does not exist."""
    folder = Path(os.environ["SWEEP_FAKES"])
    told(folder, f"{job.row}/{job.seed} {os.getpid()}")
    kind = job.row.split()[0]
    if kind == "fails":
        raise ValueError("two\nlines")
    if kind == "diverges":
        raise DataError("loss", "value", "the loss is nan in epoch 3, step 4", "lower learning_rate")
    if kind == "waits":
        wait_for(lambda: (folder / "go").exists())
    if kind == "killed" or (kind == "once" and not (folder / "died").exists()):
        (folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    pools = max((pool["num_threads"] for pool in threadpool_info()), default=1)
    threads = max(pools, torch.get_num_threads(), numba.get_num_threads())
    return {"DP": job.seed / 10 + (kind == "better"), "NMI": float("nan"), "threads": threads, "data": f"d{job.seed}"}


class Inline:
    """Workers in this process: one run at a time."""

    slots = 1

    def __init__(self, measure: Measure = fake) -> None:
        self.measure = measure

    def compute(self, job: Job) -> Outcome:
        return attempt(self.measure, job)

    def close(self) -> None:
        pass


def told(folder: Path, line: str) -> None:
    with (folder / "ran").open("a") as file:
        file.write(f"{line}\n")


def ran(folder: Path) -> list[tuple[str, int]]:
    """What ran so far, and in which process."""
    lines = (folder / "ran").read_text().splitlines() if (folder / "ran").exists() else []
    return [(run, int(process)) for run, process in (line.rsplit(" ", 1) for line in lines)]


def grid_file(folder: Path, rows: list[str], seeds: Any = 2) -> Path:
    """A grid with these rows; each has a learning rate of its own, so that no two are the same run."""
    path = folder / "grid.yaml"
    lines = [f"  {row}: {{learning_rate: 0.00{number}}}\n" for number, row in enumerate(rows, 1)]
    path.write_text(GRID.format(seeds=seeds) + "".join(lines))
    return path


def wait_for(condition: Any, seconds: float = 300.0) -> None:
    """Return as soon as the condition holds; fail when it has not for so long that it never will."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.05)
