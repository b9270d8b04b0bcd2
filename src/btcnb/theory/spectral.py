"""Eigenpairs, operator norms, and the energy of node signals in the spectrum of a Laplacian.

Large matrices go through Lanczos' method, which needs products only. The Dirichlet energy (paper, appendix
"Approaching the theoretical conditions") is E(H) = trace(HᵀLH) = Σ_edges w_ij ‖h_i − h_j‖² = Σ_i λ_i ‖(UᵀH)_i‖². The
last sum runs over the rows of the *spectral coefficients* UᵀH, not over the rows of H as the paper prints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator, eigsh

from btcnb.theory.laplacian import FloatArray, IdealLaplacian

DENSE_LIMIT = 1_500
"""Up to this many nodes a dense symmetric eigensolver is faster and exact; above it everything is matrix-free."""

COLUMNS_AT_ONCE = 16
"""L·H is formed for this many columns at a time, so that memory stays at a few vectors for any embedding size."""


def dense(L: Any) -> FloatArray:
    """A matrix or operator as a dense array; called up to `DENSE_LIMIT` nodes only."""
    if isinstance(L, np.ndarray):
        return L.astype(np.float64, copy=False)
    if sp.issparse(L):
        return np.asarray(L.toarray(), dtype=np.float64)
    return np.asarray(aslinearoperator(L) @ np.eye(L.shape[1]))


def spectrum(L: Any) -> tuple[FloatArray, FloatArray]:
    """All eigenvalues, ascending, and eigenvectors (n, n) of a symmetric L; dense, so for small graphs."""
    values, vectors = scipy.linalg.eigh(dense(L))
    return values, vectors


def operator_norm(S: Any, *, tolerance: float = 1e-9) -> float:
    """‖S‖_op of a symmetric matrix or operator: its largest absolute eigenvalue.

    Dense for small matrices. Lanczos' method above: the result is a lower bound, exact to the relative `tolerance`.
    """
    if S.shape[0] <= DENSE_LIMIT:
        return float(np.abs(scipy.linalg.eigvalsh(dense(S))).max())
    return float(np.abs(_lanczos(S, 1, "LM", tolerance)[0]).max())


def laplacian_distance(L: Any, ideal: IdealLaplacian, *, tolerance: float = 1e-9) -> float:
    """‖L − L°‖_op, the paper's measure of how far a graph is from its ideal cluster graph.

    L° is never stored: a Lanczos step costs O(edges + nodes).
    """
    return operator_norm(aslinearoperator(L) - ideal, tolerance=tolerance)


def smallest_eigenpairs(L: Any, k: int) -> tuple[FloatArray, FloatArray]:
    """The k smallest eigenvalues (ascending) of a symmetric positive semi-definite L, and eigenvectors (n, k)."""
    n = L.shape[0]
    if n <= DENSE_LIMIT or k >= n - 1:
        values, vectors = scipy.linalg.eigh(dense(L), subset_by_index=[0, k - 1])
        return values, vectors
    # Lanczos' method converges to the largest eigenvalues first. The reflection λ ↦ top − λ turns the small
    # eigenvalues into the largest ones.
    top = operator_norm(L, tolerance=1e-6) * (1 + 1e-5)
    reflected = aslinearoperator(top * sp.eye_array(n)) - aslinearoperator(L)
    values, vectors = _lanczos(reflected, k, "LA", 0.0)
    order = np.argsort(-values)
    return top - values[order], vectors[:, order]


def spectral_embedding(L: Any, k: int) -> FloatArray:
    """The spectral embedding of every node, shape (n, k): row i has the i-th entries of the k lowest eigenvectors.

    It is unique up to one orthogonal map of ℝᵏ (distances are unique) if and only if λ_k(L) < λₖ₊₁(L).
    """
    return smallest_eigenpairs(L, k)[1]


def _lanczos(S: Any, k: int, which: str, tolerance: float) -> tuple[FloatArray, FloatArray]:
    start = np.random.default_rng(0).standard_normal(S.shape[0])
    values, vectors = eigsh(aslinearoperator(S), k=k, which=which, v0=start, tol=tolerance, maxiter=50_000)
    return values, vectors


def dirichlet_energy(L: Any, H: npt.ArrayLike) -> float:
    """trace(HᵀLH) for a symmetric L (n, n) and embeddings H (n, d) or one signal (n,)."""
    signal = _columns(H)
    operator = aslinearoperator(L)
    energy = 0.0
    for start in range(0, signal.shape[1], COLUMNS_AT_ONCE):
        part = signal[:, start : start + COLUMNS_AT_ONCE].astype(np.float64)
        energy += float(np.sum(part * (operator @ part)))
    return energy


def rayleigh_quotient(L: Any, H: npt.ArrayLike, *, centred: bool = False) -> float:
    """R(H) = trace(HᵀLH) / trace(HᵀH): the mean eigenvalue of L, weighted by the energy of H at it.

    `centred` first removes the mean row. The constant part has energy but no frequency, so any offset (a bias, a
    positive activation) lowers R without smoothing anything.
    """
    signal = _columns(H)
    if centred:
        signal = signal - signal.mean(axis=0, dtype=np.float64)
    return dirichlet_energy(L, signal) / _total_energy(signal)


def spectral_energy(L: Any, H: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """All eigenvalues λ_i of L and the energy ‖(UᵀH)_i‖² of H at each, both of shape (n,); for small graphs."""
    values, vectors = spectrum(L)
    return values, np.asarray(((vectors.T @ _columns(H)) ** 2).sum(axis=1))


@dataclass(frozen=True)
class Stage:
    """Smoothness of the node signals at one stage of a network."""

    name: str
    rayleigh: float
    rayleigh_centred: float
    """the quotient after the mean row is removed"""
    dirichlet: float
    constant_share: float
    """share of the energy trace(HᵀH) that is in the mean row"""


def stage_quotients(L: Any, stages: Mapping[str, npt.ArrayLike]) -> list[Stage]:
    """Rayleigh quotient at every stage of a network, in the order given (input, convolution 1, …, output).

    Each stage takes one product with L.
    """
    constant = np.asarray(aslinearoperator(L) @ np.ones(L.shape[0]))  # 0 for the unnormalised Laplacian
    return [_stage(name, L, _columns(H), constant) for name, H in stages.items()]


def _stage(name: str, L: Any, H: npt.NDArray[np.floating], constant: FloatArray) -> Stage:
    energy, total = dirichlet_energy(L, H), _total_energy(H)
    mean = H.mean(axis=0, dtype=np.float64)
    # With H = H' + 1·mean, what the mean row adds to both traces is known without another product.
    mixed = float(mean @ (H.T @ constant.astype(H.dtype)))
    weight = float(mean @ mean)
    centred_energy = energy - 2 * mixed + float(constant.sum()) * weight
    in_mean = len(H) * weight
    centred = centred_energy / (total - in_mean) if total - in_mean > 1e-12 * total else 0.0
    return Stage(name, energy / total, centred, energy, in_mean / total)


def _total_energy(H: npt.NDArray[np.floating]) -> float:
    """trace(HᵀH), summed in double precision."""
    return float(np.sum(np.square(H), dtype=np.float64))


def _columns(H: npt.ArrayLike) -> npt.NDArray[np.floating]:
    """Embeddings (n, d), or one signal (n,) as one column; floating point, in the precision given."""
    signal = np.asarray(H)
    signal = signal[:, None] if signal.ndim == 1 else signal
    return signal if np.issubdtype(signal.dtype, np.floating) else signal.astype(np.float64)
