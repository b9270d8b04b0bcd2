"""Communities of the simple undirected graph behind a graph: the engines of the coarse partition and of the baselines.

igraph and leidenalg are imported when they are needed: who only cuts trees does not wait for them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import pandas as pd
import psutil

from btcnb.cluster import _gate
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


class Search(NamedTuple):
    """What an engine is asked for. iterations: negative for "until nothing improves"; max_size: 0 for no limit."""

    resolution: float
    seed: int
    iterations: int = 2
    max_size: int = 0


def edges_of(graph: Any) -> tuple[Int64, int]:
    """Edge index (2, E) int64 and number of nodes of a `GraphLike` or of a pair (edge_index, num_nodes)."""
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
    keys = np.unique((low * nodes + high)[low != high])
    return np.stack([keys // max(nodes, 1), keys % max(nodes, 1)], axis=1)


def undirected(graph: Any) -> Any:
    """An igraph graph: nodes by row position, each pair of neighbours once, no loops; one that is given is kept."""
    import igraph

    if isinstance(graph, igraph.Graph):
        return graph
    edge_index, nodes = edges_of(graph)
    return igraph.Graph(n=nodes, edges=undirected_pairs(edge_index, nodes), directed=False)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """igraph draws from Python's generator; inside from one of its own, so that nobody else's numbers matter or change.

    igraph cannot say which generator it had, so afterwards it has its default one.
    """
    import igraph

    igraph.set_random_number_generator(random.Random(seed))
    try:
        yield
    finally:
        igraph.set_random_number_generator(random)


def _igraph_leiden(network: Any, search: Search) -> Int64:
    with seeded(search.seed):
        found = network.community_leiden(
            objective_function="modularity", resolution=search.resolution, n_iterations=search.iterations
        )
    return np.asarray(found.membership, dtype=np.int64)


def _leidenalg(network: Any, search: Search) -> Int64:
    import leidenalg

    found = leidenalg.find_partition(
        network,
        leidenalg.RBConfigurationVertexPartition,
        resolution_parameter=search.resolution,
        n_iterations=search.iterations,
        max_comm_size=search.max_size,
        seed=search.seed,
    )
    return np.asarray(found.membership, dtype=np.int64)


def _igraph_louvain(network: Any, search: Search) -> Int64:
    with seeded(search.seed):
        found = network.community_multilevel(resolution=search.resolution)
    return np.asarray(found.membership, dtype=np.int64)


def _networkx_louvain(network: Any, search: Search) -> Int64:
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(range(network.vcount()))
    graph.add_edges_from(network.get_edgelist())
    labels = np.empty(network.vcount(), dtype=np.int64)
    found = nx.community.louvain_communities(graph, resolution=search.resolution, seed=search.seed)
    for label, members in enumerate(found):
        labels[list(members)] = label
    return labels


ENGINES: dict[str, Callable[[Any, Search], Int64]] = {
    "igraph": _igraph_leiden,
    "leidenalg": _leidenalg,
    "louvain-igraph": _igraph_louvain,
    "louvain-networkx": _networkx_louvain,
}
"""Every way to find communities of an igraph graph; the first two are Leiden."""

BASELINES = {"leiden": ("leidenalg", "igraph"), "louvain": ("louvain-networkx", "louvain-igraph")}
"""The baselines of the paper: the engine of the result, and the faster one that the grid is searched with."""


def communities(graph: Any, method: str = "leiden", resolution: float = 1.0, seed: int = 0) -> Int64:
    """One community per node, int64, shape (N,), from the simple undirected graph behind `graph`.

    graph: a `GraphLike`, a pair (edge_index, num_nodes), or an igraph graph
    method: `louvain`: NetworkX, as in the paper, or igraph's multilevel algorithm above `NETWORKX_NODES`.
        `leiden`: leidenalg, RBConfiguration, ten iterations. Any of `ENGINES` by name.
    """
    engine = _gate.choice(method, "method", (*BASELINES, *ENGINES))
    resolution = _gate.number(resolution, "resolution", 0.0)
    seed = _gate.whole(seed, "seed", 0)
    simple = undirected(graph)
    if method in BASELINES:
        slow = method == "louvain" and simple.vcount() > NETWORKX_NODES
        engine = BASELINES[method][1 if slow else 0]
    return ENGINES[engine](simple, Search(resolution, seed, BASELINE_ITERATIONS))


def tune_resolution(
    graph: Any, method: str = "leiden", grid: Sequence[float] = RESOLUTIONS, seed: int = 0
) -> tuple[float, pd.DataFrame]:
    """The resolution whose communities have the highest modularity, and the whole grid as a table.

    The search runs in igraph's compiled versions of both algorithms, which take a fraction of the time and reach the
    same modularity or a little more.
    """
    engine = ENGINES[BASELINES[_gate.choice(method, "method", BASELINES)][1]]
    seed = _gate.whole(seed, "seed", 0)
    steps = [_gate.number(step, "resolution", 0.0) for step in _gate.reals(grid, "grid")]
    if not steps:
        raise DataError("grid", "values", "are none", "pass at least one resolution")
    simple = undirected(graph)
    rows = []
    for resolution in steps:
        found = engine(simple, Search(resolution, seed, BASELINE_ITERATIONS))
        rows.append((resolution, simple.modularity(found.tolist()), len(np.unique(found))))
    table = pd.DataFrame(rows, columns=["resolution", "modularity", "communities"])
    return float(table["resolution"].to_numpy()[table["modularity"].to_numpy().argmax()]), table
