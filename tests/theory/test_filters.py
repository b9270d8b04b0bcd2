"""Polynomial filters: recurrence against eigenvectors, closed forms, optimality."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.polynomial import chebyshev

from btcnb.errors import ParameterError
from btcnb.theory import (
    PolynomialFilter,
    gcn_filter,
    ideal_adjacency,
    laplacian,
    learned_filter,
    linearised_gnn,
    step_filter,
    stop_band_filter,
)
from btcnb.theory.batches import perturbed_graphs
from btcnb.theory.filters import from_function

LABELS = np.repeat([0, 1, 2], [6, 5, 4])


@pytest.fixture
def graph():
    A = perturbed_graphs(LABELS, 6, 1, rng=np.random.default_rng(0))[0]
    return laplacian(A, True, self_loops=True)


@pytest.mark.parametrize(
    "response",
    [
        gcn_filter(1),
        gcn_filter(4),
        step_filter(0.5, 2.0, 20),
        step_filter(0.5, 2.0, 7, damped=False),
        stop_band_filter(0.8, 2, 5),
    ],
    ids=lambda response: response.name,
)
def test_applying_equals_filtering_the_eigenvalues(graph, response):
    values, U = np.linalg.eigh(graph.toarray())
    X = np.random.default_rng(1).standard_normal((15, 4))
    expected = U @ (response(values)[:, None] * (U.T @ X))
    np.testing.assert_allclose(response.apply(graph, X), expected, atol=1e-10)


def test_gcn_filter_is_repeated_propagation(graph):
    """(1 − λ)^K on the Laplacian with self-loops is K multiplications with GCN's propagation matrix."""
    propagation = np.eye(15) - graph.toarray()
    X = np.random.default_rng(1).standard_normal((15, 2))
    W = np.random.default_rng(2).standard_normal((2, 3))
    expected = propagation @ propagation @ X @ W
    np.testing.assert_allclose(linearised_gnn(graph, X, W, gcn_filter(2)), expected, atol=1e-12)


def test_one_gcn_layer_is_the_ideal_filter_of_the_ideal_graph():
    """With self-loops the ideal graph has eigenvalues 0 and 1 only, and 1 − λ kills the 1: every node gets its
    cluster's mean."""
    L = laplacian(ideal_adjacency(LABELS), True, self_loops=True)
    X = np.random.default_rng(1).standard_normal((15, 4))
    means = np.stack([X[c == LABELS].mean(axis=0) for c in range(3)])
    np.testing.assert_allclose(gcn_filter(1).apply(L, X), means[LABELS], atol=1e-12)


def test_a_step_of_high_degree_is_a_step():
    undamped = step_filter(0.7, 2.0, 400, damped=False)
    assert undamped([0.1, 0.4])[0] == pytest.approx(1, abs=0.02)
    damped = step_filter(0.7, 2.0, 400)
    grid = np.linspace(0, 2, 3001)
    assert np.abs(damped(grid[grid < 0.6]) - 1).max() < 0.02 and np.abs(damped(grid[grid > 0.8])).max() < 0.02
    assert damped(grid).min() > -1e-9 and damped(grid).max() < 1 + 1e-9  # Jackson's kernel never overshoots
    assert undamped(grid).max() > 1.05  # Gibbs does


def test_the_best_stop_band_has_the_known_height_and_no_rival():
    best = stop_band_filter(0.6, 2.0, 6)
    expected = 1 / np.polynomial.Chebyshev.basis(6)((2.0 + 0.6) / (2.0 - 0.6))
    assert best(0.0) == pytest.approx(1)
    assert best.extreme(0.6, 2.0) == pytest.approx(abs(expected))
    rng = np.random.default_rng(0)
    for _ in range(200):
        rival = np.asarray(best.coefficients) + 0.01 * rng.standard_normal(7)
        rival /= chebyshev.chebval(-1, rival)
        assert PolynomialFilter(tuple(rival), 2.0).extreme(0.6, 2.0) >= abs(expected) - 1e-9


def test_extreme_finds_inner_peaks():
    parabola = from_function(lambda x: x * (2 - x), 2.0, 2, "parabola")
    assert parabola.extreme(0, 2) == pytest.approx(1)
    assert parabola.extreme(1.5, 2) == pytest.approx(0.75)
    assert gcn_filter(1).extreme(0.5, 1.75) == pytest.approx(0.75)


def test_learning_recovers_a_polynomial_and_beats_gcn_on_its_own_target(graph):
    X = np.random.default_rng(1).standard_normal((15, 4))
    hidden = from_function(lambda x: 1 - 2 * x + 0.5 * x**3, 2.0, 3, "hidden")
    found = learned_filter(graph, X, hidden.apply(graph, X), 3, 2.0)
    np.testing.assert_allclose(found.coefficients, hidden.coefficients, atol=1e-9)
    means = np.stack([X[c == LABELS].mean(axis=0) for c in range(3)])[LABELS]
    error = [
        np.linalg.norm(f.apply(graph, X) - means) for f in (learned_filter(graph, X, means, 2, 2.0), gcn_filter(2))
    ]
    assert error[0] < error[1]


def test_impossible_filters_are_refused():
    for wrong in (lambda: gcn_filter(0), lambda: step_filter(3, 2, 4), lambda: stop_band_filter(0.0, 2.0, 3)):
        with pytest.raises(ParameterError):
            wrong()
