"""Seconds and peak memory of the stages of a run."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

EVERY = 0.02
"""Seconds between two looks at the memory."""
MEGABYTE = 2.0**20


class Laps:
    """Times stages one after the other: `with laps("train"): …`; `record()` is flat."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.peak_mb: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        """Time a stage and note the highest resident memory of this process while it lasts; repeats add up."""
        done = threading.Event()
        process, peak = psutil.Process(), [0.0]

        def look() -> None:
            while not done.is_set():
                peak[0] = max(peak[0], process.memory_info().rss)
                done.wait(EVERY)

        watcher = threading.Thread(target=look, daemon=True)
        begin = time.perf_counter()
        watcher.start()
        try:
            yield
        finally:
            spent = time.perf_counter() - begin
            done.set()
            watcher.join()
            highest = max(peak[0], process.memory_info().rss) / MEGABYTE
            self.seconds[stage] = self.seconds.get(stage, 0.0) + spent
            self.peak_mb[stage] = max(self.peak_mb.get(stage, 0.0), highest)

    def record(self) -> dict[str, float]:
        seconds = {f"seconds.{stage}": round(value, 4) for stage, value in self.seconds.items()}
        return seconds | {f"peak_mb.{stage}": round(value, 1) for stage, value in self.peak_mb.items()}
