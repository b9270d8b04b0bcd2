"""The theorem on linearised GNNs: both sides of its inequality, as printed, as its proof gives it, and sharper.

H = p(L)XW, with α, γ = max, min of |p| on the k lowest eigenvalues of L, β = max of |p| on the others, σ =
σ_min(U_kᵀXW), and M from the lemma. The embeddings are cluster-separable whenever

- printed: ‖XW‖(β + αM) < γσ(√(2/S_max) − M), as stated; chapter 05 has a counter-example with four nodes;
- proof: ‖XW‖(4β + αM) < γσ(√(2/S_max) − M), what the displayed bounds of the proof give;
- optimal: ‖XW‖(2√2·β + αM) < γσ(√(2/S_max) − M), in which no smaller factor of β is valid;
- sharp: max over ψ ≤ θ of (αa·sin ψ + βb·cos ψ) < γσ·cos(φ + θ) − βb·sin(φ + θ), with the angles of the sharp lemma,

where a = ‖U_kᵀXW‖_op and b = ‖U_⊥ᵀXW‖_op. In all but the printed form, M uses λ_{k+1}(L°) of the Laplacian in use.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import acos, atan2, cos, inf, pi, sin, sqrt
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from btcnb import gates
from btcnb.errors import DataError
from btcnb.theory.filters import PolynomialFilter, features_times_weights
from btcnb.theory.laplacians import FloatArray, IdealLaplacian, as_square, laplacian
from btcnb.theory.lemma import LemmaMargin, cos_phi, lemma_margin_at, subspace_angle
from btcnb.theory.spectral import DENSE_LIMIT, laplacian_distance, operator_norm, smallest_eigenpairs, spectrum

TheoremForm = Literal["printed", "proof", "optimal", "sharp"]

ROUNDING = 1e-13
"""Relative size below which a filter value or a singular value is taken for zero."""

LEAKAGE = {"printed": 1.0, "proof": 4.0, "optimal": 2 * sqrt(2)}
"""The factor in front of β in each form that has the paper's shape."""


@dataclass(frozen=True)
class FilterQuality:
    """What the theorem asks of a filter: α, γ on the k lowest eigenvalues and β on the rest."""

    alpha: float
    beta: float
    gamma: float


@dataclass(frozen=True)
class TheoremMargin:
    """Both sides of the theorem's inequality `left < right`, and every quantity in it."""

    form: TheoremForm
    normalised: bool
    k: int
    S_max: int
    S_min: int
    distance: float
    """ε = ‖L − L°‖_op"""
    M: float
    alpha: float
    beta: float
    gamma: float
    XW_norm: float
    """‖XW‖_op"""
    sigma_min: float
    """σ_min(U_kᵀXW): how much of XW's weakest direction lies in the informative subspace; 0 whenever XW has fewer
    than k columns"""
    low_norm: float
    """a = ‖U_kᵀXW‖_op"""
    high_norm: float
    """b = ‖U_⊥ᵀXW‖_op"""
    left: float
    right: float

    @property
    def holds(self) -> bool:
        return self.left < self.right

    @property
    def slack(self) -> float:
        return self.right - self.left


def theorem_margin(
    A: Any,
    labels: npt.ArrayLike,
    X: npt.ArrayLike,
    response: PolynomialFilter,
    *,
    W: npt.ArrayLike | None = None,
    normalised: bool = False,
    self_loops: bool = False,
    form: TheoremForm = "printed",
) -> TheoremMargin:
    """The theorem's inequality for adjacency A (n, n), features X (n, d), weights W (d, m; None = identity) and
    filter `response`.

    Above `DENSE_LIMIT` nodes β is the maximum of |p| on the whole interval [λ_{k+1}, λ_n], an upper bound, so that a
    condition that holds still is a guarantee.
    """
    form = gates.choice("form", form, get_args(TheoremForm))
    gates.instance("response", response, PolynomialFilter)
    L = laplacian(A, normalised, self_loops=self_loops)
    ideal = IdealLaplacian(labels, normalised, self_loops=self_loops)
    if ideal.shape != L.shape:
        raise DataError(
            "labels", "length", f"{ideal.shape[0]} labels for {L.shape[0]} nodes", "pass one label per node"
        )
    XW = features_times_weights(X, W, L.shape[0])
    k = ideal.num_clusters
    U_k, quality = split_spectrum(L, k, response)
    low = U_k.T @ XW  # (k, m)
    lemma = lemma_margin_at(laplacian_distance(L, ideal), ideal, "printed" if form == "printed" else "proof")
    parts = _Features(
        whole=float(np.linalg.norm(XW, 2)),
        low=float(np.linalg.norm(low, 2)),
        high=float(np.linalg.norm(XW - U_k @ low, 2)),
        sigma=left_sigma_min(low),
    )
    left, right = (
        _sharp_sides(lemma, cos_phi(ideal.sizes), quality, parts)
        if form == "sharp"
        else _paper_sides(lemma, quality, parts, LEAKAGE[form])
    )
    return TheoremMargin(
        form=form,
        normalised=normalised,
        k=k,
        S_max=lemma.S_max,
        S_min=lemma.S_min,
        distance=lemma.distance,
        M=lemma.M,
        alpha=quality.alpha,
        beta=quality.beta,
        gamma=quality.gamma,
        XW_norm=parts.whole,
        sigma_min=parts.sigma,
        low_norm=parts.low,
        high_norm=parts.high,
        left=left,
        right=right,
    )


@dataclass(frozen=True)
class _Features:
    whole: float
    low: float
    high: float
    sigma: float


def split_spectrum(L: Any, k: int, response: PolynomialFilter) -> tuple[FloatArray, FilterQuality]:
    """U_k (n, k) and the filter's α, β, γ on the spectrum of L."""
    L = as_square(L, symmetric=True)
    gates.instance("response", response, PolynomialFilter)
    n = L.shape[0]
    k = gates.whole("k", k, f"[1, {n}]")
    if n <= DENSE_LIMIT:
        values, vectors = spectrum(L)
        size = _without_rounding(response(values), response)
        beta = float(size[k:].max()) if k < n else 0.0
        return vectors[:, :k], FilterQuality(float(size[:k].max()), beta, float(size[:k].min()))
    values, vectors = smallest_eigenpairs(L, min(k + 1, n))
    size = _without_rounding(response(values[:k]), response)
    beta = response.extreme(float(values[k]), operator_norm(L)) if k < n else 0.0
    return vectors[:, :k], FilterQuality(float(size.max()), beta, float(size.min()))


def _without_rounding(values: FloatArray, response: PolynomialFilter) -> FloatArray:
    """|values|, with what rounding alone can make set to 0: a guarantee must not rest on a γ of 1e-16."""
    size = np.abs(values)
    return np.where(size < ROUNDING * np.abs(response.coefficients).sum(), 0.0, size)


def left_sigma_min(low: FloatArray) -> float:
    """The least ‖zᵀB‖ over unit z, for B of shape (k, m): the proof's σ_min. It is 0 when m < k, whatever the last
    singular value says."""
    k, m = low.shape
    if m < k:
        return 0.0
    singular = np.linalg.svd(low, compute_uv=False)
    return float(singular[-1]) if singular[-1] > ROUNDING * singular[0] else 0.0


def _paper_sides(lemma: LemmaMargin, quality: FilterQuality, parts: _Features, leakage: float) -> tuple[float, float]:
    left = parts.whole * (leakage * quality.beta + quality.alpha * lemma.M)
    return left, quality.gamma * parts.sigma * (sqrt(2 / lemma.S_max) - lemma.M)


def _sharp_sides(lemma: LemmaMargin, cosine: float, quality: FilterQuality, parts: _Features) -> tuple[float, float]:
    """√2 times the two sides of the sharp form, so that they read as distances. One cluster alone is always
    separable."""
    theta = subspace_angle(2 * lemma.distance / lemma.eigengap)
    low, leak = quality.alpha * parts.low, quality.beta * parts.high
    worst = min(theta, atan2(low, leak))  # where low·sin ψ + leak·cos ψ peaks, if that is below θ
    left = low * sin(worst) + leak * cos(worst)
    if lemma.k == 1:
        return sqrt(2) * left, inf
    reach = acos(min(cosine, 1.0)) + theta
    right = quality.gamma * parts.sigma * cos(reach) - leak * sin(reach) if reach < pi / 2 else 0.0
    return sqrt(2) * left, sqrt(2) * right
