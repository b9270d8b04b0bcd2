"""Structural measurements by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from builders import chain

from btcnb import paper
from btcnb.data import AddressGraph
from btcnb.data.chain_measures import real_chain
from btcnb.data.graph_construction import build_graph
from btcnb.data.intervals import SPLITS
from btcnb.data.structure import ERA_SHARES, POINTS, calibration, era_marginals, graph_structure, year_of
from btcnb.errors import DataError


def test_a_chain_is_compared_with_the_real_blocks_of_its_year() -> None:
    """Heights of the paper's intervals: 599,000 is of 2019, 649,000 of 2020, 699,000 of 2021."""
    years = {}
    for height in (599_000, 649_000, 699_000):
        txs = chain(height).pay([("a", 10)], {"b": 4, "c": 6}, version=1).pay([("h", 5)], {"i": 5}).build()
        years[height] = year_of(txs)
        table = era_marginals({"mine": txs}).set_index("quantity")
        assert table.index.tolist() == list(ERA_SHARES)
        real = real_chain(years[height])
        assert table["real"].tolist() == [real[quantity] for quantity in ERA_SHARES]
        assert table.loc["transactions with 2 outputs, %", "ours"] == 50
        assert table.loc["of 2-output transactions: version 1, %", "ours"] == 100
        assert (table["gap"] == table["ours"] - table["real"]).all()
        assert (table["inside"] == (table["gap"].abs() <= POINTS)).all() and not table["inside"].all()
    assert list(years.values()) == ["2019", "2020", "2021"]


def test_without_a_block_there_is_no_year() -> None:
    txs = chain().pay([("a", 5)], {"b": 5}).build()
    with pytest.raises(DataError, match="transactions: there are none"):
        year_of(txs.select(np.array([], dtype=int)))


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
    assert table["ours_low"].to_numpy() == pytest.approx(table["low"].to_numpy(), rel=0.02)
    assert table["ours_high"].to_numpy() == pytest.approx(table["high"].to_numpy(), rel=0.02)
    assert (table["low"] < table["high"]).all() and table["inside"].all()
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
    assert {(row["low"], row["high"]) for row in overall} == {(87, 87)}
    assert [bool(row["inside"]) for row in overall] == [False, True, True, False]


def test_chain_rows_come_with_the_chain() -> None:
    txs = chain().pay([("a", 5), ("b", 5)], {"c": 4, "d": 6}).build()
    graph = build_graph(txs, labels=[0, 0, 1, 1])
    table = calibration(graph, txs)
    rows = table[table["about"] == "chain"].set_index("quantity")
    assert len(table) == len(calibration(graph)) + len(rows) and rows.index.tolist() == list(ERA_SHARES)
    marginals = era_marginals({"chain": txs}).set_index("quantity")
    assert rows["inside"].tolist() == marginals["inside"].tolist()
    assert (rows["slack"] == POINTS).all() and rows["low"].tolist() == marginals["real"].tolist()
