"""The paper's contrastive objective, `contrastive`."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from btcnb.learn.config import TrainConfig
from btcnb.learn.encoders import Encoder
from btcnb.learn.losses import info_nce
from btcnb.learn.objectives.batches import GraphBatches, encode
from btcnb.learn.objectives.coinjoins import CoinJoinPairs
from btcnb.learn.tuples import Tuples


class ContrastiveObjective(nn.Module):
    """Equation 1 on tuples from P_α; plus λ times the repulsion of CoinJoin inputs while training, where given."""

    def __init__(self, config: TrainConfig, coinjoins: CoinJoinPairs | None = None) -> None:
        super().__init__()
        self.config = config
        self.coinjoins = coinjoins

    def forward(self, encoder: Encoder, batches: GraphBatches, seed: int) -> Tensor:
        assert batches.tuples is not None
        rng = np.random.default_rng(seed)
        tuples = batches.tuples.draw(self.config.anchors, self.config.num_negatives, rng)
        loss = contrastive_loss(encoder, batches, tuples, self.config.temperature, seed, self.config.robustness)
        if self.coinjoins is not None and self.training:
            loss = loss + self.config.coinjoin_weight * self.coinjoins.loss(encoder, seed)
        return loss


def contrastive_loss(
    encoder: Encoder, batches: GraphBatches, tuples: Tuples, tau: float, seed: int, robustness: float = 0.0
) -> Tensor:
    """Equation 1 for given tuples, on neighbourhoods drawn with `seed`; each distinct node is embedded once."""
    nodes, anchor, positive, negatives = tuples.distinct()
    embedding = encode(encoder, batches.draw(nodes, seed))
    return info_nce(
        embedding[torch.from_numpy(anchor)],
        embedding[torch.from_numpy(positive)],
        embedding[torch.from_numpy(negatives)],
        tau,
        robustness=robustness,
    )
