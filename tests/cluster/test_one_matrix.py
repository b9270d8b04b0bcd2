"""Trees and cuts out of one matrix are those of `linkage`, `cut_…` and `refine`, with equal points and tiny sets."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.cluster import hierarchy

from btcnb.cluster import cut, cut_gap, cut_inconsistency, cut_silhouette, flat, linkage, refine, silhouette
from btcnb.cluster._gate import unit_rows
from btcnb.cluster._one_matrix import STRIP, fill_distances, near_groups
from btcnb.cluster._one_matrix_levels import HOPED, best_thresholds, first_of, in_company, level_scores
from btcnb.cluster.one_matrix import Room, inner_cuts, one_matrix, whole_cuts, whole_tree
from btcnb.errors import BtcnbError

METHODS = ("average", "ward", "complete", "single")
CUTS = ("silhouette", "gap", "inconsistency", "inconsistency-height")
ROOM = Room()


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


def one_by_one(X: np.ndarray, method: str) -> dict[str, np.ndarray]:
    Z = linkage(X, method)
    return {
        "silhouette": cut(Z, cut_silhouette(X, Z)),
        "gap": cut(Z, cut_gap(Z)),
        "inconsistency": flat(Z, cut_inconsistency(Z), "inconsistent"),
        "inconsistency-height": cut(Z, cut_inconsistency(Z)),
    }


@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize("n", [2, 3, 5, 40, 300])
def test_partitions_are_those_of_the_functions_without_a_matrix(n: int, equal: bool) -> None:
    X = groups(n, seed=n, equal=equal)
    partition = np.random.default_rng(n).integers(max(n // 8, 1), size=n)
    matrix = one_matrix(X, ROOM)
    for method in METHODS:
        found, expected = whole_cuts(matrix, method, CUTS), one_by_one(X, method)
        for name in CUTS:
            assert same(found[name], expected[name]), (method, name)
            inner = inner_cuts(matrix, partition, method, (name,))[name]
            refined = refine(X, partition, method=method, cut=name, progress=False).partition
            assert same(inner, refined), (method, name)


@pytest.mark.parametrize("n", [7, 60, 400])
def test_crowds_are_merged_first_and_the_tree_is_the_same(n: int) -> None:
    """Both parts of the work are there: merges inside of groups, and merges of what they leave."""
    X = crowds(n, seed=n)
    matrix = one_matrix(X, ROOM)
    sizes = np.diff(matrix.groups.offsets)
    assert 1 < len(sizes) < len(matrix.distances) and sizes.max() > 1
    partition = np.random.default_rng(n).integers(max(n // 20, 1), size=n)
    for method in METHODS:
        assert whole_tree(matrix, method)[:, 2] == pytest.approx(linkage(X, method)[:, 2], abs=1e-7), method
        found, expected = whole_cuts(matrix, method, CUTS), one_by_one(X, method)
        inner = inner_cuts(matrix, partition, method, CUTS)
        for name in CUTS:
            assert same(found[name], expected[name]), (method, name)
            refined = refine(X, partition, method=method, cut=name, progress=False).partition
            assert same(inner[name], refined), (method, name)


def test_between_groups_nothing_is_near() -> None:
    matrix = one_matrix(crowds(200, seed=4))
    near, members, offsets = near_groups(matrix.distances)
    group = np.empty(len(members), dtype=int)
    group[members] = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    apart = group[:, None] != group[None, :]
    assert (matrix.distances[apart] >= near).all()
    for g in range(len(offsets) - 1):  # and no group is larger than it must be: nobody in it is without a near one
        inside = matrix.distances[np.ix_(group == g, group == g)] + 9 * np.eye((group == g).sum())
        assert len(inside) == 1 or (inside.min(axis=1) < near).all()


@pytest.mark.parametrize("m", [1, 2, STRIP - 1, STRIP, STRIP + 1, 2 * STRIP + 5])
def test_the_matrix_is_symmetric_and_that_of_the_formula(m: int) -> None:
    rows = unit_rows(groups(m, seed=m))
    D = np.full((m, m), np.nan)
    fill_distances(rows, D)
    assert np.array_equal(D, D.T) and not D.diagonal().any() and D.min() == 0.0
    assert pytest.approx(1 - rows @ rows.T, abs=1e-14) == D


@pytest.mark.parametrize("method", METHODS)
def test_trees_are_those_of_linkage(method: str) -> None:
    X = groups(150, seed=1, equal=True)
    ours, theirs = whole_tree(one_matrix(X, ROOM), method), linkage(X, method)
    assert ours[:, 2] == pytest.approx(theirs[:, 2], abs=1e-7)  # Ward's root of rounding noise
    assert hierarchy.is_valid_linkage(ours)
    assert same(cut(ours, 0.3), cut(theirs, 0.3))


def test_every_level_has_the_silhouette_of_its_partition() -> None:
    """The walk down the tree against the silhouette itself, level by level."""
    X = groups(30, seed=2)
    matrix = one_matrix(X, ROOM)
    Z = whole_tree(matrix)
    scores = level_scores(matrix.distances, matrix.weight, Z[None], np.zeros(1, dtype=int))[0]
    for made in range(1, 28):
        labels = cut(Z, float((Z[made - 1, 2] + Z[made, 2]) / 2))
        assert len(np.unique(labels)) == 30 - made
        assert scores[made] == pytest.approx(silhouette(X, labels), abs=1e-12)


def test_levels_that_are_left_out_cannot_win() -> None:
    """With tight crowds the walk ends early; with noise no level reaches the hoped score, and it is taken again."""
    for X, good in ((crowds(150, seed=5), True), (np.random.default_rng(5).normal(size=(150, 8)), False)):
        matrix = one_matrix(X)
        trees = np.stack([whole_tree(matrix, method) for method in METHODS[:3]])
        assert trees.shape[1] == len(matrix.distances) - 1, "no equal points here"
        company = [in_company(matrix.weight, Z) for Z in trees]
        lowest = np.array([first_of(each, HOPED) for each in company])
        scores = level_scores(matrix.distances, matrix.weight, trees, np.zeros(3, dtype=int))
        pruned = level_scores(matrix.distances, matrix.weight, trees, lowest)
        best = best_thresholds(matrix.distances, matrix.weight, trees)
        for k, low in enumerate(lowest):
            assert (scores[k] <= company[k] + 1e-12).all() and (np.diff(company[k]) >= 0).all()
            assert (scores[k, 1:].max() > HOPED) == good
            assert low > 0 and company[k][low - 1] < HOPED
            assert np.array_equal(pruned[k, low:], scores[k, low:]) and not pruned[k, :low].any()
            assert best[k] == pytest.approx(cut_silhouette(X, trees[k]))


def test_company_by_hand() -> None:
    """A pair of equal points, and three single ones: a leaf of weight 2 is never alone."""
    weight, Z = np.array([2.0, 1, 1, 1]), np.array([[1, 2, 0.1, 2], [0, 4, 0.2, 4], [3, 5, 0.3, 5]])
    assert in_company(weight, Z).tolist() == [0.4, 0.8, 0.8]


def test_three_points_by_hand() -> None:
    """Two points 0.2 apart, a third at 1: the pair stays together, the third alone; inside one cluster alike."""
    X = np.array([[1.0, 0.0, 0.0], [0.8, 0.6, 0.0], [0.0, 0.0, 1.0]])
    matrix = one_matrix(X)
    for found in (whole_cuts(matrix, "average", CUTS[:2]), inner_cuts(matrix, np.zeros(3, dtype=int), cuts=CUTS[:2])):
        for name in CUTS[:2]:
            assert same(found[name], np.array([0, 0, 1])), name


def test_one_point_and_equal_points_are_one_cluster() -> None:
    for X in (np.ones((1, 4)), np.ones((5, 4))):
        matrix = one_matrix(X)
        for method, name in [(method, name) for method in METHODS for name in CUTS[:2]]:
            assert set(whole_cuts(matrix, method, (name,))[name]) == {0}
            assert set(inner_cuts(matrix, np.zeros(len(X), dtype=int), method, (name,))[name]) == {0}
    # coefficients of 0 are not below their mean of 0: the inconsistency rules part equal points, here as elsewhere
    assert len(set(whole_cuts(one_matrix(np.ones((5, 4))))["inconsistency"])) == 5
    assert len(set(cut(linkage(np.ones((5, 4))), cut_inconsistency(linkage(np.ones((5, 4))))))) == 5


def test_a_room_serves_sets_of_any_size_one_after_the_other() -> None:
    room = Room()
    for n in (50, 200, 7, 120):
        X = groups(n, seed=n)
        assert same(whole_cuts(one_matrix(X, room))["silhouette"], whole_cuts(one_matrix(X))["silhouette"])


def test_the_input_is_left_alone() -> None:
    X, partition = groups(40, 3), np.arange(40) % 5
    before = X.copy(), partition.copy()
    matrix = one_matrix(X, ROOM)
    whole_cuts(matrix), inner_cuts(matrix, partition)
    assert np.array_equal(X, before[0]) and np.array_equal(partition, before[1])
    for a, b in combinations(METHODS, 2):  # the matrix serves one linkage after the other
        whole_cuts(matrix, a)
        assert same(whole_cuts(matrix, b)["gap"], whole_cuts(one_matrix(X), b)["gap"])


def test_what_is_no_set_of_points_is_refused() -> None:
    matrix = one_matrix(groups(10, 1))
    bad = [
        lambda: one_matrix(np.zeros((3, 2))),
        lambda: one_matrix(np.full((3, 2), np.nan)),
        lambda: one_matrix(np.empty((0, 4))),
        lambda: one_matrix(np.ones((3, 2)), room=7),  # type: ignore[arg-type]
        lambda: whole_cuts(matrix, "median"),
        lambda: whole_cuts(matrix, "average", ("silhouettes",)),
        lambda: whole_cuts(matrix, "average", "gap"),
        lambda: inner_cuts(matrix, np.zeros(9, dtype=int)),
    ]
    for call in bad:
        with pytest.raises(BtcnbError):
            call()
