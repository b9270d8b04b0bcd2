"""What a training step draws: contrastive tuples from the paper's distribution P_α, and neighbours of their nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from btcnb.errors import DataError
from btcnb.learn import kernels
from btcnb.learn.config import Negatives
from btcnb.learn.graphs import IntArray, PreparedGraph


def derived_seed(*keys: int) -> int:
    """A 63-bit seed from non-negative integers, e.g. (seed, epoch, step), so that no generator state needs saving."""
    return int(np.random.SeedSequence(keys).generate_state(1, np.uint64)[0] >> np.uint64(1))


@dataclass(frozen=True)
class Batch:
    """A sampled neighbourhood with its features; node order: seeds first, then hop by hop.

    node (n): ids in the whole graph; x (n, F); edge_index (2, e): positions in `node`, sorted by target;
    edge_attr (e, D) or None; degree (n): in-degrees in the whole graph, or None;
    nodes_per_hop (hops+1) and edges_per_hop (hops): for trimming.
    """

    node: Tensor
    x: Tensor
    edge_index: Tensor
    edge_attr: Tensor | None
    degree: Tensor | None
    nodes_per_hop: list[int]
    edges_per_hop: list[int]


class BatchSampler:
    """Draws in-neighbours hop by hop, uniformly and without replacement, and joins the features of all nodes drawn.

    fanout: neighbours drawn around a seed, then around each of those, …
    degree: whether batches hold in-degrees, which only a GCN needs
    """

    def __init__(self, graph: PreparedGraph, fanout: tuple[int, ...] = (15, 5), degree: bool = True) -> None:
        self.graph = graph
        self.fanout = np.asarray(fanout, dtype=np.int64)
        self.degree = degree
        self._scratch = np.full(graph.num_nodes, -1, dtype=np.int32)

    def neighbours(self, seeds: IntArray, seed: int) -> tuple[IntArray, ...]:
        """The arrays of `kernels.sample_neighbours` around `seeds` (distinct nodes), drawn with `seed`."""
        found: tuple[IntArray, ...] = kernels.sample_neighbours(
            self.graph.indptr, self.graph.source, seeds, self.fanout, seed & 0x7FFFFFFFFFFFFFFF, self._scratch
        )
        return found

    def draw(self, seeds: IntArray, seed: int) -> Batch:
        """The neighbourhood of `seeds` (distinct nodes) drawn with `seed`. Equal arguments give equal batches."""
        graph = self.graph
        node, row, col, edge, nodes, edges = self.neighbours(seeds, seed)
        return Batch(
            node=torch.from_numpy(node),
            x=graph.x.index_select(0, torch.from_numpy(node)),
            edge_index=torch.stack([torch.from_numpy(row), torch.from_numpy(col)]),
            edge_attr=None if graph.edge_attr is None else graph.edge_attr[torch.from_numpy(edge)],
            degree=torch.from_numpy(graph.indptr[node + 1] - graph.indptr[node]) if self.degree else None,
            nodes_per_hop=nodes.tolist(),
            edges_per_hop=edges.tolist(),
        )


@dataclass(frozen=True)
class Tuples:
    """Node ids: anchor (B,), positive (B,), negatives (B, p)."""

    anchor: IntArray
    positive: IntArray
    negatives: IntArray

    def distinct(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Each node once (n,), and the positions of anchors (B,), positives (B,) and negatives (B, p) among them."""
        flat = np.concatenate([self.anchor, self.positive, self.negatives.ravel()])
        nodes, where = np.unique(flat, return_inverse=True)
        size = len(self.anchor)
        return nodes, where[:size], where[size : 2 * size], where[2 * size :].reshape(self.negatives.shape)


class TupleSampler:
    """Draws tuples from P_α for one partition, labels 0..k-1, shape (N,).

    The anchor's cluster comes from the mixture α |C_z| / |V| + (1 − α) / |𝒞|, the anchor is uniform in it, the positive
    uniform over the rest of it. A cluster of one node has no positive, so V and 𝒞 in the anchor's mixture are those of
    the clusters with at least two nodes. Negatives come from any other cluster, small ones included:
    `uniform`: each of the other clusters alike (appendix); `mixture`: the α-mixture over all clusters, given that it is
    not the anchor's (section 3.3).
    """

    def __init__(
        self, labels: IntArray, alpha: float = 0.5, negatives: Negatives = "uniform", name: str = "graph"
    ) -> None:
        self.alpha, self.negatives = alpha, negatives
        self.size = np.bincount(labels)
        self.eligible = np.flatnonzero(self.size >= 2)
        if not len(self.eligible):
            raise DataError(
                name, "clusters", "no cluster has two nodes", "a positive pair needs a cluster of two or more"
            )
        if len(self.size) < 2:
            raise DataError(name, "clusters", "there is only one cluster", "negatives need at least two clusters")
        self.order = np.argsort(labels, kind="stable")  # nodes, cluster after cluster
        self.first = np.concatenate([[0], np.cumsum(self.size)[:-1]])
        self._eligible_end = np.cumsum(self.size[self.eligible])

    def anchor_probabilities(self) -> np.ndarray:
        """Probability of each cluster to give the anchor, shape (k,): 0 for clusters of one node."""
        size = np.where(self.size >= 2, self.size, 0)
        return self.alpha * size / size.sum() + (1 - self.alpha) * (size > 0) / len(self.eligible)

    def negative_probabilities(self, cluster: int) -> np.ndarray:
        """Probability of each cluster to give a negative for an anchor in `cluster`, shape (k,)."""
        weight = np.ones(len(self.size))
        if self.negatives == "mixture":
            weight = self.alpha * self.size / self.size.sum() + (1 - self.alpha) / len(self.size)
        weight[cluster] = 0
        return weight / weight.sum()

    def draw(self, anchors: int, num_negatives: int, rng: np.random.Generator) -> Tuples:
        """`anchors` independent tuples with `num_negatives` negatives each."""
        by_node = np.searchsorted(self._eligible_end, rng.integers(0, self._eligible_end[-1], anchors), side="right")
        by_cluster = rng.integers(0, len(self.eligible), anchors)
        cluster = self.eligible[np.where(rng.random(anchors) < self.alpha, by_node, by_cluster)]
        inside = rng.integers(0, self.size[cluster])
        other = rng.integers(0, self.size[cluster] - 1)
        other += other >= inside  # step over the anchor
        start = self.first[cluster]
        return Tuples(
            anchor=self.order[start + inside],
            positive=self.order[start + other],
            negatives=self._draw_negatives(cluster, num_negatives, rng),
        )

    def _draw_negatives(self, cluster: IntArray, number: int, rng: np.random.Generator) -> IntArray:
        shape = (len(cluster), number)
        own = cluster[:, None]
        clusters, nodes = len(self.size), len(self.order)
        other = rng.integers(0, clusters - 1, shape)
        other += other >= own
        uniform = self.first[other] + rng.integers(0, self.size[other])
        if self.negatives == "uniform":
            return self.order[uniform]
        place = rng.integers(0, nodes - self.size[own], shape)  # a node outside the anchor's cluster, all alike
        place += np.where(place >= self.first[own], self.size[own], 0)
        by_size = self.alpha * (1 - self.size[own] / nodes)  # mass of each half of the mixture off the own cluster
        by_cluster = (1 - self.alpha) * (1 - 1 / clusters)
        return self.order[np.where(rng.random(shape) < by_size / (by_size + by_cluster), place, uniform)]
