"""The forest of dendrograms, the refinement of a collapsed cluster, and what is refused."""

from __future__ import annotations

import numpy as np
import point_sets as shapes
import pytest
from scipy.cluster import hierarchy

from btcnb.cluster import (
    cut,
    cut_forest,
    cut_gap,
    cut_inconsistency,
    cut_silhouette,
    dendrograms,
    flat,
    linkage,
    local_thresholds,
    merge_values,
    refine,
)

SIZES = (1, 2, 3, 17, 90, 200, 1)


def scattered(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Points of several clusters in random order, sizes on both sides of the small-cluster limit."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(len(SIZES)) * 10 + 5, SIZES))
    return shapes.clustered(len(labels), 6, seed), labels


@pytest.mark.parametrize("method", ["average", "ward", "complete", "single"])
def test_each_tree_is_the_linkage_of_its_cluster(method: str) -> None:
    X, labels = scattered()
    forest = dendrograms(X, labels, method)
    assert len(forest) == len(SIZES) and sorted(forest.sizes) == sorted(SIZES)
    for name, members, Z in forest:
        np.testing.assert_array_equal(members, np.flatnonzero(labels == name))
        assert Z.shape == (len(members) - 1, 4)
        if len(members) > 1:
            alone = linkage(X[members], method)
            np.testing.assert_allclose(Z[:, 2], alone[:, 2], atol=1e-9)
            assert hierarchy.is_valid_linkage(Z)
            for threshold in shapes.cuts_away_from_ties(alone[:, 2], 10):
                assert shapes.same_partition(cut(Z, threshold), cut(alone, threshold))


@pytest.mark.parametrize("rule", ["silhouette", "gap", "inconsistency"])
def test_local_thresholds_are_those_of_each_tree(rule: str) -> None:
    X, labels = scattered(1)
    forest = dendrograms(X, labels)
    local = local_thresholds(X, forest, rule, n_min=3, alpha=1.2)
    for t, (_, members, Z) in enumerate(forest):
        if len(members) < 3:
            assert np.isnan(local[t])
            continue
        expected = {
            "silhouette": lambda Z=Z, members=members: cut_silhouette(X[members], Z),
            "gap": lambda Z=Z: cut_gap(Z),
            "inconsistency": lambda Z=Z: cut_inconsistency(Z, 1.2),
        }[rule]()
        assert local[t] == pytest.approx(expected, abs=1e-9)


def test_cutting_the_forest_cuts_every_tree() -> None:
    X, labels = scattered(2)
    forest = dendrograms(X, labels)
    for criterion, threshold in (("distance", 0.3), ("inconsistent", 0.9)):
        partition = cut_forest(forest, merge_values(forest, criterion), threshold)
        for _, members, Z in forest:
            if len(members) > 1:
                assert shapes.same_partition(partition[members], flat(Z, threshold, criterion))
        assert len(np.unique(np.stack([partition, labels]), axis=1).T) == partition.max() + 1  # never across clusters


def collapsed() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Users a, b, c, d of 12, 8, 10, 10 addresses; a heuristic has joined a with b, and kept c and d apart."""
    rng = np.random.default_rng(0)
    user = np.repeat([0, 1, 2, 3], [12, 8, 10, 10])
    X = np.eye(4)[user] + 0.05 * rng.normal(size=(40, 4))
    return X, user, np.where(user == 1, 0, user)


def test_a_collapsed_cluster_is_split_and_named() -> None:
    X, user, heuristic = collapsed()
    result = refine(X, heuristic, threshold=0.5)
    assert shapes.same_partition(result.partition, user)
    assert len(result.suspicious) == 1
    merge = result.suspicious.iloc[0]
    assert (merge["cluster"], merge["size_left"], merge["size_right"]) == (0, 12, 8)
    assert (merge["left"], merge["right"]) == (0, 12)  # first address of user a and of user b
    assert merge["height"] == pytest.approx(1.0, abs=0.05)
    assert merge["excess"] == pytest.approx(merge["height"] - 0.5)
    assert merge["suspicion"] == pytest.approx(merge["excess"] * 4 * 12 * 8 / 20**2)


@pytest.mark.parametrize("method", ["average", "ward", "complete", "single"])
@pytest.mark.parametrize("rule", ["silhouette", "gap", "inconsistency", "inconsistency-height"])
def test_every_combination_refines_as_its_parts_say(method: str, rule: str) -> None:
    X, _, heuristic = collapsed()
    result = refine(X, heuristic, method=method, cut=rule, alpha=0.8)
    trees = {c: linkage(X[heuristic == c], method) for c in (0, 2, 3)}
    local = {
        "silhouette": lambda c: cut_silhouette(X[heuristic == c], trees[c]),
        "gap": lambda c: cut_gap(trees[c]),
    }.get(rule, lambda c: cut_inconsistency(trees[c], 0.8))
    sizes = np.array([20, 10, 10])
    assert result.threshold == pytest.approx(sizes @ [local(c) for c in trees] / 40, abs=1e-9)
    criterion = "inconsistent" if rule == "inconsistency" else "distance"
    pieces, undone = 0, 0
    for c, Z in trees.items():
        expected = flat(Z, result.threshold, criterion)
        assert shapes.same_partition(result.partition[heuristic == c], expected)
        pieces += expected.max() + 1
        value = Z[:, 2] if criterion == "distance" else hierarchy.inconsistent(Z)[:, 3]
        undone += (value >= result.threshold).sum()
    assert result.partition.max() + 1 == pieces  # no new cluster crosses an old one
    assert len(result.suspicious) == undone
    assert result.suspicious["suspicion"].is_monotonic_decreasing


def test_the_two_readings_of_inconsistency_share_their_threshold() -> None:
    X, _, heuristic = collapsed()
    coefficients = refine(X, heuristic, cut="inconsistency", alpha=0.5)
    heights = refine(X, heuristic, cut="inconsistency-height", alpha=0.5)
    again = refine(X, heuristic, cut="inconsistency", alpha=0.5, criterion="distance")
    assert coefficients.threshold == heights.threshold == again.threshold
    np.testing.assert_array_equal(heights.partition, again.partition)
    assert coefficients.partition.max() > heights.partition.max()


def test_rows_without_direction_share_one_and_are_counted() -> None:
    X, user, heuristic = collapsed()
    X[:3] = 0.0
    with pytest.warns(UserWarning, match="3 of 40 rows"):
        result = refine(X, heuristic, threshold=0.5)
    assert result.zero_rows == 3
    assert len(set(result.partition[:3])) == 1 and not set(result.partition[:3]) & set(result.partition[3:])
    assert shapes.same_partition(result.partition[3:], user[3:])
    with pytest.raises(ValueError, match="Row 0 of X is all zeros"):
        refine(X, heuristic, zero_rows="refuse")


def test_clusters_of_one_point_pass_through() -> None:
    X = shapes.uniform(4, 3)
    result = refine(X, [3, 1, 2, 0])
    assert shapes.same_partition(result.partition, np.arange(4))
    assert result.threshold == np.inf and result.suspicious.empty and result.local.empty
    assert [Z.shape for _, _, Z in result.forest] == [(0, 4)] * 4
