"""Every cut judged by owners: numbers that one can work out by hand, and brute force where there are many."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import to_tree
from sklearn.metrics import silhouette_score

from btcnb.cluster import cut, dendrograms, linkage, refine
from btcnb.data import AddressGraph, Source
from btcnb.errors import DataError
from btcnb.experiments import quality
from btcnb.experiments.quality import (
    SILHOUETTE_FROM,
    THRESHOLDS,
    best_silhouette,
    cuts,
    examples,
    flags,
    purity,
    refinement_numbers,
    shuffled_within,
    wrong_shares,
)
from btcnb.experiments.recipe import recipe
from btcnb.experiments.refine import Refined, Refiner, group_rows, refined

FIXED, GROUPS = Refiner("addresses", "fixed", 0.3), Refiner("inputs", "fixed", 0.3)


def circle(*degrees: float) -> np.ndarray:
    """Points on the unit circle: their cosine distance is one minus the cosine of the angle between them."""
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def apart(*degrees: float) -> float:
    """Mean cosine distance over angles: the height at which average linkage merges what lies so far apart."""
    return float((1 - np.cos(np.radians(degrees))).mean())


def wrong_merges(found: Refined, owners: np.ndarray) -> np.ndarray:
    return np.asarray(wrong_shares(found.forest, owners, found.leaf) > 0.5)


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def is_refinement(fine: Any, coarse: Any) -> bool:
    return len({*zip(np.asarray(fine).tolist(), np.asarray(coarse).tolist(), strict=True)}) == len(np.unique(fine))


def same(a: Any, b: Any) -> bool:
    return np.array_equal(pd.factorize(np.asarray(a))[0], pd.factorize(np.asarray(b))[0])


# --- dealing out ---

labelled = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=40)


@given(labelled, st.integers(0, 2**31 - 1))
def test_dealing_keeps_the_parts_of_every_cluster(pairs: list[tuple[int, int]], seed: int) -> None:
    partition, within = ints(*(a for a, _ in pairs)), ints(*(b for _, b in pairs))
    before = partition.copy()
    out = shuffled_within(partition, within, seed)
    assert Counter(zip(out, within, strict=True)) == Counter(zip(partition, within, strict=True))
    assert np.array_equal(out, shuffled_within(partition, within, seed)) and np.array_equal(partition, before)


def test_dealing_is_random() -> None:
    """Each of two parts of 500 goes to half of either; a cluster of one part stays as it is."""
    partition, within = np.repeat([0, 1, 2], 500), np.repeat([0, 0, 1], 500)
    out = shuffled_within(partition, within, 3)
    assert 200 < int(out[:500].sum()) < 300
    assert (out[1000:] == 2).all()
    assert not np.array_equal(out, shuffled_within(partition, within, 4))


# --- purity ---


def test_purity_by_hand() -> None:
    """Parts {5, 5, 6} and {7, 8}: two and one of five addresses are their part's most frequent owner's."""
    assert purity(ints(0, 0, 0, 9, 9), ints(5, 5, 6, 7, 8)) == pytest.approx(3 / 5)
    assert purity(ints(0, 1, 2), ints(4, 4, 4)) == 1.0
    assert np.isnan(purity(ints(), ints()))


@given(labelled, st.integers(0, 99))
def test_purity_is_one_share_of_counts_and_splitting_never_lowers_it(pairs: list[tuple[int, int]], seed: int) -> None:
    parts, owners = ints(*(a for a, _ in pairs)), ints(*(b for _, b in pairs))
    counted = sum(max(Counter(owners[parts == part].tolist()).values()) for part in np.unique(parts))
    assert purity(parts, owners) == pytest.approx(counted / len(parts))
    finer = parts * 3 + np.random.default_rng(seed).integers(0, 3, len(parts))
    assert purity(finer, owners) >= purity(parts, owners)


# --- wrong merges and flags ---


def four(owners: np.ndarray, threshold: float = 0.3) -> tuple[Refined, np.ndarray]:
    """Addresses at 0°, 4°, 60° and 70°: merges at 1 - cos 4°, at 1 - cos 10°, and at the mean over 56° to 70°."""
    return refined(circle(0, 4, 60, 70), np.zeros(4, dtype=int), Refiner("addresses", "fixed", threshold)), owners


def test_flags_of_a_tree_of_four() -> None:
    """The first merge and the last one are wrong, the last is flagged: ranked by height wrong, right, wrong."""
    found, owners = four(ints(1, 2, 3, 3))
    assert found.forest.merges[:, 2] == pytest.approx([apart(4), apart(10), apart(60, 70, 56, 66)])
    assert wrong_merges(found, owners).tolist() == [True, False, True]
    assert flags(found, owners) == pytest.approx(
        {
            "flags.merges": 3,
            "flags.flagged": 1,
            "flags.base": 2 / 3,
            "flags.precision": 1.0,
            "flags.recall": 1 / 2,
            "flags.auc": 1 / 2,  # above the right one stands one of the two wrong ones
            "flags.average_precision": (1 + 2 / 3) / 2,
        }
    )


def test_flags_of_a_lower_threshold() -> None:
    found, owners = four(ints(1, 1, 2, 3), threshold=0.01)
    assert wrong_merges(found, owners).tolist() == [False, True, True]
    numbers = flags(found, owners)
    assert (numbers["flags.flagged"], numbers["flags.precision"], numbers["flags.recall"]) == (2, 1.0, 1.0)
    assert numbers["flags.auc"] == numbers["flags.average_precision"] == 1.0
    found, _ = four(owners, threshold=1e-9)
    assert flags(found, owners)["flags.precision"] == pytest.approx(2 / 3)


def test_flags_where_there_is_nothing_to_tell() -> None:
    found, owners = four(ints(7, 7, 7, 7))
    numbers = flags(found, owners)
    assert (numbers["flags.base"], numbers["flags.precision"]) == (0.0, 0.0)
    assert all(np.isnan(float(numbers[f"flags.{name}"])) for name in ("recall", "auc", "average_precision"))
    found, owners = four(ints(1, 2, 3, 4), threshold=9.0)
    numbers = flags(found, owners)
    assert (numbers["flags.base"], numbers["flags.flagged"], numbers["flags.recall"]) == (1.0, 0, 0.0)
    assert np.isnan([float(numbers["flags.precision"]), float(numbers["flags.auc"])]).all()
    alone = refined(circle(0, 60), [0, 1], FIXED)
    assert flags(alone, ints(1, 2))["flags.merges"] == 0
    assert np.isnan(float(flags(alone, ints(1, 2))["flags.base"]))


def test_merges_of_several_trees_keep_their_places() -> None:
    """Clusters 0 and 2 hold two owners each, cluster 1 is one address; cluster 3 holds one owner."""
    X = circle(0, 40, 5, 80, 90, 10, 20)
    found = refined(X, [0, 0, 1, 2, 2, 3, 3], FIXED)
    assert found.forest.merges[:, 2] == pytest.approx([apart(40), apart(10), apart(10)])
    assert wrong_merges(found, ints(1, 2, 5, 3, 4, 6, 6)).tolist() == [True, True, False]
    assert wrong_merges(found, ints(1, 1, 5, 3, 4, 6, 6)).tolist() == [False, True, False]


def test_wrong_merges_of_groups_count_pairs_of_addresses() -> None:
    """A leaf of three addresses merges with a single one: as many wrong pairs as owners that differ from its own."""
    X, one, groups = circle(0, 0, 0, 60), np.zeros(4, dtype=int), [0, 0, 0, 1]
    found = refined(X, one, GROUPS, groups)
    assert len(found.forest.merges) == 1
    for owners, wrong in (
        (ints(1, 1, 2, 1), False),  # one of three pairs
        (ints(1, 2, 3, 1), True),  # two of three
        (ints(1, 1, 1, 2), True),
        (ints(1, 2, 3, 4), True),
    ):
        assert wrong_merges(found, owners).tolist() == [wrong]
    half = refined(circle(0, 0, 60), np.zeros(3, dtype=int), GROUPS, [0, 0, 1])
    assert wrong_merges(half, ints(1, 2, 1)).tolist() == [False], "half of the pairs are not most of them"


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(2, 30))
def test_wrong_merges_by_listing_every_pair(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    X, clusters = rng.normal(size=(n, 3)), rng.integers(0, 3, n)
    groups, owners = rng.integers(0, max(n // 2, 1), n), rng.integers(0, 3, n)
    found = refined(X, clusters, GROUPS, groups)
    expected = []
    for _, leaves, Z in found.forest:
        if len(leaves) == 1:
            continue
        for node in to_tree(Z, rd=True)[1][len(leaves) :]:
            left, right = (
                np.flatnonzero(np.isin(found.leaf, leaves[side.pre_order()])) for side in (node.left, node.right)
            )
            differ = owners[left][:, None] != owners[right][None, :]
            expected.append(differ.sum() * 2 > differ.size)
    assert wrong_merges(found, owners).tolist() == expected


# --- the single threshold of the best silhouette ---


def spread(*centres: float, number: int = 6, width: float = 40.0) -> np.ndarray:
    """Groups of addresses around some angles, `width` degrees wide."""
    return circle(*(c + width * (i / (number - 1) - 0.5) for c in centres for i in range(number)))


def test_two_groups_are_told_apart_and_left_whole() -> None:
    """Groups 40° wide on opposite sides: a threshold of 0.05 would split them, anything up to 1 keeps them apart."""
    X, one = spread(0, 180), np.zeros(12, dtype=int)
    found = refined(X, one, Refiner("addresses", "local"))
    best = best_silhouette(X, found)
    Z = linkage(X)
    assert cut(Z, best).tolist() == [0] * 6 + [1] * 6
    assert len(np.unique(cut(Z, 0.05))) > 2
    earlier = [t for t in THRESHOLDS if t < best]
    assert earlier and all(len(np.unique(cut(Z, t))) > 2 for t in earlier), "the lowest of equally good ones"


def test_clusters_of_few_leaves_have_no_say() -> None:
    """Three tight groups of three would be told apart at 0.05, but nine leaves are not asked."""
    few, many = spread(0, 30, 60, number=3, width=2.0), spread(0, 180)
    both, labels = np.concatenate([few, many]), np.repeat([0, 1], [9, 12])
    assert len(few) < SILHOUETTE_FROM <= len(many)
    alone = refined(many, np.zeros(12, dtype=int), Refiner("addresses", "local"))
    found = refined(both, labels, Refiner("addresses", "local"))
    assert best_silhouette(both, found) == best_silhouette(many, alone) > 0.05


def test_a_group_whose_rows_cancel_out_does_not_stop_anybody() -> None:
    """Two addresses on opposite sides, spent together: their leaf has the direction of all that have none."""
    X, groups = np.concatenate([spread(0, 180), circle(90, 270)]), [*range(12), 12, 12]
    one = np.zeros(14, dtype=int)
    with pytest.warns(UserWarning, match="all zeros"):
        found = refined(X, one, Refiner("inputs", "local"), groups)
        best = best_silhouette(X, found)
    assert found.zero_rows == 1 and best in THRESHOLDS
    pieces = cut(found.forest.tree(0), best)[found.leaf]
    assert same(pieces[:12], np.repeat([0, 1], 6)), "both groups stay whole"


@settings(max_examples=10)
@given(st.integers(0, 10**6), st.booleans())
def test_the_best_threshold_against_scikit_learn(seed: int, in_groups: bool) -> None:
    rng = np.random.default_rng(seed)
    X, clusters = rng.normal(size=(70, 3)), np.sort(rng.integers(0, 4, 70))
    groups = rng.integers(0, 60, 70) if in_groups else None
    found = refined(X, clusters, Refiner("inputs" if in_groups else "addresses", "local"), groups)
    leaves = group_rows(X, found.leaf)
    first = np.unique(found.leaf, return_index=True)[1]
    total = np.zeros(len(THRESHOLDS))
    for c in np.unique(clusters):
        inside = leaves[clusters[first] == c]
        if len(inside) < SILHOUETTE_FROM:
            continue
        Z = linkage(inside)
        for place, threshold in enumerate(THRESHOLDS):
            parts = cut(Z, threshold)
            if 2 <= len(np.unique(parts)) < len(inside):
                total[place] += len(inside) * silhouette_score(inside, parts, metric="cosine")
    ours = best_silhouette(X, found)
    assert total[THRESHOLDS.index(ours)] == pytest.approx(total.max(), abs=1e-4)


# --- all cuts of a forest ---


def test_every_cut_by_name() -> None:
    rng = np.random.default_rng(3)
    X, labels = rng.normal(size=(200, 4)), rng.integers(0, 12, 200)
    found = refined(X, labels, Refiner("addresses", "local"), progress=False)
    every = dict(cuts(found, labels, 0.4, seed=5))
    assert list(every)[:4] == ["lambda", "random", "local", "silhouette"]
    assert list(every)[4:] == [f"at.{t:.2f}" for t in THRESHOLDS] and THRESHOLDS[0] == 0.05 and THRESHOLDS[-1] == 1.0
    paper = refine(X, labels, progress=False)
    assert same(every["lambda"], paper.partition) and found.threshold == paper.threshold
    assert np.array_equal(every["local"], found.partition)
    assert same(every["silhouette"], refine(X, labels, 0.4, progress=False).partition)
    for threshold in (0.05, 0.7):
        assert same(every[f"at.{threshold:.2f}"], refine(X, labels, threshold, progress=False).partition)
    assert Counter(zip(every["random"], labels, strict=True)) == Counter(zip(every["lambda"], labels, strict=True))
    assert not same(every["random"], every["lambda"])
    assert all(is_refinement(partition, labels) for partition in every.values())


def test_no_cut_separates_a_group() -> None:
    rng = np.random.default_rng(4)
    X, labels, groups = rng.normal(size=(120, 4)), rng.integers(0, 6, 120), rng.integers(0, 40, 120)
    found = refined(X, labels, Refiner("inputs", "local"), groups, progress=False)
    leaves = labels * 40 + groups
    for name, partition in cuts(found, labels, 0.4, seed=5):
        assert name == "random" or is_refinement(leaves, partition), name


# --- examples ---


def test_examples_by_hand() -> None:
    """Cluster 0: two owners, 60° apart. Cluster 1: three addresses of one. Cluster 2: two owners, but only a pair."""
    X, labels = circle(0, 4, 60, 70, 0, 10, 20, 0, 90), np.repeat([0, 1, 2], [4, 3, 2])
    owners = ints(1, 1, 2, 2, 3, 3, 3, 4, 5)
    found = refined(X, labels, FIXED)
    numbers = examples(found, labels, owners, seed=1)
    mixed = shuffled_within(ints(0, 0, 1, 1, 2, 2, 2, 3, 4), labels, 1)[:4]
    assert numbers == pytest.approx(
        {
            "example.collapsed": 1,
            "example.last_minus_lambda.collapsed": apart(60, 70, 56, 66) - 0.3,
            "example.last_minus_lambda.sound": apart(20, 10) - 0.3,
            "example.flagged_share": 1 / 3,
            "example.largest_part": 1 / 2,
            "parts.purity": 1.0,
            "parts.purity_random": purity(mixed, owners[:4]),
        }
    )


def test_addresses_of_unknown_owners_are_in_no_part() -> None:
    """As before, but one address of the first part is nobody's: three are left, two of them in the largest part."""
    labels, owners = np.zeros(4, dtype=int), ints(1, -1, 2, 2)
    numbers = examples(refined(circle(0, 4, 60, 70), labels, FIXED), labels, owners, seed=1)
    assert numbers["example.largest_part"] == pytest.approx(2 / 3)
    assert numbers["parts.purity"] == 1.0


def test_without_collapsed_clusters_there_is_no_example() -> None:
    labels = np.repeat([0, 1], [3, 2])
    numbers = examples(refined(circle(0, 10, 20, 0, 90), labels, FIXED), labels, ints(3, 3, 3, 4, 5), seed=1)
    assert numbers.pop("example.collapsed") == 0
    assert numbers.pop("example.last_minus_lambda.sound") == pytest.approx(apart(20, 10) - 0.3)
    assert np.isnan([float(value) for value in numbers.values()]).all()


def test_refinement_is_judged_by_owners_only() -> None:
    nodes = pd.DataFrame({"node_id": [0, 1]})
    graph = AddressGraph(nodes, pd.DataFrame({"a": [0], "b": [1]}), nodes.assign(alias=0))
    with pytest.raises(DataError, match="truth: is missing"):
        refinement_numbers(circle(0, 9), graph, recipe(Source(size="tiny")), seed=0)


# --- partitions against owners ---

ANGLES = np.radians([0, 1, 60, 61, 120, 121])
X = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)  # three tight pairs
ONE = np.zeros(6, dtype=int)


def test_quality_counts_pairs() -> None:
    """Clusters {0,1,2,3}, {4,5}; owners {0,1}, {2,3}, {4,5}: 7 pairs together, 3 of one owner, all of them together."""
    found = quality.quality([0, 0, 0, 0, 1, 1], [5, 5, 6, 6, 7, 7])
    assert found.precision == pytest.approx(3 / 7)
    assert found.recall == 1.0
    assert found.clusters == 2


def test_unknown_owners_do_not_count() -> None:
    assert quality.quality([0, 0, 0, 1], [5, 5, -1, -1])[:2] == (1.0, 1.0)


def test_owners_per_cluster() -> None:
    assert quality.owners_per_cluster([0, 0, 1, 1, 2], [5, 6, 5, -1, -1]).tolist() == [2, 1, 0]


def test_the_most_evenly_mixed_cluster_of_a_size_is_taken() -> None:
    labels = np.repeat([0, 1, 2], [4, 4, 9])
    owners = np.array([1, 1, 1, 2, 1, 1, 2, 2, *range(9)])
    assert quality.most_mixed(labels, owners, 3, 5) == 1
    assert quality.most_mixed(labels, owners, 6, 9) == 2
    assert quality.most_mixed(labels, owners, 5, 6) in (0, 1)  # none of that size: the nearest collapsed one
    assert quality.most_mixed([0, 0, 1], [5, 5, 5], 2, 2) == 0  # none has collapsed


def test_a_cut_between_owners_mends_a_cluster_and_one_inside_them_does_not() -> None:
    owners = np.array([1, 1, 2, 2, 3, 3])
    right = quality.mended(X, ONE, owners, threshold=0.3)
    assert right == (1, 6, 3 / 15, 1.0, 1.0)
    wrong = quality.mended(X, ONE, np.array([1, 2, 1, 2, 1, 2]), threshold=0.3)
    assert wrong is not None
    assert wrong.precision_after == 0.0
    assert wrong.kept == 0.0
    assert quality.mended(X, ONE, np.ones(6, dtype=int), threshold=0.3) is None


def test_wrong_share_of_merges() -> None:
    owners = np.array([1, 1, 2, 2, 1, 3])
    forest = dendrograms(X, ONE)
    pairs = map(tuple, np.sort(forest.tree(0)[:, :2].astype(int), axis=1))
    shares = dict(zip(pairs, quality.wrong_shares(forest, owners), strict=True))
    assert shares[0, 1] == shares[2, 3] == 0.0
    assert shares[4, 5] == 1.0
    judged = quality.judged_merges(forest, owners)
    assert len(judged) == 5
    assert int(judged["wrong"].sum()) == 3
    assert quality.judged_merges(dendrograms(X, np.arange(6)), owners).empty


def test_both_readings_of_inconsistency_are_those_of_refine() -> None:
    rng = np.random.default_rng(4)
    points, labels = rng.normal(size=(60, 5)), np.repeat([0, 1, 2], 20)
    table = quality.inconsistency_readings(points, dendrograms(points, labels), (0.5, 2.0))
    assert table["reading"].tolist() == ["coefficients"] * 2 + ["heights"] * 2
    rules = {"coefficients": "inconsistency", "heights": "inconsistency-height"}
    for row in table.itertuples():
        found = refine(points, labels, cut=rules[row.reading], alpha=row.alpha)
        assert row.threshold == pytest.approx(found.threshold)
        assert row.clusters == len(np.unique(found.partition))
        assert row.undone == pytest.approx(len(found.suspicious) / 57)


def test_a_coefficient_above_the_ceiling_undoes_nothing() -> None:
    """With depth 2 no coefficient exceeds 2/√3, so a threshold above it separates nobody; heights may still pass it."""
    points = np.random.default_rng(0).normal(size=(300, 4))
    forest = dendrograms(points, np.zeros(300, dtype=int), "ward")
    table = quality.inconsistency_readings(points, forest, (3.0,)).set_index("reading")
    assert table.loc["coefficients", "threshold"] > 2 / np.sqrt(3)
    assert table.loc["coefficients", "undone"] == 0 and table.loc["coefficients", "clusters"] == 1
    assert table.loc["heights", "undone"] > 0


def test_the_example_to_show_is_the_collapsed_cluster_with_the_highest_last_merge() -> None:
    labels = np.array([0, 0, 1, 1, 2, 2, 3, 3, 3])
    owners = np.array([1, 2, 1, 2, 3, 3, 1, 1, 2])
    rows = np.array([[1, 0], [0.8, 0.6], [1, 0], [0.6, 0.8], [1, 0], [0, 1], [1, 0], [0, 1], [0, 1]], dtype=np.float32)
    forest = dendrograms(rows, labels)
    # last merges: 0.2, 0.4, 1 (one owner), and about 1 in the cluster of three
    assert quality.most_divided(forest, labels, owners, 2, 2) == 1
    assert quality.most_divided(forest, labels, owners, 2, 3) == 3
    assert quality.most_divided(forest, labels, owners, 5, 9) == quality.most_mixed(labels, owners, 5, 9)
