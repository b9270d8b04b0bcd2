"""Trees and cuts out of one matrix are those of `linkage`, `cut_…` and `refine`, with equal points and tiny sets."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.cluster import hierarchy

from btcnb.cluster import cut, cut_gap, cut_inconsistency, cut_silhouette, flat, linkage, refine, silhouette
from btcnb.cluster._one_matrix import level_scores
from btcnb.cluster.one_matrix import Room, inner_cuts, one_matrix, whole_cuts, whole_tree
from btcnb.errors import BtcnbError

METHODS = ("average", "ward", "complete")
CUTS = ("silhouette", "gap", "inconsistency", "inconsistency-height")
ROOM = Room()


def groups(n: int, seed: int, equal: bool = False) -> np.ndarray:
    """Points around six directions; with `equal`, a quarter of them are copies of the first."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(6, 8))[rng.integers(6, size=n)] + 0.3 * rng.normal(size=(n, 8))
    if equal:
        X[rng.integers(n, size=max(n // 4, 2))] = X[0]
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
    scores = level_scores(matrix.distances, matrix.weight, Z)
    for made in range(1, 28):
        labels = cut(Z, float((Z[made - 1, 2] + Z[made, 2]) / 2))
        assert len(np.unique(labels)) == 30 - made
        assert scores[made] == pytest.approx(silhouette(X, labels), abs=1e-12)


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
