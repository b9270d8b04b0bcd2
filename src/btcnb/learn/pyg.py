"""Graphs and neighbours for PyG's loaders. No other module of learning imports PyG, which takes seconds."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.utils.data import get_worker_info
from torch_geometric.data import Data
from torch_geometric.sampler import BaseSampler, EdgeSamplerInput, NegativeSampling, NodeSamplerInput, SamplerOutput

from btcnb.learn.graphs import PreparedGraph
from btcnb.learn.sampler import BatchSampler, derived_seed


def to_data(graph: PreparedGraph) -> Data:
    """A graph as PyG's `Data`, for its loaders and convolutions."""
    labels = torch.from_numpy(graph.labels)
    return Data(x=graph.x, edge_index=graph.edge_index(), edge_attr=graph.edge_attr, y=labels)


class NeighbourSampler(BaseSampler):
    """`BatchSampler` behind PyG's extension point, for its `NodeLoader`.

    Repeated seeds are taken once, in order of first appearance. The n-th call after construction gives the same
    subgraph for the same `seed`. A loader's worker processes draw differently from each other and in every epoch; their
    draws follow from `seed` and from torch's generator, which seeds the workers.
    """

    def __init__(self, graph: PreparedGraph, fanout: tuple[int, ...] = (15, 5), seed: int = 0) -> None:
        self.sampler = BatchSampler(graph, fanout)
        self.seed = seed
        self._calls = 0

    def sample_from_nodes(self, index: NodeSamplerInput, **kwargs: Any) -> SamplerOutput:
        """PyG's entry point; `metadata` holds the loader's input ids and times of the seeds that were kept."""
        seeds = index.node.numpy().astype(np.int64)
        first = np.sort(np.unique(seeds, return_index=True)[1])
        worker = get_worker_info()
        keys = [self.seed, self._calls] if worker is None else [self.seed, self._calls, worker.seed]
        node, row, col, edge, nodes, edges = self.sampler.neighbours(seeds[first], derived_seed(*keys))
        self._calls += 1
        kept = torch.from_numpy(first)
        input_id = kept if index.input_id is None else index.input_id[kept]
        return SamplerOutput(
            node=torch.from_numpy(node),
            row=torch.from_numpy(row),
            col=torch.from_numpy(col),
            edge=torch.from_numpy(edge),
            num_sampled_nodes=nodes.tolist(),
            num_sampled_edges=edges.tolist(),
            metadata=(input_id, None if index.time is None else index.time[kept]),
        )

    def sample_from_edges(self, index: EdgeSamplerInput, neg_sampling: NegativeSampling | None = None) -> SamplerOutput:
        raise NotImplementedError("NeighbourSampler draws around nodes; pass the ends of an edge as seeds.")
