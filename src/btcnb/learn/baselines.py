"""The paper's baselines, by name: three encoders without heuristic labels, two community detectors without features."""

from __future__ import annotations

from dataclasses import replace

from btcnb.errors import ParameterError
from btcnb.learn.communities import communities, tune_resolution
from btcnb.learn.config import TrainConfig

EMBEDDING_BASELINES = ("untrained", "gae", "dgi")
COMMUNITY_BASELINES = ("louvain", "leiden")
BASELINE_EPOCHS = 20
"""Epochs of GAE and DGI (appendix on the training of baselines)."""

__all__ = [
    "BASELINE_EPOCHS",
    "COMMUNITY_BASELINES",
    "EMBEDDING_BASELINES",
    "baseline_config",
    "communities",
    "tune_resolution",
]


def baseline_config(name: str, config: TrainConfig | None = None) -> TrainConfig:
    """The configuration of `untrained`, `gae` or `dgi`: the given one (or the paper's) but for objective and epochs."""
    config = config or TrainConfig()
    if name == "untrained":
        return replace(config, epochs=0)
    if name == "gae":
        return replace(config, objective="gae", epochs=min(BASELINE_EPOCHS, config.epochs))
    if name == "dgi":
        return replace(config, objective="dgi", epochs=min(BASELINE_EPOCHS, config.epochs))
    raise ParameterError(f"baseline is {name!r}, but must be one of {', '.join(map(repr, EMBEDDING_BASELINES))}.")
