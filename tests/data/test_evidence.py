"""What two independent transactions hold together: small stories, and the definition itself as an oracle."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from builders import Chain, chain, groups
from hypothesis import given, settings
from hypothesis import strategies as st

from btcnb.data import HeuristicConfig, Transactions, heuristic_clusters, heuristic_merges
from btcnb.data.heuristics import DEFAULT_RULES, RULES, linked_twice

INPUTS = ("common_input",)
ALL_COUNT = HeuristicConfig(exclude_coinjoins=False, deposit_min_inputs=2)


def spent(*together: str) -> Transactions:
    """One transaction for each text, which names its inputs: `spent("a b", "b c")`."""
    story = chain()
    for number, names in enumerate(together):
        story = story.pay([(name, 10) for name in names.split()], {f"out{number}": 10 * len(names.split())})
    return story.build()


def held(txs: Transactions, rules: tuple[str, ...] = INPUTS) -> set[str]:
    """Groups of at least two addresses, as texts of sorted names."""
    return {" ".join(sorted(group)) for group in groups(txs, linked_twice(txs, rules)) if len(group) > 1}


@pytest.mark.parametrize(
    ("together", "expected"),
    [
        (["a b"], set()),  # one witness is none too many
        (["a b", "a b"], {"a b"}),
        (["a b", "b c"], set()),  # a chain breaks anywhere
        (["a b", "b c", "c a"], {"a b c"}),  # a triangle does not
        (["a b", "b c", "c d", "d a"], {"a b c d"}),
        (["a b", "a b", "b c", "b c"], {"a b c"}),  # joined by an address, which is nobody's single transaction
        (["a b", "a b", "c d", "c d", "a c"], {"a b", "c d"}),  # one transaction joins two sound pairs
        (["a b", "a b", "c d", "c d", "a b c d"], {"a b", "c d"}),  # however many addresses it has
        (["a b", "a b", "c d", "c d", "a c", "b d"], {"a b c d"}),
        (["a b c", "a b"], {"a b"}),  # c hangs on the first alone
        (["a b c", "a b c"], {"a b c"}),
        (["a b c d", "a b", "c d"], {"a b", "c d"}),  # without the first nothing joins the pairs
        (["a", "a", "b"], set()),  # no merge at all
    ],
)
def test_stories_of_addresses_spent_together(together: list[str], expected: set[str]) -> None:
    assert held(spent(*together)) == expected


def test_two_rules_in_one_transaction_are_one_witness() -> None:
    """Both inputs were needed for 100, so `common_input` and `forced_merge` fire; all rests on this transaction."""
    story = chain().pay([("a", 60), ("b", 60)], {"shop": 100, "c": 20})
    txs = story.build()
    assert sorted(heuristic_merges(txs)["rule"].unique()) == ["common_input", "forced_merge"]
    assert held(txs, DEFAULT_RULES) == set()
    assert held(story.pay(["c", ("b", 5)], {"x": 25}).build(), DEFAULT_RULES) == {"b c"}, "a is named once"


def test_another_rule_can_be_the_second_witness() -> None:
    """c is a's change, since the shop is paid again; later both are spent together."""
    txs = chain().pay("a", {"shop": 70, "c": 30}).pay("z", {"shop": 5}).pay(["c", ("a", 9)], {"x": 39}).build()
    assert held(txs, ("change",)) == held(txs, INPUTS) == set()
    assert held(txs, ("change", "common_input")) == {"a c"}


def test_a_coinjoin_is_no_witness_unless_told_so() -> None:
    inputs = [(f"in{i}", 10**8 + (i + 1) * 10**6) for i in range(5)]
    outputs = {f"mix{i}": 10**8 for i in range(5)} | {f"change{i}": (i + 1) * 10**6 for i in range(4)}
    txs = chain().pay(inputs, outputs).pay([("in0", 5), ("in1", 5)], {"x": 10}).build()
    assert held(txs) == set()
    everything = linked_twice(txs, INPUTS, ALL_COUNT)
    assert frozenset({"in0", "in1"}) in groups(txs, everything)


def test_labels_are_numbered_by_first_appearance() -> None:
    """Addresses by id: a, b, out0, c, out1, out2; out3 follows."""
    labels = linked_twice(spent("a b", "c b", "c b", "a"), INPUTS)
    assert labels.tolist() == [0, 1, 2, 1, 3, 4, 5]
    assert labels.dtype == np.int64


@pytest.mark.parametrize("story", [chain(), chain().coinbase()])
def test_without_merges_everybody_stands_alone(story: Chain) -> None:
    txs = story.build()
    assert linked_twice(txs).tolist() == list(range(txs.num_addresses))


# properties ---------------------------------------------------------------------------------------------------------

spendings = st.lists(
    st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=4, unique=True).map(" ".join), min_size=1, max_size=9
)


def witnesses(txs: Transactions, rules: tuple[str, ...]) -> nx.Graph:
    """Addresses (numbers) and the transactions that merge them (texts)."""
    graph = nx.Graph()
    graph.add_nodes_from(range(txs.num_addresses))
    for row in heuristic_merges(txs, rules, ALL_COUNT).itertuples():
        graph.add_edges_from([(f"tx {row.tx}", row.address_a), (f"tx {row.tx}", row.address_b)])
    return graph


def by_removal(txs: Transactions, rules: tuple[str, ...]) -> set[frozenset[int]]:
    """The definition: addresses that stay connected whichever single transaction is taken away."""
    graph = witnesses(txs, rules)
    places: dict[int, list[int]] = {address: [] for address in range(txs.num_addresses)}
    for gone in [None, *(node for node in graph if isinstance(node, str))]:
        left = graph.subgraph([node for node in graph if node != gone])
        for number, part in enumerate(nx.connected_components(left)):
            for address in part & places.keys():
                places[address].append(number)
    return {frozenset(a for a in places if places[a] == seen) for seen in places.values()}


def by_blocks(txs: Transactions, rules: tuple[str, ...]) -> set[frozenset[int]]:
    """The same by blocks of more than two, joined where they share an address."""
    joined = nx.Graph()
    joined.add_nodes_from(range(txs.num_addresses))
    for block in nx.biconnected_components(witnesses(txs, rules)):
        if len(block) > 2:
            nx.add_path(joined, [node for node in block if not isinstance(node, str)])
    return {frozenset(part) for part in nx.connected_components(joined)}


def by_label(labels: np.ndarray) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)}


@settings(max_examples=60)
@given(spendings)
def test_common_inputs_against_the_definition(together: list[str]) -> None:
    txs = spent(*together)
    ours = by_label(linked_twice(txs, INPUTS, ALL_COUNT))
    assert ours == by_removal(txs, INPUTS) == by_blocks(txs, INPUTS)


@st.composite
def payments(draw: st.DrawFn) -> Transactions:
    """Few addresses that pay one another amounts of all kinds: every rule fires somewhere."""
    story = chain()
    names = st.sampled_from("abcdefgh")
    for _ in range(draw(st.integers(1, 9))):
        outputs = draw(st.lists(names, min_size=1, max_size=2, unique=True))
        values = [draw(st.sampled_from([1_234, 70_001, 30_000_000, 10**8])) for _ in outputs]
        inputs = draw(st.lists(names, min_size=1, max_size=4, unique=True))
        each = -(-sum(values) // len(inputs))
        story = story.pay([(name, each) for name in inputs], dict(zip(outputs, values, strict=True)))
    return story.build()


@settings(max_examples=60)
@given(payments(), st.lists(st.sampled_from(list(RULES)), min_size=1, unique=True).map(tuple))
def test_all_rules_against_the_definition(txs: Transactions, rules: tuple[str, ...]) -> None:
    ours, clusters = linked_twice(txs, rules, ALL_COUNT), heuristic_clusters(txs, rules, ALL_COUNT)
    assert by_label(ours) == by_removal(txs, rules) == by_blocks(txs, rules)
    for coarser in (clusters, linked_twice(txs, tuple(RULES), ALL_COUNT)):  # more rules separate nobody
        assert len(np.unique(np.stack([ours, coarser]), axis=1)[0]) == len(np.unique(ours))
