"""`silhouette` by hand and against scikit-learn; every level of a dendrogram against one call per level."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import point_sets as shapes
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import silhouette_samples as sklearn_samples

from meanlink import (
    cut,
    cut_silhouette,
    dendrograms,
    linkage,
    local_thresholds,
    silhouette,
    silhouette_levels,
    silhouette_samples,
)


def angles(*degrees: float) -> np.ndarray:
    turn = np.deg2rad(degrees)
    return np.stack([np.cos(turn), np.sin(turn)], axis=1)


def test_four_points_by_hand() -> None:
    # {0°, 60°} and {90°, 180°}: for 0°, a = 1 - cos 60° = 1/2 and b = (1 + 2) / 2 = 3/2,
    # so s = 1 - (1/2) / (3/2) = 2/3;
    # for 180°, a = 1 and b = (2 + 3/2) / 2 = 7/4, so s = 1 - 4/7 = 3/7
    s = silhouette_samples(angles(0, 60, 90, 180), [0, 0, 1, 1])
    near = 1 - np.cos(np.pi / 6)
    b_60 = (near + 1.5) / 2
    b_90 = (1 + near) / 2
    np.testing.assert_allclose(s, [2 / 3, 1 - 0.5 / b_60, b_90 / 1 - 1, 3 / 7])


@pytest.mark.parametrize("k", [2, 7, 150, 599])
@pytest.mark.parametrize("shape", [shapes.clustered, shapes.uniform, shapes.bits], ids=lambda shape: shape.__name__)
def test_equal_to_scikit_learn(shape, k: int) -> None:
    X = shape(600, 24).astype(np.float64)
    labels = np.concatenate([np.arange(k), np.random.default_rng(k).integers(k, size=600 - k)])
    ours = silhouette_samples(X, labels)
    np.testing.assert_allclose(ours, sklearn_samples(X, labels, metric="cosine"), atol=1e-9)
    assert silhouette(X, labels) == pytest.approx(ours.mean(), abs=1e-15)


def test_names_of_labels_do_not_matter() -> None:
    X, labels = shapes.clustered(200, 5), np.random.default_rng(0).integers(6, size=200)
    names = np.array(["f", "b", "e", "a", "d", "c"])
    assert silhouette(X, labels) == pytest.approx(silhouette(X, names[labels]), abs=1e-14)
    assert silhouette(X, labels) == pytest.approx(silhouette(X, -1000 * labels), abs=1e-14)


def test_points_alone_score_zero_and_equal_points_one() -> None:
    X = np.array([[1.0, 0], [1.0, 0], [0, 1.0]])
    np.testing.assert_array_equal(silhouette_samples(X, [0, 0, 1]), [1.0, 1.0, 0.0])


def test_equal_points_in_two_clusters_score_zero_and_not_noise() -> None:
    X = np.full((6, 3), 0.1)
    np.testing.assert_array_equal(silhouette_samples(X, [0, 0, 0, 1, 1, 1]), np.zeros(6))


@pytest.mark.parametrize("labels", [np.zeros(5), np.arange(5)])
def test_one_cluster_or_only_singletons_have_no_silhouette(labels: np.ndarray) -> None:
    with pytest.raises(ValueError, match="at least 2 and at most n - 1"):
        silhouette(shapes.uniform(5, 3), labels)


ALL = (shapes.clustered, shapes.uniform, shapes.repeated, shapes.bits)


@pytest.mark.parametrize("n, d", [(3, 2), (30, 4), (260, 8)])
@pytest.mark.parametrize("shape", ALL, ids=lambda shape: shape.__name__)
def test_every_level_is_the_silhouette_of_its_cut(shape, n: int, d: int) -> None:
    X = shape(n, d)
    Z = linkage(X)
    levels = silhouette_levels(X, Z)
    heights = np.unique(Z[:, 2])
    assert len(levels.score) == len(heights) - 1  # a level between any two different heights
    for threshold, clusters, score in zip(levels.threshold, levels.clusters, levels.score, strict=True):
        labels = cut(Z, threshold)
        assert labels.max() + 1 == clusters
        assert score == pytest.approx(silhouette(X, labels), abs=1e-9)


def test_levels_hold_for_a_tree_of_another_linkage() -> None:
    X = shapes.clustered(150, 6)
    Z = linkage(X, "complete")
    levels = silhouette_levels(X, Z)
    expected = [silhouette(X, cut(Z, t)) for t in levels.threshold]
    np.testing.assert_allclose(levels.score, expected, atol=1e-9)


@pytest.mark.parametrize("shape", ALL, ids=lambda shape: shape.__name__)
def test_skipping_hopeless_levels_keeps_the_best(shape) -> None:
    X = shape(900, 12)
    Z = linkage(X)
    every, some = silhouette_levels(X, Z), silhouette_levels(X, Z, best_only=True)
    assert every.best == some.best
    known = ~np.isnan(some.score)
    np.testing.assert_allclose(some.score[known], every.score[known], atol=1e-9)
    assert cut_silhouette(X, Z) == every.threshold[every.best]


def test_nothing_to_choose_means_nothing_is_split() -> None:
    for X in (np.ones((5, 2)), np.eye(2), np.eye(4)):
        Z = linkage(X)
        assert (cut(Z, cut_silhouette(X, Z)) == 0).all()


def test_a_tree_of_other_points_is_refused() -> None:
    with pytest.raises(ValueError, match="the dendrogram of these points"):
        silhouette_levels(shapes.uniform(6, 2), linkage(shapes.uniform(5, 2)))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 60), st.integers(1, 6))
def test_levels_on_lattice_points(seed: int, n: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, size=(n, d)) + 0.5
    Z = linkage(X)
    levels = silhouette_levels(X, Z)
    expected = [silhouette(X, cut(Z, t)) for t in levels.threshold]
    np.testing.assert_allclose(levels.score, expected, atol=1e-7)


def naive_cut(X: np.ndarray, Z: np.ndarray) -> float:
    """The lowest of the best levels, by one silhouette per level."""
    heights = np.unique(Z[:, 2])
    best, threshold = -np.inf, float(np.nextafter(heights[-1], np.inf))
    for low, high in pairwise(heights):
        middle = low + (high - low) / 2
        middle = middle if middle > low else high
        score = silhouette(X, cut(Z, middle))
        if score > best + 1e-11:
            best, threshold = score, middle
    return threshold


@settings(max_examples=12, deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(3, 400),
    st.sampled_from([2, 5, 24]),
    st.sampled_from(["average", "ward", "single"]),
    st.booleans(),
)
def test_the_cut_is_that_of_a_naive_search_over_all_levels(seed: int, n: int, d: int, method: str, tied: bool) -> None:
    """The same threshold, to the last bit, on both sides of the limits from which trees are cut another way."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(max(2, n // 20), d))[rng.integers(max(2, n // 20), size=n)] + 0.5 * rng.normal(size=(n, d))
    X = np.round(X * 2) + 0.25 if tied else X
    Z = linkage(X, method)
    assert cut_silhouette(X, Z) == naive_cut(X, Z)
    forest = dendrograms(X, np.zeros(n), method)  # ties allow it another tree, which has its own best level
    assert local_thresholds(X, forest)[0] == naive_cut(X, forest.tree(0))
