"""Baselines without features: Louvain and Leiden communities of the undirected graph."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import igraph
import leidenalg
import networkx as nx
import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.data.address_graph import AddressGraph
from btcnb.errors import ParameterError

IntArray = npt.NDArray[np.int64]
Method = Literal["louvain", "leiden"]

RESOLUTIONS = tuple(float(value) for value in np.arange(0.5, 3.01, 0.5))
"""The grid: the paper gives its range, [0.5, 3], not its step."""
LEIDEN_ITERATIONS = 10
NETWORKX_NODES = 5_000
"""Above this many nodes Louvain runs in igraph: NetworkX keeps Python dictionaries of every edge."""


def communities(
    graph: AddressGraph | igraph.Graph, method: Method = "leiden", resolution: float = 1.0, seed: int = 0
) -> IntArray:
    """One community per node, int64, shape (N,), from the simple undirected graph behind `graph`.

    `louvain`: NetworkX, as in the paper, or igraph's multilevel algorithm above `NETWORKX_NODES`. `leiden`: leidenalg,
    RBConfiguration, ten iterations.
    """
    simple = undirected(graph)
    if not resolution > 0:
        raise ParameterError(f"resolution is {resolution!r}, but must be above 0.")
    if method == "leiden":
        found = leidenalg.find_partition(
            simple,
            leidenalg.RBConfigurationVertexPartition,
            resolution_parameter=resolution,
            n_iterations=LEIDEN_ITERATIONS,
            seed=seed,
        )
        return np.asarray(found.membership, dtype=np.int64)
    if method != "louvain":
        raise ParameterError(f"method is {method!r}, but must be 'louvain' or 'leiden'.")
    if simple.vcount() <= NETWORKX_NODES:
        return _networkx_louvain(simple, resolution, seed)
    return _igraph_louvain(simple, resolution, seed)


def tune_resolution(
    graph: AddressGraph | igraph.Graph,
    method: Method = "leiden",
    grid: tuple[float, ...] = RESOLUTIONS,
    seed: int = 0,
) -> tuple[float, pd.DataFrame]:
    """The resolution whose communities have the highest modularity, and the whole grid as a table.

    The search runs in igraph's compiled versions of both algorithms, which take a fraction of the time and reach the
    same modularity or a little more.
    """
    simple = undirected(graph)
    search = _igraph_leiden if method == "leiden" else _igraph_louvain
    rows = []
    for resolution in grid:
        found = search(simple, resolution, seed)
        rows.append((resolution, simple.modularity(found.tolist()), len(np.unique(found))))
    table = pd.DataFrame(rows, columns=["resolution", "modularity", "communities"])
    return float(table["resolution"].to_numpy()[table["modularity"].to_numpy().argmax()]), table


def undirected(graph: AddressGraph | igraph.Graph) -> igraph.Graph:
    """Nodes by row position, each pair of neighbours once, no self-loops."""
    if isinstance(graph, igraph.Graph):
        return graph
    ends = np.sort(graph.edge_index(), axis=0)
    ends = ends[:, ends[0] != ends[1]]
    pairs = np.unique(ends[0] * graph.num_nodes + ends[1])
    edges = np.stack([pairs // graph.num_nodes, pairs % graph.num_nodes], axis=1)
    return igraph.Graph(n=graph.num_nodes, edges=edges, directed=False)


def _networkx_louvain(simple: igraph.Graph, resolution: float, seed: int) -> IntArray:
    network = nx.Graph()
    network.add_nodes_from(range(simple.vcount()))
    network.add_edges_from(simple.get_edgelist())
    labels = np.empty(simple.vcount(), dtype=np.int64)
    for label, members in enumerate(nx.community.louvain_communities(network, resolution=resolution, seed=seed)):
        labels[list(members)] = label
    return labels


def _igraph_louvain(simple: igraph.Graph, resolution: float, seed: int) -> IntArray:
    with _seeded(seed):
        found = simple.community_multilevel(resolution=resolution)
    return np.asarray(found.membership, dtype=np.int64)


def _igraph_leiden(simple: igraph.Graph, resolution: float, seed: int) -> IntArray:
    with _seeded(seed):
        found = simple.community_leiden("modularity", resolution=resolution, n_iterations=LEIDEN_ITERATIONS)
    return np.asarray(found.membership, dtype=np.int64)


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """igraph draws from a generator of its own inside, from Python's afterwards."""
    igraph.set_random_number_generator(random.Random(seed))
    try:
        yield
    finally:
        igraph.set_random_number_generator(random)
