"""Polynomial spectral filters p(L), from ideal to poor, and the linearised GNN H = p(L) X W (paper, section 4).

A filter is kept by its Chebyshev coefficients on [0, upper], an interval that holds the spectrum, and applied by the
three-term recurrence: `degree` sparse products, no eigenvector.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.polynomial import chebyshev
from scipy.sparse.linalg import aslinearoperator

from btcnb import gates
from btcnb.errors import DataError, ParameterError
from btcnb.theory.laplacians import FloatArray, as_square


@dataclass(frozen=True)
class PolynomialFilter:
    """p(λ) = Σ_j c_j T_j(2λ/upper − 1).

    coefficients: c_0 … c_degree
    upper:        right end of the interval, at least the largest eigenvalue of the Laplacian it is applied to
    name:         for figures
    """

    coefficients: tuple[float, ...]
    upper: float
    name: str = "filter"

    def __post_init__(self) -> None:
        values = gates.array("coefficients of a filter", self.coefficients, 1)
        if not len(values):
            raise ParameterError("a filter needs at least one coefficient.")
        object.__setattr__(self, "coefficients", tuple(float(value) for value in values))
        object.__setattr__(self, "upper", gates.real("upper", self.upper, "(0, inf)"))

    @property
    def degree(self) -> int:
        return len(self.coefficients) - 1

    def __call__(self, eigenvalues: npt.ArrayLike) -> FloatArray:
        """p at each eigenvalue, same shape."""
        given = gates.array("eigenvalues", eigenvalues, (0, 1, 2))
        x = 2 * given.astype(np.float64) / self.upper - 1
        return np.asarray(chebyshev.chebval(x, np.asarray(self.coefficients)))

    def apply(self, L: Any, X: npt.ArrayLike) -> FloatArray:
        """p(L) X for a symmetric L of shape (n, n) and X of shape (n, d)."""
        terms = chebyshev_terms(L, X, self.degree, self.upper)
        total = np.zeros(terms[0].shape)
        for coefficient, term in zip(self.coefficients, terms, strict=True):
            total += coefficient * term
        return total

    def extreme(self, low: float, high: float) -> float:
        """max |p| on [low, high]: at an end or where the derivative vanishes."""
        low = gates.real("low", low)
        high = gates.real("high", high, f"[{low}, inf)")
        roots = (
            chebyshev.chebroots(chebyshev.chebder(np.asarray(self.coefficients))) if self.degree > 1 else np.empty(0)
        )
        inner = (roots.real[np.abs(roots.imag) < 1e-9] + 1) * self.upper / 2
        points = np.concatenate([[low, high], inner[(inner > low) & (inner < high)]])
        return float(np.abs(self(points)).max())


def chebyshev_terms(L: Any, X: npt.ArrayLike, degree: int, upper: float) -> list[FloatArray]:
    """T_0(L̃)X … T_degree(L̃)X with L̃ = 2L/upper − I, each of the shape of X."""
    L = as_square(L)
    own = aslinearoperator(L)
    terms = [as_rows(X, L.shape[0])]
    for j in range(1, degree + 1):
        shifted = 2 * np.asarray(own @ terms[-1]) / upper - terms[-1]
        terms.append(shifted if j == 1 else 2 * shifted - terms[-2])
    return terms


def linearised_gnn(L: Any, X: npt.ArrayLike, W: npt.ArrayLike | None, response: PolynomialFilter) -> FloatArray:
    """H = p(L) X W, shape (n, m): a GNN with its activations removed. W = None stands for the identity."""
    L = as_square(L)
    gates.instance("response", response, PolynomialFilter)
    return response.apply(L, features_times_weights(X, W, L.shape[0]))


def as_rows(X: npt.ArrayLike, nodes: int) -> FloatArray:
    """X as float64 with one row per node, shape (n, d), or one number per node, (n,)."""
    rows = gates.array("features", X, (1, 2)).astype(np.float64)
    if len(rows) != nodes:
        raise DataError("features", "shape", f"got {rows.shape} for {nodes} nodes", "pass one row of features a node")
    return rows


def features_times_weights(X: npt.ArrayLike, W: npt.ArrayLike | None, nodes: int) -> FloatArray:
    """XW for features X (n, d) and weights W (d, m; None = identity), shape (n, m)."""
    rows = as_rows(gates.array("features", X, 2), nodes)
    if W is None:
        return rows
    weights = gates.array("weights", W, 2)
    if len(weights) != rows.shape[1]:
        raise DataError("weights", "shape", f"{weights.shape} for {rows.shape[1]} features", "pass one row a feature")
    return np.asarray(rows @ weights)


def from_function(
    response: Callable[[FloatArray], FloatArray], upper: float, degree: int, name: str
) -> PolynomialFilter:
    """The polynomial that equals `response` at the Chebyshev nodes of [0, upper]; exact if it is a polynomial of that
    degree."""
    gates.function("response", response)
    upper, degree = gates.real("upper", upper, "(0, inf)"), gates.whole("degree", degree, "[0, 2000]")

    def on_unit_interval(x: Any) -> Any:
        return response((np.asarray(x, dtype=np.float64) + 1) * upper / 2)

    coefficients = chebyshev.chebinterpolate(on_unit_interval, degree)
    return PolynomialFilter(tuple(float(c) for c in coefficients), upper, name)


def gcn_filter(layers: int, *, upper: float = 2.0) -> PolynomialFilter:
    """p(λ) = (1 − λ)^layers, the filter of a linearised GCN, on its own Laplacian (normalised, with self-loops;
    spectrum in [0, 2])."""
    layers = gates.whole("layers", layers, "[1, 2000]")
    return from_function(lambda x: (1 - x) ** layers, upper, layers, f"GCN, {layers} layer{'s' if layers > 1 else ''}")


def step_filter(cutoff: float, upper: float, degree: int, *, damped: bool = True) -> PolynomialFilter:
    """Chebyshev fit of the ideal low-pass 1{λ < cutoff}; `damped` (Jackson's kernel) trades Gibbs ripples for a
    softer edge."""
    degree = gates.whole("degree", degree, "[1, 2000]")
    upper = gates.real("upper", upper, "(0, inf)")
    cutoff, damped = gates.real("cutoff", cutoff, f"(0, {upper})"), gates.flag("damped", damped)
    j = np.arange(1, degree + 1)
    edge = np.arccos(2 * cutoff / upper - 1)
    coefficients = np.concatenate([[1 - edge / np.pi], -2 * np.sin(j * edge) / (j * np.pi)])
    if damped:
        N, i = degree + 2, np.arange(degree + 1)
        bell = (N - i) * np.cos(np.pi * i / N) + np.sin(np.pi * i / N) / np.tan(np.pi / N)
        coefficients *= bell / N
    name = "step, damped" if damped else "step"
    return PolynomialFilter(tuple(float(c) for c in coefficients), upper, f"{name}, degree {degree}")


def stop_band_filter(stop: float, upper: float, degree: int) -> PolynomialFilter:
    """The polynomial with p(0) = 1 that is smallest on [stop, upper]: a Chebyshev polynomial moved onto the stop band.

    No polynomial of this degree has a smaller β when the k lowest eigenvalues are 0 and the others fill the stop band;
    β = 1 / T_degree((upper + stop) / (upper − stop)).
    """
    degree = gates.whole("degree", degree, "[1, 2000]")
    upper = gates.real("upper", upper, "(0, inf)")
    stop = gates.real("stop, where the stop band starts,", stop, f"(0, {upper})")
    basis = np.zeros(degree + 1)
    basis[degree] = 1.0

    def moved(x: FloatArray) -> FloatArray:
        return np.asarray(chebyshev.chebval((2 * x - stop - upper) / (upper - stop), basis))

    return from_function(lambda x: moved(x) / moved(np.zeros(1)), upper, degree, f"best stop band, degree {degree}")


def learned_filter(L: Any, X: npt.ArrayLike, target: npt.ArrayLike, degree: int, upper: float) -> PolynomialFilter:
    """The polynomial whose output p(L)X is nearest `target` (n, d) in least squares: a one-channel GNN trained to
    optimality.

    With the cluster means of X as target this is what a linear network learns from labels.
    """
    degree = gates.whole("degree", degree, "[1, 2000]")
    upper = gates.real("upper", upper, "(0, inf)")
    terms = chebyshev_terms(L, X, degree, upper)
    wanted = gates.array("target", target, (1, 2)).astype(np.float64)
    if wanted.shape != terms[0].shape or not all(np.isfinite(term).all() for term in terms):
        problem = f"shape {wanted.shape} for features {terms[0].shape}, or p(L)X overflows"
        raise DataError("target", "shape", problem, "pass a target for every entry of X")
    columns = np.stack([term.ravel() for term in terms], axis=1)
    solution = np.linalg.lstsq(columns, wanted.ravel(), rcond=None)[0]
    return PolynomialFilter(tuple(float(c) for c in solution), upper, f"learned, degree {degree}")
