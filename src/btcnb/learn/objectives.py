"""What a step minimises: the paper's two losses, and the objectives of training and of the baselines.

An objective turns (encoder, graph, seed) into a loss. Everything random in it comes from that seed, so a step can be
repeated, and a run resumed, without any saved generator state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from btcnb.data.graph import AddressGraph
from btcnb.errors import DataError, ParameterError
from btcnb.learn.config import Objective, TrainConfig
from btcnb.learn.encoder import Encoder, moved
from btcnb.learn.graphs import IntArray, PreparedGraph, disjoint_union
from btcnb.learn.sampler import Batch, BatchSampler, TupleSampler, derived_seed

NO_ROBUSTNESS = 1e-30
"""Up to here q counts as 0: the losses agree in every digit, and float32 cannot hold q much longer."""


def info_nce(
    anchor: Tensor,
    positive: Tensor,
    negatives: Tensor,
    tau: float = 0.07,
    reduction: Literal["mean", "sum", "none"] = "mean",
    robustness: float = 0.0,
) -> Tensor:
    """The contrastive loss of the paper's equation 1.

    anchor (B, d), positive (B, d), negatives (B, p, d): unit rows, so that dot products are cosines. Returns the mean
    over anchors, their sum, or (`none`) one value each, (B,).

    With s the positive's dot product over τ and n those of the negatives,
    −log(exp s / (exp s + Σ exp n)) = log(1 + Σ exp(n − s)). In this form a loss near zero keeps its digits.

    robustness: q. With P the probability that the loss gives to the positive, 0 is −log P (the paper's), anything above
        is the generalised cross-entropy (1 − P^q) / q, whose pull on a positive is P^q times the paper's: pairs that
        look wrong, as false merges do, pull less.
    """
    close = (anchor * positive).sum(-1) / tau  # (B,)
    far = torch.einsum("bd,bpd->bp", anchor, negatives) / tau  # (B, p)
    loss = _log_one_plus_exp(torch.logsumexp(far - close.unsqueeze(1), dim=1))
    if robustness > NO_ROBUSTNESS:
        loss = -torch.expm1(-robustness * loss) / robustness
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.mean()


def coinjoin_repulsion(anchor: Tensor, other: Tensor, tau: float = 0.30, graph: Tensor | None = None) -> Tensor:
    """The CoinJoin repulsion of the appendix: the mean over graphs of the mean over pairs of log(1 + exp(a·b / τ)).

    anchor, other (P, d): unit rows, the two inputs of each pair. graph (P,): which graph a pair belongs to, any
    integers; graphs weigh alike however many pairs they have. Without it all pairs belong to one graph.
    """
    loss = _log_one_plus_exp((anchor * other).sum(-1) / tau)  # (P,)
    if graph is None:
        return loss.mean()
    _, where, pairs = torch.unique(graph.to(loss.device), return_inverse=True, return_counts=True)
    return (loss / pairs[where]).sum() / len(pairs)


def _log_one_plus_exp(value: Tensor) -> Tensor:
    return torch.logaddexp(value, torch.zeros_like(value))


class GraphBatches:
    """One graph with its neighbour sampler and its tuple sampler (for objectives that need clusters), made once."""

    def __init__(self, graph: PreparedGraph, config: TrainConfig, name: str = "graph") -> None:
        self.graph = graph
        self.sampler = BatchSampler(graph, config.fanout, degree=config.encoder == "gcn")
        self.tuples = (
            TupleSampler(graph.labels, config.alpha, config.negatives, name)
            if config.objective == "contrastive"
            else None
        )

    def draw(self, seeds: IntArray, seed: int) -> Batch:
        return self.sampler.draw(seeds, seed)


def encode(encoder: Encoder, batch: Batch, unit: bool = True) -> Tensor:
    """Embeddings of a batch's seeds, (seeds, d); `unit=False` leaves the rows as the last layer made them."""
    batch = moved(batch, encoder.device)
    out: Tensor = encoder(
        batch.x, batch.edge_index, batch.edge_attr, batch.degree, batch.nodes_per_hop, batch.edges_per_hop, unit
    )
    return out


@dataclass(frozen=True)
class CoinJoinGraph:
    """A graph around one CoinJoin, and the node rows of that transaction's inputs (at least two)."""

    graph: AddressGraph | PreparedGraph
    inputs: IntArray


class CoinJoinPairs:
    """Pairs of inputs of the same CoinJoin, from a set of CoinJoin-centred graphs laid side by side."""

    def __init__(self, graphs: Sequence[PreparedGraph], inputs: Sequence[IntArray], config: TrainConfig) -> None:
        self.config = config
        self.graph, first = disjoint_union(graphs)
        self.inputs = [np.unique(rows).astype(np.int64) + start for rows, start in zip(inputs, first, strict=True)]
        self.sampler = BatchSampler(self.graph, config.fanout, degree=config.encoder == "gcn")
        for position, (rows, start, graph) in enumerate(zip(self.inputs, first, graphs, strict=True)):
            name = f"CoinJoin graph {position}"
            if len(rows) < 2:
                raise DataError(name, "inputs", "has fewer than two distinct inputs", "leave it out")
            if rows[0] < start or rows[-1] >= start + graph.num_nodes:
                raise DataError(name, "inputs", "a row outside the graph", "pass positions of node rows")

    def draw(self, rng: np.random.Generator) -> tuple[IntArray, IntArray, IntArray]:
        """Distinct pairs of distinct inputs from N_g graphs (all, if there are fewer).

        Returns the two nodes of each pair, (P,) and (P,), and which graph they are from, (P,).
        """
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
        first, second, graph = self.draw(np.random.default_rng([seed, 1]))
        nodes, where = np.unique(np.concatenate([first, second]), return_inverse=True)
        embedding = encode(encoder, self.sampler.draw(nodes, derived_seed(seed, 1)))
        where_first, where_second = torch.from_numpy(where).split(len(first))
        return coinjoin_repulsion(
            embedding[where_first], embedding[where_second], self.config.coinjoin_temperature, torch.from_numpy(graph)
        )


class ContrastiveObjective(nn.Module):
    """Equation 1 on tuples from P_α; plus λ times the repulsion of CoinJoin inputs while training, where given."""

    def __init__(self, config: TrainConfig, coinjoins: CoinJoinPairs | None = None) -> None:
        super().__init__()
        self.config = config
        self.coinjoins = coinjoins

    def forward(self, encoder: Encoder, batches: GraphBatches, seed: int) -> Tensor:
        assert batches.tuples is not None
        config = self.config
        tuples = batches.tuples.draw(config.anchors, config.num_negatives, np.random.default_rng(seed))
        nodes, *places = tuples.distinct()  # each distinct node is embedded once
        embedding = encode(encoder, batches.draw(nodes, seed))
        anchor, positive, negatives = (embedding[torch.from_numpy(place)] for place in places)
        loss = info_nce(anchor, positive, negatives, config.temperature, robustness=config.robustness)
        if self.coinjoins is not None and self.training:
            loss = loss + config.coinjoin_weight * self.coinjoins.loss(encoder, seed)
        return loss


class AutoEncoderObjective(nn.Module):
    """GAE, `gae`: tell edges from random pairs by the dot product of their ends.

    The paper's sum over all pairs is estimated from as many edges as `anchors` and as many random pairs of nodes. The
    dot product is taken before rows are scaled to unit norm; otherwise σ could not leave [0.27, 0.73].
    """

    def __init__(self, config: TrainConfig) -> None:
        super().__init__()
        self.config = config

    def forward(self, encoder: Encoder, batches: GraphBatches, seed: int) -> Tensor:
        graph, rng, number = batches.graph, np.random.default_rng(seed), self.config.anchors
        if not graph.num_edges:
            raise DataError("graph", "edges", "the graph has no edge", "an auto-encoder needs edges to reconstruct")
        edge = rng.integers(0, graph.num_edges, number)
        target = np.searchsorted(graph.indptr, edge, side="right") - 1
        edges = np.stack([graph.source[edge].astype(np.int64), target])
        pairs = np.concatenate([edges, rng.integers(0, graph.num_nodes, (2, number))], axis=1)  # (2, edges and pairs)
        nodes, where = np.unique(pairs, return_inverse=True)
        embedding = encode(encoder, batches.draw(nodes, seed), unit=False)
        ends = embedding[torch.from_numpy(where.reshape(pairs.shape))]  # (2, pairs, d)
        return _told_apart((ends[0] * ends[1]).sum(-1), number)


class InfomaxObjective(nn.Module):
    """DGI, `dgi`: tell nodes of the graph from nodes of the graph with shuffled features, given the batch's summary."""

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
        return _told_apart(torch.cat([real @ direction, fake @ direction]), len(real))


def _told_apart(logits: Tensor, number: int) -> Tensor:
    """Cross-entropy of logits of which the first `number` should be 1 and the others 0."""
    truth = (torch.arange(len(logits), device=logits.device) < number).to(logits.dtype)
    return functional.binary_cross_entropy_with_logits(logits, truth)


OBJECTIVES: dict[Objective, Callable[[TrainConfig], nn.Module]] = {
    "contrastive": ContrastiveObjective,
    "gae": AutoEncoderObjective,
    "dgi": InfomaxObjective,
}


def make_objective(config: TrainConfig, coinjoins: CoinJoinPairs | None = None) -> nn.Module:
    """The objective that `config` names."""
    if coinjoins is None:
        return OBJECTIVES[config.objective](config)
    if config.objective != "contrastive":
        raise ParameterError("coinjoins are given, but only the contrastive objective has a repulsion term.")
    return ContrastiveObjective(config, coinjoins)
