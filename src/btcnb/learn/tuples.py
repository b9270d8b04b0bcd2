"""Anchors, positives and negatives: the paper's sampling distribution P_α, drawn without loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np
import numpy.typing as npt

from btcnb import gates
from btcnb.errors import DataError
from btcnb.learn.config import Negatives

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Tuples:
    """Node ids: anchor (B,), positive (B,), negatives (B, p)."""

    anchor: IntArray
    positive: IntArray
    negatives: IntArray

    def distinct(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Each node once (n,), and where anchors (B,), positives (B,) and negatives (B, p) stand among them."""
        flat = np.concatenate([self.anchor, self.positive, self.negatives.ravel()])
        nodes, where = np.unique(flat, return_inverse=True)
        size = len(self.anchor)
        return nodes, where[:size], where[size : 2 * size], where[2 * size :].reshape(self.negatives.shape)


class TupleSampler:
    """Draws tuples from P_α for one partition.

    The anchor's cluster comes from the mixture α |C_z| / |V| + (1 − α) / |𝒞|, the anchor is uniform in it, the positive
    uniform over the rest of it. A cluster of one node has no positive, so V and 𝒞 in the anchor's mixture are those of
    the clusters with at least two nodes. Negatives come from any other cluster, small ones included:
    `uniform`: each of the other clusters alike (appendix); `mixture`: the α-mixture over all clusters, given that it is
    not the anchor's (section 3.3).
    """

    def __init__(
        self, labels: npt.ArrayLike, alpha: float = 0.5, negatives: Negatives = "uniform", name: str = "graph"
    ) -> None:
        self.alpha = gates.real("alpha", alpha, "[0, 1]")
        self.negatives = gates.choice("negatives", negatives, get_args(Negatives))
        labels = gates.array(f"{name}, clusters", labels, 1, "iub").astype(np.int64)
        if len(labels) and not 0 <= labels.min() <= labels.max() < 2**31:
            raise DataError(name, "clusters", "a label is negative or huge", "number the clusters 0, 1, 2, …")
        self.size = np.bincount(labels) if len(labels) else np.zeros(0, np.int64)
        self.eligible = np.flatnonzero(self.size >= 2)
        if not len(self.eligible):
            raise DataError(
                name, "clusters", "no cluster has two nodes", "a positive pair needs a cluster of two or more"
            )
        if not self.size.all():
            raise DataError(name, "clusters", "a number has no node", "number the clusters 0, 1, 2, … without gaps")
        if len(self.size) < 2:
            raise DataError(name, "clusters", "there is only one cluster", "negatives need at least two clusters")
        self.order = np.argsort(labels, kind="stable")  # nodes, cluster after cluster
        self.first = np.concatenate([[0], np.cumsum(self.size)[:-1]])
        self._eligible_end = np.cumsum(self.size[self.eligible])

    def anchor_probabilities(self) -> FloatArray:
        """Probability of each cluster to give the anchor, shape (k,): 0 for clusters of one node."""
        size = np.where(self.size >= 2, self.size, 0)
        return self.alpha * size / size.sum() + (1 - self.alpha) * (size > 0) / len(self.eligible)

    def negative_probabilities(self, cluster: int) -> FloatArray:
        """Probability of each cluster to give a negative for an anchor in `cluster`, shape (k,)."""
        cluster = gates.whole("cluster", cluster, f"[0, {len(self.size) - 1}]")
        weight = np.ones(len(self.size))
        if self.negatives == "mixture":
            weight = self.alpha * self.size / self.size.sum() + (1 - self.alpha) / len(self.size)
        weight[cluster] = 0
        return weight / weight.sum()

    def draw(self, anchors: int, num_negatives: int, rng: np.random.Generator) -> Tuples:
        """`anchors` independent tuples with `num_negatives` negatives each."""
        anchors = gates.whole("anchors", anchors, "[1, 10000000]")
        num_negatives = gates.whole("num_negatives", num_negatives, "[1, 100000]")
        gates.instance("rng", rng, np.random.Generator)
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
