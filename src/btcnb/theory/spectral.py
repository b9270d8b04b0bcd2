"""Eigenpairs, operator norms and angles between subspaces, by Lanczos where the matrix is large."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, aslinearoperator, eigsh

from btcnb.errors import ParameterError
from btcnb.theory.laplacians import FloatArray, IdealLaplacian

DENSE_LIMIT = 1_500
"""Up to this many nodes a dense symmetric eigensolver is both faster and exact; above it everything is matrix-free."""


def dense(L: Any) -> FloatArray:
    """A matrix or operator as a dense array; only ever called below `DENSE_LIMIT`."""
    if isinstance(L, np.ndarray):
        return L.astype(np.float64, copy=False)
    if sp.issparse(L):
        return np.asarray(L.toarray(), dtype=np.float64)
    return np.asarray(aslinearoperator(L) @ np.eye(L.shape[1]))


def operator_norm(S: Any, *, tolerance: float = 1e-9, seed: int = 0) -> float:
    """‖S‖_op of a symmetric matrix or operator: its largest absolute eigenvalue.

    Dense for small matrices, Lanczos above: the result then is a lower bound, exact to the relative `tolerance`.
    """
    n = S.shape[0]
    if n <= DENSE_LIMIT:
        return float(np.abs(scipy.linalg.eigvalsh(dense(S))).max())
    start = np.random.default_rng(seed).standard_normal(n)
    values = eigsh(
        aslinearoperator(S), k=1, which="LM", v0=start, tol=tolerance, maxiter=20_000, return_eigenvectors=False
    )
    return float(np.abs(values).max())


def difference(L: Any, ideal: IdealLaplacian) -> LinearOperator:
    """L − L° as an operator of shape (n, n), without ever storing L°."""
    if L.shape != ideal.shape:
        raise ParameterError(f"L has shape {L.shape}, the labels make L° of shape {ideal.shape}.")
    own = aslinearoperator(L)

    def product(X: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.asarray(own @ X) - np.asarray(ideal @ X)

    return LinearOperator(ideal.shape, matvec=product, matmat=product, rmatvec=product, dtype=np.float64)


def laplacian_distance(L: Any, ideal: IdealLaplacian, *, tolerance: float = 1e-9) -> float:
    """‖L − L°‖_op, the paper's measure of how far a graph is from its ideal cluster graph; O(edges + nodes) per
    Lanczos step."""
    return operator_norm(difference(L, ideal), tolerance=tolerance)


def smallest_eigenpairs(L: Any, k: int, *, tolerance: float = 0.0, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """The k smallest eigenvalues (ascending) of a symmetric positive semi-definite L and their eigenvectors, shape
    (n, k)."""
    n = L.shape[0]
    if not 1 <= k <= n:
        raise ParameterError(f"k = {k} eigenvectors of {n} nodes: k lies between 1 and {n}.")
    if n <= DENSE_LIMIT or k >= n - 1:
        values, vectors = scipy.linalg.eigh(dense(L), subset_by_index=[0, k - 1])
        return values, vectors
    # Lanczos converges to the ends that stick out; after the reflection about λ_n the small eigenvalues are the
    # largest ones.
    top = operator_norm(L, tolerance=1e-6, seed=seed) * (1 + 1e-5)
    own = aslinearoperator(L)
    reflected = LinearOperator(
        L.shape, matvec=lambda x: top * x - own @ x, matmat=lambda X: top * X - own @ X, dtype=np.float64
    )
    start = np.random.default_rng(seed).standard_normal(n)
    values, vectors = eigsh(reflected, k=k, which="LA", v0=start, tol=tolerance, maxiter=50_000)
    order = np.argsort(-values)
    return top - values[order], vectors[:, order]


def spectral_embedding(L: Any, k: int, *, seed: int = 0) -> FloatArray:
    """The spectral embedding of every node, shape (n, k): row i is e_i^s, the i-th entries of the k lowest
    eigenvectors of L.

    Unique up to one orthogonal map of R^k (distances are unique) if and only if λ_k(L) < λ_{k+1}(L).
    """
    return smallest_eigenpairs(L, k, seed=seed)[1]


def principal_angles(U: npt.ArrayLike, V: Any) -> FloatArray:
    """Angles in [0, π/2] between the spans of two orthonormal bases of shape (n, k), descending.

    Small angles are taken from sines and large ones from cosines, since arccos loses half of the digits near zero.
    """
    U = np.asarray(U, dtype=np.float64)
    V = dense_basis(V)
    cross = V.T @ U  # (k, k)
    cosines = np.clip(np.sort(np.linalg.svd(cross, compute_uv=False)), 0.0, 1.0)
    sines = np.clip(np.sort(np.linalg.svd(U - V @ cross, compute_uv=False))[::-1], 0.0, 1.0)
    return np.where(sines < np.sqrt(0.5), np.arcsin(sines), np.arccos(cosines))


def dense_basis(V: Any) -> FloatArray:
    """An (n, k) basis as a dense array."""
    return np.asarray(V.toarray() if sp.issparse(V) else V, dtype=np.float64)
