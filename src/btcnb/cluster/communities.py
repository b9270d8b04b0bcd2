"""Communities of the simple undirected graph behind a graph, as the coarse partition and the baselines use them.

igraph and leidenalg are imported when they are needed (`_engines`): who only cuts trees does not wait for them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd
import psutil

from btcnb.cluster import _gate
from btcnb.cluster._engines import ENGINES, EngineError, Search, find, network_of
from btcnb.cluster._gate import Int64
from btcnb.errors import DataError

RESOLUTIONS = tuple(float(value) for value in np.arange(0.5, 3.01, 0.5))
"""The grid: the paper gives its range, [0.5, 3], not its step."""

BASELINE_ITERATIONS = 10

NETWORKX_NODES = 5_000
"""Above this many nodes the Louvain baseline runs in igraph: NetworkX keeps Python dictionaries of every edge."""

NODE_BYTES = 100
"""What igraph needs for a node without edges, roughly."""


@runtime_checkable
class GraphLike(Protocol):
    """A directed graph with nodes 0..num_nodes-1, as an `AddressGraph` is one."""

    @property
    def num_nodes(self) -> int: ...

    def edge_index(self) -> Any:
        """Ends of the edges, (2, E)."""


@runtime_checkable
class LabelledGraph(GraphLike, Protocol):
    """A graph whose nodes have a cluster and a degree: what scoring needs."""

    def labels(self) -> Any: ...

    def degree(self) -> Any: ...


def edges_of(graph: Any) -> tuple[Int64, int]:
    """Edge index (2, E) int64 and number of nodes of a `GraphLike`, an igraph graph or (edge_index, num_nodes)."""
    igraph = sys.modules.get("igraph")  # who passes one of its graphs has imported it
    if igraph is not None and isinstance(graph, igraph.Graph):
        graph = (np.array(graph.get_edgelist(), dtype=np.int64).reshape(-1, 2).T, graph.vcount())
    pair = isinstance(graph, tuple) and len(graph) == 2
    ends, nodes = graph if pair else (_gate.asked(graph, "edge_index"), getattr(graph, "num_nodes", None))
    nodes = _gate.whole(nodes, "num_nodes", 0)
    edge_index = _gate.array(ends, "graph")
    if edge_index.ndim != 2 or len(edge_index) != 2:
        raise DataError("graph", "edge_index", f"has shape {edge_index.shape}", "pass an array (2, edges)")
    edge_index = _gate.integers(edge_index, "graph", "edge_index")
    if edge_index.size and (edge_index.min() < 0 or edge_index.max() >= nodes):
        raise DataError("graph", "edge_index", f"names nodes outside 0..{nodes - 1}", "use row positions of the nodes")
    if NODE_BYTES * nodes > psutil.virtual_memory().available:
        raise DataError("graph", "num_nodes", f"is {nodes:,}, too many for this machine", "check the number")
    return edge_index, nodes


def undirected_pairs(edge_index: Int64, nodes: int) -> Int64:
    """The graph's node pairs without direction, loops or repetitions, (P, 2) int64, sorted."""
    low, high = np.minimum(*edge_index), np.maximum(*edge_index)
    keys = np.sort((low * nodes + high)[low != high])  # NumPy's `unique` takes fifty times as long
    keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])] if len(keys) else keys
    first = keys // max(nodes, 1)
    return np.stack([first, keys - first * nodes], axis=1)


def simple_pairs(graph: Any) -> tuple[Int64, int]:
    """Node pairs (P, 2) of the simple undirected graph behind a graph, and its number of nodes."""
    edge_index, nodes = edges_of(graph)
    return undirected_pairs(edge_index, nodes), nodes


def undirected(graph: Any) -> Any:
    """The simple undirected graph behind a graph as igraph's: nodes by row position, each pair once, no loops."""
    return network_of(*simple_pairs(graph))


def found_by(engine: str, pairs: Int64, nodes: int, search: Search, beat: Callable[[], object] = lambda: None) -> Int64:
    """Communities by one of `ENGINES`; see `_engines.find`."""
    try:
        return find(engine, pairs, nodes, search, beat)
    except EngineError as error:
        raise DataError(
            "graph", "communities", f"the search of {engine} ended early ({error})", "free memory and try again"
        ) from None


BASELINES = {"leiden": ("leidenalg", "igraph"), "louvain": ("louvain-networkx", "louvain-igraph")}
"""The baselines of the paper: the engine of the result, and the faster one that the grid is searched with."""


def modularity(pairs: Int64, labels: Int64) -> float:
    """Modularity of communities 0..k-1 of the simple graph with these pairs (P, 2); NaN without any."""
    if not len(pairs):
        return float("nan")
    inside = (labels[pairs[:, 0]] == labels[pairs[:, 1]]).mean()
    shares = np.bincount(labels[pairs].ravel()) / (2 * len(pairs))
    return float(inside - (shares * shares).sum())


def communities(graph: Any, method: str = "leiden", resolution: float = 1.0, seed: int = 0) -> Int64:
    """One community per node, int64, shape (N,), from the simple undirected graph behind `graph`.

    graph: a `GraphLike`, a pair (edge_index, num_nodes), or an igraph graph
    method: `louvain`: NetworkX, as in the paper, or igraph's multilevel algorithm above `NETWORKX_NODES`.
        `leiden`: leidenalg, RBConfiguration, ten iterations. Any of `ENGINES` by name.
    """
    engine = _gate.choice(method, "method", (*BASELINES, *ENGINES))
    resolution = _gate.number(resolution, "resolution", 0.0)
    seed = _gate.whole(seed, "seed", 0)
    pairs, nodes = simple_pairs(graph)
    if method in BASELINES:
        slow = method == "louvain" and nodes > NETWORKX_NODES
        engine = BASELINES[method][1 if slow else 0]
    return found_by(engine, pairs, nodes, Search(resolution, seed, BASELINE_ITERATIONS))


def tune_resolution(
    graph: Any, method: str = "leiden", grid: Sequence[float] = RESOLUTIONS, seed: int = 0
) -> tuple[float, pd.DataFrame]:
    """The resolution whose communities have the highest modularity, and the whole grid as a table.

    The search runs in igraph's compiled versions of both algorithms, which take a fraction of the time and reach the
    same modularity or a little more.
    """
    engine = BASELINES[_gate.choice(method, "method", BASELINES)][1]
    seed = _gate.whole(seed, "seed", 0)
    steps = [_gate.number(step, "resolution", 0.0) for step in _gate.reals(grid, "grid")]
    if not steps:
        raise DataError("grid", "values", "are none", "pass at least one resolution")
    pairs, nodes = simple_pairs(graph)
    rows = []
    for resolution in steps:
        found = found_by(engine, pairs, nodes, Search(resolution, seed, BASELINE_ITERATIONS))
        rows.append((resolution, modularity(pairs, found), len(np.bincount(found))))
    table = pd.DataFrame(rows, columns=["resolution", "modularity", "communities"])
    return float(table["resolution"].to_numpy()[table["modularity"].to_numpy().argmax()]), table
