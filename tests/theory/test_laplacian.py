"""Laplacians against hand-worked matrices, networkx and dense algebra."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from btcnb.theory import adjacency, ideal_adjacency, ideal_laplacian, laplacian
from btcnb.theory.laplacian import laplacian_stack

LABELS = st.lists(st.integers(0, 4), min_size=1, max_size=14).map(np.array)
KINDS = [(False, False), (True, False), (True, True)]


def test_path_of_three_nodes_by_hand():
    A = adjacency([[0, 1], [1, 2]], 3)
    assert laplacian(A).toarray().tolist() == [[1, -1, 0], [-1, 2, -1], [0, -1, 1]]
    half = 1 / np.sqrt(2)
    expected = [[1, -half, 0], [-half, 1, -half], [0, -half, 1]]
    np.testing.assert_allclose(laplacian(A, normalised=True).toarray(), expected)


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
    signal = np.arange(len(labels), dtype=float)
    np.testing.assert_allclose(ideal @ signal, expected @ signal, atol=1e-9)
    np.testing.assert_allclose(ideal.T @ signal, expected @ signal, atol=1e-9)


@settings(deadline=None)
@given(LABELS, st.sampled_from(KINDS))
def test_the_kernel_is_spanned_by_the_cluster_indicators(labels, kind):
    ideal = ideal_laplacian(labels, kind[0], self_loops=kind[1])
    indicators = (labels[:, None] == np.unique(labels)).astype(float)
    np.testing.assert_allclose(ideal @ indicators, 0, atol=1e-12)
    values = np.linalg.eigvalsh(ideal.toarray())
    assert (values < 1e-9).sum() == indicators.shape[1] == ideal.num_clusters
    assert (values[ideal.num_clusters :] > ideal.eigengap - 1e-9).all()


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


@pytest.mark.parametrize("kind", KINDS)
def test_a_stack_is_one_laplacian_after_another(kind):
    rng = np.random.default_rng(0)
    A = np.triu(rng.random((10, 7, 7)) * (rng.random((10, 7, 7)) < 0.4), 1)
    A = A + A.transpose(0, 2, 1)
    expected = [laplacian(graph, kind[0], self_loops=kind[1]).toarray() for graph in A]
    np.testing.assert_allclose(laplacian_stack(A, kind[0], self_loops=kind[1]), expected, atol=1e-12)
