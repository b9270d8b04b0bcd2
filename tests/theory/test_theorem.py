"""The theorem: the printed inequality has a counter-example, the corrected ones have none, and 2√2 is the least
factor."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from btcnb.errors import DataError, ParameterError
from btcnb.theory import (
    gcn_filter,
    ideal_adjacency,
    laplacian,
    lemma_margin,
    linearised_gnn,
    separation,
    spectral,
    theorem,
    theorem_margin,
)
from btcnb.theory.batches import perturbed_graphs, theorem_batch
from btcnb.theory.examples import leakage_family, printed_theorem_counterexample
from btcnb.theory.filters import from_function

CORRECT = ("proof", "optimal", "sharp")


def embed(example, normalised=False):
    return linearised_gnn(laplacian(example.A, normalised), example.XW, None, example.response)


@pytest.mark.parametrize("normalised", [False, True])
def test_four_nodes_break_the_printed_inequality(normalised):
    """β = 0.5 < σ = 0.6, yet a distance inside (√2/2 ≈ 0.707) exceeds one between clusters (√0.485 ≈ 0.696)."""
    example = printed_theorem_counterexample(beta=0.5, sigma=0.6)
    margin = theorem_margin(example.A, example.labels, example.XW, example.response, normalised=normalised)
    assert (margin.alpha, margin.beta, margin.gamma) == pytest.approx((1, 0.5, 1))
    assert margin.XW_norm == pytest.approx(1) and margin.sigma_min == pytest.approx(0.6)
    assert pytest.approx(0) == margin.M
    assert margin.left == pytest.approx(0.5) and margin.right == pytest.approx(0.6) and margin.holds
    truth = separation(embed(example, normalised), example.labels)
    assert truth.intra_max == pytest.approx(sqrt(0.5)) and truth.inter_min == pytest.approx(sqrt(0.485))
    assert not truth.separable
    for form in CORRECT:
        wide = theorem_margin(example.A, example.labels, example.XW, example.response, normalised=normalised, form=form)
        assert not wide.holds


def test_the_counterexample_is_not_a_knife_edge():
    """It survives a small weighted perturbation of the graph, where M > 0."""
    example = printed_theorem_counterexample(beta=0.5, sigma=0.6)
    A = example.A.copy()
    A[1, 2] = A[2, 1] = 1e-3
    margin = theorem_margin(A, example.labels, example.XW, example.response)
    assert margin.M > 0 and margin.holds
    assert not separation(linearised_gnn(laplacian(A), example.XW, None, example.response), example.labels).separable


def test_no_factor_below_two_root_two_is_valid():
    """The family fails to separate although the inequality holds with a factor that climbs towards 2√2."""
    factors = []
    for size in (3, 10, 100, 400):
        example = leakage_family(size)
        margin = theorem_margin(example.A, example.labels, example.XW, example.response, form="optimal")
        assert not separation(embed(example), example.labels).separable
        factors.append(margin.right / (margin.beta * margin.XW_norm))  # M = 0: the largest factor that still holds
    assert factors == sorted(factors) and factors[0] > 2.5
    assert 0.997 * 2 * sqrt(2) < factors[-1] < 2 * sqrt(2)


@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.integers(1, 5), min_size=2, max_size=3).filter(lambda sizes: max(sizes) > 1),
    st.booleans(),
    st.floats(0, 0.05),
    st.floats(0, 0.2),
    st.floats(0.5, 1),
    st.integers(0, 100_000),
)
def test_the_correct_forms_are_never_violated(sizes, normalised, weight, beta, gamma, seed):
    """Features near the cluster indicators, any leak, any small perturbation: where a form holds, the embeddings
    separate."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    A = perturbed_graphs(labels, 2, 1, weight=weight, rng=rng)[0]
    X = np.eye(len(sizes))[labels] / np.sqrt(np.bincount(labels))[labels, None]
    X = np.hstack([X, np.zeros((len(X), 1))]) + rng.random() * rng.standard_normal((len(X), len(sizes) + 1))
    upper = 2.0 * max(sizes)

    def wave(x):
        return gamma + (1 - gamma) * np.cos(x) + (beta - 1) * np.minimum(x, 1)

    response = from_function(wave, upper, 12, "any")
    separable = separation(linearised_gnn(laplacian(A, normalised), X, None, response), labels).separable
    for form in CORRECT:
        if theorem_margin(A, labels, X, response, normalised=normalised, form=form).holds:
            assert separable


@pytest.mark.parametrize("leakage", [2 * sqrt(2), 4.0])
def test_random_search_finds_nothing_against_the_corrected_factor(leakage):
    """20,000 random features on the ideal graph: the printed factor is violated hundreds of times, the corrected
    never."""
    labels = np.repeat([0, 1], [3, 3])
    L = laplacian(ideal_adjacency(labels)).toarray()
    rng = np.random.default_rng(11)
    vectors = np.linalg.eigh(L)[1]
    low = rng.uniform(0.2, 1, (20_000, 1, 1)) * np.eye(2, 4)[None] + 0.02 * rng.standard_normal((20_000, 2, 4))
    coefficients = np.concatenate(
        [low, rng.uniform(0, 1, (20_000, 1, 1)) * rng.standard_normal((20_000, 4, 4))], axis=1
    )
    found = theorem_batch(L, labels, vectors @ coefficients, [1, 1, 0.1, 0.1, 0.1, 0.1])
    assert (found.ratio > leakage).sum() > 100 and found.violations(leakage) == 0
    assert found.violations(1.0) > 100


def test_sigma_min_is_zero_with_fewer_columns_than_clusters():
    """One column for two clusters: the last singular value of U_kᵀXW is positive, yet both clusters fall on one
    point."""
    labels = np.array([0, 0, 1, 1])
    X = np.ones((4, 1))
    response = from_function(lambda x: 1 - x / 2, 2.0, 1, "ideal")
    A = ideal_adjacency(labels)
    margin = theorem_margin(A, labels, X, response)
    assert margin.beta == pytest.approx(0) and margin.sigma_min == 0 and not margin.holds
    U = np.repeat(np.eye(2), 2, axis=0) / sqrt(2)
    assert np.linalg.svd(U.T @ X, compute_uv=False)[-1] == pytest.approx(2)
    assert not separation(linearised_gnn(laplacian(A), X, None, response), labels).separable


def test_the_theorem_s_condition_implies_the_lemma_s():
    """γσ ≤ α‖XW‖, so (iii) can be read as M < 1/√(2·S_max), half of the printed √(2/S_max)."""
    rng = np.random.default_rng(2)
    labels = np.repeat([0, 1], 4)
    held = 0
    for weight in (1e-4, 1e-3, 3e-3, 0.01):
        for A in perturbed_graphs(labels, 2, 20, weight=weight, rng=rng):
            X = np.eye(2)[labels] + 0.05 * rng.standard_normal((8, 2))
            margin = theorem_margin(A, labels, X, gcn_filter(2), normalised=True, self_loops=True)
            if margin.holds:
                held += 1
                assert lemma_margin(A, labels, normalised=True, self_loops=True).holds
    assert held > 10


@pytest.mark.parametrize("form", ["printed", *CORRECT])
def test_each_necessary_condition_stops_the_inequality(form):
    """(i) γ = 0, (ii) features orthogonal to the informative subspace, (iii) a graph far from ideal."""
    labels = np.repeat([0, 1], 4)
    A, X = ideal_adjacency(labels), np.eye(2)[labels]
    good = from_function(lambda x: 1 - x / 4, 4.0, 1, "exact")
    assert theorem_margin(A, labels, X, good, form=form).holds
    high_pass = from_function(lambda x: x / 4, 4.0, 1, "high-pass")
    assert not theorem_margin(A, labels, X, high_pass, form=form).holds
    blind = np.tile([[1.0, -1.0], [-1.0, 1.0]], (4, 1))
    assert theorem_margin(A, labels, blind, good, form=form).sigma_min == pytest.approx(0, abs=1e-12)
    assert not theorem_margin(A, labels, blind, good, form=form).holds
    scrambled = ideal_adjacency(np.tile([0, 1], 4))
    assert not theorem_margin(scrambled, labels, X, good, form=form).holds


def test_weights_multiply_the_features():
    labels = np.repeat([0, 1], 3)
    A, X, W = ideal_adjacency(labels), np.eye(6), np.repeat(np.eye(2), 3, axis=0)
    response = from_function(lambda x: 1 - x / 3, 3.0, 1, "exact")
    split, joined = theorem_margin(A, labels, X, response, W=W), theorem_margin(A, labels, X @ W, response)
    assert split == joined and split.XW_norm == pytest.approx(sqrt(3))


def test_large_graphs_get_an_upper_bound_of_beta(monkeypatch):
    labels = np.repeat([0, 1, 2], [9, 8, 7])
    A = perturbed_graphs(labels, 4, 1, weight=0.2, rng=np.random.default_rng(0))[0]
    X = np.eye(3)[labels]
    exact = theorem_margin(A, labels, X, gcn_filter(3), normalised=True, self_loops=True, form="proof")
    for module in (spectral, theorem):
        monkeypatch.setattr(module, "DENSE_LIMIT", 3)
    bound = theorem_margin(A, labels, X, gcn_filter(3), normalised=True, self_loops=True, form="proof")
    assert bound.beta >= exact.beta - 1e-9
    assert (bound.alpha, bound.gamma, bound.sigma_min) == pytest.approx((exact.alpha, exact.gamma, exact.sigma_min))


def test_mistakes_are_named():
    example = printed_theorem_counterexample()
    with pytest.raises(ParameterError, match=r"form is 'new'.*must be one of"):
        theorem_margin(example.A, example.labels, example.XW, example.response, form="new")
    with pytest.raises(DataError, match="one row of features"):
        theorem_margin(example.A, example.labels, example.XW[:3], example.response)
