"""The graph auto-encoder's objective, `gae`."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from btcnb.errors import DataError
from btcnb.learn.config import TrainConfig
from btcnb.learn.encoders import Encoder
from btcnb.learn.objectives.batches import GraphBatches, encode


class AutoEncoderObjective(nn.Module):
    """GAE: tell edges from random pairs by the dot product of their ends.

    The paper's sum over all pairs is estimated from as many edges as `anchors` and as many random pairs of nodes; the
    dot product is taken before rows are scaled to unit norm, or σ could not leave [0.27, 0.73].
    """

    def __init__(self, config: TrainConfig) -> None:
        super().__init__()
        self.config = config

    def forward(self, encoder: Encoder, batches: GraphBatches, seed: int) -> Tensor:
        graph, rng = batches.graph, np.random.default_rng(seed)
        if not graph.num_edges:
            raise DataError("graph", "edges", "the graph has no edge", "an auto-encoder needs edges to reconstruct")
        edge = rng.integers(0, graph.num_edges, self.config.anchors)
        target = np.searchsorted(graph.indptr, edge, side="right") - 1
        pairs = np.concatenate(
            [
                np.stack([graph.source[edge].astype(np.int64), target]),
                rng.integers(0, graph.num_nodes, (2, self.config.anchors)),
            ],
            axis=1,
        )  # (2, edges and random pairs)
        nodes, where = np.unique(pairs, return_inverse=True)
        embedding = encode(encoder, batches.draw(nodes, seed), unit=False)
        ends = embedding[torch.from_numpy(where.reshape(pairs.shape))]  # (2, pairs, d)
        logits = (ends[0] * ends[1]).sum(-1)
        truth = (torch.arange(len(logits), device=logits.device) < self.config.anchors).to(logits.dtype)
        return functional.binary_cross_entropy_with_logits(logits, truth)
