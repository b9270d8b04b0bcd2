"""The five merging rules, clause by clause, as small stories; then the partition as a whole against an oracle."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from builders import BTC, chain, groups, ids
from gs_clustering import Clustering
from hypothesis import given, settings
from hypothesis import strategies as st

from btcnb.data import (
    HeuristicConfig,
    SimulationConfig,
    Transactions,
    heuristic_clusters,
    heuristic_merges,
    simulate,
)
from btcnb.data.components import by_first, components
from btcnb.errors import DataError, ParameterError

ALL = ("common_input", "change", "round_value", "forced_merge", "deposit")


def merged(txs: Transactions, *rules: str, **config) -> set[frozenset[str]]:
    """Clusters of at least two addresses."""
    labels = heuristic_clusters(txs, rules, HeuristicConfig(**config))
    return {group for group in groups(txs, labels) if len(group) > 1}


def cluster(names: str) -> frozenset[str]:
    return frozenset(names.split())


# common input ---------------------------------------------------------------------------------------------------


def test_common_input_merges_all_inputs_and_nothing_else():
    txs = chain().pay(["a", "b", "c"], {"x": 5, "y": 6}).build()
    assert merged(txs, "common_input") == {cluster("a b c")}


def test_common_input_chains_through_shared_addresses():
    txs = chain().pay(["a", "b"], {"x": 1}).pay(["c", "d"], {"x": 1}).pay(["b", "c"], {"y": 1}).build()
    assert merged(txs, "common_input") == {cluster("a b c d")}


def test_common_input_is_silent_on_one_input_address_spent_twice():
    assert merged(chain().pay([("a", 3), ("a", 4)], {"x": 5}).build(), "common_input") == set()


def joinmarket_chain():
    """Five participants take 1 BTC each; four leave change."""
    outputs = {f"mix{i}": BTC for i in range(5)} | {f"change{i}": (i + 1) * 1_000_000 for i in range(4)}
    return chain().pay([(f"in{i}", BTC + (i + 1) * 1_000_000) for i in range(5)], outputs)


def test_a_detected_coinjoin_is_left_out_unless_told_otherwise():
    txs = joinmarket_chain().build()
    assert merged(txs, *ALL) == set()
    assert merged(txs, *ALL, coinjoin_rules="improved") == set()
    everybody = {cluster("in0 in1 in2 in3 in4")}
    assert merged(txs, "common_input", exclude_coinjoins=False) == everybody
    assert merged(txs, "common_input", excluded_protocols=("whirlpool",)) == everybody


# change ---------------------------------------------------------------------------------------------------------


def payment_to(reused: str, times: int = 1):
    """a pays shop and keeps the rest at c; afterwards somebody pays `reused` again."""
    story = chain().pay("a", {"shop": 70, "c": 30})
    for _ in range(times):
        story = story.pay("z", {reused: 5})
    return story


def test_change_is_the_output_that_is_not_reused():
    assert merged(payment_to("shop").build(), "change") == {cluster("a c")}
    assert merged(payment_to("c").build(), "change") == {cluster("a shop")}


def test_change_needs_exactly_one_reused_output():
    assert merged(chain().pay("a", {"shop": 70, "c": 30}).build(), "change") == set()
    assert merged(payment_to("shop").pay("z", {"c": 5}).build(), "change") == set()


def test_change_does_not_count_receiving_again_in_the_same_block():
    txs = chain().pay("a", {"shop": 70, "c": 30}).pay("z", {"shop": 5}, block="same").build()
    assert merged(txs, "change") == set()


def test_change_does_not_count_receiving_earlier():
    assert merged(chain().pay("z", {"shop": 5}).pay("a", {"shop": 70, "c": 30}).build(), "change") == set()


def test_change_is_silent_when_the_sender_is_reused():
    assert merged(payment_to("shop").pay("z", {"a": 5}).build(), "change") == set()


def test_change_is_silent_when_the_sender_is_among_the_outputs():
    assert merged(chain().pay("a", {"shop": 70, "a": 30}).pay("z", {"shop": 5}).build(), "change") == set()


def test_change_is_silent_on_other_shapes():
    later = {"shop": 5}
    two_inputs = chain().pay(["a", "b"], {"shop": 70, "c": 30}).pay("z", later)
    one_address_twice = chain().pay([("a", 50), ("a", 50)], {"shop": 70, "c": 30}).pay("z", later)
    three_outputs = chain().pay("a", {"shop": 70, "c": 20, "d": 10}).pay("z", later)
    one_output = chain().pay("a", {"shop": 70}).pay("z", later)
    same_address = chain().pay("a", [("shop", 70), ("shop", 30)]).pay("z", later)
    op_return = chain().pay("a", [("shop", 70), (None, 0)]).pay("z", later)
    for story in (two_inputs, one_address_twice, three_outputs, one_output, same_address, op_return):
        assert merged(story.build(), "change") == set()


# round value ----------------------------------------------------------------------------------------------------


def test_zeros_of_a_round_amount_follow_the_price():
    assert HeuristicConfig(price_usd=8_587.92).round_zeros == 4  # 1 USD = 11,644 satoshi
    assert HeuristicConfig(price_usd=10_000.0).round_zeros == 4  # exactly 10,000 satoshi
    assert HeuristicConfig(price_usd=10_000.01).round_zeros == 3
    assert HeuristicConfig(price_usd=52_299.33).round_zeros == 3
    assert HeuristicConfig(price_usd=52_299.33, round_usd=10.0).round_zeros == 4


@pytest.mark.parametrize(
    ("payment", "rest", "fires"),
    [
        (120_000, 345_678, True),  # four zeros against none
        (120_000, 345_600, True),  # two zeros are not nearly four: 4 - 1 = 3
        (120_000, 345_000, False),  # three zeros are
        (12_000, 345_678, False),  # the payment has only three
        (120_000, 340_000, False),  # both round
        (123_456, 345_678, False),  # neither
    ],
)
def test_round_value_thresholds(payment, rest, fires):
    for outputs in ({"shop": payment, "c": rest}, {"c": rest, "shop": payment}):
        expected = {cluster("a c")} if fires else set()
        assert merged(chain().pay("a", outputs).build(), "round_value") == expected


def test_round_value_slack_is_a_parameter():
    txs = chain().pay("a", {"shop": 120_000, "c": 345_600}).build()
    assert merged(txs, "round_value", round_slack=1) == {cluster("a c")}
    assert merged(txs, "round_value", round_slack=2) == set()
    assert merged(txs, "round_value", round_slack=4) == set()  # every amount ends with at least no zeros


def test_round_value_is_silent_when_the_change_is_reused():
    paid = chain().pay("a", {"shop": 120_000, "c": 345_678})
    assert merged(paid.pay("z", {"shop": 1}).build(), "round_value") == {cluster("a c")}
    assert merged(paid.pay("z", {"c": 1}).build(), "round_value") == set()


def test_round_value_is_silent_on_other_shapes():
    two_inputs = chain().pay(["a", "b"], {"shop": 120_000, "c": 345_678})
    three_outputs = chain().pay("a", {"shop": 120_000, "c": 345_678, "d": 1})
    back_to_sender = chain().pay("a", {"shop": 120_000, "a": 345_678})
    for story in (two_inputs, three_outputs, back_to_sender):
        assert merged(story.build(), "round_value") == set()


# forced merge ---------------------------------------------------------------------------------------------------


def forced(inputs=(("a", 60), ("b", 50)), outputs=None):
    return chain().pay(list(inputs), outputs or {"shop": 80, "c": 30})


def test_forced_merge_joins_the_inputs_and_the_smaller_output():
    assert merged(forced().build(), "forced_merge") == {cluster("a b c")}
    assert merged(forced(outputs={"c": 30, "shop": 80}).build(), "forced_merge") == {cluster("a b c")}


def test_forced_merge_needs_every_input():
    # 60 + 50 - 50 = 60 must be less than the payment: 61 forces b in, 60 would have done with a alone.
    assert merged(forced(outputs={"shop": 61, "c": 49}).build(), "forced_merge") == {cluster("a b c")}
    assert merged(forced(outputs={"shop": 60, "c": 50}).build(), "forced_merge") == set()
    three = (("a", 60), ("b", 50), ("d", 40))
    assert merged(forced(three, {"shop": 111, "c": 39}).build(), "forced_merge") == {cluster("a b c d")}
    assert merged(forced(three, {"shop": 110, "c": 40}).build(), "forced_merge") == set()


def test_forced_merge_is_silent_on_other_shapes():
    one_input = forced([("a", 110)])
    repeated_input = forced([("a", 60), ("a", 50)])
    repeated_among_three = forced([("a", 60), ("b", 30), ("a", 20)], {"shop": 100, "c": 10})
    three_outputs = forced(outputs={"shop": 80, "c": 20, "d": 10})
    one_address = forced(outputs=[("shop", 80), ("shop", 30)])
    equal_outputs = forced(outputs={"shop": 55, "c": 55})
    for story in (one_input, repeated_input, repeated_among_three, three_outputs, one_address, equal_outputs):
        assert merged(story.build(), "forced_merge") == set()


def test_forced_merge_is_silent_when_an_input_or_the_change_is_reused():
    for reused, fires in (("a", False), ("b", False), ("c", False), ("shop", True)):
        expected = {cluster("a b c")} if fires else set()
        assert merged(forced().pay("z", {reused: 1}).build(), "forced_merge") == expected


def test_forced_merge_is_silent_on_an_input_of_unknown_value():
    txs = forced().build()
    txs.inputs.loc[0, ["address", "value"]] = -1
    assert merged(txs, "forced_merge") == set()


# deposit --------------------------------------------------------------------------------------------------------


def sweep(number: int, outputs=None):
    return chain().pay([f"d{i}" for i in range(number)], outputs or {"hot": 1000})


def test_deposit_needs_25_distinct_input_addresses():
    assert merged(sweep(25).build(), "deposit") == {frozenset(f"d{i}" for i in range(25))}
    assert merged(sweep(24).build(), "deposit") == set()
    assert merged(sweep(24).build(), "deposit", deposit_min_inputs=24) != set()
    repeated = chain().pay([f"d{i}" for i in range(24)] + ["d0"], {"hot": 1000}).build()
    assert merged(repeated, "deposit") == set()


def test_deposit_needs_one_output_address():
    assert merged(sweep(25, [("hot", 400), ("hot", 600)]).build(), "deposit") != set()
    assert merged(sweep(25, {"hot": 400, "cold": 600}).build(), "deposit") == set()
    assert merged(sweep(25, [("hot", 400), (None, 0)]).build(), "deposit") == set()


# labels, merges, parameters -------------------------------------------------------------------------------------


def test_labels_are_canonical_and_singletons_stay_alone():
    txs = chain().pay("x", {"y": 1}).pay(["c", "a"], {"z": 1}).build()
    assert list(txs.addresses) == ["x", "y", "c", "a", "z"]
    labels = heuristic_clusters(txs, ["common_input"])
    assert labels.dtype == np.int64
    assert labels.tolist() == [0, 1, 2, 2, 3]


def test_an_unknown_input_address_is_left_out():
    txs = chain().pay(["a", "b", "c"], {"x": 1}).build()
    txs.inputs.loc[1, "address"] = -1
    assert merged(txs, *ALL) == {cluster("a c")}


def test_merges_say_which_transaction_and_rule_merged_what():
    txs = payment_to("shop").pay([("c", 3), ("e", 4)], {"x": 2, "y": 5}).build()
    at = ids(txs)
    table = heuristic_merges(txs, ALL)
    assert set(table.itertuples(index=False, name=None)) == {
        (0, "change", at["a"], at["c"]),
        (2, "common_input", at["c"], at["e"]),
        (2, "forced_merge", at["c"], at["e"]),
        (2, "forced_merge", at["c"], at["x"]),
    }
    assert table["tx"].tolist() == [0, 2, 2, 2]


def test_a_context_adds_what_the_rest_of_the_interval_knows():
    whole = payment_to("shop").pay(["a", "b"], {"y": 1}).pay(["b", "shop2"], {"z": 1}).pay("q", {"shop2": 1}).build()
    sample = whole.select(np.array([0, 4]))  # the payment, and the last one: neither merges anything by itself
    assert groups(sample, heuristic_clusters(sample, ALL)) == {frozenset([name]) for name in sample.addresses}
    labels = heuristic_clusters(sample, ALL, context=whole)
    assert groups(sample, labels) == {cluster("a c shop2"), cluster("shop"), cluster("q")}
    assert labels.tolist() == by_first(labels).tolist()


def test_a_context_without_an_address_is_refused():
    with pytest.raises(DataError, match="lacks b"):
        heuristic_clusters(chain().pay(["a", "b"], {"x": 1}).build(), context=chain().pay("a", {"x": 1}).build())


def test_bad_parameters_say_what_is_known():
    txs = chain().pay(["a", "b"], {"x": 1}).build()
    with pytest.raises(ValueError, match="multi_input"):
        heuristic_clusters(txs, ("multi_input",))
    for bad in ({"price_usd": 0.0}, {"round_usd": float("nan")}, {"round_slack": -1}, {"deposit_min_inputs": 0}):
        with pytest.raises(ParameterError):
            HeuristicConfig(**bad)
    with pytest.raises(ParameterError, match=r"excluded_protocols.*'wasabi'.*'joinmarket'"):
        HeuristicConfig(excluded_protocols=("wasabi",))
    with pytest.raises(ParameterError, match="coinjoin_rules is 'best': input should be 'published' or 'improved'"):
        HeuristicConfig(coinjoin_rules="best")


def test_no_rules_and_no_transactions():
    txs = chain().pay(["a", "b"], {"x": 1}).build()
    assert heuristic_clusters(txs, ()).tolist() == [0, 1, 2]
    empty = chain().build()
    assert heuristic_clusters(empty, ALL).tolist() == []
    for links in (heuristic_merges(txs, ()), heuristic_merges(empty, ALL), heuristic_merges(txs, ("deposit",))):
        assert len(links) == 0
        assert links.dtypes[["tx", "address_a", "address_b"]].unique().tolist() == [np.dtype(np.int64)]


# properties and oracle ------------------------------------------------------------------------------------------

NAMES = st.sampled_from([f"n{i}" for i in range(12)])
AMOUNTS = st.sampled_from([7, 30, 1_234_567, 50_000, 120_000, 9_990_000])
PAYMENT = st.tuples(
    st.lists(NAMES, min_size=1, max_size=4),
    st.lists(st.tuples(NAMES, AMOUNTS), min_size=1, max_size=3),
    st.booleans(),
)


@st.composite
def economies(draw) -> Transactions:
    story = chain()
    for inputs, outputs, same_block in draw(st.lists(PAYMENT, min_size=1, max_size=14)):
        total = sum(value for _, value in outputs)
        coins = [(name, total // len(inputs) + 1 + position) for position, name in enumerate(inputs)]
        story = story.pay(coins, outputs, block="same" if same_block else None)
    return story.build()


@settings(max_examples=60, deadline=None)
@given(economies())
def test_common_input_equals_graphsense_clustering(txs):
    labels = heuristic_clusters(txs, ["common_input"], HeuristicConfig(exclude_coinjoins=False))
    assert labels.tolist() == graphsense(txs).tolist()


def graphsense(txs: Transactions) -> np.ndarray:
    oracle = Clustering(max_address_id=max(txs.num_addresses - 1, 0))
    oracle.process_transactions([rows.tolist() for _, rows in txs.inputs.groupby("tx")["address"]])
    mapping = oracle.get_mapping().to_pandas().set_index("address_id")["cluster_id"]
    return by_first(mapping.reindex(range(txs.num_addresses)).to_numpy())


def test_on_a_simulated_chain_the_oracle_agrees():
    txs = simulate(SimulationConfig.preset("tiny", seed=3))
    labels = heuristic_clusters(txs, ["common_input"], HeuristicConfig(exclude_coinjoins=False))
    assert labels.tolist() == graphsense(txs).tolist()


@settings(max_examples=40, deadline=None)
@given(economies())
def test_links_span_the_clusters(txs):
    links = heuristic_merges(txs, ALL)
    labels = components(txs.num_addresses, links["address_a"], links["address_b"])
    assert labels.tolist() == heuristic_clusters(txs, ALL).tolist()
    assert links["tx"].is_monotonic_increasing


@settings(max_examples=40, deadline=None)
@given(economies(), st.sets(st.sampled_from(ALL)))
def test_more_rules_only_make_the_partition_coarser(txs, rules):
    fine, coarse = heuristic_clusters(txs, sorted(rules)), heuristic_clusters(txs, ALL)
    assert len({(f, c) for f, c in zip(fine, coarse, strict=True)}) == len(set(fine))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 30).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.tuples(*[st.integers(0, n - 1)] * 2)))))
def test_components_are_those_of_networkx(case):
    size, pairs = case
    a, b = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    oracle = nx.Graph(pairs)
    oracle.add_nodes_from(range(size))
    expected = np.empty(size, dtype=np.int64)
    for number, group in enumerate(sorted(nx.connected_components(oracle), key=min)):
        expected[list(group)] = number
    assert components(size, a, b).tolist() == expected.tolist() == by_first(expected).tolist()
