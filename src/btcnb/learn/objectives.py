"""What a step minimises: the contrastive loss (with CoinJoin repulsion or without) or a baseline's loss.

An objective turns (encoder, graph, seed) into a loss. Everything random in it comes from that seed, so a step can be
repeated, and a run resumed, without any saved generator state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.sampler import BaseSampler

from btcnb.data.address_graph import AddressGraph
from btcnb.errors import DataError
from btcnb.learn.config import TrainConfig
from btcnb.learn.encoders import Encoder
from btcnb.learn.graphs import PreparedGraph, disjoint_union
from btcnb.learn.losses import coinjoin_repulsion, info_nce
from btcnb.learn.sampler import Batch, derived_seed, draw_batch, neighbour_sampler
from btcnb.learn.tuples import Tuples, TupleSampler

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class CoinJoinGraph:
    """A graph around one CoinJoin, and the node rows of that transaction's inputs (at least two)."""

    graph: AddressGraph | PreparedGraph
    inputs: IntArray


class GraphBatches:
    """One graph with its neighbour sampler and its tuple sampler, made once."""

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
        loss = contrastive_loss(encoder, batches, tuples, self.config.temperature, seed)
        if self.coinjoins is not None and self.training:
            loss = loss + self.config.coinjoin_weight * self.coinjoins.loss(encoder, seed)
        return loss


def contrastive_loss(encoder: Encoder, batches: GraphBatches, tuples: Tuples, tau: float, seed: int) -> Tensor:
    """Equation 1 for given tuples, on neighbourhoods drawn with `seed`; each distinct node is embedded once."""
    nodes, anchor, positive, negatives = tuples.distinct()
    embedding = encode(encoder, batches.draw(nodes, seed))
    return info_nce(
        embedding[torch.from_numpy(anchor)],
        embedding[torch.from_numpy(positive)],
        embedding[torch.from_numpy(negatives)],
        tau,
    )


def encode(encoder: Encoder, batch: Batch, unit: bool = True) -> Tensor:
    """Embeddings of a batch's seeds, (seeds, d); `unit=False` leaves the rows as the last layer made them."""
    out = encoder.raw(
        batch.x, batch.edge_index, batch.edge_attr, batch.degree, batch.nodes_per_hop, batch.edges_per_hop
    )
    return functional.normalize(out, dim=-1) if unit else out


class CoinJoinPairs:
    """Pairs of inputs of the same CoinJoin, from a set of CoinJoin-centred graphs laid side by side."""

    def __init__(self, graphs: Sequence[PreparedGraph], inputs: Sequence[IntArray], config: TrainConfig) -> None:
        for position, rows in enumerate(inputs):
            if len(np.unique(rows)) < 2:
                raise DataError(
                    f"CoinJoin graph {position}", "inputs", "has fewer than two distinct inputs", "leave it out"
                )
        union, first = disjoint_union(graphs)
        self.config = config
        self.inputs = [np.unique(rows) + start for rows, start in zip(inputs, first, strict=True)]
        self.graph = union
        self.sampler = neighbour_sampler(union, config.fanout, config.seed)

    def draw(self, rng: np.random.Generator) -> tuple[IntArray, IntArray, IntArray]:
        """Distinct pairs of distinct inputs from N_g graphs (all, if there are fewer): a (P,), b (P,), graph (P,)."""
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
        return np.concatenate(firsts), np.concatenate(seconds), np.concatenate(owners)

    def loss(self, encoder: Encoder, seed: int) -> Tensor:
        """The repulsion loss of one draw."""
        rng = np.random.default_rng([seed, 1])
        first, second, graph = self.draw(rng)
        nodes, where = np.unique(np.concatenate([first, second]), return_inverse=True)
        needs_degree = self.config.encoder == "gcn"
        embedding = encode(encoder, draw_batch(self.sampler, self.graph, nodes, derived_seed(seed, 1), needs_degree))
        where_first, where_second = torch.from_numpy(where).split(len(first))
        return coinjoin_repulsion(
            embedding[where_first], embedding[where_second], self.config.coinjoin_temperature, torch.from_numpy(graph)
        )


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
        truth = torch.cat([torch.ones(self.config.anchors), torch.zeros(self.config.anchors)])
        return functional.binary_cross_entropy_with_logits((ends[0] * ends[1]).sum(-1), truth)


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
        shuffled = batch.x[torch.from_numpy(rng.permutation(len(batch.x)))]
        fake = encoder.raw(
            shuffled, batch.edge_index, batch.edge_attr, batch.degree, batch.nodes_per_hop, batch.edges_per_hop
        )
        direction = self.score @ torch.sigmoid(real.mean(0))  # W s, (d,)
        logits = torch.cat([real @ direction, fake @ direction])
        truth = torch.cat([torch.ones(len(real)), torch.zeros(len(fake))])
        return functional.binary_cross_entropy_with_logits(logits, truth)


def make_objective(config: TrainConfig, coinjoins: CoinJoinPairs | None = None) -> nn.Module:
    """The objective that `config` names."""
    if config.objective == "gae":
        return AutoEncoderObjective(config)
    if config.objective == "dgi":
        return InfomaxObjective(config)
    return ContrastiveObjective(config, coinjoins)
