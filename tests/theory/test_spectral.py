"""Lanczos against dense algebra; distances of embeddings by hand."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp

from btcnb.errors import ParameterError
from btcnb.theory import (
    adjacency,
    ideal_adjacency,
    ideal_laplacian,
    laplacian,
    laplacian_distance,
    operator_norm,
    principal_angles,
    smallest_eigenpairs,
    spectral,
    spectral_embedding,
)
from btcnb.theory.examples import two_cliques_and_a_bridge


@pytest.fixture
def lanczos(monkeypatch):
    """Send every size down the matrix-free road."""
    monkeypatch.setattr(spectral, "DENSE_LIMIT", 3)


def noisy_graph(seed, sizes=(30, 20, 12, 1)):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    rng = np.random.default_rng(seed)
    A = np.abs(ideal_adjacency(labels) - np.triu(rng.random((len(labels),) * 2) < 0.03, 1))
    A = np.triu(A, 1)
    return A + A.T, labels


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("normalised", [False, True])
def test_lanczos_norm_equals_dense_norm(lanczos, seed, normalised):
    A, labels = noisy_graph(seed)
    L, ideal = laplacian(A, normalised), ideal_laplacian(labels, normalised)
    expected = np.linalg.norm(L.toarray() - ideal.toarray(), 2)
    assert laplacian_distance(L, ideal) == pytest.approx(expected, rel=1e-7)
    assert operator_norm(L) == pytest.approx(np.linalg.norm(L.toarray(), 2), rel=1e-7)


@pytest.mark.parametrize("normalised", [False, True])
def test_lanczos_embedding_spans_the_dense_eigenspace(lanczos, normalised):
    A, _ = noisy_graph(4)
    L = laplacian(A, normalised)
    values, vectors = smallest_eigenpairs(L, 4)
    expected_values, expected = scipy.linalg.eigh(L.toarray())
    np.testing.assert_allclose(values, expected_values[:4], atol=1e-8)
    assert principal_angles(vectors, expected[:, :4]).max() < 1e-6


def test_lanczos_finds_a_repeated_zero(lanczos):
    labels = np.repeat(np.arange(5), 8)
    values, vectors = smallest_eigenpairs(laplacian(ideal_adjacency(labels)), 5)
    np.testing.assert_allclose(values, 0, atol=1e-8)
    assert principal_angles(vectors, ideal_laplacian(labels).kernel()).max() < 1e-6


def test_one_added_edge_is_at_distance_two():
    A, labels = two_cliques_and_a_bridge(6)
    assert laplacian_distance(laplacian(A), ideal_laplacian(labels)) == pytest.approx(2.0)


def test_ideal_embedding_distances():
    labels = np.array([0, 0, 0, 1, 1, 2])
    U = spectral_embedding(laplacian(ideal_adjacency(labels)), 3)
    distance = np.linalg.norm(U[:, None] - U[None], axis=-1)
    assert distance[0, 2] == pytest.approx(0, abs=1e-12)
    assert distance[0, 3] == pytest.approx(np.sqrt(1 / 3 + 1 / 2))
    assert distance[3, 5] == pytest.approx(np.sqrt(1 / 2 + 1))


def test_fiedler_vector_of_a_path():
    L = laplacian(adjacency([[0, 1, 2], [1, 2, 3]], 4))
    values, vectors = smallest_eigenpairs(L, 2)
    assert values[1] == pytest.approx(2 - np.sqrt(2))
    fiedler = vectors[:, 1] * np.sign(vectors[0, 1])
    assert np.all(np.diff(fiedler) < 0)


def test_principal_angles_by_hand():
    t = 0.3
    U = np.array([[1, 0], [0, np.cos(t)], [0, np.sin(t)]])
    np.testing.assert_allclose(principal_angles(U, np.eye(3)[:, :2]), [t, 0], atol=1e-12)
    np.testing.assert_allclose(principal_angles(U[:, 1:], sp.csr_array(np.eye(3)[:, [0]])), [np.pi / 2])
    tiny = np.array([[1.0], [1e-12], [0]])
    assert principal_angles(tiny, np.eye(3)[:, :1])[0] == pytest.approx(1e-12, rel=1e-3)


def test_the_distance_of_a_large_graph_is_measured_without_a_dense_matrix():
    """20,000 nodes: clusters of 50 without edges at all, so L − L° = −L° and the distance is 50."""
    labels = np.arange(20_000) // 50
    assert laplacian_distance(sp.csr_array((20_000, 20_000)), ideal_laplacian(labels)) == pytest.approx(50)


def test_impossible_requests_are_refused():
    L = laplacian(ideal_adjacency([0, 0, 1]))
    with pytest.raises(ParameterError, match=r"k, the number of eigenvectors, is 4.*\[1, 3\]"):
        spectral_embedding(L, 4)
    with pytest.raises(ParameterError, match="shape"):
        laplacian_distance(L, ideal_laplacian([0, 1]))
