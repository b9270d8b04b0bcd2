"""Trees and cuts out of one matrix are those of the functions without one, with equal points and tiny sets."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.cluster import hierarchy

from meanlink import (
    cut,
    cut_silhouette,
    linkage,
    silhouette,
)
from meanlink._level_scores import HOPED, _scores, best_threshold, in_company, walk_of
from meanlink._matrix import STRIP, near_groups, square_distances, tree_of
from meanlink._validate import unit_rows
from meanlink.linkage import DistanceMatrix

METHODS = ("average", "ward", "complete", "single")


def groups(n: int, seed: int, equal: bool = False) -> np.ndarray:
    """Points around six directions; with `equal`, a quarter of them are copies of the first."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(6, 8))[rng.integers(6, size=n)] + 0.3 * rng.normal(size=(n, 8))
    if equal:
        X[rng.integers(n, size=max(n // 4, 2))] = X[0]
    return X.astype(np.float32)


def crowds(n: int, seed: int) -> np.ndarray:
    """Points as embeddings have them: most stand in tight crowds of very different sizes, some far from everybody."""
    rng = np.random.default_rng(seed)
    crowd = (rng.pareto(1.0, size=n) * 3).astype(int) % max(n // 6, 1)
    spread = np.where(rng.random(n) < 0.15, 1.0, 10.0 ** rng.uniform(-4, -1, size=n))
    X = rng.normal(size=(n, 8))[crowd] + spread[:, None] * rng.normal(size=(n, 8))
    return X.astype(np.float32)


def same(first: np.ndarray, other: np.ndarray) -> bool:
    """Whether two partitions are one, whatever their labels."""
    both = len(np.unique(np.stack([first, other]), axis=1).T)
    return both == len(np.unique(first)) == len(np.unique(other))


@pytest.mark.parametrize("shape", [groups, lambda n, seed: groups(n, seed, equal=True), crowds])
@pytest.mark.parametrize("n", [2, 3, 5, 40, 300])
@pytest.mark.parametrize("method", METHODS)
def test_trees_and_thresholds_are_those_without_a_matrix(method: str, n: int, shape) -> None:
    X = shape(n, seed=n)
    matrix = DistanceMatrix(X)
    Z, expected = matrix.linkage(method), linkage(X, method)
    assert Z[:, 2] == pytest.approx(expected[:, 2], abs=1e-7)  # Ward's root of rounding noise
    assert hierarchy.is_valid_linkage(Z)
    assert same(cut(Z, matrix.cut_silhouette(method)), cut(expected, cut_silhouette(X, expected)))


@pytest.mark.parametrize("n", [7, 60, 400])
def test_crowds_are_merged_first_and_between_groups_nothing_is_near(n: int) -> None:
    D = square_distances(unit_rows(crowds(n, seed=n)))
    near, members, offsets = near_groups(D)
    sizes = np.diff(offsets)
    assert 1 < len(sizes) < n and sizes.max() > 1, "both parts of the work are there"
    group = np.empty(n, dtype=int)
    group[members] = np.repeat(np.arange(len(sizes)), sizes)
    assert (D[group[:, None] != group[None, :]] >= near).all()
    for g in range(len(sizes)):  # and no group is larger than it must be: nobody in it is without a near one
        inside = D[np.ix_(group == g, group == g)] + 9 * np.eye(sizes[g])
        assert sizes[g] == 1 or (inside.min(axis=1) < near).all()


@pytest.mark.parametrize("m", [1, 2, STRIP - 1, STRIP, STRIP + 1, 2 * STRIP + 5])
def test_the_matrix_is_symmetric_and_that_of_the_formula(m: int) -> None:
    rows = unit_rows(groups(m, seed=m))
    D = square_distances(rows)
    assert np.array_equal(D, D.T) and not D.diagonal().any() and D.min() == 0.0
    assert pytest.approx(1 - rows @ rows.T, abs=1e-14) == D


def test_every_level_has_the_silhouette_of_its_partition() -> None:
    """The walk down the tree against the silhouette itself, level by level."""
    X = groups(30, seed=2)
    Z = linkage(X)
    tree = walk_of(np.ones(30), Z[:, 0].astype(int), Z[:, 1].astype(int))
    scores = _scores(square_distances(unit_rows(X)), np.ones(30), tree, 0)
    for made in range(1, 28):
        labels = cut(Z, float((Z[made - 1, 2] + Z[made, 2]) / 2))
        assert len(np.unique(labels)) == 30 - made
        assert scores[made] == pytest.approx(silhouette(X, labels), abs=1e-12)


def test_levels_that_are_left_out_cannot_win() -> None:
    """With tight crowds the walk ends early; with noise no level reaches the hoped score, and it is taken again."""
    for X, good in ((crowds(150, seed=5), True), (np.random.default_rng(5).normal(size=(150, 8)), False)):
        D, weight = square_distances(unit_rows(X)), np.ones(150)
        for method in range(3):
            Z = tree_of(D, weight, near_groups(D), method)
            parts = Z[:, 0].astype(int), Z[:, 1].astype(int)
            company, tree = in_company(weight, *parts), walk_of(weight, *parts)
            low = int(np.searchsorted(company, HOPED - 1e-9))
            scores, pruned = _scores(D, weight, tree, 0), _scores(D, weight, tree, low)
            assert (scores <= company + 1e-12).all() and (np.diff(company) >= 0).all()
            assert (scores[1:].max() > HOPED) == good
            assert low > 0 and company[low - 1] < HOPED
            assert np.array_equal(pruned[low:], scores[low:]) and not pruned[:low].any()
            assert best_threshold(D, weight, Z) == pytest.approx(cut_silhouette(X, Z))


def test_company_by_hand() -> None:
    """A pair of equal points, and three single ones: a leaf of weight 2 is never alone."""
    left, right = np.array([1, 0, 3]), np.array([2, 4, 5])
    assert in_company(np.array([2.0, 1, 1, 1]), left, right).tolist() == [0.4, 0.8, 0.8]


def test_three_points_by_hand() -> None:
    """Two points 0.2 apart, a third at 1: the pair stays together, the third alone."""
    matrix = DistanceMatrix([[1.0, 0.0, 0.0], [0.8, 0.6, 0.0], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(matrix.linkage(), [[0, 1, 0.2, 2], [2, 3, 1.0, 3]])
    assert matrix.cut_silhouette() == pytest.approx(0.6)


def test_one_point_and_equal_points_are_one_cluster() -> None:
    for X in (np.ones((1, 4)), np.ones((5, 4))):
        matrix = DistanceMatrix(X)
        for method in METHODS:
            assert not matrix.linkage(method)[:, 2].any() and matrix.cut_silhouette(method) > 0


def test_memory_serves_sets_of_any_size_one_after_the_other() -> None:
    matrix = None
    for n in (50, 200, 7, 120):
        X = groups(n, seed=n)
        matrix = DistanceMatrix(X, reuse=matrix)
        np.testing.assert_array_equal(matrix.linkage(), DistanceMatrix(X).linkage())


def test_the_matrix_serves_one_linkage_after_the_other() -> None:
    X = groups(40, 3)
    matrix, before = DistanceMatrix(X), X.copy()
    for a, b in combinations(METHODS, 2):
        matrix.linkage(a)
        np.testing.assert_array_equal(matrix.linkage(b), DistanceMatrix(X).linkage(b))
    np.testing.assert_array_equal(X, before)


def test_what_is_no_set_of_points_is_refused() -> None:
    matrix = DistanceMatrix(groups(10, 1))
    bad = [
        lambda: DistanceMatrix(np.zeros((3, 2))),
        lambda: DistanceMatrix(np.full((3, 2), np.nan)),
        lambda: DistanceMatrix(np.empty((0, 4))),
        lambda: matrix.linkage("median"),
    ]
    for call in bad:
        with pytest.raises(ValueError, match=r"X|method"):
            call()
