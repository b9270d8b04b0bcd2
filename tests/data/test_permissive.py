"""The only fresh output as change: where it votes, what it merges, and the services it throws together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from builders import Chain, chain, groups

from btcnb.data import Transactions, Truth
from btcnb.data.change_votes import permissive_clusters, supercluster
from btcnb.data.change_votes.permissive import fresh_output
from btcnb.data.change_votes.votes import first_seen, input_clusters, multi_input_clusters, two_outputs
from btcnb.errors import DataError


def named(story: Chain, **names: str) -> Transactions:
    txs = story.build()
    label = np.full(txs.num_addresses, "", dtype=object)
    for name, addresses in names.items():
        label[np.isin(txs.addresses, addresses.split())] = name
    return replace(txs, truth=Truth(owner=np.full(txs.num_addresses, -1), label=label))


def test_which_transactions_have_two_outputs_to_choose_from() -> None:
    txs = (
        chain()
        .coinbase({"m": 25, "n": 25})
        .pay("a", {"x": 1, "y": 1})  # 1: eligible
        .pay("b", {"x": 1, "b": 1})  # pays an input address back
        .pay("c", [("x", 1), (None, 0)])  # one output only that can be spent
        .pay("d", {"x": 1})
        .pay("e", {"x": 1, "y": 1, "z": 1})
        .pay(["f", "g"], {"x": 1, "h": 1})  # 6: eligible
        .build()
    )
    two = two_outputs(txs)
    assert two.tx.tolist() == [1, 6]
    assert [txs.addresses[txs.outputs["address"][row]] for row in two.rows.ravel()] == ["x", "y", "x", "h"]


def test_an_address_is_first_seen_on_either_side() -> None:
    txs = chain().pay("a", {"b": 1}).pay("c", {"a": 1}).pay("b", {"c": 1}).build()
    assert dict(zip(txs.addresses, first_seen(txs).tolist(), strict=True)) == {"a": 0, "b": 0, "c": 1}


def test_input_clusters_skip_unknown_addresses() -> None:
    txs = chain().pay(["a", "b"], {"x": 1, "y": 1}).build()
    clusters = multi_input_clusters(txs)
    assert input_clusters(txs, np.array([0]), clusters).tolist() == [clusters[0]]
    hidden = replace(txs, inputs=txs.inputs.assign(address=[-1, 1]))
    assert input_clusters(hidden, np.array([0]), clusters).tolist() == [clusters[1]]
    unknown = replace(txs, inputs=txs.inputs.assign(address=[-1, -1]))
    assert input_clusters(unknown, np.array([0]), clusters).tolist() == [-1]


def test_the_only_fresh_output_is_voted_for() -> None:
    txs = (
        chain()
        .pay("a", {"shop": 1, "n1": 1})  # both fresh
        .pay("b", {"shop": 1, "n2": 1})  # n2 is fresh
        .pay("c", {"n3": 1, "shop": 1})  # n3 is fresh
        .pay("d", {"shop": 1, "n2": 1})  # none
        .build()
    )
    two = two_outputs(txs)
    assert fresh_output(txs, two).tolist() == [-1, 1, 0, -1]
    # n2 is paid twice: to who knows the future only n1 and n3 are used once
    assert fresh_output(txs, two, "global").tolist() == [1, -1, 0, -1]


def test_inputs_are_merged_with_the_fresh_output() -> None:
    txs = chain().coinbase("shop").pay(["a", "b"], {"shop": 1, "n": 1}).pay("c", {"shop": 1, "m": 1}).build()
    assert groups(txs, permissive_clusters(txs)) == {frozenset("abn"), frozenset("cm"), frozenset(["shop"])}


def test_change_that_common_inputs_show_is_left_alone() -> None:
    """old is co-spent with a: it is the change, although p is the fresh one."""
    txs = chain().coinbase("old", value=1).pay("a", {"old": 1, "p": 1}).pay([("a", 1), ("old", 1)], {"z": 2}).build()
    assert frozenset(["a", "old"]) in groups(txs, permissive_clusters(txs))


def test_a_payment_taken_for_change_swallows_services() -> None:
    """A user of an exchange pays a shop's fresh address with change to a reused one; the exchange paid alike."""
    story = (
        chain()
        .coinbase("user", value=9)
        .coinbase("cold", value=9)
        .pay("hot", {"user": 1, "s1": 1})  # hot's payment to the shop looks like change
        .pay(["s1", "s2"], {"bank": 2})  # the shop's addresses
        .pay("mill", {"cold": 1, "k": 1})
    )
    txs = named(story, exchange="hot", shop="s1 s2", miner="mill")
    found = supercluster(txs)
    assert (found.services, found.swallowed, found.touched, found.before) == (3, 2, 2, 1)
    assert found.share == 2 / 3
    assert found.addresses == 3 / txs.num_addresses
    assert found.coverage == 1.0  # two transactions with two outputs, one fresh output in each


def test_a_home_is_where_most_labelled_addresses_lie() -> None:
    """Two of the shop's three labelled addresses are one cluster; the third lies with the exchange."""
    story = chain().pay(["s1", "s2"], {"x": 1}).pay(["s3", "hot"], {"y": 1})
    found = supercluster(named(story, shop="s1 s2 s3", exchange="hot"))
    assert (found.swallowed, found.touched, found.before) == (1, 1, 1)
    mixed = supercluster(named(chain().pay(["s3", "hot"], {"y": 1}), shop="s3", exchange="hot"))
    assert (mixed.swallowed, mixed.touched, mixed.before) == (2, 2, 2)


def test_names_are_needed() -> None:
    story = chain().pay("a", {"x": 1, "y": 1})
    for txs in (story.build(), named(story)):
        with pytest.raises(DataError, match="names nobody"):
            supercluster(txs)
