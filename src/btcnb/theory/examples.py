"""Small graphs: examples that one can check by hand, the errata's counter-examples, and random damage.

Damage flips pairs of nodes of an ideal cluster graph. A flip takes weight away from an edge inside a cluster, or adds
an edge of that weight between clusters; weight 1 deletes and creates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import nan, sqrt

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.cluster.hierarchy import fcluster, linkage

from btcnb.errors import ParameterError
from btcnb.theory.laplacian import FloatArray, IdealLaplacian, IntArray, cluster_codes, ideal_adjacency, laplacian
from btcnb.theory.lemma import Separation, same_partition, separation
from btcnb.theory.spectral import laplacian_distance, spectral_embedding
from btcnb.theory.theorem import PolynomialFilter, from_function, linearised_gnn, theorem_margin


def dented_clique(size: int) -> tuple[FloatArray, IntArray]:
    """A clique of `size` ≥ 3 nodes without the path 0–1–2 (two edges), and one isolated node, a cluster of its own.

    Some libraries write 1 on the diagonal of the normalised Laplacian for an isolated node. Then the clique has an
    eigenvalue below that 1, the isolated node drops out of the k lowest eigenvectors, and the lemma fails; with a
    zero row it holds.
    """
    labels = np.append(np.zeros(size, dtype=np.int64), 1)
    A = ideal_adjacency(labels)
    for i, j in ((0, 1), (1, 2)):
        A[i, j] = A[j, i] = 0.0
    return A, labels


@dataclass(frozen=True)
class GnnExample:
    """A graph, its clusters, features (already multiplied by W) and a filter: all that the theorem speaks of."""

    A: FloatArray
    labels: IntArray
    XW: FloatArray
    response: PolynomialFilter


def printed_theorem_counterexample(beta: float = 0.5, sigma: float = 0.6) -> GnnExample:
    """Four nodes, two pairs, the ideal graph itself (M = 0): the printed inequality holds, the embeddings are not
    separable.

    p(λ) = 1 − (1 − β)λ/2 on the eigenvalues 0, 0, 2, 2. The printed inequality reads β < σ; the distance inside the
    first cluster is √2·β, the distances between clusters √(σ² + β²/2). Every σ in (β, √1.5·β] breaks the statement.
    Both Laplacians agree on this graph.
    """
    XW = np.array([[sigma, 0, 1], [sigma, 0, -1], [0, sigma, 0], [0, sigma, 0]]) / sqrt(2)
    response = from_function(lambda x: 1 - (1 - beta) * x / 2, 2.0, 1, "p(λ) = 1 − (1 − β)λ/2")
    labels = np.array([0, 0, 1, 1])
    return GnnExample(ideal_adjacency(labels), labels, XW, response)


def leakage_family(size: int, beta: float = 1e-3, share: float = 0.999) -> GnnExample:
    """Two cliques of `size` ≥ 3 nodes and features that make the factor of β as large as it can be.

    The leak pulls one pair inside the first cluster apart and one pair across clusters together, in separate
    directions. With the factor c the inequality reads cβ < σ√(2/size) (‖XW‖ = 1); the embeddings fail to separate
    while σ ≤ β(√size + √((1 − σ²)(size − 1))). The example takes `share` times that σ: as size grows and β falls, it
    breaks every c < 2√2.
    """
    n = 2 * size
    labels = np.repeat(np.arange(2), size)
    mean, contrast = np.ones(n) / sqrt(n), np.repeat([1.0, -1.0], size) / sqrt(n)
    inside = np.zeros(n)
    inside[[0, 1]] = 1 / sqrt(2), -1 / sqrt(2)
    across = np.zeros(n)
    across[[2, n - 1]] = 1.0, -1.0  # disjoint from `inside`, so that the two leaks do not meet
    across -= contrast * (contrast @ across)
    across /= np.linalg.norm(across)
    sigma = 0.0
    for _ in range(200):  # σ is on both sides: a contraction for small β
        sigma = share * beta * (sqrt(size) + sqrt(max(1 - sigma**2, 0.0) * (size - 1)))
    if sigma > 1:
        raise ParameterError(f"beta is {beta!r}, too large for cliques of {size}: σ would exceed 1.")
    leak = sqrt(1 - sigma**2)
    XW = np.stack([sigma * mean, sigma * contrast - leak * across, inside], axis=1)
    response = from_function(lambda x: 1 - (1 - beta) * x / size, float(size), 1, "linear low-pass")
    return GnnExample(ideal_adjacency(labels), labels, XW, response)


def refuted_factor(example: GnnExample) -> float:
    """The theorem with any smaller factor in front of β is wrong: its inequality holds for this example, which is not
    separable. NaN if the example is separable."""
    H = linearised_gnn(laplacian(example.A), example.XW, None, example.response)
    if separation(H, example.labels).separable:
        return nan
    margin = theorem_margin(example.A, example.labels, example.XW, example.response, form="optimal")
    free = margin.right - margin.XW_norm * margin.alpha * margin.M
    return free / (margin.beta * margin.XW_norm)


def perfect_cut_trials(trials: int, methods: Sequence[str], rng: np.random.Generator) -> tuple[int, dict[str, int]]:
    """How many of `trials` random sets of points were separated, and for how many of these each linkage method's cut
    was perfect.

    A set has 25 points in up to four clusters in four dimensions. The cut lies at a random height inside the gap.
    """
    separated, perfect = 0, dict.fromkeys(methods, 0)
    for _ in range(trials):
        labels = rng.integers(0, 4, 25)
        points = 4 * np.eye(4)[labels] + rng.uniform(-0.8, 0.8, (25, 4))
        gap = separation(points, labels)
        if not gap.separable:
            continue
        separated += 1
        for method in methods:
            height = rng.uniform(gap.intra_max, gap.inter_min)
            perfect[method] += same_partition(fcluster(linkage(points, method), height, "distance"), labels)
    return separated, perfect


def perturbed_graphs(
    labels: npt.ArrayLike, flips: int, batch: int, *, weight: float = 1.0, rng: np.random.Generator
) -> FloatArray:
    """Adjacencies (batch, n, n) of the ideal graph after `flips` random pairs were flipped by `weight` in each."""
    ideal = ideal_adjacency(labels)
    row, column = np.triu_indices(len(ideal), 1)
    picked = np.argsort(rng.random((batch, len(row))), axis=1)[:, :flips]  # (batch, flips) distinct pairs
    graph = np.repeat(np.arange(batch), flips)
    i, j = row[picked].ravel(), column[picked].ravel()
    A = np.repeat(ideal[None], batch, axis=0)
    A[graph, i, j] += weight * (1 - 2 * ideal[i, j])
    A[graph, j, i] = A[graph, i, j]
    return A


@dataclass(frozen=True)
class Damage:
    """All pairs (first[t], second[t]) of the nodes behind `labels`, in the order in which they are flipped.

    The order is drawn once, so each graph contains the damage of those with fewer flips.
    """

    labels: IntArray
    first: IntArray
    second: IntArray

    @classmethod
    def random(cls, labels: npt.ArrayLike, rng: np.random.Generator) -> Damage:
        """Every order of the pairs is equally likely."""
        codes, _ = cluster_codes(labels)
        first, second = np.triu_indices(len(codes), 1)
        order = rng.permutation(len(first))
        return cls(codes, first[order], second[order])

    @property
    def pairs(self) -> int:
        return len(self.first)

    def graph(self, flips: int, weight: float = 1.0) -> FloatArray:
        """Adjacency (n, n) of the ideal graph after the first `flips` pairs were flipped by `weight`."""
        A = ideal_adjacency(self.labels)
        i, j = self.first[:flips], self.second[:flips]
        A[i, j] += weight * (1 - 2 * A[i, j])
        A[j, i] = A[i, j]
        return A

    def separation(self, flips: int, weight: float = 1.0, **kind: bool) -> Separation:
        """Distances in the spectral embedding of that graph; `kind` chooses the Laplacian (see `laplacian`)."""
        L = laplacian(self.graph(flips, weight), **kind)
        return separation(spectral_embedding(L, int(self.labels.max()) + 1), self.labels)


def damage_path(damage: Damage, flips: int, weights: Iterable[float], **kind: bool) -> pd.DataFrame:
    """Flip the same `flips` pairs by each of `weights` in turn, for the Laplacian that `kind` chooses.

    One row per weight: distance (‖L − L°‖_op), intra (greatest distance of embeddings inside a cluster), inter (least
    between clusters).
    """
    ideal = IdealLaplacian(damage.labels, **kind)
    records = []
    for weight in weights:
        found = damage.separation(flips, weight, **kind)
        distance = laplacian_distance(laplacian(damage.graph(flips, weight), **kind), ideal)
        records.append((distance, found.intra_max, found.inter_min))
    return pd.DataFrame(records, columns=["distance", "intra", "inter"])
