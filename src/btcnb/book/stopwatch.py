"""Seconds and memory of a call, measured while a chapter runs, and the exponent with which they grow."""

from __future__ import annotations

import ctypes
import gc
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from btcnb.errors import ParameterError

SLOW = 30.0  # seconds after which one run says enough; the first run may have to wait for memory of the machine


class Cost(NamedTuple):
    """The fewest seconds of all runs, and the most bytes that one added to the process (NaN off Linux)."""

    seconds: float
    extra_bytes: float


def measure(call: Callable[[], Any], repeats: int = 1) -> Cost:
    """Run `call` up to `repeats` times, once if it is slow. Memory is the rise of the process's high-water mark."""
    if repeats < 1:
        raise ParameterError(f"repeats is {repeats}, but something must run once to be measured.")
    seconds: list[float] = []
    extra: list[float] = []
    while len(seconds) < repeats and not (seconds and seconds[-1] > SLOW):
        _forget()
        before, started = _high_water(), time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started)
        extra.append(_high_water() - before)
    return Cost(min(seconds), max(extra))


def exponent(n: npt.ArrayLike, cost: npt.ArrayLike, last: int = 3) -> float:
    """p of cost ~ n^p, fitted to the `last` largest sizes with a cost above zero; NaN for fewer than two sizes."""
    size, value = np.asarray(n, dtype=np.float64), np.asarray(cost, dtype=np.float64)
    order = np.argsort(size)
    kept = order[value[order] > 0][-last:]
    if len(np.unique(size[kept])) < 2:
        return float("nan")
    return float(np.polyfit(np.log(size[kept]), np.log(value[kept]), 1)[0])


def _forget() -> None:
    """Give freed memory back, or it would not count again, and reset the mark."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _high_water() -> float:
    """Largest memory of this process since the mark was reset, in bytes; NaN where the system does not tell."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM"):
                return 1024.0 * int(line.split()[1])
    return float("nan")
