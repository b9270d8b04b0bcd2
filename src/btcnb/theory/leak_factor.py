"""How large the factor in front of β must be: what suffices on the ideal graph, and what an example refutes.

On the ideal graph (M = 0) with clusters of at most S nodes, ‖XW‖·c·β < γσ√(2/S) implies separation for
c = √2·(1 + √(1 − 1/S)): inside a cluster the leak of a pair is at most √2·β‖XW‖, between clusters at most
√(2 − 2/S)·β‖XW‖, because the pair's projection on the span of U_k is at least √(2/S) long. As S grows, c tends to
2√2, the least factor that is valid for clusters of any size.
"""

from __future__ import annotations

from math import nan, sqrt

from btcnb.errors import ParameterError
from btcnb.theory.examples import GnnExample
from btcnb.theory.filters import linearised_gnn
from btcnb.theory.laplacians import laplacian
from btcnb.theory.separation import separation
from btcnb.theory.theorem import theorem_margin


def ideal_factor(S_max: int) -> float:
    """√2·(1 + √(1 − 1/S_max)), which suffices in front of β on the ideal graph."""
    if S_max < 1:
        raise ParameterError(f"the largest cluster has at least one node, not {S_max}.")
    return sqrt(2) * (1 + sqrt(1 - 1 / S_max))


def refuted_factor(example: GnnExample) -> float:
    """The inequality with any smaller factor holds for this example, although it is not separable; NaN if it is."""
    H = linearised_gnn(laplacian(example.A), example.XW, None, example.response)
    if separation(H, example.labels).separable:
        return nan
    margin = theorem_margin(example.A, example.labels, example.XW, example.response, form="optimal")
    free = margin.right - margin.XW_norm * margin.alpha * margin.M
    return free / (margin.beta * margin.XW_norm)
