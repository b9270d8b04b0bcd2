"""What a step minimises: the contrastive loss (with CoinJoin repulsion or without) or a baseline's loss.

An objective turns (encoder, graph, seed) into a loss. Everything random in it comes from that seed, so a step can be
repeated, and a run resumed, without any saved generator state. A new one is a file of its own with a class like
`InfomaxObjective`, one line here, and its name in `config.Objective`, by which mypy checks the keys.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from btcnb.errors import ParameterError
from btcnb.learn.config import Objective, TrainConfig
from btcnb.learn.objectives.autoencoder import AutoEncoderObjective
from btcnb.learn.objectives.batches import GraphBatches, encode
from btcnb.learn.objectives.coinjoins import CoinJoinGraph, CoinJoinPairs
from btcnb.learn.objectives.contrastive import ContrastiveObjective, contrastive_loss
from btcnb.learn.objectives.infomax import InfomaxObjective

OBJECTIVES: dict[Objective, Callable[[TrainConfig], nn.Module]] = {
    "contrastive": ContrastiveObjective,
    "gae": AutoEncoderObjective,
    "dgi": InfomaxObjective,
}

__all__ = [
    "OBJECTIVES",
    "CoinJoinGraph",
    "CoinJoinPairs",
    "GraphBatches",
    "contrastive_loss",
    "encode",
    "make_objective",
]


def make_objective(config: TrainConfig, coinjoins: CoinJoinPairs | None = None) -> nn.Module:
    """The objective that `config` names."""
    objective = OBJECTIVES[config.objective](config)
    if coinjoins is not None:
        if not isinstance(objective, ContrastiveObjective):
            raise ParameterError("coinjoins are given, but only the contrastive objective has a repulsion term.")
        objective.coinjoins = coinjoins
    return objective
