"""Pairs of inputs of the same CoinJoin, which the repulsion term keeps apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from btcnb import gates
from btcnb.data.address_graph import AddressGraph
from btcnb.errors import DataError
from btcnb.learn.config import TrainConfig
from btcnb.learn.encoders import Encoder
from btcnb.learn.graphs import PreparedGraph, disjoint_union
from btcnb.learn.losses import coinjoin_repulsion
from btcnb.learn.objectives.batches import IntArray, encode
from btcnb.learn.sampler import derived_seed, draw_batch, neighbour_sampler


@dataclass(frozen=True)
class CoinJoinGraph:
    """A graph around one CoinJoin, and the node rows of that transaction's inputs (at least two)."""

    graph: AddressGraph | PreparedGraph
    inputs: IntArray


class Pairs(NamedTuple):
    """Node ids first (P,), second (P,), and which graph they are from (P,)."""

    first: IntArray
    second: IntArray
    graph: IntArray


class CoinJoinPairs:
    """Pairs of inputs of the same CoinJoin, from a set of CoinJoin-centred graphs laid side by side."""

    def __init__(self, graphs: Sequence[PreparedGraph], inputs: Sequence[IntArray], config: TrainConfig) -> None:
        union, first = disjoint_union(graphs)
        distinct = [
            _distinct(rows, graph.num_nodes, f"CoinJoin graph {position}")
            for position, (rows, graph) in enumerate(zip(inputs, graphs, strict=True))
        ]
        self.config = config
        self.inputs = [rows + start for rows, start in zip(distinct, first, strict=True)]
        self.graph = union
        self.sampler = neighbour_sampler(union, config.fanout, config.seed)

    def draw(self, rng: np.random.Generator) -> Pairs:
        """Distinct pairs of distinct inputs from N_g graphs (all, if there are fewer)."""
        number = min(self.config.coinjoin_graphs, len(self.inputs))
        chosen = np.sort(rng.choice(len(self.inputs), number, replace=False))
        firsts, seconds, owners = [], [], []
        for graph in chosen:
            rows = self.inputs[graph]
            possible = len(rows) * (len(rows) - 1) // 2
            picked = rng.choice(possible, min(self.config.coinjoin_pairs, possible), replace=False)
            # pairs are numbered q = larger (larger − 1) / 2 + smaller
            larger = ((1 + np.sqrt(1 + 8 * picked)) // 2).astype(np.int64)
            firsts.append(rows[larger])
            seconds.append(rows[picked - larger * (larger - 1) // 2])
            owners.append(np.full(len(picked), graph))
        return Pairs(np.concatenate(firsts), np.concatenate(seconds), np.concatenate(owners))

    def loss(self, encoder: Encoder, seed: int) -> Tensor:
        """The repulsion loss of one draw."""
        first, second, graph = self.draw(np.random.default_rng([seed, 1]))
        nodes, where = np.unique(np.concatenate([first, second]), return_inverse=True)
        needs_degree = self.config.encoder == "gcn"
        embedding = encode(encoder, draw_batch(self.sampler, self.graph, nodes, derived_seed(seed, 1), needs_degree))
        where_first, where_second = torch.from_numpy(where).split(len(first))
        return coinjoin_repulsion(
            embedding[where_first], embedding[where_second], self.config.coinjoin_temperature, torch.from_numpy(graph)
        )


def _distinct(inputs: IntArray, nodes: int, name: str) -> IntArray:
    rows = np.unique(gates.array(f"{name}, inputs", inputs, 1, "iu")).astype(np.int64)
    if len(rows) < 2:
        raise DataError(name, "inputs", "has fewer than two distinct inputs", "leave it out")
    if rows[0] < 0 or rows[-1] >= nodes:
        raise DataError(name, "inputs", f"a row outside the graph's {nodes} nodes", "pass positions of node rows")
    return rows
