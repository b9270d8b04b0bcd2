"""Checkpoints: written whole or not at all, read without unpickling anything but tensors and plain values."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from btcnb.errors import DataError
from btcnb.learn.config import TrainConfig
from btcnb.learn.encoders import Encoder

BEST, LAST = "best.pt", "last.pt"


def save(state: dict[str, Any], path: Path) -> None:
    """Write to a neighbouring file, then rename: an interruption leaves the old checkpoint or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        torch.save(state, partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def load(path: str | Path) -> dict[str, Any]:
    """The state that `save` wrote."""
    path = Path(path)
    if not path.exists():
        raise DataError(path, "checkpoint", "there is no such file", "train first, or name the run's folder")
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise DataError(path, "checkpoint", "is not a readable checkpoint", "delete it and train again") from error
    if not isinstance(state, dict) or "config" not in state:
        raise DataError(path, "checkpoint", "holds no training state", "name a file that btcnb wrote")
    return state


def model_state(encoder: Encoder) -> dict[str, Any]:
    """What is needed to build the encoder again, as plain values and tensors (copied)."""
    return {
        "config": encoder.config.to_json(),
        "in_channels": encoder.in_channels,
        "edge_channels": encoder.edge_channels,
        "model": {name: value.detach().clone() for name, value in encoder.state_dict().items()},
    }


def load_model(path: str | Path) -> Encoder:
    """The encoder of a checkpoint file, or of a run's folder (its best), ready to embed."""
    path = Path(path)
    return model_from(load(path / BEST if path.is_dir() else path))


def model_from(state: dict[str, Any]) -> Encoder:
    with torch.random.fork_rng(devices=[]):  # weights are drawn only to be replaced
        encoder = Encoder(TrainConfig.from_json(state["config"]), state["in_channels"], state["edge_channels"])
    encoder.load_state_dict(state["model"])
    return encoder.eval()
