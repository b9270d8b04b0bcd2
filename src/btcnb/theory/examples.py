"""Graphs that one can check by hand, and the examples on which the errata rest."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from btcnb import gates
from btcnb.errors import ParameterError
from btcnb.theory.filters import PolynomialFilter, from_function
from btcnb.theory.laplacians import FloatArray, IntArray, ideal_adjacency


def two_cliques_and_a_bridge(size: int, weight: float = 1.0) -> tuple[FloatArray, IntArray]:
    """Adjacency and labels of two cliques of `size` nodes, joined by one edge between node 0 and node `size`."""
    size, weight = gates.whole("size", size, "[1, 5000]"), gates.real("weight", weight, "[0, inf)")
    labels = np.repeat(np.arange(2), size)
    A = ideal_adjacency(labels)
    A[0, size] = A[size, 0] = weight
    return A, labels


@dataclass(frozen=True)
class GnnExample:
    """A graph, its clusters, features (already multiplied by W) and a filter: everything that the theorem speaks of."""

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
    beta, sigma = gates.real("beta", beta), gates.real("sigma", sigma)
    XW = np.array([[sigma, 0, 1], [sigma, 0, -1], [0, sigma, 0], [0, sigma, 0]]) / sqrt(2)
    response = from_function(lambda x: 1 - (1 - beta) * x / 2, 2.0, 1, "p(λ) = 1 − (1 − β)λ/2")
    labels = np.array([0, 0, 1, 1])
    return GnnExample(ideal_adjacency(labels), labels, XW, response)


def leakage_family(size: int, beta: float = 1e-3, share: float = 0.999) -> GnnExample:
    """Two cliques of `size` ≥ 3 nodes and features that make the factor of β as large as it can be.

    One pair inside the first cluster is pulled apart by the leak, one pair across clusters is pulled together by it,
    in separate directions. With the factor c the inequality reads cβ < σ√(2/size) (‖XW‖ = 1); the embeddings fail to
    separate while σ ≤ β(√size + √((1 − σ²)(size − 1))). The example takes `share` times that σ: as size grows and β
    falls, it breaks every c < 2√2.
    """
    size, beta = gates.whole("size", size, "[3, 5000]"), gates.real("beta", beta, "(0, 1)")
    share = gates.real("share", share, "(0, 1]")
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
    for _ in range(200):  # σ on both sides: a contraction for small β
        sigma = share * beta * (sqrt(size) + sqrt(max(1 - sigma**2, 0.0) * (size - 1)))
    if sigma > 1:
        raise ParameterError(f"beta is {beta!r}, too large for cliques of {size}: σ would exceed 1.")
    leak = sqrt(1 - sigma**2)
    XW = np.stack([sigma * mean, sigma * contrast - leak * across, inside], axis=1)
    response = from_function(lambda x: 1 - (1 - beta) * x / size, float(size), 1, "linear low-pass")
    return GnnExample(ideal_adjacency(labels), labels, XW, response)


def dented_clique(size: int) -> tuple[FloatArray, IntArray]:
    """A clique of `size` nodes that lost the path 0–1–2 (two edges), and one isolated node, a cluster of its own.

    Where a library writes 1 on the diagonal of the normalised Laplacian for an isolated node, the clique now has an
    eigenvalue below that 1, the isolated node drops out of the k lowest eigenvectors, and the lemma fails; with a
    zero row it holds.
    """
    size = gates.whole("size", size, "[3, 9999]")
    labels = np.append(np.zeros(size, dtype=np.int64), 1)
    A = ideal_adjacency(labels)
    for i, j in ((0, 1), (1, 2)):
        A[i, j] = A[j, i] = 0.0
    return A, labels
