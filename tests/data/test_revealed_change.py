"""Change that later transactions reveal: scenarios step by step, an oracle for when clusters join, scores by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from builders import Chain, chain
from hypothesis import given
from hypothesis import strategies as st

from btcnb.data import HeuristicConfig, SimulationConfig, Transactions, simulate
from btcnb.data.change_votes import (
    HEURISTICS,
    ChangeVotes,
    KnownChange,
    change_votes,
    freshness,
    revealed_change,
    rule_precision,
    true_change,
    vote_scores,
)
from btcnb.data.change_votes.truth import NEVER, joined_at
from btcnb.data.components import components
from btcnb.errors import DataError


def payment(story: Chain | None = None) -> Chain:
    """0: a pays shop and change; 1: the shop moves on; 2: a's other coin and the change are spent together."""
    story = chain() if story is None else story
    return story.pay("a", {"shop": 7, "change": 2}).pay("shop", {"s2": 7}).pay(["change", ("a", 1)], {"z": 3})


def test_later_common_inputs_reveal_the_change() -> None:
    found = revealed_change(payment().build())
    assert found.tx.tolist() == [0]
    assert found.change.tolist() == [1]
    assert found.change_fresh.tolist() == [True]
    assert found.spend_fresh.tolist() == [True]
    assert found.known.change.tolist() == [1]
    assert found.remaining.tolist() == []


def test_an_unspent_output_or_two_own_outputs_are_no_candidate() -> None:
    unspent = chain().pay("a", {"shop": 7, "change": 2}).pay(["change", ("a", 1)], {"z": 3}).build()
    assert revealed_change(unspent).tx.tolist() == []
    assert revealed_change(unspent).remaining.tolist() == []  # an output is known to be change
    both = chain().pay("a", {"b": 7, "c": 2}).pay(["b", "c", ("a", 1)], {"z": 10}).build()
    assert revealed_change(both).tx.tolist() == []
    neither = chain().pay("a", {"b": 7, "c": 2}).pay("b", {"x": 7}).pay("c", {"y": 2}).build()
    assert revealed_change(neither).tx.tolist() == []
    assert revealed_change(neither).remaining.tolist() == [0]


def test_scattered_blocks_may_let_in_payments_whose_other_output_is_not_spent() -> None:
    unspent = chain().pay("a", {"shop": 7, "change": 2}).pay(["change", ("a", 1)], {"z": 3}).build()
    found = revealed_change(unspent, both_spent=False)
    assert (found.tx.tolist(), found.change.tolist()) == ([0], [1])
    assert found.steps["one output with the senders"] == found.steps["candidates"] == 1
    assert revealed_change(unspent).steps["one output with the senders"] == 1
    assert revealed_change(unspent).steps["candidates"] == 0


def test_change_that_was_known_at_the_time_is_left_out() -> None:
    """Used change: a and change pay together before, or only after, the transaction in question."""
    known = chain().pay([("a", 1), ("change", 1)], {"y": 2})
    assert revealed_change(payment(known).build()).tx.tolist() == []
    seen = chain().pay("w", {"change": 1}).pay("change", {"v": 1})  # not fresh, but nobody knows whose it is
    found = revealed_change(payment(seen).build())
    assert found.tx.tolist() == [2]
    assert found.change_fresh.tolist() == [False]
    assert found.spend_fresh.tolist() == [True]


def test_its_own_inputs_count_as_known() -> None:
    """The change address was joined with b before; this transaction joins a and b."""
    story = chain().pay([("b", 1), ("change", 1)], {"y": 2}).pay([("a", 5), ("b", 4)], {"shop": 7, "change": 2})
    txs = story.pay("shop", {"s2": 7}).pay("change", {"z": 2}).build()
    assert revealed_change(txs).tx.tolist() == []
    assert revealed_change(txs).steps["candidates"] == 1


def test_clusters_that_often_pay_themselves_twice_are_dropped() -> None:
    """The cluster of a sends 10 or 11 transactions, one of which has both outputs in the cluster."""
    for others, kept in ((7, 0), (8, 1)):
        story = payment()  # sends two
        story.pay([("a", 2)], {"b": 1, "c": 1}).pay(["b", "c", ("a", 1)], {"z": 3})  # two more; the first to itself
        for n in range(others - 1):
            story.pay([("a", 1)], {f"t{n}": 1})
        found = revealed_change(story.build())
        assert found.steps["candidates"] == 1
        assert (found.steps["without mixed clusters"], len(found.tx)) == (kept, kept)


def test_four_kinds_of_freshness() -> None:
    story = payment(chain().pay("w", {"shop": 1, "w2": 1}).pay("shop", {"x": 1}))
    table = freshness(revealed_change(story.build()))
    assert table["ours"].tolist() == [1, 0, 0, 0]  # the change is fresh, the shop's address is not
    assert table["published"].sum() == pytest.approx(1)
    assert table["published"].iloc[0] == pytest.approx(0.55, abs=0.001)


# when clusters join ---------------------------------------------------------------------------------------------


@given(st.lists(st.sets(st.sampled_from("abcdefgh"), min_size=1, max_size=4), min_size=1, max_size=10))
def test_addresses_join_at_the_first_prefix_that_has_them_in_one_component(inputs: list[set[str]]) -> None:
    story = chain()
    for names in inputs:
        story.pay([(name, 1) for name in sorted(names)], {"z": 1})
    txs = story.build()
    pairs = np.array([(i, j) for i in range(txs.num_addresses) for j in range(txs.num_addresses) if i != j])
    found = joined_at(txs, pairs[:, 0], pairs[:, 1])
    tx, address = txs.inputs["tx"].to_numpy(), txs.inputs["address"].to_numpy()
    first = address[txs.input_offsets()[tx]]
    expected = np.full(len(pairs), NEVER)
    for last in reversed(range(len(txs))):
        labels = components(txs.num_addresses, first[tx <= last], address[tx <= last])
        expected[labels[pairs[:, 0]] == labels[pairs[:, 1]]] = last
    assert found.tolist() == expected.tolist()


CHAIN = simulate(SimulationConfig.preset("tiny", seed=5))


def test_what_is_revealed_in_a_simulated_economy_is_true() -> None:
    """Common inputs are right here outside CoinJoins, so what they reveal is the true change."""
    found, true = revealed_change(CHAIN), true_change(CHAIN)
    assert len(found.tx)
    place = np.searchsorted(true.tx, found.tx)
    assert (true.tx[place] == found.tx).all()
    assert (true.change[place] == found.change).mean() > 0.9
    steps = list(found.steps.values())
    assert steps == sorted(steps, reverse=True)
    assert not np.isin(found.tx, found.remaining).any()


# scores ---------------------------------------------------------------------------------------------------------


def test_rates_by_hand() -> None:
    votes = np.full((5, 26), -1, dtype=np.int8)
    votes[:4, 0] = [1, 1, 0, -1]  # right, wrong, right, silent; the fifth has no known change
    votes[4, 2] = 0
    table = vote_scores(
        ChangeVotes(np.arange(5), votes, np.array([1, 1, 1, 1, 0], dtype=bool)),
        KnownChange(np.arange(4), np.array([1, 0, 0, 1])),
        remaining=np.array([4]),
    )
    assert tuple(table.index) == HEURISTICS
    assert table.loc["optimal_change", ["coverage", "TPR", "FPR", "precision"]].tolist() == [0.75, 0.5, 0.25, 2 / 3]
    assert table["remaining"].tolist() == [0, 0, 1, *[0] * 23]
    assert table["remaining_spent"].isna().all()  # its outputs are not both spent
    assert np.isnan(table.loc["address_type", "precision"])


def test_scores_of_nothing_are_nothing() -> None:
    none = KnownChange(*(np.empty(0, dtype=np.int64),) * 2)
    assert vote_scores(change_votes(CHAIN), none)["TPR"].isna().all()


def shop_and_change(paid: int, kept: int) -> Transactions:
    """A payment from a to the shop with change; the shop's address is paid again, so `change` fires."""
    story = chain().pay("a", {"shop": paid, "c": kept}, change=1).pay("w", {"shop": 1})
    return story.owners(anna="a c w", shop="shop").build()


def test_the_papers_rules_against_owners_and_change() -> None:
    table = rule_precision(shop_and_change(700_000, 123_457))
    assert table["votes"].to_dict() == {"change": 1, "round_value": 1, "forced_merge": 0}
    assert table.loc["change", ["owner", "change"]].tolist() == [1, 1]
    assert np.isnan(table.loc["forced_merge", "owner"])
    wrong = rule_precision(replace_owner(shop_and_change(700_000, 123_457)))
    assert wrong.loc["change", ["owner", "change"]].tolist() == [0, 0]


def replace_owner(txs: Transactions) -> Transactions:
    """The same story told the other way round: c is the shop's, and shop is Anna's."""
    assert txs.truth is not None
    assert txs.truth.change is not None
    swapped = np.where(np.isin(txs.addresses, ["c", "shop"]), 1 - txs.truth.owner, txs.truth.owner)
    change = np.where(txs.truth.change == 1, 0, txs.truth.change)
    return replace(txs, truth=replace(txs.truth, owner=swapped, change=change))


@pytest.mark.parametrize("first", ["a", "c"])
def test_a_forced_merge_is_one_vote_wherever_the_change_stands_in_the_star(first: str) -> None:
    story = chain()
    if first == "c":  # then the change has the lowest id and is the centre of the star
        story.coinbase("c", value=1)
    story.pay([("a", 60), ("b", 50)], {"shop": 90, "c": 20}, change=1)
    table = rule_precision(story.owners(anna="a b c", shop="shop").build(), HeuristicConfig())
    assert table.loc["forced_merge"].tolist() == [1, 1, 1]


def test_truth_is_needed() -> None:
    txs = chain().pay("a", {"x": 1, "y": 1}).build()
    with pytest.raises(DataError, match=r"truth\.change"):
        true_change(txs)
    with pytest.raises(DataError, match="truth"):
        rule_precision(txs)
