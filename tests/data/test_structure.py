"""Structural measurements by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from builders import RBF, chain

from btcnb import paper
from btcnb.data import AddressGraph
from btcnb.data.graph_construction import build_graph
from btcnb.data.intervals import SPLITS
from btcnb.data.structure import CHAIN_TARGETS, calibration, chain_shares, graph_structure


def test_chain_shares_by_hand() -> None:
    txs = (
        chain()
        .coinbase()
        .pay([("a", 10)], {"b": 4, "c": 6}, version=1, lock_time=99)
        .pay([("d", 5), ("e", 5)], {"f": 4, "g": 6}, sequence=RBF)
        .pay([("h", 5)], {"i": 5})
        .pay([("j", 9)], {"k": 3, "l": 3, "m": 3})
        .build()
    )
    assert list(chain_shares(txs).values()) == [25, 50, 25, 50, 50, 0, 50, 50, 50, 100]
    old = chain(default_type="pubkeyhash").pay([("a", 10)], {"b": 4, "c": 6}).build()
    assert chain_shares(old)["of 2-output transactions: SegWit, %"] == 0
    wrapped = chain(default_type="scripthash").pay([("a", 10)], {"b": 4, "c": 6}, size=247, virtual_size=166).build()
    assert chain_shares(wrapped)["of 2-output transactions: SegWit, %"] == 100


def test_graph_structure_by_hand() -> None:
    txs = chain().pay([("a", 5), ("b", 5)], {"c": 4, "d": 6}).pay([("c", 4)], {"a": 4}).build()
    ratios = graph_structure(build_graph(txs, labels=[0, 0, 1, 1]))
    assert ratios["nodes a transaction"] == 2
    assert ratios["edges a transaction"] == 5 / 2
    assert ratios["clusters a node"] == 1 / 2
    assert ratios["merged nodes a transaction"] == 1
    assert ratios["cut ratio overall, %"] == 100


def like_the_paper(split: str, **times: int) -> AddressGraph:
    """Only sizes: nodes, edges and clusters of one of the paper's graphs, a thousand times smaller; some multiplied."""
    counts = ["transactions", "nodes", "edges", "clusters"]
    row = paper.table("dataset").set_index("split")[counts].loc[split] // 1_000
    for name, factor in times.items():
        row[name] *= factor
    ids = np.arange(row["nodes"])
    targets = np.arange(row["edges"]) % (row["nodes"] - 1) + 1
    edges = pd.DataFrame({"a": np.zeros(row["edges"], dtype=int), "b": targets})
    clusters = pd.DataFrame({"node_id": ids, "alias": ids % row["clusters"]})
    return AddressGraph(pd.DataFrame({"node_id": ids}), edges, clusters, meta={"transactions": row["transactions"]})


SIZES = ["nodes a transaction", "edges a transaction", "clusters a node", "merged nodes a transaction"]


def test_the_papers_own_graphs_span_the_papers_ranges() -> None:
    table = calibration({split: like_the_paper(split) for split in SPLITS}).set_index("quantity").loc[SIZES]
    assert table["ours_low"].to_numpy() == pytest.approx(table["paper_low"].to_numpy(), rel=0.02)
    assert table["ours_high"].to_numpy() == pytest.approx(table["paper_high"].to_numpy(), rel=0.02)
    assert (table["paper_low"] < table["paper_high"]).all() and table["inside"].all()
    assert table.loc[SIZES[0], ["ours_low", "ours_high"]].tolist() == pytest.approx([491 / 48, 923 / 44], rel=1e-3)


@pytest.mark.parametrize(
    ("times", "outside"),
    [
        ({"edges": 9}, {"edges a transaction"}),
        ({"transactions": 9}, {"nodes a transaction", "edges a transaction", "merged nodes a transaction"}),
        ({"nodes": 9, "clusters": 9}, {"nodes a transaction", "merged nodes a transaction"}),
    ],
)
def test_other_sizes_lie_outside(times: dict[str, int], outside: set[str]) -> None:
    table = calibration(like_the_paper("valid", **times)).set_index("quantity").loc[SIZES]
    assert set(table.index[~table["inside"].to_numpy(bool)]) == outside


def test_a_single_published_value_leaves_a_tenth() -> None:
    """A path through 200 nodes in two clusters, cut so often that the ratio is near the paper's 87 %, or is not."""
    overall = []
    for crossing in (78, 79, 95, 96):
        clusters = np.append(0, np.cumsum(np.arange(100) < crossing) % 2)
        nodes = pd.DataFrame({"node_id": np.arange(101)})
        edges = pd.DataFrame({"a": np.arange(100), "b": np.arange(1, 101)})
        graph = AddressGraph(nodes, edges, nodes.assign(alias=clusters), meta={"transactions": 10})
        overall.append(calibration(graph).set_index("quantity").loc["cut ratio overall, %"])
    assert [row["ours"] for row in overall] == pytest.approx([78, 79, 95, 96])
    assert {(row["paper_low"], row["paper_high"]) for row in overall} == {(87, 87)}
    assert [bool(row["inside"]) for row in overall] == [False, True, True, False]


def test_chain_rows_come_with_the_chain() -> None:
    txs = chain().pay([("a", 5), ("b", 5)], {"c": 4, "d": 6}).build()
    graph = build_graph(txs, labels=[0, 0, 1, 1])
    assert len(calibration(graph, txs)) == len(calibration(graph)) + len(CHAIN_TARGETS)
