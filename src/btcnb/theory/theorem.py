"""The theorem on linearised GNNs (paper, section 4): polynomial filters p(L), and both sides of the inequality.

H = p(L)XW, with α, γ = max, min of |p| on the k lowest eigenvalues of L, β = max of |p| on the others, σ =
σ_min(U_kᵀXW), and M from the lemma. The embeddings are cluster-separable whenever

- printed: ‖XW‖(β + αM) < γσ(√(2/S_max) − M), as stated; chapter 05 has a counter-example with four nodes;
- proof: ‖XW‖(4β + αM) < γσ(√(2/S_max) − M), what the displayed bounds of the proof give;
- optimal: ‖XW‖(2√2·β + αM) < γσ(√(2/S_max) − M), in which no smaller factor of β is valid;
- sharp: max over ψ ≤ θ of (αa·sin ψ + βb·cos ψ) < γσ·cos(φ + θ) − βb·sin(φ + θ), with the angles of the sharp lemma,

where a = ‖U_kᵀXW‖_op and b = ‖U_⊥ᵀXW‖_op. In all but the printed form, M uses λₖ₊₁(L°) of the Laplacian in use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import acos, atan2, cos, inf, pi, sin, sqrt
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from numpy.polynomial import Chebyshev
from scipy.sparse.linalg import aslinearoperator

from btcnb.theory.laplacian import FloatArray, IdealLaplacian, cluster_codes, laplacian
from btcnb.theory.lemma import LemmaMargin, cos_phi, lemma_margin_at, separation_stack, subspace_angle
from btcnb.theory.spectral import DENSE_LIMIT, laplacian_distance, operator_norm, smallest_eigenpairs, spectrum

TheoremForm = Literal["printed", "proof", "optimal", "sharp"]

ROUNDING = 1e-13
"""Relative size below which a filter value or a singular value counts as zero."""

LEAKAGE = {"printed": 1.0, "proof": 4.0, "optimal": 2 * sqrt(2)}
"""The factor in front of β in each form that has the paper's shape."""


@dataclass(frozen=True)
class PolynomialFilter:
    """p(λ) = Σ_j c_j T_j(2λ/upper − 1), a polynomial kept by its Chebyshev coefficients.

    coefficients: c_0 … c_degree
    upper:        right end of the interval [0, upper], which must hold the spectrum of the Laplacian
    name:         for figures
    """

    coefficients: tuple[float, ...]
    upper: float
    name: str = "filter"

    @property
    def series(self) -> Chebyshev:
        return Chebyshev(self.coefficients, domain=[0, self.upper])

    def __call__(self, eigenvalues: npt.ArrayLike) -> FloatArray:
        """p at each eigenvalue, same shape."""
        return np.asarray(self.series(np.asarray(eigenvalues, dtype=np.float64)))

    def apply(self, L: Any, X: npt.ArrayLike) -> FloatArray:
        """p(L) X for a symmetric L (n, n) and X (n, d): one sparse product per degree, no eigenvector."""
        terms = chebyshev_terms(L, X, len(self.coefficients) - 1, self.upper)
        total = np.zeros(terms[0].shape)
        for coefficient, term in zip(self.coefficients, terms, strict=True):
            total += coefficient * term
        return total

    def extreme(self, low: float, high: float) -> float:
        """max |p| on [low, high]: at an end or where the derivative vanishes."""
        roots = self.series.deriv().roots()
        inner = roots.real[np.abs(roots.imag) < 1e-9]
        points = np.concatenate([[low, high], inner[(inner > low) & (inner < high)]])
        return float(np.abs(self(points)).max())


def chebyshev_terms(L: Any, X: npt.ArrayLike, degree: int, upper: float) -> list[FloatArray]:
    """T_0(L̃)X … T_degree(L̃)X with L̃ = 2L/upper − I, each of the shape of X, by the three-term recurrence."""
    operator = aslinearoperator(L)
    terms = [np.asarray(X, dtype=np.float64)]
    for j in range(1, degree + 1):
        shifted = 2 * np.asarray(operator @ terms[-1]) / upper - terms[-1]
        terms.append(shifted if j == 1 else 2 * shifted - terms[-2])
    return terms


def from_function(
    response: Callable[[FloatArray], FloatArray], upper: float, degree: int, name: str
) -> PolynomialFilter:
    """The polynomial that equals `response` at the Chebyshev nodes of [0, upper]; exact for polynomials up to
    `degree`."""
    series = Chebyshev.interpolate(response, degree, domain=[0, upper])
    return PolynomialFilter(tuple(series.coef.tolist()), upper, name)


def gcn_filter(layers: int) -> PolynomialFilter:
    """p(λ) = (1 − λ)^layers on [0, 2]: a linearised GCN on its own Laplacian (normalised, with self-loops)."""
    return from_function(lambda x: (1 - x) ** layers, 2.0, layers, f"GCN, {layers} layer{'s' if layers > 1 else ''}")


def step_filter(cutoff: float, upper: float, degree: int) -> PolynomialFilter:
    """Chebyshev fit of the ideal low-pass 1{λ < cutoff}, damped by Jackson's kernel: a soft edge without ripples."""
    j = np.arange(1, degree + 1)
    edge = np.arccos(2 * cutoff / upper - 1)
    coefficients = np.concatenate([[1 - edge / np.pi], -2 * np.sin(j * edge) / (j * np.pi)])
    N, i = degree + 2, np.arange(degree + 1)
    bell = (N - i) * np.cos(np.pi * i / N) + np.sin(np.pi * i / N) / np.tan(np.pi / N)
    return PolynomialFilter(tuple((coefficients * (bell / N)).tolist()), upper, f"step, damped, degree {degree}")


def stop_band_filter(stop: float, upper: float, degree: int) -> PolynomialFilter:
    """The polynomial with p(0) = 1 that is smallest on [stop, upper]: a Chebyshev polynomial moved onto the stop band.

    No polynomial of this degree has a smaller β when the k lowest eigenvalues are 0 and the others fill the stop band;
    β = 1 / T_degree((upper + stop) / (upper − stop)).
    """
    moved = Chebyshev.basis(degree, domain=[stop, upper])
    return from_function(lambda x: moved(x) / moved(0.0), upper, degree, f"best stop band, degree {degree}")


def learned_filter(L: Any, X: npt.ArrayLike, target: npt.ArrayLike, degree: int, upper: float) -> PolynomialFilter:
    """The polynomial whose output p(L)X is nearest `target` (n, d) in least squares: a one-channel GNN trained to
    optimality.

    With the cluster means of X as target this is what a linear network learns from labels.
    """
    columns = np.stack([term.ravel() for term in chebyshev_terms(L, X, degree, upper)], axis=1)
    solution = np.linalg.lstsq(columns, np.ravel(target), rcond=None)[0]
    return PolynomialFilter(tuple(solution.tolist()), upper, f"learned, degree {degree}")


def linearised_gnn(L: Any, X: npt.ArrayLike, W: npt.ArrayLike | None, response: PolynomialFilter) -> FloatArray:
    """H = p(L) X W, shape (n, m): a GNN with its activations removed. W = None stands for the identity."""
    return response.apply(L, X if W is None else np.asarray(X) @ np.asarray(W))


@dataclass(frozen=True)
class FilterQuality:
    """What the theorem asks of a filter: α, γ on the k lowest eigenvalues and β on the rest."""

    alpha: float
    beta: float
    gamma: float


def split_spectrum(L: Any, k: int, response: PolynomialFilter) -> tuple[FloatArray, FilterQuality]:
    """U_k (n, k) and the filter's α, β, γ on the spectrum of L.

    Above `DENSE_LIMIT` nodes β is the maximum of |p| on the whole interval [λₖ₊₁, λ_n], an upper bound.
    """
    n = L.shape[0]
    values, vectors = spectrum(L) if n <= DENSE_LIMIT else smallest_eigenpairs(L, min(k + 1, n))
    size = np.abs(response(values))
    # What rounding alone can make is set to 0: a guarantee must not rest on a γ of 1e-16.
    size = np.where(size < ROUNDING * np.abs(response.coefficients).sum(), 0.0, size)
    if k == n:
        beta = 0.0
    elif n <= DENSE_LIMIT:
        beta = float(size[k:].max())
    else:
        beta = response.extreme(float(values[k]), operator_norm(L))
    return vectors[:, :k], FilterQuality(float(size[:k].max()), beta, float(size[:k].min()))


@dataclass(frozen=True)
class TheoremMargin:
    """Both sides of the theorem's inequality `left < right`, and every quantity in it."""

    form: TheoremForm
    distance: float
    """ε = ‖L − L°‖_op"""
    M: float
    alpha: float
    beta: float
    gamma: float
    XW_norm: float
    """‖XW‖_op"""
    sigma_min: float
    """σ_min(U_kᵀXW): how much of XW's weakest direction lies in the informative subspace; 0 if XW has fewer than k
    columns"""
    left: float
    right: float

    @property
    def holds(self) -> bool:
        return self.left < self.right


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

    Above `DENSE_LIMIT` nodes β is an upper bound (see `split_spectrum`), so a condition that holds is a guarantee.
    """
    L = laplacian(A, normalised, self_loops=self_loops)
    ideal = IdealLaplacian(labels, normalised, self_loops=self_loops)
    XW = np.asarray(X, dtype=np.float64) if W is None else np.asarray(X, dtype=np.float64) @ np.asarray(W)
    U_k, quality = split_spectrum(L, ideal.num_clusters, response)
    low = U_k.T @ XW  # (k, m)
    XW_norm, low_norm, high_norm = (float(np.linalg.norm(part, 2)) for part in (XW, low, XW - U_k @ low))
    sigma_min = left_sigma_min(low)
    kept = quality.gamma * sigma_min
    lemma = lemma_margin_at(laplacian_distance(L, ideal), ideal, "printed" if form == "printed" else "proof")
    if form == "sharp":
        a, b = quality.alpha * low_norm, quality.beta * high_norm
        left, right = _sharp_sides(lemma, cos_phi(ideal.sizes), a, b, kept)
    else:
        left = XW_norm * (LEAKAGE[form] * quality.beta + quality.alpha * lemma.M)
        right = kept * (sqrt(2 / lemma.S_max) - lemma.M)
    return TheoremMargin(
        form=form,
        distance=lemma.distance,
        M=lemma.M,
        **asdict(quality),
        XW_norm=XW_norm,
        sigma_min=sigma_min,
        left=left,
        right=right,
    )


def left_sigma_min(low: FloatArray) -> float:
    """The least ‖zᵀB‖ over unit z, for B of shape (k, m): the proof's σ_min. It is 0 when m < k, even if the last
    singular value is not."""
    k, m = low.shape
    if m < k:
        return 0.0
    singular = np.linalg.svd(low, compute_uv=False)
    return float(singular[-1]) if singular[-1] > ROUNDING * singular[0] else 0.0


def _sharp_sides(lemma: LemmaMargin, cosine: float, low: float, leak: float, kept: float) -> tuple[float, float]:
    """√2 times the two sides of the sharp form, so that they read as distances, from cos φ, αa, βb and γσ.

    One cluster alone is always separable.
    """
    theta = subspace_angle(2 * lemma.distance / lemma.eigengap)
    worst = min(theta, atan2(low, leak))  # where low·sin ψ + leak·cos ψ peaks, if that is below θ
    left = low * sin(worst) + leak * cos(worst)
    if lemma.k == 1:
        return sqrt(2) * left, inf
    reach = acos(min(cosine, 1.0)) + theta
    right = kept * cos(reach) - leak * sin(reach) if reach < pi / 2 else 0.0
    return sqrt(2) * left, sqrt(2) * right


def ideal_factor(S_max: int) -> float:
    """√2·(1 + √(1 − 1/S)), the factor in front of β that suffices on the ideal graph (M = 0), for clusters of at most
    S nodes.

    Inside a cluster the leak of a pair is at most √2·β‖XW‖, between clusters at most √(2 − 2/S)·β‖XW‖, because the
    pair's projection on the span of U_k is at least √(2/S) long. As S grows, the factor tends to 2√2.
    """
    return sqrt(2) * (1 + sqrt(1 - 1 / S_max))


@dataclass(frozen=True)
class TheoremBatch:
    """A stack of feature matrices on one ideal graph; all arrays have shape (batch,)."""

    intra: FloatArray
    inter: FloatArray
    ratio: FloatArray
    """γσ√(2/S_max) over β‖XW‖: the largest factor in front of β for which the inequality holds"""

    @property
    def separable(self) -> npt.NDArray[np.bool_]:
        return self.intra < self.inter

    def violations(self, leakage: float) -> int:
        """Feature matrices for which the inequality with `leakage`·β holds and the embeddings are not separable."""
        return int(((self.ratio > leakage) & ~self.separable).sum())


def theorem_batch(L: FloatArray, labels: npt.ArrayLike, XW: FloatArray, response: npt.ArrayLike) -> TheoremBatch:
    """The theorem in the paper's shape for one ideal Laplacian L (n, n), for which M = 0, and features (batch, n, m).

    response: p at the n eigenvalues of L, ascending; β, its largest value beyond the first k, must not be 0.
    """
    sizes = cluster_codes(labels)[1]
    k, gain = len(sizes), np.asarray(response, dtype=np.float64)
    vectors = spectrum(L)[1]
    coefficients = vectors.T @ XW  # (batch, n, m)
    intra, inter = separation_stack(vectors @ (gain[:, None] * coefficients), labels)
    beta, gamma = np.abs(gain[k:]).max(), np.abs(gain[:k]).min()
    singular = np.linalg.svd(coefficients[:, :k], compute_uv=False)
    sigma = singular[:, -1] if XW.shape[2] >= k else np.zeros(len(XW))
    norm = np.linalg.norm(XW, 2, axis=(1, 2))
    return TheoremBatch(intra, inter, gamma * sigma * np.sqrt(2 / sizes.max()) / (beta * norm))
