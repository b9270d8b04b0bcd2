"""Structural measurements by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from builders import RBF, chain

from btcnb import paper
from btcnb.data import AddressGraph
from btcnb.data.structure import CHAIN_TARGETS, SIZE_BANDS, calibration, chain_shares, cut_ratio, graph_structure
from btcnb.data.graph_construction import build_graph
from btcnb.errors import ParameterError


def test_cut_ratio_counts_crossing_edges() -> None:
    labels = np.array([0, 0, 0, 1, 1])
    edges = np.array([[0, 1, 2, 3], [1, 2, 3, 4]])
    assert cut_ratio(edges, labels) == pytest.approx(1 / 4)
    assert np.isnan(cut_ratio(edges[:, :0], labels))


def test_cut_ratio_of_a_size_band_has_two_readings() -> None:
    """Clusters: twelve nodes (0–11), fifteen nodes (12–26), a single node (27)."""
    labels = np.repeat([0, 1, 2], [12, 15, 1])
    edges = np.array([[0, 0, 12, 27, 27], [1, 12, 13, 0, 12]])
    assert cut_ratio(edges, labels, (10, 100), "incident") == pytest.approx(3 / 5)
    assert cut_ratio(edges, labels, (10, 100), "induced") == pytest.approx(1 / 3)
    assert np.isnan(cut_ratio(edges, labels, (100, 1_000)))
    with pytest.raises(ParameterError, match="reading is 'both'"):
        cut_ratio(edges, labels, (10, 100), "both")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("size", "band"), [(9, None), (10, 0), (99, 0), (100, 1), (1_000, 2), (4_999, 2), (5_000, None)]
)
def test_band_edges(size: int, band: int | None) -> None:
    labels = np.zeros(size, dtype=np.int64)
    edges = np.array([[0], [1]])
    counted = [position for position, sizes in enumerate(SIZE_BANDS) if cut_ratio(edges, labels, sizes) == 0]
    assert counted == ([] if band is None else [band])


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


def like_the_paper(split: str) -> AddressGraph:
    """Only sizes: nodes, edges and clusters of one of the paper's graphs, a thousand times smaller."""
    counts = ["transactions", "nodes", "edges", "clusters"]
    row = paper.table("dataset").set_index("split")[counts].loc[split] // 1_000
    ids = np.arange(row["nodes"])
    targets = np.arange(row["edges"]) % (row["nodes"] - 1) + 1
    edges = pd.DataFrame({"a": np.zeros(row["edges"], dtype=int), "b": targets})
    clusters = pd.DataFrame({"node_id": ids, "alias": ids % row["clusters"]})
    return AddressGraph(pd.DataFrame({"node_id": ids}), edges, clusters, meta={"transactions": row["transactions"]})


def test_the_papers_own_sizes_lie_inside_the_papers_range() -> None:
    graphs = {split: like_the_paper(split) for split in ("train1", "train3", "test")}
    table = calibration(graphs).set_index("quantity")
    sizes = table.index[:4]
    assert table.loc[sizes, "inside"].all()
    assert table.loc["nodes a transaction", ["ours_low", "ours_high"]].tolist() == pytest.approx(
        [643 / 57, 923 / 44], rel=1e-3
    )
    assert not table.loc["clusters a node", "paper_high"] < table.loc["clusters a node", "paper_low"]
    assert table.loc["cut ratio overall, %", "paper_low"] == 87


def test_chain_rows_come_with_the_chain() -> None:
    txs = chain().pay([("a", 5), ("b", 5)], {"c": 4, "d": 6}).build()
    graph = build_graph(txs, labels=[0, 0, 1, 1])
    assert len(calibration(graph, txs)) == len(calibration(graph)) + len(CHAIN_TARGETS)
