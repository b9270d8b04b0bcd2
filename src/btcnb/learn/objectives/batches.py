"""A graph with its samplers, and embeddings of a batch."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from torch import Tensor
from torch.nn import functional
from torch_geometric.sampler import BaseSampler

from btcnb.learn.config import TrainConfig
from btcnb.learn.encoders import Encoder
from btcnb.learn.graphs import PreparedGraph
from btcnb.learn.sampler import Batch, draw_batch, neighbour_sampler
from btcnb.learn.tuples import TupleSampler

IntArray = npt.NDArray[np.int64]


class GraphBatches:
    """One graph with its neighbour sampler and its tuple sampler (for objectives that need clusters), made once."""

    def __init__(self, graph: PreparedGraph, config: TrainConfig, name: str = "graph") -> None:
        self.graph = graph
        self.degree = config.encoder == "gcn"
        self.sampler: BaseSampler = neighbour_sampler(graph, config.fanout, config.seed)
        self.tuples = (
            TupleSampler(graph.labels, config.alpha, config.negatives, name)
            if config.objective == "contrastive"
            else None
        )

    def draw(self, seeds: IntArray, seed: int) -> Batch:
        return draw_batch(self.sampler, self.graph, seeds, seed, self.degree)


def encode(encoder: Encoder, batch: Batch, unit: bool = True) -> Tensor:
    """Embeddings of a batch's seeds, (seeds, d); `unit=False` leaves the rows as the last layer made them."""
    batch = batch.to(encoder.device)
    out = encoder.raw(
        batch.x, batch.edge_index, batch.edge_attr, batch.degree, batch.nodes_per_hop, batch.edges_per_hop
    )
    return functional.normalize(out, dim=-1) if unit else out
