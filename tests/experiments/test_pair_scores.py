"""Counts of labelled pairs by hand, and random splits that lose exactly as much as they are told to."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from btcnb.data.judging.entity_pairs import pair_counts
from btcnb.errors import DataError
from btcnb.experiments.pairs import (
    cosine,
    moments,
    random_split,
    scored,
    separation,
    table_of,
    undefined_draws,
)


def test_a_toy_labelling_by_hand() -> None:
    """Addresses a a a b b c of three names, clusters 0 0 1 1 2 2: of six pairs three are joined, one rightly."""
    clusters = np.array([0, 0, 1, 1, 2, 2])
    names = np.array(list("aaabbc"))
    pairs = np.array([[0, 1], [0, 2], [2, 3], [3, 4], [4, 5], [1, 5]])
    same = names[pairs[:, 0]] == names[pairs[:, 1]]
    counts = pair_counts(clusters, pairs, same)
    assert counts.tolist() == [1, 2, 2, 1]  # joined: 01 right, 23 and 45 wrong; apart: 02 and 34 wrong, 15 right
    numbers = scored("toy", counts[None, :])
    assert [numbers[f"toy.{kind}"] for kind in ("TP", "FP", "FN", "TN")] == pytest.approx(
        [100 / 6, 200 / 6, 200 / 6, 100 / 6]
    )
    assert numbers["toy.bACC"] == pytest.approx(100 * (1 / 3 + 1 / 3) / 2)
    assert numbers["toy.F1"] == pytest.approx(100 * (2 / 6 + 2 / 6) / 2)
    assert numbers["toy.bACC_sd"] is None, "one draw has no spread"


def test_means_and_spreads_are_over_draws() -> None:
    numbers = scored("x", np.array([[1, 0, 1, 2], [2, 0, 0, 2]]))
    assert numbers["x.TP"] == pytest.approx((25 + 50) / 2)
    assert numbers["x.bACC"] == pytest.approx((75 + 100) / 2)
    assert numbers["x.bACC_sd"] == pytest.approx(np.std([75, 100], ddof=1))


def test_a_draw_without_pairs_of_one_kind_has_no_balanced_accuracy_and_is_counted() -> None:
    counts = np.array([[3, 0, 1, 0], [1, 1, 1, 1], [0, 0, 0, 0]])
    numbers = scored("x", counts)
    assert undefined_draws(counts) == 2
    assert numbers["x.bACC"] == 50.0, "of the one draw that has both kinds"
    assert numbers["x.TP"] == pytest.approx((75 + 25) / 2), "a draw without any pair has no shares"
    only = scored("x", counts[:1])
    assert only["x.bACC"] is None and only["x.F1"] is None and only["x.TP"] == 75.0
    assert scored("x", np.empty((0, 4)))["x.TP"] is None


def test_tables_are_all_their_rows() -> None:
    one = np.array([[1, 1, 1, 1]])
    assert table_of({"a": one, "b": 2 * one}) == scored("a", one) | scored("b", one)


def test_a_random_split_by_hand() -> None:
    """Positive pairs part at 0.2 and 0.6, negative ones at 0.1, 0.5 and 0.9."""
    before = np.array([2, 3, 4, 5])
    positive, negative = np.array([0.6, 0.2]), np.array([0.5, 0.1, 0.9])
    assert random_split(before, 0, positive, negative).tolist() == [2, 3, 4, 5]
    assert random_split(before, 1, positive, negative).tolist() == [1, 2, 5, 6]  # by 0.2 one negative pair is gone
    assert random_split(before, 2, positive, negative).tolist() == [0, 1, 6, 7]  # by 0.6 two are


def test_pairs_that_part_together_are_interpolated() -> None:
    """Two positive pairs share the address that leaves at 0.4; one of the two negative pairs is gone by then."""
    split = random_split(np.array([2, 2, 0, 0]), 1, np.array([0.4, 0.4]), np.array([0.3, 0.8]))
    assert split.tolist() == [1, 1.5, 1, 0.5]


@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(0, 30))
def test_random_splits_lose_what_they_are_told_and_wrong_pairs_in_proportion(seed: int, tp: int, fp: int) -> None:
    rng = np.random.default_rng(seed)
    lost = int(rng.integers(tp + 1))
    before = np.array([tp, fp, 3, 4])
    after = random_split(before, lost, rng.random(tp), rng.random(fp))
    assert after[2] == 3 + lost and after[0] == tp - lost
    assert after.sum() == pytest.approx(before.sum())
    assert 0 <= after[1] <= fp


def test_on_average_random_splits_part_both_kinds_alike() -> None:
    rng = np.random.default_rng(0)
    gone = [40 - random_split(np.array([40, 40, 0, 0]), 10, rng.random(40), rng.random(40))[1] for _ in range(400)]
    assert np.mean(gone) == pytest.approx(10, abs=0.6)


def test_moments_that_do_not_fit_are_refused() -> None:
    for lost, positive in ((3, np.array([0.1, 0.2])), (-1, np.array([0.1, 0.2])), (1, np.array([0.1]))):
        with pytest.raises(DataError, match="do not fit"):
            random_split(np.array([2, 0, 0, 0]), lost, positive, np.empty(0))


def test_a_pair_parts_when_the_first_of_the_two_leaves() -> None:
    leaving = np.array([0.5, 0.1, 0.9])
    assert moments(leaving, np.array([[0, 1], [0, 2], [2, 2]])).tolist() == [0.1, 0.5, 0.9]


def test_separation_by_hand() -> None:
    """Distances of pairs of one name 0.1 and 0.3, of two 0.2 and 0.4: three of four comparisons are right."""
    assert separation([0.1, 0.3, 0.2, 0.4], [True, True, False, False]) == 0.75
    assert separation([0.1, 0.2], [True, True]) is None and separation([], []) is None


def test_cosine_distances_by_hand() -> None:
    rows = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]], dtype=np.float32)
    assert cosine(rows, np.array([[0, 1], [0, 2], [1, 1]])) == pytest.approx([0.4, 1.0, 0.0], abs=1e-6)
    assert cosine(rows, np.empty((0, 2), dtype=np.int64)).shape == (0,)


def test_rounding_has_no_order() -> None:
    """Copies of one row that rounding has moved are equal, and far from a row that differs in the fifth digit."""
    row = np.array([0.6, 0.8], dtype=np.float32)
    rows = np.stack([row, row * np.float32(1 + 1e-7), row * np.float32(1 - 2e-7), np.array([0.61, 0.7924])])
    found = cosine(rows, np.array([[0, 1], [1, 2], [0, 2], [0, 3]]))
    assert found[:3].tolist() == [0.0, 0.0, 0.0] and found[3] == pytest.approx(7.84e-5, rel=0.2)
