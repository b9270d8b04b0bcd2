"""Neighbour sampling behind PyG's own extension point, `BaseSampler`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch_geometric.typing
from torch import Tensor
from torch_geometric.sampler import BaseSampler, EdgeSamplerInput, NegativeSampling, NodeSamplerInput, SamplerOutput
from torch_geometric.sampler import NeighborSampler as PygNeighborSampler

from btcnb import gates
from btcnb.errors import ParameterError
from btcnb.learn import kernels
from btcnb.learn.config import checked_fanout
from btcnb.learn.graphs import PreparedGraph


@dataclass(frozen=True)
class Batch:
    """A sampled neighbourhood with its features; node order: seeds first, then hop by hop.

    node (n) global ids; x (n, F); edge_index (2, e) local, sorted by target; edge_attr (e, D) or None;
    degree (n) in-degrees in the whole graph, or None; nodes_per_hop (hops+1) and edges_per_hop (hops) for trimming.
    """

    node: Tensor
    x: Tensor
    edge_index: Tensor
    edge_attr: Tensor | None
    degree: Tensor | None
    nodes_per_hop: list[int]
    edges_per_hop: list[int]

    def to(self, device: torch.device) -> Batch:
        """The same on another device."""
        if device.type == "cpu":
            return self
        moved: dict[str, Any] = {
            name: value.to(device) for name, value in vars(self).items() if isinstance(value, Tensor)
        }
        return replace(self, **moved)


class NeighbourSampler(BaseSampler):
    """Draws in-neighbours hop by hop, uniformly and without replacement, 15 then 5 by default.

    Works in PyG's `NodeLoader`. Repeated seeds are taken once, in order of first appearance. The n-th call after
    construction (or after `restart`) gives the same subgraph for the same `seed`.
    """

    def __init__(self, graph: PreparedGraph, fanout: tuple[int, ...] = (15, 5), seed: int = 0) -> None:
        self.graph = gates.instance("graph", graph, PreparedGraph)
        self.fanout = np.asarray(checked_fanout(fanout), dtype=np.int64)
        self.seed = gates.whole("seed", seed, "[0, inf)")
        self._calls = 0
        self._scratch = np.full(graph.num_nodes, -1, dtype=np.int32)

    def restart(self) -> None:
        """Begin the sequence of draws anew."""
        self._calls = 0

    def sample(self, seeds: npt.NDArray[np.int64], seed: int) -> SamplerOutput:
        """The neighbourhood of `seeds` (distinct) drawn with `seed`; the same arguments give the same answer."""
        seeds = gates.array("seeds", seeds, 1, "iu").astype(np.int64, copy=False)
        seed = gates.whole("seed", seed)
        if len(seeds) and (seeds.min() < 0 or seeds.max() >= self.graph.num_nodes):
            raise ParameterError(f"a seed lies outside the graph's {self.graph.num_nodes} nodes.")
        if len(np.unique(seeds)) < len(seeds):
            raise ParameterError("a seed is given twice; pass each node once.")
        node, row, col, edge, nodes, edges = kernels.sample_neighbours(
            self.graph.indptr, self.graph.source, seeds, self.fanout, seed & 0x7FFFFFFFFFFFFFFF, self._scratch
        )
        return SamplerOutput(
            node=torch.from_numpy(node),
            row=torch.from_numpy(row),
            col=torch.from_numpy(col),
            edge=torch.from_numpy(edge),
            num_sampled_nodes=nodes.tolist(),
            num_sampled_edges=edges.tolist(),
        )

    def sample_from_nodes(self, index: NodeSamplerInput, **kwargs: Any) -> SamplerOutput:
        """PyG's entry point; `metadata` holds the loader's input ids and times of the seeds that were kept."""
        seeds = index.node.numpy().astype(np.int64)
        first = np.sort(np.unique(seeds, return_index=True)[1])
        out = self.sample(seeds[first], derived_seed(self.seed, self._calls))
        self._calls += 1
        kept = torch.from_numpy(first)
        input_id = kept if index.input_id is None else index.input_id[kept]
        out.metadata = (input_id, None if index.time is None else index.time[kept])
        return out

    def sample_from_edges(self, index: EdgeSamplerInput, neg_sampling: NegativeSampling | None = None) -> SamplerOutput:
        raise NotImplementedError("NeighbourSampler draws around nodes; pass the ends of an edge as seeds.")


def neighbour_sampler(
    graph: PreparedGraph, fanout: tuple[int, ...] = (15, 5), seed: int = 0, backend: str = "auto"
) -> BaseSampler:
    """PyG's own sampler where pyg-lib is installed, this package's everywhere else.

    backend: `auto`, `pyg-lib` or `numba`. Both draw uniformly without replacement, but not the same neighbours.
    """
    gates.choice("backend", backend, ("auto", "pyg-lib", "numba"))
    gates.instance("graph", graph, PreparedGraph)
    present = bool(torch_geometric.typing.WITH_PYG_LIB)
    if backend == "pyg-lib" and not present:
        raise ParameterError("backend is 'pyg-lib', but pyg-lib is not installed; use 'numba' or 'auto'.")
    if present and backend != "numba":
        return PygNeighborSampler(graph.to_data(), num_neighbors=list(checked_fanout(fanout)), is_sorted=True)
    return NeighbourSampler(graph, fanout, seed)


def draw_batch(
    sampler: BaseSampler, graph: PreparedGraph, seeds: npt.NDArray[np.int64], seed: int, degree: bool = True
) -> Batch:
    """Sample around distinct `seeds` and join features (and degrees, which only a GCN needs).

    With either backend the same `seed` gives the same batch.
    """
    gates.instance("sampler", sampler, BaseSampler)
    gates.instance("graph", graph, PreparedGraph)
    if isinstance(sampler, NeighbourSampler):
        out = sampler.sample(seeds, seed)
    else:  # pyg-lib draws from torch's generator
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            out = sampler.sample_from_nodes(NodeSamplerInput(input_id=None, node=torch.from_numpy(seeds)))
    node = out.node
    in_degree = graph.indptr[node.numpy() + 1] - graph.indptr[node.numpy()] if degree else None
    return Batch(
        node=node,
        x=graph.x.index_select(0, node),
        edge_index=torch.stack([out.row, out.col]),
        edge_attr=None if graph.edge_attr is None else graph.edge_attr[out.edge],
        degree=None if in_degree is None else torch.from_numpy(in_degree),
        nodes_per_hop=list(out.num_sampled_nodes or []),
        edges_per_hop=list(out.num_sampled_edges or []),
    )


def derived_seed(*keys: int) -> int:
    """A 63-bit seed from a tuple of non-negative integers, e.g. (seed, epoch, step): nothing random needs saving."""
    return int(np.random.SeedSequence(keys).generate_state(1, np.uint64)[0] >> np.uint64(1))
