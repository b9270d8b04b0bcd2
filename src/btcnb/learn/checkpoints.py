"""Checkpoints: written whole or not at all, with a digest of their content. Reading one unpickles nothing but tensors
and plain values."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from btcnb.errors import DataError
from btcnb.learn.encoder import Encoder

BEST, LAST = "best.pt", "last.pt"
DIGEST = "digest"
MODEL_PARTS = ("config", "in_channels", "edge_channels", "weights")


def save(state: dict[str, Any], path: Path) -> None:
    """Write to a neighbouring file, then rename: an interruption leaves the old checkpoint or the new one.

    A place that cannot be written to, or is full, is a `DataError`.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
        try:
            torch.save({**state, DIGEST: digest(state)}, partial)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except (OSError, ValueError, RuntimeError) as error:  # torch raises RuntimeError on a full disk
        problem = f"cannot be written ({str(error)[:200]})"
        raise DataError(path.parent, "checkpoint", problem, "make room, or name another directory") from error


def load(path: str | Path) -> dict[str, Any]:
    """The state that `save` wrote; anything else, and a file with a single changed bit in it, is a `DataError`."""
    if not os.path.isfile(path):  # noqa: PTH113, since Path.is_file raises where a name is too long
        raise DataError(path, "checkpoint", "there is no such file", "train first, or name the run's folder")
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise DataError(path, "checkpoint", "is not a readable checkpoint", "delete it and train again") from error
    if not isinstance(state, dict) or "config" not in state or DIGEST not in state:
        raise DataError(path, "checkpoint", "holds no training state", "name a file that btcnb wrote")
    if state.pop(DIGEST) != digest(state):
        raise DataError(path, "checkpoint", "is damaged: its digest does not fit", "delete it and train again")
    return state


def digest(state: Any) -> str:
    """A hash of tensors, plain values, and lists and dictionaries of them: equal for equal content, on any device."""
    total = hashlib.sha256()
    _feed(total, state)
    return total.hexdigest()


def _feed(total: Any, value: Any) -> None:
    if isinstance(value, Tensor):
        total.update(f"tensor {value.dtype} {tuple(value.shape)};".encode())
        total.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    elif isinstance(value, dict):
        total.update(f"dict {len(value)};".encode())
        for key, item in value.items():
            _feed(total, key)
            _feed(total, item)
    elif isinstance(value, list | tuple):
        total.update(f"list {len(value)};".encode())
        for item in value:
            _feed(total, item)
    else:
        text = repr(value).encode()
        total.update(f"{type(value).__name__} {len(text)};".encode() + text)


def model_state(encoder: Encoder) -> dict[str, Any]:
    """`Encoder.to_store` with tensors in place of arrays."""
    parts = encoder.to_store()
    return {**parts, "weights": {name: torch.from_numpy(value) for name, value in parts["weights"].items()}}


def load_model(path: str | Path) -> Encoder:
    """The encoder of a checkpoint file, or of a run's folder (its best), ready to embed."""
    return load_model_and_digest(path)[0]


def load_model_and_digest(path: str | Path) -> tuple[Encoder, str]:
    """The encoder, and the digest of its weights and settings as the file holds them."""
    file = Path(path) / BEST if Path(path).is_dir() else Path(path)
    state = load(file)
    parts = {name: state[name] for name in MODEL_PARTS if name in state}
    return Encoder.from_store(parts, str(file)), digest(parts)
