"""Links, clusters and guesses judged by known owners: counts that one can check by hand, and brute force over pairs."""

from dataclasses import replace
from itertools import combinations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from builders import BTC, Chain, chain, groups, ids
from hypothesis import given
from hypothesis import strategies as st

from btcnb.data import SimulationConfig, Transactions, heuristic_merges, simulate
from btcnb.data.change_votes import published_votes, rule_precision
from btcnb.data.components import components
from btcnb.data.judging import collapse
from btcnb.data.judging.collapse import chain_of_merges, other_output, worst_collapse
from btcnb.data.judging.links import (
    HOSTED,
    marked,
    mechanism_of_merges,
    mechanisms,
    merge_sources,
    right_part,
    where_false_merges_come_from,
)
from btcnb.data.judging.owners import (
    ONLY_FRESH,
    against_owners,
    guesses_of_change,
    owners_in,
    pair_scores,
    pieces_per_owner,
)
from btcnb.errors import DataError

# --- clusters ---

LABELS = np.array([0, 0, 0, 1, 1, 2, 3])
OWNER = np.array([7, 7, 8, 8, 8, 9, -1])  # nobody knows who owns the last one


def test_a_partition_of_six_known_addresses():
    row = against_owners(LABELS, OWNER)
    assert row == {
        "clusters": 3,
        "largest": 3 / 6,
        "collapsed": 1,
        "in_collapsed": 3 / 6,
        "most_owners": 2,
        "precision": 2 / 4,  # right pairs: two of owner 7, two of owner 8; together: three and one
        "recall": 2 / 4,
    }
    assert pieces_per_owner(LABELS, OWNER) == 4 / 3
    assert owners_in(LABELS, OWNER).loc[0].tolist() == [3, 2]


partitions = st.integers(1, 12).flatmap(
    lambda n: st.tuples(*(st.lists(st.integers(low, 3), min_size=n, max_size=n) for low in (0, -1)))
)


@given(partitions)
def test_pairs_are_counted_as_brute_force_counts_them(given_pair):
    labels, owner = (np.array(values) for values in given_pair)
    known = list(combinations(np.flatnonzero(owner >= 0), 2))
    together = [labels[i] == labels[j] for i, j in known]
    same = [owner[i] == owner[j] for i, j in known]
    right = sum(a and b for a, b in zip(together, same, strict=True))
    precision, recall = pair_scores(labels, owner)
    assert np.array_equal(precision, right / sum(together) if sum(together) else np.nan, equal_nan=True)
    assert np.array_equal(recall, right / sum(same) if sum(same) else np.nan, equal_nan=True)


@given(st.integers(1, 10).flatmap(lambda n: st.lists(st.tuples(*[st.integers(0, n - 1)] * 2)).map(lambda e: (n, e))))
def test_components_are_those_of_networkx_numbered_by_their_lowest_member(case):
    number, pairs = case
    graph = nx.Graph(pairs)
    graph.add_nodes_from(range(number))
    a, b = (np.array([pair[side] for pair in pairs], dtype=np.int64) for side in (0, 1))
    expected = sorted((sorted(part) for part in nx.connected_components(graph)), key=lambda part: part[0])
    labels = components(number, a, b)
    assert [np.flatnonzero(labels == label).tolist() for label in range(labels.max() + 1)] == expected


def test_nothing_known_gives_no_score():
    row = against_owners(np.array([0, 0]), np.array([-1, -1]))
    assert np.isnan([row["largest"], row["precision"], row["recall"]]).all()
    assert row["clusters"] == row["collapsed"] == row["most_owners"] == 0


# --- guesses of change ---


def test_one_right_guess_one_wrong_and_what_is_published() -> None:
    story = chain().pay([("a", 1_234_567)], {"shop": 999_999, "a2": 234_568})  # the shop is paid again: a2 is change
    story = story.pay([("b", 1_234_567)], {"shop": 999_999, "x": 234_568}).pay([("c", 500)], {"shop": 500})
    txs = story.owners(anna="a a2", bob="b", carl="x c", shop="shop").build()
    table = guesses_of_change(txs)
    pd.testing.assert_frame_equal(table[["votes", "owner", "change"]], rule_precision(txs))
    assert table.loc["change", "votes"] == 2
    assert table.loc["change", "owner"] == pytest.approx(0.5)
    assert table.loc["change", ["published_low", "published_high"]].tolist() == sorted(ONLY_FRESH.values())
    votes = published_votes()["precision"]
    assert table.loc["round_value", "published_low"] == votes["power_of_ten_2"]
    assert table.loc["round_value", "published_high"] == votes["power_of_ten_7"]
    assert (table["published_low"] <= table["published_high"]).all()


# --- links ---


def told(story: Chain, names: dict[str, str], mechanism: list[str] | None = None) -> Transactions:
    """Owners are told by `owners`; `names` maps addresses to public names."""
    txs = story.build()
    assert txs.truth is not None
    label = np.array([names.get(address, "") for address in txs.addresses], dtype=object)
    named = None if mechanism is None else np.array(mechanism, dtype=object)
    return replace(txs, truth=replace(txs.truth, label=label, mechanism=named))


def custody() -> Chain:
    """0: a custodian pays for shop and bank at once; 1: the bank alone."""
    return chain().pay(["s1", "b1"], {"x": 2}).pay(["b1", "b2"], {"y": 2}).owners(shop="s1", bank="b1 b2")


def test_rules_and_mechanisms_of_wrong_merges() -> None:
    table = where_false_merges_come_from(told(custody(), {}, ["custody", ""]))
    assert table.to_dict("records") == [
        {"rule": "common_input", "mechanism": "custody", "wrong": 1, "transactions": 1, "of_wrong": 1.0, "of_rule": 0.5}
    ]


def test_without_a_told_mechanism_coinjoins_are_named() -> None:
    story = chain().pay(["a", "b"], {"x": 2}, coinjoin="joinmarket").pay(["a", "c"], {"y": 1})
    txs = story.owners(anna="a", bob="b", carl="c").build()
    assert mechanisms(txs).tolist() == ["coinjoin joinmarket", "ordinary"]
    table = where_false_merges_come_from(txs)
    assert set(table["mechanism"]) == {"coinjoin joinmarket", "ordinary"}
    assert table["of_wrong"].tolist() == [0.5, 0.5]
    assert marked(heuristic_merges(txs), txs.truth.owner)["wrong"].all()


def test_owners_are_needed() -> None:
    with pytest.raises(DataError, match="truth: is missing"):
        where_false_merges_come_from(chain().pay(["a", "c"], {"b": 1}).build())


def test_unknown_owners_are_never_wrong() -> None:
    txs = chain().pay(["a", "b"], {"x": 2}).owners(anna="a").build()
    assert len(where_false_merges_come_from(txs)) == 0


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


# --- one collapse taken apart ---


def swept(prefix, number):
    return [f"{prefix}{position}" for position in range(number)]


def two_services(joint: bool):
    """Ann pays Bob from one coin; each has swept five addresses before. `joint`: they also sign together once."""
    story = (
        chain()
        .pay(swept("a", 5), {"a0": 10 * BTC})
        .pay(swept("b", 5), {"b0": 10 * BTC})
        .pay("a0", {"b0": 3 * BTC, "a9": 7 * BTC - 12_345}, change=1)
        .pay("c0", {"b0": 1 * BTC})
        .owners(ann=[*swept("a", 5), "a9"], bob=swept("b", 5), carl="c0")
    )
    return (story.pay(["a4", "b4"], {"a0": BTC, "b0": BTC}) if joint else story).build()


def guesses(txs):
    """The merges of the rules, and a guess of ours that the third transaction's change is a9."""
    name = ids(txs)
    merges = heuristic_merges(txs, ["common_input"])
    guess = pd.DataFrame({"tx": [2], "rule": ["change"], "address_a": [name["a0"]], "address_b": [name["a9"]]})
    return pd.concat([merges, guess]).sort_values("tx", kind="stable", ignore_index=True)


@pytest.fixture
def few(monkeypatch):
    """Five addresses on either side are enough."""
    monkeypatch.setattr(collapse, "LARGE", 5)


def test_a_transaction_that_two_owners_sign_is_the_culprit(few):
    txs = two_services(joint=True)
    found = worst_collapse(txs, guesses(txs), txs.truth.owner)
    assert (found.tx, found.rule, found.by_hand) == (4, "common_input", False)
    assert {txs.addresses[end] for end in found.ends} == {"a4", "b4"}
    assert len(found.inside) == len(guesses(txs))


def test_where_no_rule_errs_one_mistake_is_made_by_hand(few):
    txs = two_services(joint=False)
    found = worst_collapse(txs, guesses(txs), txs.truth.owner)
    assert found.by_hand
    assert {txs.addresses[end] for end in found.ends} == {"a0", "b0"}
    assert found.merges["wrong"].sum() == 1
    name = ids(txs)
    assert found.labels[name["a3"]] == found.labels[name["b3"]] != found.labels[name["a9"]]


def test_without_a_payment_to_a_stranger_there_is_no_story():
    txs = chain().pay(["a", "b"], {"c": BTC}).owners(ann="a b c").build()
    assert worst_collapse(txs, heuristic_merges(txs, ["common_input"]), txs.truth.owner) is None


def test_the_output_that_a_guess_did_not_take():
    txs = two_services(joint=False)
    merges = guesses(txs)
    expected = [ids(txs)["b0"] if rule == "change" else -1 for rule in merges["rule"]]
    assert other_output(txs, merges).tolist() == expected


def test_a_merge_with_an_unknown_owner_is_not_called_wrong():
    merges = pd.DataFrame({"tx": [0, 0], "rule": "common_input", "address_a": [0, 0], "address_b": [1, 2]})
    assert marked(merges, np.array([4, 5, -1]))["wrong"].tolist() == [True, False]


def test_the_chain_runs_from_owner_to_owner_over_one_wrong_link(few):
    txs = two_services(joint=False)
    found = worst_collapse(txs, guesses(txs), txs.truth.owner)
    links = chain_of_merges(found, txs.truth.owner)
    assert links["wrong"].tolist() == [False, True, False]  # a sweep merges everybody with its first address
    assert links["to"].tolist()[:-1] == links["from"].tolist()[1:]
    owner = txs.truth.owner
    assert owner[links["from"].iloc[0]] != owner[links["to"].iloc[-1]]
