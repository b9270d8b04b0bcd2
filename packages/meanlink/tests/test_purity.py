"""Dendrogram purity as fractions worked out by hand, against a pair-by-pair oracle, and against its own estimate."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import point_sets as shapes
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meanlink import (
    Forest,
    dendrogram_purity,
    dendrogram_purity_sampled,
    forest_purity,
    forest_purity_sampled,
    linkage,
)

#        ((0 1) (2 3)) (4 5): six leaves
SIX = np.array([[0, 1, 0.1, 2], [2, 3, 0.2, 2], [4, 5, 0.3, 2], [6, 7, 0.5, 4], [8, 9, 0.9, 6]], dtype=float)


def below(Z: np.ndarray) -> list[set[int]]:
    leaves: list[set[int]] = [{i} for i in range(len(Z) + 1)]
    for a, b, *_ in Z:
        leaves.append(leaves[int(a)] | leaves[int(b)])
    return leaves


def by_pairs(Z: np.ndarray, labels: list[int], mask: list[bool] | None = None) -> Fraction:
    """The definition, pair by pair, in exact fractions."""
    n = len(Z) + 1
    counted = [i for i in range(n) if mask is None or mask[i]]
    nodes = below(Z)
    total, drawn = Fraction(0), 0
    for i in counted:
        mates = [j for j in counted if j != i and labels[j] == labels[i]]
        if not mates:
            continue
        drawn += 1
        for j in mates:
            smallest = min((node for node in nodes if {i, j} <= node), key=len) & set(counted)
            share = Fraction(sum(labels[k] == labels[i] for k in smallest), len(smallest))
            total += share / len(mates)
    return total / drawn


@pytest.mark.parametrize(
    "labels, expected",
    [
        ([0, 0, 1, 1, 2, 2], Fraction(1)),
        ([0, 0, 0, 0, 1, 1], Fraction(1)),
        # class 0 = {0, 1, 4}: pairs {0,1} pure 1, {0,4} and {1,4} meet at the root, 3/6; class 1 = {2, 3}: 1;
        # leaf 5 is alone.
        # leaf 0: (1 + 1/2)/2 = 3/4, leaf 1: 3/4, leaf 4: 1/2, leaves 2 and 3: 1; mean over 5 leaves = 4/5
        ([0, 0, 1, 1, 0, 2], Fraction(4, 5)),
        # three classes across the tree: {0, 2} and {1, 3} meet in (0 1 2 3): 2/4; {4, 5}: 1
        ([0, 1, 0, 1, 2, 2], Fraction(2, 3)),
        ([0, 0, 0, 0, 0, 0], Fraction(1)),
    ],
)
def test_six_leaves_by_hand(labels: list[int], expected: Fraction) -> None:
    assert by_pairs(SIX, labels) == expected
    assert dendrogram_purity(SIX, labels) == pytest.approx(float(expected), abs=1e-15)


def test_leaf_and_pair_weighting_differ_by_hand() -> None:
    # class 0 = {0, 1, 4}: three pairs worth 1, 1/2, 1/2; class 1 = {2, 3}: one pair worth 1. Pairs: 3/4. Leaves: 4/5.
    labels = [0, 0, 1, 1, 0, 2]
    assert dendrogram_purity(SIX, labels, weighting="pair") == pytest.approx(3 / 4)
    assert dendrogram_purity(SIX, labels, weighting="leaf") == pytest.approx(4 / 5)


def test_masked_leaves_are_pruned() -> None:
    # without leaves 1 and 5, class 0 = {0, 4} meets at a root of four leaves, 2/4; class 1 = {2, 3} stays pure
    mask = [True, False, True, True, True, False]
    labels = [0, 0, 1, 1, 0, 2]
    assert dendrogram_purity(SIX, labels, mask) == pytest.approx(float(by_pairs(SIX, labels, mask)))
    assert dendrogram_purity(SIX, labels, mask) == pytest.approx(3 / 4)


def test_a_class_of_one_lowers_others_and_is_never_drawn() -> None:
    Z = np.array([[0, 1, 0.1, 2], [2, 3, 0.2, 3]], dtype=float)
    assert dendrogram_purity(Z, [0, 1, 0]) == pytest.approx(2 / 3)
    assert np.isnan(dendrogram_purity(Z, [0, 1, 2]))
    assert all(np.isnan(value) for value in dendrogram_purity_sampled(Z, [0, 1, 2]))


def test_a_forest_draws_pairs_inside_a_tree() -> None:
    merges = np.array([[0, 1, 0.1, 2], [0, 1, 0.1, 2], [2, 3, 0.2, 3]], dtype=float)
    forest = Forest(np.array([0, 1]), np.arange(5), np.array([0, 2, 5]), merges)
    labels = [7, 7, 7, 8, 7]  # two leaves worth 1, two worth 2/3
    assert forest_purity(forest, labels) == pytest.approx((2 * 1 + 2 * 2 / 3) / 4)
    estimate, error = forest_purity_sampled(forest, labels, pairs=4000, seed=1)
    assert abs(estimate - forest_purity(forest, labels)) < 4 * error
    assert forest_purity(forest, labels, [True, True, False, True, True]) == 1.0


def test_only_perfect_trees_have_purity_one() -> None:
    for labels in set(permutations([0, 0, 1, 1, 2, 2])):
        perfect = labels[0] == labels[1] and labels[2] == labels[3]
        assert (dendrogram_purity(SIX, labels) > 1 - 1e-12) == perfect


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 14), st.integers(1, 5), st.booleans())
def test_equal_to_the_definition(seed: int, n: int, classes: int, masked: bool) -> None:
    rng = np.random.default_rng(seed)
    Z = linkage(rng.normal(size=(n, 2)))
    labels = rng.integers(classes, size=n).tolist()
    mask = (rng.random(n) < 0.7).tolist() if masked else None
    counted = [c for c, use in zip(labels, mask or [True] * n, strict=True) if use]
    exact = dendrogram_purity(Z, labels, mask)
    if len(set(counted)) == len(counted):
        assert np.isnan(exact)
    else:
        assert exact == pytest.approx(float(by_pairs(Z, labels, mask)), abs=1e-12)


@pytest.mark.parametrize("shape", [shapes.clustered, shapes.spiral], ids=lambda shape: shape.__name__)
def test_the_estimate_agrees_within_its_error_and_repeats(shape) -> None:
    Z = linkage(shape(700, 6))
    labels = np.random.default_rng(2).integers(40, size=700)
    mask = np.random.default_rng(3).random(700) < 0.8
    estimate, error = dendrogram_purity_sampled(Z, labels, seed=4, mask=mask)
    assert (estimate, error) == dendrogram_purity_sampled(Z, labels, seed=4, mask=mask)
    assert estimate != dendrogram_purity_sampled(Z, labels, seed=5, mask=mask)[0]
    assert abs(estimate - dendrogram_purity(Z, labels, mask)) < 4 * error


def test_label_names_and_leaf_order_do_not_matter() -> None:
    X = shapes.clustered(300, 5)
    labels = np.random.default_rng(0).integers(9, size=300)
    order = np.random.default_rng(1).permutation(300)
    exact = dendrogram_purity(linkage(X), labels)
    assert exact == pytest.approx(dendrogram_purity(linkage(X[order]), [f"user {c}" for c in labels[order]]), abs=1e-9)


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="one label"):
        dendrogram_purity(SIX, [0, 1])
    with pytest.raises(ValueError, match="one bool per leaf"):
        dendrogram_purity(SIX, [0] * 6, [True])
    with pytest.raises(ValueError, match="weighting"):
        dendrogram_purity(SIX, [0] * 6, weighting="node")
    with pytest.raises(ValueError, match="pairs"):
        dendrogram_purity_sampled(SIX, [0] * 6, pairs=1)
