"""Tuples from P_α against the probabilities written down in the appendix."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from btcnb.errors import DataError
from btcnb.learn import TupleSampler

LABELS = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 3])  # clusters of 6, 3, 2 and 1


def test_anchor_probabilities_by_hand():
    """α = 1/2 over the three clusters that have a pair: half of (6, 3, 2)/11, half of 1/3 each."""
    expected = [Fraction(6, 22) + Fraction(1, 6), Fraction(3, 22) + Fraction(1, 6), Fraction(2, 22) + Fraction(1, 6), 0]
    np.testing.assert_allclose(TupleSampler(LABELS, 0.5).anchor_probabilities(), [float(p) for p in expected])


def test_negative_probabilities_by_hand():
    uniform = TupleSampler(LABELS, 0.5, "uniform").negative_probabilities(0)
    np.testing.assert_allclose(uniform, [0, 1 / 3, 1 / 3, 1 / 3])
    weight = [0.5 * size / 12 + 0.5 / 4 for size in (3, 2, 1)]
    mixture = TupleSampler(LABELS, 0.5, "mixture").negative_probabilities(0)
    np.testing.assert_allclose(mixture, [0, *(np.array(weight) / sum(weight))])


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("negatives", ["uniform", "mixture"])
def test_frequencies_follow_the_analytic_probabilities(alpha, negatives):
    sampler = TupleSampler(LABELS, alpha, negatives)
    size = np.bincount(LABELS)
    drawn = sampler.draw(60_000, 2, np.random.default_rng(5))
    by_cluster = sampler.anchor_probabilities()
    node = by_cluster[LABELS] / size[LABELS]
    observed = np.bincount(drawn.anchor, minlength=len(LABELS))
    assert chisquare(observed[node > 0], 60_000 * node[node > 0]).pvalue > 1e-3
    assert observed[node == 0].sum() == 0
    for cluster in range(3):
        rows = LABELS[drawn.anchor] == cluster
        expected = sampler.negative_probabilities(cluster)[LABELS] / size[LABELS]
        seen = np.bincount(drawn.negatives[rows].ravel(), minlength=len(LABELS))
        assert seen[expected == 0].sum() == 0
        assert chisquare(seen[expected > 0], seen.sum() * expected[expected > 0]).pvalue > 1e-3


def test_positives_are_uniform_over_the_rest_of_the_cluster():
    drawn = TupleSampler(LABELS, 0.5).draw(60_000, 1, np.random.default_rng(6))
    for anchor in range(6):
        seen = np.bincount(drawn.positive[drawn.anchor == anchor], minlength=6)
        assert seen[anchor] == 0 and len(seen) == 6
        assert chisquare(np.delete(seen, anchor)).pvalue > 1e-3


@given(st.lists(st.integers(0, 5), min_size=4, max_size=30), st.floats(0, 1), st.booleans(), st.integers(0, 1000))
@settings(max_examples=100, deadline=None)
def test_every_tuple_keeps_its_promises(labels, alpha, mixture, seed):
    numbered = np.unique(labels, return_inverse=True)[1]
    size = np.bincount(numbered)
    if size.max() < 2 or len(size) < 2:
        with pytest.raises(DataError):
            TupleSampler(numbered, alpha)
        return
    sampler = TupleSampler(numbered, alpha, "mixture" if mixture else "uniform")
    drawn = sampler.draw(50, 3, np.random.default_rng(seed))
    assert (drawn.anchor != drawn.positive).all()
    assert (numbered[drawn.anchor] == numbered[drawn.positive]).all()
    assert (numbered[drawn.negatives] != numbered[drawn.anchor][:, None]).all()
    nodes, anchor, positive, negatives = drawn.distinct()
    assert len(np.unique(nodes)) == len(nodes)
    assert np.array_equal(nodes[anchor], drawn.anchor)
    assert np.array_equal(nodes[positive], drawn.positive)
    assert np.array_equal(nodes[negatives], drawn.negatives)


def test_the_same_seed_draws_the_same_tuples():
    first, second = (TupleSampler(LABELS).draw(20, 4, np.random.default_rng(1)) for _ in range(2))
    assert np.array_equal(first.anchor, second.anchor) and np.array_equal(first.negatives, second.negatives)


def test_what_cannot_be_sampled_is_said():
    with pytest.raises(DataError, match="no cluster has two nodes"):
        TupleSampler(np.arange(5))
    with pytest.raises(DataError, match="only one cluster"):
        TupleSampler(np.zeros(5, dtype=int))
