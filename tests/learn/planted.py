"""Small graphs with planted clusters, so that tests of learning know what there is to learn."""

from __future__ import annotations

import numpy as np
import pandas as pd

from btcnb.data.graph import AddressGraph
from btcnb.learn import PreparedGraph, prepare_arrays


def planted_arrays(
    clusters: int = 12, size: int = 10, seed: int = 0, features: int = 6, noise: float = 0.3, loners: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Features (N, F), edges (2, E), labels (N,), edge features (E, 2): clusters share edges and a mean."""
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.repeat(np.arange(clusters), size), clusters + np.arange(loners)])
    nodes = len(labels)
    inside = [
        (i, j) for i in range(nodes) for j in range(nodes) if i != j and labels[i] == labels[j] and rng.random() < 0.25
    ]
    across = [(int(i), int(j)) for i, j in rng.integers(0, nodes, (nodes, 2))]  # some are self-loops or repeats
    edges = np.array(inside + across).T
    centres = rng.normal(size=(clusters + loners, features))
    x = centres[labels] + noise * rng.normal(size=(nodes, features))
    return x.astype(np.float32), edges, labels, rng.random((edges.shape[1], 2)).astype(np.float32)


def planted(symmetrise: bool = True, edge_features: bool = False, **options: float) -> PreparedGraph:
    x, edges, labels, attributes = planted_arrays(**options)  # type: ignore[arg-type]
    return prepare_arrays(x, edges, labels, attributes if edge_features else None, symmetrise)


def address_graph(seed: int = 0, clusters: int = 6, size: int = 6) -> AddressGraph:
    """The same kind of graph as the three tables of the dataset, with a price."""
    _, edges, labels, _ = planted_arrays(clusters=clusters, size=size, seed=seed)
    edges = np.unique(edges[:, edges[0] != edges[1]], axis=1)
    rng = np.random.default_rng(seed)
    nodes, number = len(labels), edges.shape[1]
    value = rng.integers(1_000, 10**9, number)
    reveal = rng.integers(600_000, 600_100, number)
    edge_table = pd.DataFrame(
        {
            "a": edges[0],
            "b": edges[1],
            "reveal": reveal,
            "last_seen": reveal + rng.integers(0, 50, number),
            "total": rng.integers(1, 4, number),
            "min_sent": value,
            "max_sent": value,
            "total_sent": value,
        }
    )
    table = {"node_id": np.arange(nodes)}
    for side, end, verb in (("in", "b", "received"), ("out", "a", "sent")):
        grouped = edge_table.groupby(end)
        count = grouped.size().reindex(range(nodes), fill_value=0)
        table[f"degree_{side}"] = table[f"total_transaction_{side}"] = count
        table[f"first_transaction_{side}"] = grouped["reveal"].min().reindex(range(nodes))
        table[f"last_transaction_{side}"] = grouped["last_seen"].max().reindex(range(nodes))
        for how, column in (("min", "min_sent"), ("max", "max_sent"), ("sum", "total_sent")):
            name = f"{'total' if how == 'sum' else how}_{verb}"
            table[name] = grouped[column].agg(how).reindex(range(nodes))
    return AddressGraph(
        nodes=pd.DataFrame(table),
        edges=edge_table,
        clusters=pd.DataFrame({"node_id": np.arange(nodes), "alias": labels + 100}),
        meta={"price_usd": 8_000.0},
    ).validated()
