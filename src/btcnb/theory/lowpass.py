"""Dirichlet energy and Rayleigh quotient: how smooth node embeddings are along the edges (paper, appendix
"Approaching …").

E(H) = trace(HᵀLH) = Σ_edges w_ij ‖h_i − h_j‖² = Σ_i λ_i ‖(UᵀH)_i‖². The last sum runs over the rows of the *spectral
coefficients* UᵀH, not over the rows of H.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import aslinearoperator

from btcnb import gates
from btcnb.errors import DataError, ParameterError
from btcnb.theory.laplacians import FloatArray, as_square
from btcnb.theory.spectral import DENSE_LIMIT, spectrum

COLUMNS_AT_ONCE = 16
"""L·H is formed for this many columns at a time, so that memory stays at a few vectors whatever the embedding size."""


def dirichlet_energy(L: Any, H: npt.ArrayLike) -> float:
    """trace(HᵀLH) for a symmetric L (n, n) and embeddings H (n, d) or one signal (n,)."""
    L = as_square(L)
    H = _embeddings(L, H)
    own = aslinearoperator(L)
    energy = 0.0
    for start in range(0, H.shape[1], COLUMNS_AT_ONCE):
        part = H[:, start : start + COLUMNS_AT_ONCE].astype(np.float64)
        energy += float(np.sum(part * (own @ part)))
    return energy


def rayleigh_quotient(L: Any, H: npt.ArrayLike, *, centred: bool = False) -> float:
    """R(H) = trace(HᵀLH) / trace(HᵀH): the mean eigenvalue of L, weighted by the energy of H at it.

    `centred` first removes the mean row: the constant part has energy but no frequency, so any offset (a bias, a
    positive activation) lowers R without smoothing anything.
    """
    L = as_square(L)
    signal = _embeddings(L, H)
    if gates.flag("centred", centred):
        signal = signal - signal.mean(axis=0, dtype=np.float64)
    return _quotient(*_energies(L, signal))


@dataclass(frozen=True)
class Stage:
    """One stage of a network."""

    name: str
    rayleigh: float
    rayleigh_centred: float
    """the quotient after the mean row is removed"""
    dirichlet: float
    constant_share: float
    """share of the energy trace(HᵀH) that sits in the mean row"""


def stage_quotients(L: Any, stages: Mapping[str, npt.ArrayLike]) -> list[Stage]:
    """Rayleigh quotient at every stage of a network, in the order given (input, after convolution 1, after activation,
    output); one product with L per stage."""
    L = as_square(L)
    gates.instance("stages", stages, Mapping)  # type: ignore[type-abstract]
    constant = np.asarray(aslinearoperator(L) @ np.ones(L.shape[0]))  # 0 for the unnormalised Laplacian
    return [_stage(name, L, _embeddings(L, H), constant) for name, H in stages.items()]


def _stage(name: str, L: Any, H: npt.NDArray[np.floating], constant: FloatArray) -> Stage:
    energy, total = _energies(L, H)
    mean = H.mean(axis=0, dtype=np.float64)
    # With H = H' + 1·mean: what the mean row adds to both traces is known without another product.
    mixed = float(mean @ (H.T @ constant.astype(H.dtype)))
    weight = float(mean @ mean)
    centred_energy = energy - 2 * mixed + float(constant.sum()) * weight
    in_mean = len(H) * weight
    centred = _quotient(centred_energy, total - in_mean) if total - in_mean > 1e-12 * total else 0.0
    return Stage(name, _quotient(energy, total), centred, energy, in_mean / total)


def _energies(L: Any, H: npt.NDArray[np.floating]) -> tuple[float, float]:
    """trace(HᵀLH) and trace(HᵀH), summed in double precision."""
    return dirichlet_energy(L, H), float(np.sum(np.square(H), dtype=np.float64))


def _quotient(energy: float, total: float) -> float:
    if not np.isfinite(energy) or not np.isfinite(total):
        raise DataError("embeddings", "values", "are so large that their squares overflow", "scale them down")
    if total == 0:
        raise DataError("embeddings", "values", "all rows are zero", "the quotient needs a non-zero signal")
    return energy / total


def spectral_energy(L: Any, H: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """All eigenvalues λ_i of L and the energy ‖(UᵀH)_i‖² of H at each, both of shape (n,); dense, so for small
    graphs."""
    L = as_square(L, symmetric=True)
    if L.shape[0] > DENSE_LIMIT:
        raise ParameterError(f"a full spectrum of {L.shape[0]} nodes is not computed; the limit is {DENSE_LIMIT}.")
    values, vectors = spectrum(L)
    return values, np.asarray(((vectors.T @ _embeddings(L, H)) ** 2).sum(axis=1))


def _embeddings(L: Any, H: npt.ArrayLike) -> npt.NDArray[np.floating]:
    H = gates.array("embeddings", H, (1, 2))
    H = H[:, None] if H.ndim == 1 else H
    if len(H) != L.shape[0]:
        raise DataError("embeddings", "shape", f"got {H.shape} for {L.shape[0]} nodes", "pass one row per node")
    return H if np.issubdtype(H.dtype, np.floating) else H.astype(np.float64)
