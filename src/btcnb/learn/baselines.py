"""The paper's encoder baselines, by name: what each changes in the configuration it is compared with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from btcnb import gates
from btcnb.learn.config import TrainConfig

BASELINE_EPOCHS = 20
"""Epochs of GAE and DGI (appendix on the training of baselines)."""

BASELINES: dict[str, dict[str, Any]] = {
    "untrained": {"epochs": 0},
    "gae": {"objective": "gae", "epochs": BASELINE_EPOCHS},
    "dgi": {"objective": "dgi", "epochs": BASELINE_EPOCHS},
}
"""A new baseline is one line here (and an objective, if it has one of its own)."""


def baseline_config(name: str, config: TrainConfig | None = None) -> TrainConfig:
    """The configuration of a baseline: the given one (or the paper's) but for objective and, at most, epochs."""
    config = TrainConfig() if config is None else gates.instance("config", config, TrainConfig)
    changes = BASELINES[gates.choice("baseline", name, BASELINES)]
    return replace(config, **{**changes, "epochs": min(changes["epochs"], config.epochs)})
