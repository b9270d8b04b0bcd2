"""Where a run computes: the device that a configuration names, and what must be put back afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from btcnb.errors import ParameterError
from btcnb.learn.config import TrainConfig


def device_of(config: TrainConfig) -> torch.device:
    """The device of a run; `auto` is a CUDA device where there is one and the configuration lets it, else the CPU."""
    if config.device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() and config.convolutions != "compiled" else "cpu")
    device = torch.device(config.device)
    try:
        torch.empty(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError, ImportError):
        raise ParameterError(f"device is {config.device!r}, but there is no such device here.") from None
    return device


@contextmanager
def moved(model: nn.Module, device: torch.device) -> Iterator[None]:
    """The model on a device for a while, then back where it was."""
    before = next(model.parameters()).device
    model.to(device)
    try:
        yield
    finally:
        model.to(before)


@contextmanager
def own_randomness(device: torch.device) -> Iterator[None]:
    """torch's generators, of the CPU and of the device, are left as they were."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        yield
