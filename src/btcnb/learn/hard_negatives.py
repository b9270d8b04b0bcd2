"""Training with the repulsion term, steered by the same loss: the contrastive one plus λ times repulsion.

The paper monitors training "by evaluating the same loss on a validation graph". `train` evaluates the contrastive loss
there, with CoinJoins or without: then repulsion neither lowers the learning rate nor decides which epoch is kept. Here
both terms do, on CoinJoins that do not teach.

    train_repelled(config, graphs, valid, coinjoins=shown, valid_coinjoins=others)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch

from btcnb import gates
from btcnb.errors import ParameterError
from btcnb.learn.config import TrainConfig
from btcnb.learn.objectives import CoinJoinGraph
from btcnb.learn.sampler import derived_seed
from btcnb.learn.training import VALIDATE, AnyGraph, Run, _one_thread, _Trainer


def train_repelled(
    config: TrainConfig,
    graphs: AnyGraph | Sequence[AnyGraph],
    valid: AnyGraph,
    coinjoins: Sequence[CoinJoinGraph],
    valid_coinjoins: Sequence[CoinJoinGraph],
    progress: bool = True,
) -> Run:
    """`train` with the repulsion term, where the validation loss is the loss that is trained.

    coinjoins, valid_coinjoins: graphs around one CoinJoin each that teach, and others that steer; at least one of each
    Arguments and result as in `train`, without folders. `valid_loss` in the history is the sum of both terms; the
    record's `best_repulsion` is the share of repulsion, λ included, in its `best_loss`.
    """
    gates.instance("config", config, TrainConfig)
    if not gates.items("coinjoins", coinjoins):
        raise ParameterError("coinjoins is empty, but without any there is no repulsion; call train instead.")
    trainer = _Steered(config, graphs, valid, coinjoins, valid_coinjoins)
    with _one_thread():
        trainer.run(gates.flag("progress", progress))
    run = trainer.finished()
    return replace(run, record=run.record | {"best_repulsion": trainer.best_repulsion()})


class _Steered(_Trainer):
    """A trainer whose validation loss holds the repulsion of CoinJoins that it does not train on."""

    def __init__(
        self,
        config: TrainConfig,
        graphs: AnyGraph | Sequence[AnyGraph],
        valid: AnyGraph,
        coinjoins: Sequence[CoinJoinGraph],
        valid_coinjoins: Sequence[CoinJoinGraph],
    ) -> None:
        super().__init__(config, graphs, valid, coinjoins, None)
        pairs = self._coinjoin_pairs(gates.items("valid_coinjoins", valid_coinjoins))
        if pairs is None:
            raise ParameterError("valid_coinjoins is empty, but repulsion is to be validated; give CoinJoins for it.")
        self.valid_pairs = pairs
        self.fingerprint += f"+{pairs.graph.fingerprint}"
        self.repulsions: list[float] = []  # λ times the repulsion on validation CoinJoins, one per epoch

    def _valid_loss(self) -> float:
        """Both terms: no dropout, the same tuples, pairs and neighbours at every epoch."""
        contrastive = super()._valid_loss()  # leaves the encoder in evaluation mode
        steps = range(self.config.valid_steps)
        with torch.no_grad():
            found = [
                self.valid_pairs.loss(self.encoder, derived_seed(self.config.seed, VALIDATE, step)).item()
                for step in steps
            ]
        self.repulsions.append(self.config.coinjoin_weight * sum(found) / len(found))
        return contrastive + self.repulsions[-1]

    def best_repulsion(self) -> float:
        """The repulsion of the epoch with the lowest validation loss; NaN before the first epoch."""
        return self.repulsions[self.best_epoch - 1] if self.best_epoch else math.nan
