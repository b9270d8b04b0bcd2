"""One flat record per run: what was asked, what came out, how long it took, on what."""

from __future__ import annotations

import hashlib
import platform
import resource
import sys
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from btcnb.learn.config import TrainConfig

PACKAGES = ("btcnb", "torch", "torch_geometric", "numpy", "numba")


def flat_record(config: TrainConfig, metrics: dict[str, Any], seconds: float, fingerprint: str) -> dict[str, Any]:
    """Configuration, metrics, seconds, peak memory of the process (MB), versions, a hash of the data; plain values."""
    settings = {name: _plain(value) for name, value in asdict(config).items()}
    return {
        **settings,
        **metrics,
        "seconds": seconds,
        "peak_mb": peak_memory_mb(),
        "data": hashlib.sha256(fingerprint.encode()).hexdigest()[:16],
        "python": platform.python_version(),
        **{package: version(package) for package in PACKAGES},
    }


def peak_memory_mb() -> float:
    """The highest resident memory of this process so far, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def _plain(value: Any) -> Any:
    return " ".join(map(str, value)) if isinstance(value, tuple) else value
