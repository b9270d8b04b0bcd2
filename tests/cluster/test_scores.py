"""NMI, AMI, ARI and pair scores by hand, and against the definitions counted pair by pair."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_mutual_info_score, balanced_accuracy_score, f1_score

from btcnb.cluster import PairCounts, ami, ari, nmi, pairwise_scores


def test_nmi_by_hand() -> None:
    # U = {01}{23}, V = {0}{123}: H(U) = ln 2, H(V) = ln 4 - 3/4 ln 3, I = H(U) + H(V) - H(U, V), H(U, V) = 3/2 ln 2
    h_u, h_v, joint = np.log(2), np.log(4) - 0.75 * np.log(3), 1.5 * np.log(2)
    assert nmi([0, 0, 1, 1], [0, 1, 1, 1]) == pytest.approx(2 * (h_u + h_v - joint) / (h_u + h_v))


def test_ari_by_hand() -> None:
    # same pairs: U has 2, V has 3, both 1; of 6 pairs: expected 2 * 3 / 6 = 1,
    # maximum (2 + 3) / 2, so (1 - 1) / (5/2 - 1) = 0
    assert ari([0, 0, 1, 1], [0, 1, 1, 1]) == pytest.approx(0.0)
    assert ari([0, 0, 1, 1], [5, 5, 2, 2]) == 1.0


def test_pairs_by_hand() -> None:
    # together: 01 02 12 34; one entity: 01 23 24 34
    counts = pairwise_scores([0, 0, 0, 1, 1], [5, 5, 7, 7, 7])
    assert counts == PairCounts(tp=2, fp=2, fn=2, tn=4)
    assert counts.balanced_accuracy == pytest.approx((2 / 4 + 4 / 6) / 2)
    assert counts.macro_f1 == pytest.approx((4 / 8 + 8 / 12) / 2)


def test_only_negative_pairs_score_the_true_negative_rate() -> None:
    counts = PairCounts(tp=0, fp=3, fn=0, tn=1)
    assert counts.balanced_accuracy == pytest.approx(1 / 4)
    assert np.isnan(PairCounts(0, 0, 0, 0).balanced_accuracy) and np.isnan(PairCounts(0, 0, 0, 0).macro_f1)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 25), st.integers(1, 6), st.integers(1, 6))
def test_partitions_are_compared_over_all_pairs(seed: int, n: int, k: int, j: int) -> None:
    rng = np.random.default_rng(seed)
    predicted, truth = rng.integers(k, size=n), rng.integers(j, size=n)
    pairs = np.array(list(combinations(range(n), 2)))
    same = truth[pairs[:, 0]] == truth[pairs[:, 1]]
    together = predicted[pairs[:, 0]] == predicted[pairs[:, 1]]
    counts = pairwise_scores(predicted, truth)
    assert (counts.tp, counts.fp) == ((same & together).sum(), (~same & together).sum())
    assert counts.total == n * (n - 1) // 2
    if len(np.unique(same)) == 2:
        assert counts.balanced_accuracy == pytest.approx(balanced_accuracy_score(same, together))
    assert counts.macro_f1 == pytest.approx(f1_score(same, together, average="macro", zero_division=0))


def test_large_partitions_do_not_overflow() -> None:
    n = 3_000_000
    counts = pairwise_scores(np.zeros(n, dtype=int), np.zeros(n, dtype=int))
    assert counts == PairCounts(n * (n - 1) // 2, 0, 0, 0)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4)), min_size=1, max_size=40))
def test_ami_is_scikit_learns(pairs: list[tuple[int, int]]) -> None:
    a, b = np.array(pairs).T
    assert ami(a, b) == pytest.approx(adjusted_mutual_info_score(a, b), abs=1e-8)


def test_ami_of_heavy_tailed_sizes_is_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    a = np.repeat(np.arange(400), rng.zipf(1.7, 400).clip(1, 200))
    b = np.where(rng.random(len(a)) < 0.3, rng.permutation(a), a)
    assert ami(a, b) == pytest.approx(adjusted_mutual_info_score(a, b), abs=1e-9)


def test_chance_has_no_ami_where_nmi_is_high() -> None:
    """A thousand points in 300 and in 300 clusters at random share much information, all of it by chance."""
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 300, (2, 1000))
    assert nmi(a, b) > 0.6
    assert abs(ami(a, b)) < 0.02


def test_equal_partitions_have_an_ami_of_one() -> None:
    for labels in (np.zeros(5, dtype=int), np.arange(5), np.array([0, 0, 1, 1, 2])):
        assert ami(labels, labels) == pytest.approx(1.0)
