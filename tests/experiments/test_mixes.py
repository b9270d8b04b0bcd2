"""CoinJoins and their pairs: what is drawn, what surrounds it, and counts that can be checked by hand."""

from __future__ import annotations

import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from btcnb.data import Source, Transactions, load_transactions, sample_around
from btcnb.errors import DataError, ParameterError
from btcnb.experiments.coinjoin import Apart, Mix, apart, draw_mixes, mixing_source, surroundings, true_negatives

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
    from dataclasses import replace

    return replace(txs, truth=truth)


def test_a_rate_is_the_mean_over_coinjoins_of_each_set() -> None:
    """A CoinJoin of two inputs counts as much as one of a hundred."""
    small, large = Apart(1, 1, 0, 0, 0, 0), Apart(4950, 0, 0, 0, 0, 0)
    member = np.array([[True, True], [True, False], [False, False]])
    assert true_negatives([small, large], member)[:2].tolist() == [0.5, 1.0]
    assert np.isnan(true_negatives([small, large], member)[2]), "an empty set has no rate"
    with pytest.raises(DataError, match="member"):
        true_negatives([small], member)


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
    with pytest.raises(ParameterError, match="a protocol is 'chaumian'"):
        draw_mixes(txs, protocols=["chaumian"])
    with pytest.raises(ParameterError, match="per_protocol"):
        draw_mixes(txs, per_protocol=0)
    with pytest.raises(DataError, match=r"truth\.coinjoin is missing|truth.coinjoin"):
        draw_mixes(_with_truth(txs, None))
    with pytest.raises(DataError, match="labels"):
        apart(only(txs), np.zeros(2, dtype=np.int64))
