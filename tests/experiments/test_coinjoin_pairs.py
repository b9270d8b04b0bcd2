"""CoinJoins, their pairs and what true negatives are compared with: counts that can be checked by hand."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from btcnb.data import Source, Transactions, build_graph, load_transactions, sample_around
from btcnb.errors import DataError
from btcnb.experiments.coinjoin import (
    Apart,
    FeatureSpread,
    Mix,
    apart,
    dealt,
    draw_mixes,
    mixing_source,
    ordinary_pairs,
    percentiles,
    surroundings,
)
from btcnb.experiments.coinjoin_trial import by_set, position
from btcnb.experiments.repulsion import transfers

sys.path.insert(0, str(Path(__file__).parents[1] / "data"))
from builders import chain, ids


def five_mix() -> Transactions:
    """w1 and w2 are one wallet's coins; a, b and c belong to three more people. x pays two of them before."""
    story = chain().pay("x", {"a": 10, "w1": 10})
    story = story.pay(["a", "b", "c", "w1", "w2"], {f"o{i}": 9 for i in range(5)}, coinjoin="whirlpool")
    return story.pay("o1", {"shop": 8}).owners(w="w1 w2", a="a", b="b", c="c", x="x", s="shop").build()


def only(txs: Transactions) -> Mix:
    (mix,) = surroundings(txs, draw_mixes(txs, 3, 1).transactions)
    return mix


def test_pairs_of_a_mix_by_hand() -> None:
    """Ten pairs, one of them of one wallet. Clusters {a, b}, {c, w1, w2}: four pairs together, one of them rightly."""
    txs = five_mix()
    mix, name = only(txs), ids(txs)
    assert {txs.addresses[mix.piece.addresses[i]] for i in mix.inputs} == {"a", "b", "c", "w1", "w2"}
    labels = np.arange(len(mix.piece.addresses))
    assert apart(mix, labels) == Apart(10, 10, 9, 9, 1, 0)
    assert apart(mix, np.zeros_like(labels)) == Apart(10, 0, 9, 0, 1, 1)
    place = {txs.addresses[address]: i for i, address in enumerate(mix.piece.addresses)}
    for group, members in enumerate(("a b", "c w1 w2")):
        labels[[place[each] for each in members.split()]] = 100 + group
    assert apart(mix, labels) == Apart(pairs=10, apart=6, strangers=9, strangers_apart=6, own=1, own_together=1)
    assert name["a"] in mix.piece.addresses


@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 3)), min_size=5, max_size=5))
def test_pairs_counted_one_by_one(drawn: list[tuple[int, int]]) -> None:
    """Any owners (-1: unknown) and any labels, against a loop over all pairs."""
    txs = five_mix()
    mix = only(txs)
    labels = np.full(len(mix.piece.addresses), 99)
    owner = mix.piece.txs.truth.owner.copy()
    owner[mix.inputs], labels[mix.inputs] = np.array(drawn).T
    truth = type(mix.piece.txs.truth)(owner)
    mix = mix._replace(piece=mix.piece._replace(txs=_with_truth(mix.piece.txs, truth)))
    pairs = list(combinations(drawn, 2))
    known = [(p, q) for p, q in pairs if p[0] >= 0 and q[0] >= 0]
    strangers = [(p, q) for p, q in known if p[0] != q[0]]
    own = [(p, q) for p, q in known if p[0] == q[0]]
    assert apart(mix, labels) == Apart(
        len(pairs), sum(p[1] != q[1] for p, q in pairs), len(strangers), sum(p[1] != q[1] for p, q in strangers),
        len(own), sum(p[1] == q[1] for p, q in own),
    )  # fmt: skip


def _with_truth(txs: Transactions, truth: object) -> Transactions:
    return replace(txs, truth=truth)


def test_a_rate_is_the_mean_over_coinjoins_of_each_set() -> None:
    """A CoinJoin of two inputs counts as much as one of a hundred."""
    member = np.array([[True, True], [True, False], [False, False]])
    rates = by_set(pd.Series([1.0, 0.0]), member)
    assert rates[:2].tolist() == [0.5, 1.0] and np.isnan(rates[2]), "an empty set has no rate"
    assert by_set(pd.Series([1.0, np.nan]), member)[:2].tolist() == [1.0, 1.0], "a CoinJoin without a value is left out"


def test_economies_full_of_coinjoins_have_every_protocol_and_their_roles_share_nobody() -> None:
    source = mixing_source(3, "tiny")
    chains = [load_transactions(source, role, sampled=False) for role in ("train1", "test")]
    plain = load_transactions(Source(size="tiny", seed=3), "test", sampled=False)
    drawn = draw_mixes(chains[1], per_protocol=4, sets=3, seed=5)
    assert set(drawn.protocol) == {"joinmarket", "wasabi1.0", "wasabi1.1", "wasabi2", "whirlpool"}
    assert (np.asarray(chains[1].truth.coinjoin)[drawn.transactions] == drawn.protocol).all()
    assert (drawn.member.sum(axis=1) == 20 - sum(max(0, 4 - n) for n in drawn.short.values())).all()
    assert (np.asarray(chains[1].truth.coinjoin) != "").sum() > 3 * (np.asarray(plain.truth.coinjoin) != "").sum()
    for one, other in combinations([*chains, plain], 2):
        assert not set(one.addresses) & set(other.addresses)
        assert not set(one.transactions["hash"]) & set(other.transactions["hash"])


def test_what_is_drawn_follows_the_seed_and_surroundings_are_the_samplers() -> None:
    txs = load_transactions(mixing_source(3, "tiny"), "test", sampled=False)
    first, again, other = (draw_mixes(txs, 3, 2, seed) for seed in (1, 1, 2))
    assert np.array_equal(first.transactions, again.transactions) and np.array_equal(first.member, again.member)
    assert not np.array_equal(first.transactions, other.transactions)
    four = draw_mixes(txs, 3, 2, 1, protocols=["wasabi1.1", "whirlpool"])
    of = np.isin(first.protocol, ["wasabi1.1", "whirlpool"])
    assert four.transactions.tolist() == first.transactions[of].tolist(), "whoever else is drawn"
    mix = next(surroundings(txs, first.transactions[:1], seed=4))
    around = sample_around(txs, int(first.transactions[0]), seed=4)
    assert mix.piece.txs.transactions["hash"].tolist() == around.transactions["hash"].tolist()


def test_what_cannot_be_drawn_is_told() -> None:
    txs = five_mix()
    drawn = draw_mixes(txs, per_protocol=3, sets=2)
    assert drawn.short == {"joinmarket": 0, "wasabi1.0": 0, "wasabi1.1": 0, "wasabi2": 0, "whirlpool": 1}
    assert drawn.member.tolist() == [[True], [True]] and drawn.unpaired == 0
    with pytest.raises(DataError, match=r"no transaction is a CoinJoin of wasabi2"):
        draw_mixes(txs, protocols=["wasabi2"])
    with pytest.raises(DataError, match=r"truth\.coinjoin is missing|truth.coinjoin"):
        draw_mixes(_with_truth(txs, None))


# --- what true negatives are compared with ---


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


def deal(labels: np.ndarray, rng: np.random.Generator, within: np.ndarray | None = None) -> np.ndarray:
    """One dealing: the same labels, as often, in another order inside every group."""
    out = labels.copy()
    for group in [slice(None)] if within is None else [within == each for each in np.unique(within)]:
        out[group] = rng.permutation(labels[group])
    return out


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
    assert transfers(txs, txs.truth.owner, ~mixes) == (2, 1)
    assert transfers(txs, txs.truth.owner, mixes) == (4, 2)


def test_transfers_are_the_edges_of_the_graph_where_no_edge_repeats() -> None:
    """Change that comes back to its own address is no edge; unknown labels are left out."""
    txs = chain().pay(["a", "b"], {"a": 1, "c": 2, "d": 3}).pay("x", {"y": 1, "z": 1}).owners(p="a c", q="b d").build()
    edges = build_graph(txs, np.arange(txs.num_addresses)).edges
    label = np.arange(txs.num_addresses)
    assert transfers(txs, label, np.array([True, True]))[0] == len(edges) == 7
    name, owner = ids(txs), txs.truth.owner.copy()
    owner[[name["x"], name["y"], name["z"]]] = -1
    assert transfers(txs, owner, np.array([True, True])) == (5, 2), "a→c and b→d stay within"


def test_unusual_features_are_far() -> None:
    rng = np.random.default_rng(0)
    usual = FeatureSpread.of([rng.normal(size=(500, 3)) * [1, 2, 3], rng.normal(size=(500, 3)) * [1, 2, 3]])
    assert usual.distance(np.zeros((1, 3)))[0] < 0.2
    assert usual.distance(np.array([[0.0, 6.0, 0.0]]))[0] == pytest.approx(3.0, rel=0.15), "three standard deviations"
    assert np.isfinite(FeatureSpread.of([np.ones((10, 2))]).distance(np.zeros((1, 2)))).all(), "constant features"


def test_ordinary_pairs_are_of_one_cluster_and_of_two() -> None:
    labels = np.array([4, 4, 4, 9, 9, 1])
    same, two = ordinary_pairs(labels, 500, np.random.default_rng(1))
    assert (labels[same[:, 0]] == labels[same[:, 1]]).all() and (same[:, 0] != same[:, 1]).all()
    assert (labels[two[:, 0]] != labels[two[:, 1]]).all()
    assert {frozenset(pair) for pair in same.tolist()} == {frozenset(p) for p in ((0, 1), (0, 2), (1, 2), (3, 4))}
    alone, _ = ordinary_pairs(np.arange(5), 10, np.random.default_rng(1))
    assert len(alone) == 0, "nobody has company"


def test_small_things() -> None:
    kept = percentiles("far", [0.0, 1.0, 2.0, 3.0, 4.0])
    assert (kept["far.p0"], kept["far.p50"], kept["far.median"], kept["far.p100"]) == (0.0, 2.0, 2.0, 4.0)
    assert set(percentiles("far", []).values()) == {None}
    assert position(0.25, 0.0, 1.0) == 0.25
    assert position(None, 0.0, 1.0) is None and position(0.5, 1.0, 1.0) is None
