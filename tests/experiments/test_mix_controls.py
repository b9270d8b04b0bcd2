"""What true negatives are compared with: dealings, transfers, unusual features; answers that one can check by hand."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from btcnb.data import build_graph
from btcnb.errors import DataError
from btcnb.experiments.coinjoin import (
    Transfers,
    Usual,
    deal,
    dealt,
    ordinary_pairs,
    percentiles,
    position,
    rank_correlation,
    transfers,
)

sys.path.insert(0, str(Path(__file__).parents[1] / "data"))
from builders import chain, ids


def test_a_dealing_by_hand() -> None:
    """Four addresses in clusters of 2, 1 and 1: of six pairs one is together, so five sixths are apart on average."""
    assert dealt(np.array([7, 7, 1, 2]), np.array([0, 3])) == pytest.approx(5 / 6)
    assert dealt(np.zeros(4, dtype=int), np.array([0, 1, 2])) == 0.0, "one cluster keeps nothing apart"
    assert dealt(np.arange(4), np.array([0, 1])) == 1.0, "single addresses are all apart"


def test_a_dealing_inside_groups_by_hand() -> None:
    """Groups {0, 1, 2} and {3}; the first is split into 2 + 1, so its pairs part with probability 2/3; others are."""
    labels, within = np.array([0, 0, 1, 2]), np.array([5, 5, 5, 9])
    assert dealt(labels, np.array([0, 1]), within) == pytest.approx(2 / 3)
    assert dealt(labels, np.array([0, 3]), within) == 1.0
    assert dealt(labels, np.array([0, 1, 3]), within) == pytest.approx((2 / 3 + 1 + 1) / 3)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=2, max_size=12), st.integers(0, 99))
@settings(max_examples=50)
def test_a_dealing_has_as_many_clusters_of_the_same_sizes_and_leaves_no_group(
    drawn: list[tuple[int, int]], seed: int
) -> None:
    within, part = np.array(drawn).T
    labels = 10 * within + part  # clusters inside groups
    mixed = deal(labels, np.random.default_rng(seed), within)
    for group in np.unique(within):
        assert sorted(mixed[within == group]) == sorted(labels[within == group])


def test_the_mean_of_many_dealings_is_the_exact_one() -> None:
    rng = np.random.default_rng(3)
    labels, within = rng.integers(0, 4, 30), np.repeat([0, 1, 2], 10)
    labels = 10 * within + labels
    inputs = np.array([0, 1, 2, 11, 12, 25])
    i, j = np.triu_indices(len(inputs), 1)
    for groups in (None, within):
        found = []
        for _ in range(4000):
            mine = deal(labels, rng, groups)[inputs]
            found.append((mine[i] != mine[j]).mean())
        assert np.mean(found) == pytest.approx(dealt(labels, inputs, groups), abs=4 * np.std(found) / np.sqrt(4000))


def test_transfers_of_a_mix_cross_owners_and_those_of_a_payment_with_change_half() -> None:
    """Payment: a → shop and a → a2 (change), one of two within. Mix: a2, b → o1 (a's), o2 (b's), two of four."""
    txs = (
        chain()
        .pay("a", {"shop": 5, "a2": 3})
        .pay(["a2", "b"], {"o1": 3, "o2": 3}, coinjoin="whirlpool")
        .owners(a="a a2 o1", b="b o2", s="shop")
        .build()
    )
    mixes = np.asarray(txs.truth.coinjoin) != ""
    assert transfers(txs, txs.truth.owner, ~mixes) == Transfers(2, 1)
    assert transfers(txs, txs.truth.owner, mixes) == Transfers(4, 2)
    assert transfers(txs, txs.truth.owner, mixes).homophily == 0.5
    assert np.isnan(Transfers(0, 0).homophily)


def test_transfers_are_the_edges_of_the_graph_where_no_edge_repeats() -> None:
    """Change that comes back to its own address is no edge; unknown labels are left out."""
    txs = chain().pay(["a", "b"], {"a": 1, "c": 2, "d": 3}).pay("x", {"y": 1, "z": 1}).owners(p="a c", q="b d").build()
    edges = build_graph(txs, np.arange(txs.num_addresses)).edges
    label = np.arange(txs.num_addresses)
    assert transfers(txs, label, np.array([True, True])).all == len(edges) == 7
    name, owner = ids(txs), txs.truth.owner.copy()
    owner[[name["x"], name["y"], name["z"]]] = -1
    assert transfers(txs, owner, np.array([True, True])) == Transfers(5, 2), "a→c and b→d stay within"


def test_unusual_features_are_far() -> None:
    rng = np.random.default_rng(0)
    usual = Usual.of([rng.normal(size=(500, 3)) * [1, 2, 3], rng.normal(size=(500, 3)) * [1, 2, 3]])
    assert usual.distance(np.zeros((1, 3)))[0] < 0.2
    assert usual.distance(np.array([[0.0, 6.0, 0.0]]))[0] == pytest.approx(3.0, rel=0.15), "three standard deviations"
    assert np.isfinite(Usual.of([np.ones((10, 2))]).distance(np.zeros((1, 2)))).all(), "constant features"


def test_ordinary_pairs_are_of_one_cluster_and_of_two() -> None:
    labels = np.array([4, 4, 4, 9, 9, 1])
    same, two = ordinary_pairs(labels, 500, np.random.default_rng(1))
    assert (labels[same[:, 0]] == labels[same[:, 1]]).all() and (same[:, 0] != same[:, 1]).all()
    assert (labels[two[:, 0]] != labels[two[:, 1]]).all()
    assert {frozenset(pair) for pair in same.tolist()} == {frozenset(p) for p in ((0, 1), (0, 2), (1, 2), (3, 4))}
    alone, _ = ordinary_pairs(np.arange(5), 10, np.random.default_rng(1))
    assert len(alone) == 0, "nobody has company"


def test_small_things() -> None:
    kept = percentiles([0.0, 1.0, 2.0, 3.0, 4.0])
    assert (kept["p0"], kept["p50"], kept["median"], kept["p100"]) == (0.0, 2.0, 2.0, 4.0)
    assert set(percentiles([]).values()) == {None}
    assert position(0.25, 0.0, 1.0) == 0.25
    assert position(None, 0.0, 1.0) is None and position(0.5, 1.0, 1.0) is None
    assert rank_correlation([1, 2, 3], [5, 4, 0]) == -1.0
    assert rank_correlation([1, 2], [1, 2]) is None and rank_correlation([1, 1, 1], [1, 2, 3]) is None


def test_what_does_not_fit_is_refused() -> None:
    txs = chain().pay("a", {"b": 1}).build()
    with pytest.raises(DataError, match="inputs"):
        dealt(np.zeros(3, dtype=int), np.array([1]))
    with pytest.raises(DataError, match="within"):
        dealt(np.zeros(3, dtype=int), np.array([0, 1]), np.zeros(2, dtype=int))
    with pytest.raises(DataError, match="labels"):
        transfers(txs, np.zeros(5, dtype=int), np.array([True]))
