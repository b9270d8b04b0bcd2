"""Cutting rules on trees small enough to check by hand, and against SciPy."""

from __future__ import annotations

import numpy as np
import point_sets as shapes
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster import hierarchy

from meanlink import (
    cut,
    cut_gap,
    cut_inconsistency,
    flat,
    global_threshold,
    linkage,
    silhouette,
    silhouette_levels,
)
from meanlink._dendrogram import inconsistency
from meanlink._validate import tree

#  leaves 0 1 2 3 4; heights 0.1 (0,1), 0.2 (2,3), 0.5 ((2,3),4), 0.9 all
TREE = np.array([[0, 1, 0.1, 2], [2, 3, 0.2, 2], [4, 6, 0.5, 3], [5, 7, 0.9, 5]], dtype=float)


@pytest.mark.parametrize(
    "threshold, labels",
    [
        (0.05, [0, 1, 2, 3, 4]),
        (0.1, [0, 1, 2, 3, 4]),  # strictly below: a merge at the threshold is undone
        (0.15, [0, 0, 1, 2, 3]),
        (0.3, [0, 0, 1, 1, 2]),
        (0.9, [0, 0, 1, 1, 1]),
        (1.0, [0, 0, 0, 0, 0]),
    ],
)
def test_cut_by_hand(threshold: float, labels: list[int]) -> None:
    assert cut(TREE, threshold).tolist() == labels
    assert flat(TREE, threshold).tolist() == labels


def test_cut_is_scipys_between_heights() -> None:
    Z = linkage(shapes.clustered(300, 6))
    for threshold in shapes.cuts_away_from_ties(Z[:, 2], 40):
        assert shapes.same_partition(cut(Z, threshold), hierarchy.fcluster(Z, threshold, "distance"))


def test_largest_gap_by_hand() -> None:
    # gaps 0.1, 0.3, 0.4: the last is widest, its middle is 0.7
    assert cut_gap(TREE) == pytest.approx(0.7)


def test_no_gap_no_split() -> None:
    two = np.array([[0, 1, 0.4, 2]])
    level = np.array([[0, 1, 0.4, 2], [2, 3, 0.4, 3]])
    for Z in (two, level):
        assert cut_gap(Z) > 0.4
        assert cut(Z, cut_gap(Z)).max() == 0


def test_inconsistency_by_hand() -> None:
    # depth 2: a merge with its direct children. Third merge {0.5, 0.2}: mean 0.35, deviation 0.3/√2,
    # so 0.15 / (0.3/√2) = 1/√2.
    # Root {0.9, 0.1, 0.5}: mean 0.5, deviation 0.4, so 0.4 / 0.4 = 1.
    np.testing.assert_allclose(inconsistency(tree(TREE)), [0, 0, 1 / np.sqrt(2), 1.0])
    mean, deviation = np.mean([0, 0, 1 / np.sqrt(2), 1]), np.std([0, 0, 1 / np.sqrt(2), 1])
    assert cut_inconsistency(TREE, alpha=1.5) == pytest.approx(mean + 1.5 * deviation)


@pytest.mark.parametrize("depth", [1, 2, 3, 6])
def test_inconsistency_is_scipys(depth: int) -> None:
    Z = linkage(shapes.clustered(400, 5))
    np.testing.assert_allclose(inconsistency(tree(Z), depth), hierarchy.inconsistent(Z, depth)[:, 3], atol=1e-7)


def test_flat_by_inconsistency_undoes_a_merge_and_all_above_it() -> None:
    assert flat(TREE, 0.9, "inconsistent").tolist() == [0, 0, 1, 1, 1]  # only the root has a coefficient above 0.9
    assert flat(TREE, 0.5, "inconsistent").tolist() == [0, 0, 1, 1, 2]
    assert flat(TREE, 1.1, "inconsistent").max() == 0


def test_flat_by_inconsistency_is_scipys() -> None:
    Z = linkage(shapes.clustered(300, 5))
    for alpha in (0.5, 1.0, 1.7):
        threshold = cut_inconsistency(Z, alpha)
        theirs = hierarchy.fcluster(Z, threshold, "inconsistent", depth=2)
        assert shapes.same_partition(flat(Z, threshold, "inconsistent"), theirs)


def test_global_threshold_weighs_by_size_and_ignores_small_clusters() -> None:
    assert global_threshold([10, 30, 2], [0.2, 0.4, 9.0], n_min=3) == pytest.approx((10 * 0.2 + 30 * 0.4) / 40)
    assert global_threshold([10, 30, 2], [0.2, 0.4, 9.0], n_min=2) == pytest.approx((2 + 12 + 18) / 42)
    assert np.isnan(global_threshold([2, 1], [0.2, np.nan], n_min=3))
    with pytest.raises(ValueError, match="one of each"):
        global_threshold([1, 2], [0.5])


def test_bad_parameters() -> None:
    with pytest.raises((ValueError, TypeError), match="alpha"):
        cut_inconsistency(TREE, alpha=0)
    with pytest.raises(ValueError, match="depth"):
        cut_inconsistency(TREE, depth=0)
    with pytest.raises(ValueError, match="criterion"):
        flat(TREE, 0.5, "maxclust")
    for alpha in (-5.0, np.nan, np.inf, None, "1"):
        with pytest.raises((ValueError, TypeError), match="alpha"):
            cut_inconsistency(TREE, alpha=alpha)
    for threshold in (np.nan, None, "0.5", [0.5], True):
        with pytest.raises((ValueError, TypeError), match="threshold"):
            cut(TREE, threshold)


def test_a_tree_whose_heights_are_in_no_order_is_cut_as_if_sorted() -> None:
    # (0 1) at 0.5 inside (0 1 2) at 0.3: a cut at 0.4 undoes both, and levels lie at 0.5 (all) only
    Z = np.array([[0, 1, 0.5, 2], [3, 4, 0.2, 2], [2, 5, 0.3, 3], [6, 7, 0.9, 5]])
    assert cut(Z, 0.4).tolist() == [0, 1, 2, 3, 3]
    X = np.array([[1, 0], [1, 0.1], [1, 0.2], [0, 1], [0.1, 1]])
    levels = silhouette_levels(X, Z)
    np.testing.assert_allclose(levels.threshold, [0.35, 0.7])
    assert levels.clusters.tolist() == [4, 2]
    assert levels.score[1] == pytest.approx(silhouette(X, cut(Z, 0.7)))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 40), st.floats(0.01, 2))
def test_a_cut_joins_exactly_the_pairs_below_it(seed: int, n: int, threshold: float) -> None:
    Z = linkage(np.random.default_rng(seed).normal(size=(n, 3)))
    labels = cut(Z, threshold)
    from scipy.spatial.distance import squareform

    ultrametric = squareform(hierarchy.cophenet(Z))
    np.fill_diagonal(ultrametric, -1)
    np.testing.assert_array_equal(labels[:, None] == labels[None, :], ultrametric < threshold)
