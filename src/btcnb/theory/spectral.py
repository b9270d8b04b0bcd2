"""Eigenpairs, operator norms and angles between subspaces, by Lanczos where the matrix is large."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackError, LinearOperator, aslinearoperator, eigsh

from btcnb import gates
from btcnb.errors import DataError, ParameterError
from btcnb.theory.laplacians import FloatArray, IdealLaplacian, as_square

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
    S = as_square(S, "S", symmetric=True)
    tolerance, seed = gates.real("tolerance", tolerance, "[0, 1)"), gates.whole("seed", seed, "[0, inf)")
    if S.shape[0] <= DENSE_LIMIT:
        return float(np.abs(_solved(scipy.linalg.eigvalsh, dense(S))).max())
    return float(np.abs(_lanczos(S, 1, "LM", tolerance, seed)[0]).max())


def difference(L: Any, ideal: IdealLaplacian) -> LinearOperator:
    """L − L° as an operator of shape (n, n), without ever storing L°."""
    gates.instance("ideal", ideal, IdealLaplacian)
    L = as_square(L)
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
    L = as_square(L, symmetric=True)
    n = L.shape[0]
    k = gates.whole("k, the number of eigenvectors,", k, f"[1, {n}]")
    tolerance, seed = gates.real("tolerance", tolerance, "[0, 1)"), gates.whole("seed", seed, "[0, inf)")
    if n <= DENSE_LIMIT or k >= n - 1:
        values, vectors = _solved(scipy.linalg.eigh, dense(L), subset_by_index=[0, k - 1])
        return values, vectors
    # Lanczos converges to the ends that stick out; after the reflection about λ_n the small eigenvalues are the
    # largest ones.
    top = operator_norm(L, tolerance=1e-6, seed=seed) * (1 + 1e-5)
    own = aslinearoperator(L)
    reflected = LinearOperator(
        L.shape, matvec=lambda x: top * x - own @ x, matmat=lambda X: top * X - own @ X, dtype=np.float64
    )
    values, vectors = _lanczos(reflected, k, "LA", tolerance, seed)
    order = np.argsort(-values)
    return top - values[order], vectors[:, order]


def spectrum(L: Any) -> tuple[FloatArray, FloatArray]:
    """All eigenvalues, ascending, and eigenvectors (n, n) of a symmetric L; dense, so only below `DENSE_LIMIT`."""
    values, vectors = _solved(scipy.linalg.eigh, dense(L))
    return values, vectors


def _lanczos(S: Any, k: int, which: str, tolerance: float, seed: int) -> tuple[FloatArray, FloatArray]:
    start = np.random.default_rng(seed).standard_normal(S.shape[0])
    own = aslinearoperator(S)
    values, vectors = _solved(eigsh, own, k=k, which=which, v0=start, tol=tolerance, maxiter=50_000)
    return values, vectors


def _solved(solver: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """What the solver finds; where it finds nothing, an error that says so."""
    try:
        return solver(*args, **options)
    except (ArpackError, np.linalg.LinAlgError, ValueError) as error:
        raise DataError(
            "matrix", "spectrum", f"no convergence ({error})", "scale the matrix or loosen tolerance"
        ) from error


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
    U, V = dense_basis(U, "U"), dense_basis(V, "V")
    if U.shape != V.shape:
        raise DataError("bases", "shape", f"{U.shape} and {V.shape}", "pass two bases of the same shape (n, k)")
    cross = V.T @ U  # (k, k)
    cosines = np.clip(np.sort(np.linalg.svd(cross, compute_uv=False)), 0.0, 1.0)
    sines = np.clip(np.sort(np.linalg.svd(U - V @ cross, compute_uv=False))[::-1], 0.0, 1.0)
    return np.where(sines < np.sqrt(0.5), np.arcsin(sines), np.arccos(cosines))


def dense_basis(V: Any, name: str = "basis") -> FloatArray:
    """An orthonormal basis (n, k) as a dense array."""
    basis = gates.array(name, V.toarray() if sp.issparse(V) else V, 2).astype(np.float64, copy=False)
    if not basis.size or not np.allclose(basis.T @ basis, np.eye(basis.shape[1]), rtol=0, atol=1e-4):
        raise DataError(name, "columns", "are not orthonormal", "pass an orthonormal basis, one column each")
    return basis
