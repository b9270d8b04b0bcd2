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
import scipy.linalg
from scipy.sparse.linalg import aslinearoperator

from btcnb.errors import DataError, ParameterError
from btcnb.theory.laplacians import FloatArray
from btcnb.theory.spectral import DENSE_LIMIT, dense

COLUMNS_AT_ONCE = 16
"""L·H is formed for this many columns at a time, so that memory stays at a few vectors whatever the embedding size."""


def dirichlet_energy(L: Any, H: npt.ArrayLike) -> float:
    """trace(HᵀLH) for a symmetric L (n, n) and embeddings H (n, d) or one signal (n,)."""
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
    H = _embeddings(L, H)
    if centred:
        H = H - H.mean(axis=0, dtype=np.float64)
    energy = dirichlet_energy(L, H)
    total = float(np.sum(np.square(H), dtype=np.float64))
    if total == 0:
        raise DataError("embeddings", "values", "all rows are zero", "the quotient needs a non-zero signal")
    return energy / total


@dataclass(frozen=True)
class Stage:
    """One stage of a network: its Rayleigh quotient, plain and with the mean row removed."""

    name: str
    rayleigh: float
    rayleigh_centred: float
    dirichlet: float


def stage_quotients(L: Any, stages: Mapping[str, npt.ArrayLike]) -> list[Stage]:
    """Rayleigh quotient at every stage of a network, in the order given (input, after convolution 1, after
    activation, output)."""
    return [
        Stage(name, rayleigh_quotient(L, H), rayleigh_quotient(L, H, centred=True), dirichlet_energy(L, H))
        for name, H in stages.items()
    ]


def spectral_energy(L: Any, H: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """All eigenvalues λ_i of L and the energy ‖(UᵀH)_i‖² of H at each, both of shape (n,); dense, so for small
    graphs."""
    if L.shape[0] > DENSE_LIMIT:
        raise ParameterError(f"a full spectrum of {L.shape[0]} nodes is not computed; the limit is {DENSE_LIMIT}.")
    values, vectors = scipy.linalg.eigh(dense(L))
    return values, np.asarray(((vectors.T @ _embeddings(L, H)) ** 2).sum(axis=1))


def _embeddings(L: Any, H: npt.ArrayLike) -> npt.NDArray[np.floating]:
    H = np.asarray(H)
    H = H[:, None] if H.ndim == 1 else H
    if H.ndim != 2 or len(H) != L.shape[0]:
        raise DataError("embeddings", "shape", f"got {H.shape} for {L.shape[0]} nodes", "pass one row per node")
    return H if np.issubdtype(H.dtype, np.floating) else H.astype(np.float64)
