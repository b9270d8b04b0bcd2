"""What each way to fail does to the clusters, on chains small enough to count by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from builders import chain, groups, ids

from btcnb.data import SimulationConfig, Transactions, heuristic_merges, simulate
from btcnb.data.components import components
from btcnb.data.judging.collapse import marked
from btcnb.data.judging.links import HOSTED, mechanism_of_merges, merge_sources, right_part, words_of
from btcnb.data.simulator.parameters import MECHANISMS


def telling(txs: Transactions, mechanism: list[str], kinds: dict[str, str] | None = None) -> Transactions:
    assert txs.truth is not None
    entities = txs.truth.entities
    if kinds:
        entities = entities.assign(kind=[kinds[name] for name in entities["name"]])
    told = replace(txs.truth, mechanism=np.array(mechanism, dtype=object), entities=entities)
    return replace(txs, truth=told)


def two_brands() -> Transactions:
    """0, 1: each brand alone; 2: a custodian spends for both; 3: a PayJoin of bank and a guest."""
    story = chain().pay(["s1", "s2"], {"x": 2}).pay(["b1", "b2"], {"y": 2})
    story = story.pay(["s1", "b1", "b3"], {"z": 3}).pay(["b2", "g"], {"w": 2})
    txs = story.owners(shop="s1 s2", bank="b1 b2 b3", guest="g").build()
    return telling(txs, ["", "", "shared-custody", "payjoin"])


def test_the_right_part_keeps_each_owner_together() -> None:
    txs = two_brands()
    right = right_part(txs, heuristic_merges(txs, ["common_input"]))
    labels = components(txs.num_addresses, right["address_a"], right["address_b"])
    joined = {group for group in groups(txs, labels) if len(group) > 1}
    # b3 hung on the star's centre s1, a stranger; it stays with b1, which signed beside it
    assert joined == {frozenset({"s1", "s2"}), frozenset({"b1", "b2", "b3"})}


def test_what_each_mechanism_draws_in_and_what_would_be_spared() -> None:
    txs = two_brands()
    table = merge_sources(txs, heuristic_merges(txs, ["common_input"])).set_index("mechanism")
    custody, payjoin = table.loc["shared-custody"], table.loc["payjoin"]
    assert (custody["merges"], custody["wrong"], custody["transactions"]) == (2, 2, 1)
    assert (payjoin["merges"], payjoin["wrong"], payjoin["transactions"]) == (1, 1, 1)
    assert custody["drawn"] == 5  # shop and bank; the guest stays outside
    assert payjoin["drawn"] == 4  # bank and guest
    assert custody["spared"] == 2  # without it only the shop's two addresses leave the collapsed cluster of six
    assert payjoin["spared"] == 1
    assert table.loc["ordinary", ["merges", "wrong", "drawn", "spared"]].tolist() == [2, 0, 0, 0]


def test_a_shop_hosted_by_an_exchange_is_told_by_the_kinds_of_owners() -> None:
    story = chain().pay(["d1", "s"], {"hot": 2}).pay(["u", "v"], {"x": 1})
    txs = story.owners(big="d1 hot", shop="s", ann="u", bob="v").build()
    kinds = {"big": "exchange", "shop": "merchant", "ann": "user", "bob": "user"}
    merges = heuristic_merges(txs, ["common_input"])
    assert mechanism_of_merges(telling(txs, ["", ""], kinds), merges).tolist() == [HOSTED, "ordinary"]
    assert mechanism_of_merges(telling(txs, ["payjoin", ""], kinds), merges)[0] == "payjoin"  # what is told counts


def test_unknown_owners_are_no_mistake_and_their_merges_stay() -> None:
    txs = chain().pay(["a", "stranger"], {"x": 1}).owners(anna="a").build()
    merges = heuristic_merges(txs, ["common_input"])
    pd.testing.assert_frame_equal(right_part(txs, merges)[list(merges)], merges, check_dtype=False)
    assert merge_sources(txs, merges)["wrong"].tolist() == [0]


def test_nothing_merged_nothing_told() -> None:
    txs = chain().pay("a", {"b": 1}).owners(anna="a").build()
    table = merge_sources(txs, heuristic_merges(txs))
    assert table.empty
    assert list(table) == ["mechanism", "rule", "merges", "wrong", "transactions", "drawn", "spared"]
    assert ids(txs)["a"] == 0


def test_a_simulated_chain_is_accounted_for() -> None:
    txs = simulate(SimulationConfig(blocks=60, transactions_per_block=12, users=200, exchanges=8, merchants=6, pools=2))
    assert txs.truth is not None
    merges = heuristic_merges(txs)
    table = merge_sources(txs, merges)
    wrong = marked(merges, txs.truth.owner)["wrong"]
    assert table["merges"].sum() == len(merges)
    assert table["wrong"].sum() == wrong.sum() > 0
    assert ((table["drawn"] > 0) == (table["wrong"] > 0)).all()
    assert (table["spared"] <= table["drawn"].sum()).all()
    assert marked(right_part(txs, merges), txs.truth.owner)["wrong"].sum() == 0


def test_words() -> None:
    assert all(words_of(mechanism.name) == mechanism.words for mechanism in MECHANISMS)
    assert "CoinJoin" in words_of("coinjoin wasabi2")
    assert "ordinary" in words_of("ordinary")
