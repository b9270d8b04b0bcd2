"""Adjusted mutual information: scikit-learn's value, and what the correction is for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_mutual_info_score

from btcnb.cluster import nmi
from btcnb.cluster.information import ami
from btcnb.errors import DataError


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4)), min_size=1, max_size=40))
def test_the_score_is_scikit_learns(pairs: list[tuple[int, int]]) -> None:
    a, b = np.array(pairs).T
    assert ami(a, b) == pytest.approx(adjusted_mutual_info_score(a, b), abs=1e-8)


def test_heavy_tails_of_sizes_agree_too() -> None:
    rng = np.random.default_rng(0)
    a = np.repeat(np.arange(400), rng.zipf(1.7, 400).clip(1, 200))
    b = np.where(rng.random(len(a)) < 0.3, rng.permutation(a), a)
    assert ami(a, b) == pytest.approx(adjusted_mutual_info_score(a, b), abs=1e-9)


def test_chance_scores_nothing_where_nmi_is_high() -> None:
    """A thousand points in 300 and in 300 clusters at random share much information, all of it by chance."""
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 300, (2, 1000))
    assert nmi(a, b) > 0.6
    assert abs(ami(a, b)) < 0.02


def test_equal_partitions_score_one() -> None:
    for labels in (np.zeros(5, dtype=int), np.arange(5), np.array([0, 0, 1, 1, 2])):
        assert ami(labels, labels) == pytest.approx(1.0)


def test_partitions_of_different_lengths_or_of_nothing_are_refused() -> None:
    with pytest.raises(DataError):
        ami([0, 1], [0, 1, 1])
    with pytest.raises(DataError, match="no score"):
        ami(np.empty(0, dtype=int), np.empty(0, dtype=int))
