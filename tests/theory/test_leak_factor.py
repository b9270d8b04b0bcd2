"""The factor in front of β: enough on the ideal graph, and reached by the family of bad features."""

from __future__ import annotations

import numpy as np
import pytest

from btcnb.errors import ParameterError
from btcnb.theory import ideal_adjacency, laplacian
from btcnb.theory.batches import theorem_batch
from btcnb.theory.examples import leakage_family, printed_theorem_counterexample
from btcnb.theory.leak_factor import ideal_factor, refuted_factor


def test_the_factor_rises_from_root_two_to_two_root_two():
    factors = [ideal_factor(size) for size in (1, 2, 10, 10**9)]
    assert factors == sorted(factors)
    assert factors[0] == pytest.approx(np.sqrt(2)) and factors[-1] == pytest.approx(2 * np.sqrt(2))
    with pytest.raises(ParameterError):
        ideal_factor(0)


@pytest.mark.parametrize("size", [3, 10, 60])
def test_the_family_comes_within_a_percent_and_never_above(size):
    refuted = refuted_factor(leakage_family(size))
    assert 0.99 * ideal_factor(size) < refuted < ideal_factor(size)


def test_the_four_nodes_refute_the_printed_factor_and_a_separable_example_refutes_none():
    assert refuted_factor(printed_theorem_counterexample(0.5, 0.6)) == pytest.approx(1.2)
    assert np.isnan(refuted_factor(printed_theorem_counterexample(0.5, 0.7)))


@pytest.mark.parametrize("size", [2, 3, 6])
def test_the_ideal_factor_is_never_violated_by_random_features(size):
    rng = np.random.default_rng(size)
    labels = np.repeat([0, 1], size)
    L = laplacian(ideal_adjacency(labels)).toarray()
    strength, draws = rng.uniform(0.1, 1, (4000, 1, 1)), 4000
    kept = strength * np.eye(2, 4) + 0.02 * rng.standard_normal((draws, 2, 4))
    leaked = rng.uniform(0, 1, (draws, 1, 1)) * rng.standard_normal((draws, 2 * size - 2, 4))
    features = np.linalg.eigh(L)[1] @ np.concatenate([kept, leaked], axis=1)
    search = theorem_batch(L, labels, features, [1, 1, *[0.1] * (2 * size - 2)])
    assert (search.ratio > ideal_factor(size)).sum() > 100  # the condition holds often enough to be tested
    assert search.violations(ideal_factor(size)) == 0 < search.violations(1.0)
