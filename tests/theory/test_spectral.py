"""Lanczos against dense algebra; energies and quotients by hand, along edges and in the spectrum."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import subspace_angles
from small_graphs import two_cliques_and_a_bridge

from btcnb.theory import (
    adjacency,
    dirichlet_energy,
    gcn_filter,
    ideal_adjacency,
    ideal_laplacian,
    laplacian,
    laplacian_distance,
    operator_norm,
    rayleigh_quotient,
    smallest_eigenpairs,
    spectral,
    spectral_embedding,
    spectral_energy,
    stage_quotients,
)

PATH = laplacian(adjacency([[0, 1], [1, 2]], 3))


@pytest.fixture
def lanczos(monkeypatch):
    """Use the matrix-free methods for every size."""
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
    assert subspace_angles(vectors, expected[:, :4]).max() < 1e-6


def test_lanczos_finds_a_repeated_zero(lanczos):
    labels = np.repeat(np.arange(5), 8)
    values, vectors = smallest_eigenpairs(laplacian(ideal_adjacency(labels)), 5)
    np.testing.assert_allclose(values, 0, atol=1e-8)
    assert subspace_angles(vectors, np.eye(5)[labels]).max() < 1e-6


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


def test_the_distance_of_a_large_graph_is_measured_without_a_dense_matrix():
    """20,000 nodes: clusters of 50 without edges at all, so L − L° = −L° and the distance is 50."""
    labels = np.arange(20_000) // 50
    assert laplacian_distance(sp.csr_array((20_000, 20_000)), ideal_laplacian(labels)) == pytest.approx(50)


def test_path_by_hand():
    """Signal 0, 1, 3: edge differences 1 and 2, energy 1 + 4, over 0 + 1 + 9."""
    assert dirichlet_energy(PATH, [0.0, 1, 3]) == pytest.approx(5)
    assert rayleigh_quotient(PATH, [0, 1, 3]) == pytest.approx(0.5)
    assert rayleigh_quotient(PATH, np.ones(3)) == 0


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 15), st.integers(1, 40), st.integers(0, 9999))
def test_three_ways_to_the_same_energy(n, d, seed):
    """trace(HᵀLH) = sum over edges = Σ λ_i ‖(UᵀH)_i‖², which is not Σ λ_i ‖H_i‖²."""
    rng = np.random.default_rng(seed)
    edges = np.stack(np.nonzero(np.triu(rng.random((n, n)) < 0.5, 1)))
    L, H = laplacian(adjacency(edges, n)), rng.standard_normal((n, d))
    along = ((H[edges[0]] - H[edges[1]]) ** 2).sum()
    values, energy = spectral_energy(L, H)
    assert dirichlet_energy(L, H) == pytest.approx(along)
    assert values @ energy == pytest.approx(along, abs=1e-8)
    assert energy.sum() == pytest.approx((H**2).sum())


def test_the_printed_sum_over_rows_is_another_number():
    H = np.array([[1.0], [0], [0]])
    values, energy = spectral_energy(PATH, H)
    assert values @ energy == pytest.approx(dirichlet_energy(PATH, H)) == pytest.approx(1)
    assert values @ (H**2).sum(axis=1) == pytest.approx(0, abs=1e-12)  # λ_1 = 0 meets the only non-zero row


def test_an_offset_lowers_the_quotient_but_not_the_centred_one():
    H = np.random.default_rng(0).standard_normal((3, 5))
    assert rayleigh_quotient(PATH, H + 100) < 0.01 * rayleigh_quotient(PATH, H)
    assert rayleigh_quotient(PATH, H + 100, centred=True) == pytest.approx(rayleigh_quotient(PATH, H, centred=True))


def test_low_pass_stages_fall():
    rng = np.random.default_rng(0)
    L = laplacian(adjacency(rng.integers(0, 60, (2, 300)), 60), True, self_loops=True)
    X = rng.standard_normal((60, 4))
    stages = stage_quotients(L, {"input": X, "one": gcn_filter(1).apply(L, X), "two": gcn_filter(2).apply(L, X)})
    assert [stage.name for stage in stages] == ["input", "one", "two"]
    assert stages[0].rayleigh > stages[1].rayleigh > stages[2].rayleigh
    assert stages[0].dirichlet == pytest.approx(dirichlet_energy(L, X))


@pytest.mark.parametrize("normalised", [False, True])
def test_stages_centre_without_a_second_product(normalised):
    """The shortcut for the centred quotient agrees with removing the mean row by hand, also where L·1 is not 0."""
    rng = np.random.default_rng(1)
    L = laplacian(adjacency(rng.integers(0, 40, (2, 90)), 40), normalised)
    H = rng.standard_normal((40, 6)) + np.arange(6)
    (stage,) = stage_quotients(L, {"only": H})
    assert stage.rayleigh == pytest.approx(rayleigh_quotient(L, H))
    assert stage.rayleigh_centred == pytest.approx(rayleigh_quotient(L, H, centred=True))
    assert stage.constant_share == pytest.approx(40 * (H.mean(axis=0) ** 2).sum() / (H**2).sum())
    assert stage_quotients(L, {"flat": np.ones((40, 2))})[0].rayleigh_centred == 0


def test_single_precision_is_summed_in_double():
    n = 100_000
    H = np.full((n, 20), 0.1, dtype=np.float32)
    H[0] = 0.2
    L = sp.csr_array(sp.eye_array(n))
    assert rayleigh_quotient(L, H) == pytest.approx(1, rel=1e-7)
