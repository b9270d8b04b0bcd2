"""The contracts of the two containers: what they accept, what they refuse, and what a selection keeps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from builders import BTC, chain, ids
from hypothesis import given, settings
from hypothesis import strategies as st

from btcnb.data import AddressGraph, Transactions, Truth
from btcnb.data.graph import EDGE_COLUMNS, NODE_COLUMNS
from btcnb.data.transactions import Cutter
from btcnb.errors import DataError, ParameterError


def story() -> Transactions:
    """pool mines 50, pays alice 20 and itself 30; alice pays shop 15 and keeps 5; shop and pool2 pay bob."""
    return (
        chain()
        .coinbase(to="pool", value=50 * BTC)
        .pay("pool", {"alice": 20 * BTC, "pool2": 30 * BTC}, change=1)
        .pay("alice", {"shop": 15 * BTC, "alice2": 5 * BTC}, change=1)
        .pay(["shop", "pool2"], {"bob": 45 * BTC}, coinjoin="joinmarket")
        .owners(pool="pool pool2", alice="alice alice2", bob="bob")
        .build()
    )


STORY = story()


def test_spent_by_names_the_spender_of_every_output():
    assert story().spent_by().tolist() == [1, 2, 3, 3, -1, -1]


def test_offsets_delimit_each_transactions_rows():
    txs = story()
    assert txs.input_offsets().tolist() == [0, 0, 1, 2, 4]
    assert txs.output_offsets().tolist() == [0, 1, 3, 5, 6]


def test_selection_renumbers_and_remembers_what_it_cut_off():
    txs = story()
    part = txs.select(np.array([3, 2]))
    assert part.transactions["hash"].tolist() == txs.transactions["hash"].tolist()[2:]
    assert list(part.addresses) == ["alice", "pool2", "shop", "alice2", "bob"]
    assert part.inputs["spent_output"].tolist() == [-1, 0, -1]
    paying = txs.transactions["hash"].iloc[1]
    assert part.inputs["spent_transaction_hash"].iloc[[0, 2]].tolist() == [paying, paying]
    assert part.inputs["spent_transaction_hash"].isna().tolist() == [False, True, False]
    assert part.inputs["value"].tolist() == [20 * BTC, 15 * BTC, 30 * BTC]
    assert part.truth is not None
    assert part.truth.owner.tolist() == [1, 0, -1, 1, 2]
    assert part.truth.change.tolist() == [1, -1]
    assert part.truth.coinjoin.tolist() == ["", "joinmarket"]


def test_selecting_everything_changes_nothing():
    txs = story()
    assert txs.select(np.ones(4, dtype=bool)).fingerprint() == txs.fingerprint()
    assert txs.select(np.arange(4)).fingerprint() == txs.fingerprint()


def test_selecting_nothing_gives_an_empty_container():
    empty = story().select(np.array([]))
    assert (len(empty), len(empty.inputs), len(empty.outputs), empty.num_addresses) == (0, 0, 0, 0)
    assert len(empty.select(np.array([], dtype=bool))) == 0


@pytest.mark.parametrize("keep", [[4], [-1], np.ones(3, dtype=bool)])
def test_selecting_what_is_not_there_is_refused(keep):
    with pytest.raises(ParameterError, match="keep"):
        story().select(np.asarray(keep))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.booleans(), min_size=4, max_size=4), st.lists(st.booleans(), min_size=4, max_size=4))
def test_selecting_twice_equals_selecting_once(first, second):
    txs = STORY
    one, two = np.array(first), np.array(second)
    twice = txs.select(one).select(two[one])
    assert twice.fingerprint() == txs.select(one & two).fingerprint()
    Transactions.checked(twice.transactions, twice.inputs, twice.outputs, twice.addresses, twice.truth)


def test_a_sources_own_column_follows_the_selection():
    txs = story()
    txs.transactions["file"] = ["a", "b", "c", "d"]
    assert txs.select(np.array([1, 3])).transactions["file"].tolist() == ["b", "d"]


def test_the_fingerprint_sees_every_column():
    txs = story()
    seen = {txs.fingerprint()}
    for table, column in (("transactions", "lock_time"), ("inputs", "sequence"), ("outputs", "value")):
        other = story()
        getattr(other, table)[column] += 1
        seen.add(other.fingerprint())
    other = story()
    other.addresses[0] = "pond"
    seen.add(other.fingerprint())
    assert len(seen) == 5


def test_the_fingerprint_sees_the_truth():
    txs = story()
    assert txs.truth is not None
    others = [None, replace(txs.truth, owner=txs.truth.owner + 1), replace(txs.truth, change=-txs.truth.change)]
    assert len({txs.fingerprint(), *(replace(txs, truth=truth).fingerprint() for truth in others)}) == 4


def test_a_lost_parent_leaves_its_hash_and_op_return_no_address():
    txs = (
        chain()
        .coinbase("a", value=9, hash="cb")
        .pay("a", [("b", 5), (None, 0), ("c", 4)], hash="t1")
        .pay("c", {"d": 4}, hash="t2")
        .build()
    )
    piece = Cutter.of(txs).cut(np.array([1]))
    assert piece.txs.inputs["spent_transaction_hash"].tolist() == ["cb"]
    assert piece.txs.inputs["spent_output"].tolist() == [-1]
    assert piece.txs.outputs["address"].tolist() == [1, -1, 2]
    assert piece.addresses.tolist() == [ids(txs)[name] for name in "abc"]
    assert piece.transactions.tolist() == [1]


def rebuilt(txs: Transactions, table: str, column: str, row: int, value: object) -> Transactions:
    """The same transactions with one cell changed, checked again."""
    tables = {name: getattr(txs, name).astype(object) for name in ("transactions", "inputs", "outputs")}
    tables[table].loc[row, column] = value
    return Transactions.checked(**tables, addresses=txs.addresses, truth=txs.truth, source="story")


@pytest.mark.parametrize(
    ("table", "column", "row", "value", "message"),
    [
        ("transactions", "index", 1, np.nan, "transactions.index: row 1 is empty or NaN"),
        ("transactions", "block_number", 2, 100, "row 2 is out of chain order"),
        ("transactions", "is_coinbase", 0, "False", "transactions.is_coinbase: cannot be read as bool"),
        ("transactions", "version", 0, "two", "transactions.version: cannot be read as int64"),
        ("inputs", "tx", 0, 9, "inputs.tx: row 0 holds 9; expected at least 0 and below 4"),
        ("inputs", "tx", 0, 3, "inputs.tx: rows are not grouped"),
        ("inputs", "address", 0, 7, "inputs.address: row 0 holds 7"),
        ("inputs", "value", 0, -2, "inputs.value: row 0 holds -2"),
        ("inputs", "spent_output", 0, 6, "inputs.spent_output: row 0 holds 6"),
        ("inputs", "spent_output", 1, 0, "output row 0 is spent twice"),
        ("inputs", "spent_output", 1, 5, "input row 1 spends an output that is not made yet"),
        ("outputs", "value", 0, -1, "outputs.value: row 0 holds -1"),
        ("outputs", "script_type", 0, 10, "outputs.script_type: row 0 holds 10"),
        ("outputs", "script_type", 0, 300, "outputs.script_type: cannot be read as int8"),
        ("outputs", "index", 2, 0, "outputs.tx: rows are not grouped"),
    ],
)
def test_a_broken_cell_is_named(table, column, row, value, message):
    with pytest.raises(DataError) as error:
        rebuilt(story(), table, column, row, value)
    assert message in str(error.value)
    assert str(error.value).startswith("story: ")


def test_a_fraction_of_a_satoshi_is_refused():
    txs = story()
    outputs = txs.outputs.assign(value=txs.outputs["value"] / 3)
    with pytest.raises(DataError, match=r"outputs.value: .* is not a whole number"):
        Transactions.checked(txs.transactions, txs.inputs, outputs, txs.addresses)


def test_a_missing_column_is_named():
    txs = story()
    with pytest.raises(DataError, match=r"inputs.sequence: column is missing"):
        Transactions.checked(txs.transactions, txs.inputs.drop(columns="sequence"), txs.outputs, txs.addresses)


def test_truth_of_the_wrong_length_is_refused():
    txs = story()
    with pytest.raises(DataError, match=r"truth.owner: holds 2 entries; expected one for each of 6"):
        Transactions.checked(txs.transactions, txs.inputs, txs.outputs, txs.addresses, Truth(owner=np.zeros(2, int)))


def test_the_same_story_has_the_same_ids():
    assert ids(story()) == {"pool": 0, "alice": 1, "pool2": 2, "shop": 3, "alice2": 4, "bob": 5}
    assert story().fingerprint() == story().fingerprint()


# --- the address graph ------------------------------------------------------------------------------------------------


def graph(node_ids: tuple[int, ...] = (30, 10, 20)) -> AddressGraph:
    """30 pays 10 twice, 10 pays 20; 30 and 20 share a cluster."""
    nodes = pd.DataFrame(0, index=range(3), columns=list(NODE_COLUMNS))
    nodes["node_id"] = node_ids
    nodes["degree_in"], nodes["degree_out"] = [0, 1, 1], [1, 1, 0]
    nodes["min_sent"] = [5.0, 7.0, np.nan]
    a, b = [node_ids[0], node_ids[1]], [node_ids[1], node_ids[2]]
    edges = pd.DataFrame(
        [[*pair, 100, 101, 2, 5, 6, 11] for pair in zip(a, b, strict=True)], columns=list(EDGE_COLUMNS)
    )
    clusters = pd.DataFrame({"node_id": node_ids[::-1], "alias": [7, 9, 7]})
    return AddressGraph(nodes, edges, clusters)


@pytest.mark.parametrize("node_ids", [(30, 10, 20), (0, 1, 2), (2, 1, 0)])
def test_rows_not_ids_order_everything(node_ids):
    found = graph(node_ids).validated()
    assert found.edge_index().tolist() == [[0, 1], [1, 2]]
    assert found.labels().tolist() == [0, 1, 0]
    assert found.degree().tolist() == [1, 2, 1]


@pytest.mark.parametrize(
    ("table", "column", "row", "value", "message"),
    [
        ("nodes", "node_id", 1, 30, "nodes.node_id: 30 stands twice"),
        ("nodes", "node_id", 1, np.nan, "nodes.node_id: row 1 is empty or NaN"),
        ("nodes", "node_id", 1, 10.5, "nodes.node_id: cannot be read as int64 (10.5 is not a whole number"),
        ("nodes", "degree_in", 1, np.nan, "nodes.degree_in: row 1 is empty or NaN"),
        ("nodes", "total_sent", 0, -4, "nodes.total_sent: row 0 holds -4"),
        ("edges", "a", 1, 99, "edges.a: row 1 holds 99"),
        ("edges", "b", 0, np.nan, "edges.b: row 0 is empty or NaN"),
        ("edges", "total_sent", 1, np.nan, "edges.total_sent: row 1 is empty or NaN"),
        ("nodes", "max_sent", 1, np.inf, "nodes.max_sent: row 1 holds inf"),
        ("clusters", "alias", 1, np.nan, "clusters.alias: row 1 is empty or NaN"),
        ("edges", "min_sent", 1, -1, "edges.min_sent: row 1 holds -1"),
        ("clusters", "node_id", 0, 10, "clusters.node_id: 3 rows for 3 nodes"),
        ("clusters", "node_id", 0, 99, "clusters.node_id: row 0 holds 99"),
    ],
)
def test_a_broken_graph_is_named(table, column, row, value, message):
    good = graph()
    tables = {name: getattr(good, name).copy() for name in ("nodes", "edges", "clusters")}
    tables[table][column] = tables[table][column].astype(float)
    tables[table].loc[row, column] = value
    with pytest.raises(DataError) as error:
        AddressGraph(**tables).validated("here")
    assert message in str(error.value)


def test_missing_columns_and_empty_tables_are_named():
    good = graph()
    with pytest.raises(DataError, match=r"nodes.max_sent: column is missing"):
        AddressGraph(good.nodes.drop(columns="max_sent"), good.edges, good.clusters).validated()
    with pytest.raises(DataError, match="nodes: the table is empty"):
        AddressGraph(good.nodes[:0], good.edges[:0], good.clusters[:0]).validated()
    text = good.nodes.assign(degree_in=["1", "2", "many"])
    with pytest.raises(DataError, match=r"nodes.degree_in: cannot be read as number \(.* are not numbers"):
        AddressGraph(text, good.edges, good.clusters).validated()


def test_a_graph_without_edges_is_a_graph():
    good = graph()
    lonely = AddressGraph(good.nodes, good.edges[:0], good.clusters).validated()
    assert lonely.edge_index().shape == (2, 0)


def test_the_graphs_fingerprint_sees_content_not_identity():
    assert graph().fingerprint() == graph().fingerprint()
    others = [
        graph((31, 10, 20)),
        replace(graph(), truth=np.array([0, 1, 0])),
        replace(graph(), meta={"price_usd": 8_000.0}),
        replace(graph(), meta={"price_usd": 9_000.0}),
    ]
    assert len({graph().fingerprint(), *(other.fingerprint() for other in others)}) == 5
    assert graph().fingerprint() == replace(graph(), meta={"source": "elsewhere"}).fingerprint()
