"""Deep Graph Infomax, `dgi`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from btcnb.learn.config import TrainConfig
from btcnb.learn.encoders import Encoder
from btcnb.learn.objectives.batches import GraphBatches, encode


class InfomaxObjective(nn.Module):
    """DGI: tell nodes of the graph from nodes of the graph with shuffled features, given the batch's summary."""

    def __init__(self, config: TrainConfig) -> None:
        super().__init__()
        self.config = config
        self.score = nn.Parameter(torch.empty(config.output, config.output))
        nn.init.xavier_uniform_(self.score)

    def forward(self, encoder: Encoder, batches: GraphBatches, seed: int) -> Tensor:
        rng = np.random.default_rng(seed)
        number = min(self.config.anchors, batches.graph.num_nodes)
        batch = batches.draw(np.sort(rng.choice(batches.graph.num_nodes, number, replace=False)), seed)
        real = encode(encoder, batch, unit=False)  # (seeds, d)
        shuffled = replace(batch, x=batch.x[torch.from_numpy(rng.permutation(len(batch.x)))])
        fake = encode(encoder, shuffled, unit=False)
        direction = self.score @ torch.sigmoid(real.mean(0))  # W s, (d,)
        logits = torch.cat([real @ direction, fake @ direction])
        truth = (torch.arange(len(logits), device=logits.device) < len(real)).to(logits.dtype)
        return functional.binary_cross_entropy_with_logits(logits, truth)
