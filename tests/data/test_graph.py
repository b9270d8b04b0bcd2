"""Building the address graph: scenarios one can check by hand, a naive oracle, networkx, and conservation."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from builders import BTC, chain, ids
from hypothesis import given, settings
from hypothesis import strategies as st

from btcnb.data import AddressGraph, Transactions
from btcnb.data.graph import CLUSTER_COLUMNS, EDGE_COLUMNS, NODE_COLUMNS
from btcnb.data.graph_construction import build_graph
from btcnb.data.transfers import _part
from btcnb.errors import ParameterError


def graph_of(txs: Transactions, **options: Any) -> AddressGraph:
    return build_graph(txs, labels=np.arange(txs.num_addresses), **options).validated()


def edges_of(txs: Transactions, graph: AddressGraph) -> dict[str, dict[str, int]]:
    """Edges by name: {"alice>shop": {"total": 1, …}}."""
    names = txs.addresses
    return {f"{names[row['a']]}>{names[row['b']]}": row for row in graph.edges.to_dict("records")}


def node(txs: Transactions, graph: AddressGraph, name: str) -> dict[str, float]:
    return graph.nodes.set_index("node_id").loc[ids(txs)[name]].to_dict()


def test_columns_are_exactly_those_of_the_paper() -> None:
    graph = graph_of(chain().pay([("a", 5)], {"b": 5}).build())
    assert tuple(graph.nodes.columns) == NODE_COLUMNS
    assert tuple(graph.edges.columns) == EDGE_COLUMNS
    assert tuple(graph.clusters.columns) == CLUSTER_COLUMNS


def test_two_inputs_split_each_output_in_proportion() -> None:
    txs = chain().pay([("a", 300), ("b", 100)], {"shop": 200, "change": 180}).build()
    edges = edges_of(txs, graph_of(txs))
    assert {name: edge["total_sent"] for name, edge in edges.items()} == {
        "a>shop": 150, "b>shop": 50, "a>change": 135, "b>change": 45,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("split_value", "expected"),
    [("proportional", {"a>c": 75, "b>c": 25}), ("equal", {"a>c": 50, "b>c": 50}), ("full", {"a>c": 100, "b>c": 100})],
)
def test_the_split_is_a_parameter(split_value: Any, expected: dict[str, int]) -> None:
    txs = chain().pay([("a", 90), ("b", 30)], {"c": 100}).build()
    edges = edges_of(txs, graph_of(txs, split_value=split_value))
    assert {name: edge["total_sent"] for name, edge in edges.items()} == expected


def test_rounding_loses_no_satoshi() -> None:
    txs = chain().pay([("a", 1), ("b", 1), ("c", 1)], {"d": 2}).build()
    edges = edges_of(txs, graph_of(txs))
    assert sorted(edge["total_sent"] for edge in edges.values()) == [0, 1, 1]


def test_change_to_the_own_address_is_no_edge() -> None:
    txs = chain().pay([("a", 10 * BTC)], {"shop": 3 * BTC, "a": 7 * BTC}).build()
    graph = graph_of(txs)
    assert set(edges_of(txs, graph)) == {"a>shop"}
    assert node(txs, graph, "a")["total_sent"] == 3 * BTC
    assert np.isnan(node(txs, graph, "a")["total_received"])


def test_an_input_address_among_the_outputs_receives_from_the_other_inputs() -> None:
    """a pays 60 and b pays 40; a gets 50 back. Gross: b pays 20 of that. Net: a only paid 10, and receives nothing."""
    txs = chain().pay([("a", 60), ("b", 40)], {"shop": 50, "a": 50}).build()
    gross = edges_of(txs, graph_of(txs))
    assert {name: edge["total_sent"] for name, edge in gross.items()} == {"a>shop": 30, "b>shop": 20, "b>a": 20}
    net = edges_of(txs, graph_of(txs, flow="net"))
    assert {name: edge["total_sent"] for name, edge in net.items()} == {"a>shop": 10, "b>shop": 40}


def test_repeated_transfers_share_one_edge() -> None:
    txs = (
        chain(start_block=100)
        .pay([("a", 5)], {"b": 5})
        .pay([("a", 9)], {"b": 9})
        .pay([("a", 2)], {"b": 2}, block=140)
        .build()
    )
    graph = graph_of(txs)
    (edge,) = edges_of(txs, graph).values()
    assert edge == {
        "a": 0, "b": 1, "reveal": 100, "last_seen": 140, "total": 3, "min_sent": 2, "max_sent": 9, "total_sent": 16,
    }  # fmt: skip
    sender = node(txs, graph, "a")
    assert (sender["degree_out"], sender["total_transaction_out"], sender["first_transaction_out"]) == (1, 3, 100)
    assert (sender["min_sent"], sender["max_sent"], sender["total_sent"]) == (2, 9, 16)
    assert sender["degree_in"] == 0
    assert np.isnan([sender[name] for name in ("first_transaction_in", "min_received", "total_received")]).all()


def test_extremes_per_transaction_or_per_transfer() -> None:
    txs = chain().pay([("a", 30)], {"b": 10, "c": 20}).pay([("a", 12)], {"b": 12}).build()
    sender = node(txs, graph_of(txs), "a")
    assert (sender["min_sent"], sender["max_sent"], sender["total_transaction_out"]) == (12, 30, 3)
    sender = node(txs, graph_of(txs, extremes="transfer"), "a")
    assert (sender["min_sent"], sender["max_sent"]) == (10, 20)


def test_coinbase_and_op_return() -> None:
    txs = chain().coinbase(to="pool", value=50).pay("pool", {"a": 49, None: 0}).coinbase(to="loner", value=50).build()
    graph = graph_of(txs)
    assert set(edges_of(txs, graph)) == {"pool>a"}
    assert list(txs.addresses[graph.nodes["node_id"]]) == ["pool", "a", "loner"]
    assert node(txs, graph, "pool")["degree_in"] == 0, "newly minted coins come from nobody"
    assert "loner" not in graph_of(txs, keep_isolated=False).addresses


def test_unknown_inputs() -> None:
    """An input without address sends nothing; one without value makes the known senders share evenly."""
    txs = chain().pay([("a", 30), ("b", 10), ("x", 5)], {"c": 40}).build()
    inputs = txs.inputs.copy()
    inputs.loc[2, "address"] = -1
    inputs.loc[2, "value"] = -1
    txs = Transactions.checked(txs.transactions, inputs, txs.outputs, txs.addresses)
    graph = graph_of(txs)
    assert {name: edge["total_sent"] for name, edge in edges_of(txs, graph).items()} == {"a>c": 20, "b>c": 20}
    assert "x" not in graph.addresses


def test_meta_truth_and_labels() -> None:
    txs = chain(700).pay([("a", 4), ("b", 4)], {"c": 8}).owners(alice="a b", bob="c").build(source="a story")
    graph = build_graph(txs, labels=[7, 7, 3], price_usd=8_400.5)
    assert graph.meta == {
        "start_block": 700, "end_block": 700, "price_usd": 8_400.5, "source": "a story", "transactions": 1,
    }  # fmt: skip
    assert graph.clusters["alias"].tolist() == [7, 7, 3]
    assert graph.labels().tolist() == [0, 0, 1]
    assert graph.truth is not None and graph.truth.tolist() == [0, 0, 1]
    assert graph.addresses is not None and graph.addresses.tolist() == ["a", "b", "c"]


def test_the_price_of_the_papers_intervals_is_known() -> None:
    inside = chain(674_010).pay([("a", 4)], {"c": 4}).build()
    assert graph_of(inside).meta["price_usd"] == pytest.approx(53_537.82)
    assert graph_of(inside, price_usd=1.5).meta["price_usd"] == 1.5
    assert graph_of(chain(500_000).pay([("a", 4)], {"c": 4}).build()).meta["price_usd"] is None


def test_default_labels_are_the_heuristic_clusters() -> None:
    txs = chain().pay([("a", 4), ("b", 4)], {"c": 8}).build()
    labels = build_graph(txs).labels()
    assert labels[0] == labels[1] != labels[2]


@given(st.integers(0, 21 * 10**14), st.integers(0, 21 * 10**14), st.integers(1, 21 * 10**14))
def test_parts_are_exact_beyond_64_bits(value: int, weight: int, total: int) -> None:
    weight = min(weight, total)
    assert _part(value, weight, total) == value * weight // total


# Random small chains ----------------------------------------------------------------------------------------------

amounts = st.integers(0, 50) | st.integers(10**14, 4 * 10**14)
names = st.sampled_from("abcdefgh")
payments = st.tuples(
    st.lists(st.tuples(names, amounts), min_size=1, max_size=5),
    st.lists(st.tuples(names | st.none(), st.floats(0, 1)), min_size=1, max_size=5),
    st.booleans(),
)


@st.composite
def chains(draw: st.DrawFn) -> Transactions:
    story = chain()
    for number, (inputs, shares, new_block) in enumerate(draw(st.lists(payments, min_size=1, max_size=8))):
        left = sum(value for _, value in inputs)
        outputs = []
        for name, share in shares:
            outputs.append((name, 0 if name is None else int(left * share)))
            left -= outputs[-1][1]
        story.pay(inputs, outputs, fee=0, block=None if new_block or number == 0 else "same")
    return story.build()


def naive(txs: Transactions, split_value: str, flow: str) -> list[tuple[int, int, int, int, int]]:
    """Every transfer (tx, sender, recipient, block, value), also to oneself, by dictionaries and exact integers."""
    inputs = txs.inputs[["tx", "address", "value"]].to_numpy().tolist()
    outputs = txs.outputs[["tx", "address", "value"]].to_numpy().tolist()
    found = []
    for t, block in enumerate(txs.transactions["block_number"].tolist()):
        sent: dict[int, int] = defaultdict(int)
        got: dict[int, int] = defaultdict(int)
        for tx, address, value in inputs:
            if tx == t:
                sent[address] += value
        for tx, address, value in outputs:
            if tx == t and address >= 0:
                got[address] += value
        if flow == "net":
            balance = {v: got.get(v, 0) - sent.get(v, 0) for v in [*sent, *got]}
            sent = {v: -balance[v] for v in sent if balance[v] < 0}
            got = {v: balance[v] for v in balance if balance[v] > 0}
        weights = sent if split_value == "proportional" and sum(sent.values()) else dict.fromkeys(sent, 1)
        total = sum(weights.values())
        for b, value in got.items():
            paid = 0
            for a, weight in weights.items():
                part = value * (paid + weight) // total - value * paid // total
                paid += weight
                found.append((t, a, b, block, value if split_value == "full" else part))
    return found


@settings(max_examples=60, deadline=None)
@given(
    chains(),
    st.sampled_from(["proportional", "equal", "full"]),
    st.sampled_from(["gross", "net"]),
    st.sampled_from(["transaction", "transfer"]),
)
def test_equals_the_naive_construction(txs: Transactions, split_value: Any, flow: Any, extremes: Any) -> None:
    graph = graph_of(txs, split_value=split_value, flow=flow, extremes=extremes)
    transfers = [row for row in naive(txs, split_value, flow) if row[1] != row[2]]
    edges: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for _, a, b, block, value in transfers:
        edges[a, b].append((block, value))
    expected = []
    for pair, rows in sorted(edges.items()):
        blocks, values = [block for block, _ in rows], [value for _, value in rows]
        expected.append((*pair, min(blocks), max(blocks), len(rows), min(values), max(values), sum(values)))
    assert [tuple(row) for row in graph.edges.to_numpy().tolist()] == expected

    for end, side, verb in ((1, "out", "sent"), (2, "in", "received")):
        for row in graph.nodes.to_dict("records"):
            mine = [transfer for transfer in transfers if transfer[end] == row["node_id"]]
            amounts: dict[Any, int] = defaultdict(int)  # per transaction, or per transfer
            for transfer in mine:
                amounts[transfer[0] if extremes == "transaction" else transfer] += transfer[4]
            assert row[f"total_transaction_{side}"] == len(mine)
            assert row[f"degree_{side}"] == len({transfer[3 - end] for transfer in mine})
            about = [row[f"first_transaction_{side}"], row[f"last_transaction_{side}"], row[f"min_{verb}"],
                     row[f"max_{verb}"], row[f"total_{verb}"]]  # fmt: skip
            if not mine:
                assert np.isnan(about).all()
                continue
            blocks = [transfer[3] for transfer in mine]
            told = [min(blocks), max(blocks), min(amounts.values()), max(amounts.values()), sum(amounts.values())]
            assert about == list(map(float, told)), "columns with gaps are float64: whole satoshi up to 2⁵³"


@settings(max_examples=40, deadline=None)
@given(chains(), st.sampled_from(["proportional", "equal"]))
def test_value_is_conserved(txs: Transactions, split_value: Any) -> None:
    """What the edges carry, plus what senders pay to themselves, is what the outputs hold, to the satoshi."""
    graph = graph_of(txs, split_value=split_value)
    to_self = sum(value for _, a, b, _, value in naive(txs, split_value, "gross") if a == b)
    payable = txs.outputs.loc[txs.outputs["address"] >= 0, "value"].sum()
    assert graph.edges["total_sent"].sum() + to_self == payable
    assert graph.nodes["total_sent"].sum() == graph.nodes["total_received"].sum() == graph.edges["total_sent"].sum()


@settings(max_examples=40, deadline=None)
@given(chains())
def test_degrees_are_those_of_networkx(txs: Transactions) -> None:
    graph = graph_of(txs)
    digraph = nx.DiGraph()
    digraph.add_nodes_from(graph.nodes["node_id"])
    digraph.add_edges_from(graph.edges[["a", "b"]].itertuples(index=False))
    assert graph.nodes["degree_in"].tolist() == [digraph.in_degree(v) for v in graph.nodes["node_id"]]
    assert graph.nodes["degree_out"].tolist() == [digraph.out_degree(v) for v in graph.nodes["node_id"]]
    assert digraph.number_of_edges() == graph.num_edges


@settings(max_examples=25, deadline=None)
@given(chains(), st.data())
def test_graphs_of_two_halves_add_up_to_the_graph_of_all(txs: Transactions, data: st.DataObject) -> None:
    """Chunked input gives the same edges: transfers of different transactions never mix."""
    middle = data.draw(st.integers(0, len(txs)))
    parts = []
    for chunk in (np.arange(middle), np.arange(middle, len(txs))):
        if len(chunk):
            part = txs.select(chunk)
            edges = graph_of(part).edges
            parts.append(edges.assign(a=part.addresses[edges["a"]], b=part.addresses[edges["b"]]))
    merged = (
        pd.concat(parts)
        .groupby(["a", "b"], as_index=False)
        .agg({"reveal": "min", "last_seen": "max", "total": "sum", "min_sent": "min", "max_sent": "max",
              "total_sent": "sum"})
    )  # fmt: skip
    whole = graph_of(txs).edges
    whole = whole.assign(a=txs.addresses[whole["a"]], b=txs.addresses[whole["b"]]).sort_values(["a", "b"])
    assert merged.to_dict("records") == whole.to_dict("records")


def test_an_unknown_way_to_split_is_refused() -> None:
    with pytest.raises(ParameterError, match="split_value is 'half'"):
        graph_of(chain().pay([("a", 4)], {"c": 4}).build(), split_value="half")
