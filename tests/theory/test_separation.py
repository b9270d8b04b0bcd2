"""Separation and perfect cuts, against SciPy and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.metrics import adjusted_rand_score

from btcnb.errors import DataError, ParameterError
from btcnb.theory import best_cut, pair_distances, sample_pair_distances, separation


def test_four_points_on_a_line():
    X, labels = np.array([[0.0], [1], [3], [4.5]]), [7, 7, 9, 9]
    found = separation(X, labels)
    assert (found.intra_max, found.inter_min, found.gap) == (1.5, 2, 0.5) and found.separable
    assert not separation(X, [7, 9, 7, 9]).separable


def test_one_cluster_and_only_singletons():
    X = np.array([[0.0], [1], [3]])
    assert separation(X, [0, 0, 0]).inter_min == np.inf and separation(X, [0, 0, 0]).separable
    assert separation(X, [0, 1, 2]).intra_max == 0 and separation(X, [0, 1, 2]).separable
    assert not separation(np.zeros((2, 1)), [0, 1]).separable  # two clusters on one point cannot be told apart


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 40), st.integers(1, 9), st.sampled_from(["euclidean", "cosine"]), st.integers(0, 999))
def test_blocks_do_not_change_the_answer(n, block, metric, seed):
    rng = np.random.default_rng(seed)
    X, labels = rng.standard_normal((n, 3)), rng.integers(0, 3, n)
    whole = separation(X, labels, metric=metric)
    assert separation(X, labels, metric=metric, block=block) == whole
    inside, between = pair_distances(X, labels, metric=metric, block=block)
    assert len(inside) + len(between) == n * (n - 1) // 2
    assert max(inside, default=0.0) == pytest.approx(whole.intra_max)
    assert min(between, default=np.inf) == pytest.approx(whole.inter_min)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10_000), st.sampled_from(["single", "average", "complete"]), st.floats(0.02, 0.98))
def test_separated_clusters_are_cut_perfectly_anywhere_between_r_and_s(seed, method, where):
    """The perfect-cut criterion of the paper, for its three linkages, at any threshold strictly between r and s."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, 25)
    centres = 4.0 * np.eye(4)
    X = centres[labels] + rng.uniform(-0.8, 0.8, (25, 4))
    found = separation(X, labels)
    if not found.separable or len(np.unique(labels)) < 2:
        return
    Z = linkage(X, method)
    cut = fcluster(Z, found.intra_max + where * found.gap, "distance")
    assert adjusted_rand_score(labels, cut) == 1.0
    assert best_cut(Z, labels).perfect


def test_ward_can_miss_separated_clusters():
    """Ward's height grows with size, so separation is not enough: 40 points within 1 and two points 1.05 apart."""
    big = np.linspace(0, 1, 40)[:, None]
    X = np.concatenate([big, [[2.05], [3.1]]])
    labels = np.repeat([0, 1, 2], [40, 1, 1])
    assert separation(X, labels).separable
    assert best_cut(linkage(X, "average"), labels).perfect
    assert not best_cut(linkage(X, "ward"), labels).perfect


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 30), st.integers(0, 999), st.sampled_from(["single", "average", "complete", "ward"]))
def test_best_cut_is_the_best_of_all_cuts(n, seed, method):
    rng = np.random.default_rng(seed)
    X, labels = np.round(rng.standard_normal((n, 2)), 1), rng.integers(0, 4, n)  # rounding makes ties
    Z = linkage(X, method)
    thresholds = np.concatenate([[-1.0], Z[:, 2]])
    scores = [adjusted_rand_score(labels, fcluster(Z, t, "distance")) for t in thresholds]
    found = best_cut(Z, labels)
    assert found.rand_index == pytest.approx(max(scores), abs=1e-9)
    if found.threshold > 0:
        own = adjusted_rand_score(labels, fcluster(Z, found.threshold, "distance"))
        assert own == pytest.approx(found.rand_index, abs=1e-9)


def test_sampled_pairs_follow_the_exact_distribution():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2, 3], [30, 20, 9, 1])
    X = np.eye(4)[labels] + 0.3 * rng.standard_normal((60, 4))
    inside, between = sample_pair_distances(X, labels, 20_000, metric="euclidean", seed=3)
    everything = np.linalg.norm(X[:, None] - X[None], axis=-1)
    same = labels[:, None] == labels[None]
    company = same & ~np.eye(60, dtype=bool)
    expected_inside = np.mean([everything[i, company[i]].mean() for i in range(59)])
    expected_between = np.mean([everything[i, ~same[i]].mean() for i in range(60)])
    assert inside.mean() == pytest.approx(expected_inside, rel=0.02)
    assert between.mean() == pytest.approx(expected_between, rel=0.02)
    assert inside.max() <= everything[company].max() + 1e-12 and between.min() >= everything[~same].min() - 1e-12
    again = sample_pair_distances(X, labels, 20_000, metric="euclidean", seed=3)
    np.testing.assert_array_equal(inside, again[0])


def test_mistakes_are_named():
    with pytest.raises(ParameterError, match="metric"):
        separation(np.zeros((2, 1)), [0, 1], metric="manhattan")
    with pytest.raises(DataError, match="labels"):
        separation(np.zeros((2, 1)), [0, 1, 2])
    with pytest.raises(DataError, match="both kinds"):
        sample_pair_distances(np.zeros((3, 1)), [0, 1, 2], 10)
