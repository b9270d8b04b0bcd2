"""Laplacians against hand-worked matrices and dense algebra."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from btcnb.errors import DataError, ParameterError
from btcnb.theory import adjacency, ideal_adjacency, ideal_laplacian, laplacian

LABELS = st.lists(st.integers(0, 4), min_size=1, max_size=14).map(np.array)
KINDS = [(False, False), (True, False), (True, True)]


def test_path_of_three_nodes_by_hand():
    A = adjacency([[0, 1], [1, 2]], 3)
    assert laplacian(A).toarray().tolist() == [[1, -1, 0], [-1, 2, -1], [0, -1, 1]]
    half = 1 / np.sqrt(2)
    expected = [[1, -half, 0], [-half, 1, -half], [0, -half, 1]]
    np.testing.assert_allclose(laplacian(A, normalised=True).toarray(), expected)


def test_star_has_eigenvalues_0_1_and_n():
    A = adjacency([[0, 0, 0, 0], [1, 2, 3, 4]], 5)
    np.testing.assert_allclose(np.linalg.eigvalsh(laplacian(A).toarray()), [0, 1, 1, 1, 5], atol=1e-12)
    np.testing.assert_allclose(np.linalg.eigvalsh(laplacian(A, normalised=True).toarray()), [0, 1, 1, 1, 2], atol=1e-12)


def test_directions_repetitions_and_self_loops_do_not_count():
    A = adjacency([[0, 1, 0, 2, 2], [1, 0, 1, 2, 1]], 3)
    assert A.toarray().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]


def test_an_isolated_node_has_a_zero_row():
    A = adjacency([[0], [1]], 3)
    for normalised in (False, True):
        L = laplacian(A, normalised).toarray()
        assert not L[2].any() and not L[:, 2].any()


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 12), st.integers(0, 10_000))
def test_both_laplacians_equal_networkx(n, seed):
    graph = nx.gnp_random_graph(n, 0.4, seed=seed)
    A = nx.to_numpy_array(graph)
    np.testing.assert_allclose(laplacian(A).toarray(), nx.laplacian_matrix(graph).toarray())
    np.testing.assert_allclose(
        laplacian(A, normalised=True).toarray(), nx.normalized_laplacian_matrix(graph).toarray(), atol=1e-12
    )


def test_self_loops_change_only_the_normalised_laplacian():
    A = ideal_adjacency([0, 0, 0, 1])
    np.testing.assert_allclose(laplacian(A, self_loops=True).toarray(), laplacian(A).toarray())
    np.testing.assert_allclose(laplacian(A, True, self_loops=True).toarray()[0], [2 / 3, -1 / 3, -1 / 3, 0])


@settings(deadline=None)
@given(LABELS, st.sampled_from(KINDS))
def test_the_operator_is_the_laplacian_of_the_ideal_graph(labels, kind):
    normalised, loops = kind
    ideal = ideal_laplacian(labels, normalised, self_loops=loops)
    expected = laplacian(ideal_adjacency(labels), normalised, self_loops=loops).toarray()
    np.testing.assert_allclose(np.asarray(ideal), expected, atol=1e-12)
    np.testing.assert_allclose(ideal.eigenvalues(), np.linalg.eigvalsh(expected), atol=1e-9)
    signal = np.arange(len(labels), dtype=float)
    np.testing.assert_allclose(ideal @ signal, expected @ signal, atol=1e-9)
    np.testing.assert_allclose(ideal.T @ signal, expected @ signal, atol=1e-9)


@settings(deadline=None)
@given(LABELS, st.sampled_from(KINDS))
def test_the_kernel_is_orthonormal_and_annihilated(labels, kind):
    ideal = ideal_laplacian(labels, kind[0], self_loops=kind[1])
    basis = ideal.kernel().toarray()
    assert basis.shape == (len(labels), len(np.unique(labels)))
    np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-12)
    np.testing.assert_allclose(ideal @ basis, 0, atol=1e-12)


@pytest.mark.parametrize(
    ("sizes", "unnormalised", "normalised"),
    [
        ([5, 5], 5, 5 / 4),  # equal clusters
        ([7, 3, 2], 2, 7 / 6),  # smallest cluster for one, largest for the other
        ([7, 3, 1], 3, 7 / 6),  # a singleton has no non-zero eigenvalue
        ([6], 6, 6 / 5),  # one cluster
        ([1, 1, 1], np.inf, np.inf),  # nothing but singletons: no non-zero eigenvalue at all
    ],
)
def test_the_eigengap_of_each_laplacian(sizes, unnormalised, normalised):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    assert ideal_laplacian(labels).eigengap == pytest.approx(unnormalised)
    assert ideal_laplacian(labels, normalised=True).eigengap == pytest.approx(normalised)
    if max(sizes) > 1:
        assert ideal_laplacian(labels, True, self_loops=True).eigengap == 1.0


def test_a_million_nodes_need_no_matrix():
    labels = np.arange(1_000_000) // 5_000
    ideal = ideal_laplacian(labels)
    signal = np.zeros(1_000_000)
    signal[0] = 1.0
    image = ideal @ signal
    assert image[0] == pytest.approx(4_999) and image[1] == pytest.approx(-1) and not image[5_000:].any()
    with pytest.raises(ParameterError, match="not made dense"):
        ideal.toarray()


@pytest.mark.parametrize(
    ("A", "field"),
    [
        ([[0, 1], [0, 0]], "symmetry"),
        ([[0, -1], [-1, 0]], "weights"),
        ([[0, 1, 0], [1, 0, 0]], "shape"),
        ([[0, np.nan], [np.nan, 0]], "not finite"),
    ],
)
def test_bad_adjacencies_are_refused(A, field):
    with pytest.raises(DataError, match=field):
        laplacian(sp.csr_array(np.array(A, dtype=float)))


def test_bad_edges_are_refused():
    with pytest.raises(DataError, match="there are 3 nodes"):
        adjacency([[0], [3]], 3)
    with pytest.raises(DataError, match="shape"):
        adjacency(np.zeros((3, 2), dtype=int), 3)
