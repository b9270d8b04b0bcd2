"""Refinement judged by owners: answers that one can count."""

from __future__ import annotations

import numpy as np
import pytest

from btcnb.cluster import dendrograms, linkage, refine
from btcnb.errors import DataError
from btcnb.experiments import quality

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
    with pytest.raises(DataError, match="no owner is known"):
        quality.quality([0, 1], [-1, -1])
    with pytest.raises(DataError, match="give one for each"):
        quality.quality([0, 1], [1])


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
    owners = [1, 1, 2, 2, 1, 3]
    Z = linkage(X)
    shares = dict(zip(map(tuple, np.sort(Z[:, :2].astype(int), axis=1)), quality.wrong_share(Z, owners), strict=True))
    assert shares[0, 1] == shares[2, 3] == 0.0
    assert shares[4, 5] == 1.0
    judged = quality.judged_merges(dendrograms(X, ONE), owners)
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
