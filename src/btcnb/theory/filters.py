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

from btcnb.errors import ParameterError
from btcnb.theory.laplacians import FloatArray


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

    @property
    def degree(self) -> int:
        return len(self.coefficients) - 1

    def __call__(self, eigenvalues: npt.ArrayLike) -> FloatArray:
        """p at each eigenvalue, same shape."""
        x = 2 * np.asarray(eigenvalues, dtype=np.float64) / self.upper - 1
        return np.asarray(chebyshev.chebval(x, np.asarray(self.coefficients)))

    def apply(self, L: Any, X: npt.ArrayLike) -> FloatArray:
        """p(L) X for a symmetric L of shape (n, n) and X of shape (n, d)."""
        total = np.zeros(np.asarray(X).shape)
        for coefficient, term in zip(self.coefficients, chebyshev_terms(L, X, self.degree, self.upper), strict=True):
            total += coefficient * term
        return total

    def extreme(self, low: float, high: float) -> float:
        """max |p| on [low, high]: at an end or where the derivative vanishes."""
        roots = (
            chebyshev.chebroots(chebyshev.chebder(np.asarray(self.coefficients))) if self.degree > 1 else np.empty(0)
        )
        inner = (roots.real[np.abs(roots.imag) < 1e-9] + 1) * self.upper / 2
        points = np.concatenate([[low, high], inner[(inner > low) & (inner < high)]])
        return float(np.abs(self(points)).max())


def chebyshev_terms(L: Any, X: npt.ArrayLike, degree: int, upper: float) -> list[FloatArray]:
    """T_0(L̃)X … T_degree(L̃)X with L̃ = 2L/upper − I, each of the shape of X."""
    own = aslinearoperator(L)
    terms = [np.asarray(X, dtype=np.float64)]
    for j in range(1, degree + 1):
        shifted = 2 * np.asarray(own @ terms[-1]) / upper - terms[-1]
        terms.append(shifted if j == 1 else 2 * shifted - terms[-2])
    return terms


def linearised_gnn(L: Any, X: npt.ArrayLike, W: npt.ArrayLike | None, response: PolynomialFilter) -> FloatArray:
    """H = p(L) X W, shape (n, m): a GNN with its activations removed. W = None stands for the identity."""
    X = np.asarray(X, dtype=np.float64)
    return response.apply(L, X if W is None else X @ np.asarray(W))


def from_function(
    response: Callable[[FloatArray], FloatArray], upper: float, degree: int, name: str
) -> PolynomialFilter:
    """The polynomial that equals `response` at the Chebyshev nodes of [0, upper]; exact if it is a polynomial of that
    degree."""

    def on_unit_interval(x: Any) -> Any:
        return response((np.asarray(x, dtype=np.float64) + 1) * upper / 2)

    coefficients = chebyshev.chebinterpolate(on_unit_interval, degree)
    return PolynomialFilter(tuple(float(c) for c in coefficients), upper, name)


def gcn_filter(layers: int, *, upper: float = 2.0) -> PolynomialFilter:
    """p(λ) = (1 − λ)^layers, the filter of a linearised GCN, on its own Laplacian (normalised, with self-loops;
    spectrum in [0, 2])."""
    _at_least(layers, 1, "layers")
    return from_function(lambda x: (1 - x) ** layers, upper, layers, f"GCN, {layers} layer{'s' if layers > 1 else ''}")


def step_filter(cutoff: float, upper: float, degree: int, *, damped: bool = True) -> PolynomialFilter:
    """Chebyshev fit of the ideal low-pass 1{λ < cutoff}; `damped` (Jackson's kernel) trades Gibbs ripples for a
    softer edge."""
    _at_least(degree, 1, "degree")
    if not 0 < cutoff < upper:
        raise ParameterError(f"cutoff {cutoff} must lie inside (0, {upper}).")
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
    _at_least(degree, 1, "degree")
    if not 0 < stop < upper:
        raise ParameterError(f"the stop band starts at {stop}, which must lie inside (0, {upper}).")
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
    _at_least(degree, 1, "degree")
    columns = np.stack([term.ravel() for term in chebyshev_terms(L, X, degree, upper)], axis=1)
    solution = np.linalg.lstsq(columns, np.asarray(target, dtype=np.float64).ravel(), rcond=None)[0]
    return PolynomialFilter(tuple(float(c) for c in solution), upper, f"learned, degree {degree}")


def _at_least(value: int, least: int, name: str) -> None:
    if value < least:
        raise ParameterError(f"{name} is {value}, must be at least {least}.")
