"""The coarse partition: Leiden communities of bounded size (the paper's evaluation section)."""

from __future__ import annotations

from typing import Any

import numpy as np

from btcnb.cluster._rows import Int64
from btcnb.errors import DataError, ParameterError

MAX_SIZE = 65_000
"""The paper's largest community, set by the memory of the distance matrix that it needed."""


def edges_of(graph: Any) -> tuple[Int64, int]:
    """Edge index (2, E) int64 and number of nodes of an `AddressGraph` or of a pair (edge_index, num_nodes)."""
    if isinstance(graph, tuple):
        edge_index, nodes = np.asarray(graph[0], dtype=np.int64), int(graph[1])
    else:
        edge_index, nodes = np.asarray(graph.edge_index(), dtype=np.int64), int(graph.num_nodes)
    if edge_index.ndim != 2 or len(edge_index) != 2:
        raise DataError("graph", "edge_index", f"has shape {edge_index.shape}", "pass an array (2, edges)")
    if edge_index.size and (edge_index.min() < 0 or edge_index.max() >= nodes):
        raise DataError("graph", "edge_index", f"names nodes outside 0..{nodes - 1}", "use row positions of the nodes")
    return edge_index, nodes


def undirected_pairs(edge_index: Int64, nodes: int) -> Int64:
    """The graph's node pairs without direction, loops or repetitions, (P, 2) int64, sorted."""
    low, high = np.minimum(*edge_index), np.maximum(*edge_index)
    keys = np.unique((low * nodes + high)[low != high])
    return np.stack([keys // nodes, keys % nodes], axis=1)


def coarse_partition(
    graph: Any, max_size: int = MAX_SIZE, resolution: float = 1.0, seed: int = 0, iterations: int = 2
) -> Int64:
    """Leiden communities of the symmetrised, unweighted graph: int64 label per node, 0..k-1 by falling size.

    graph: an `AddressGraph`, or (edge_index (2, E), num_nodes). No community has more than `max_size` nodes.
    resolution: of the RB configuration model (1 is modularity); iterations: of leidenalg's optimiser, negative for
        "until nothing improves"
    """
    import igraph

    if max_size < 1:
        raise ParameterError(f"max_size is {max_size}; a community has at least one node.")
    if not resolution > 0:
        raise ParameterError(f"resolution is {resolution}; it must be positive.")
    edge_index, nodes = edges_of(graph)
    network = igraph.Graph(n=nodes, edges=undirected_pairs(edge_index, nodes), directed=False)
    labels = _leiden(network, max_size, resolution, seed, iterations)
    labels = _split_oversized(network, labels, max_size, resolution, seed, iterations)
    sizes = np.bincount(labels, minlength=1)
    rank = np.empty(len(sizes), dtype=np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    return rank[labels]


def _leiden(network: Any, max_size: int, resolution: float, seed: int, iterations: int) -> Int64:
    import leidenalg

    found = leidenalg.find_partition(
        network,
        leidenalg.RBConfigurationVertexPartition,
        resolution_parameter=resolution,
        n_iterations=iterations,
        max_comm_size=max_size,
        seed=seed,
    )
    return np.asarray(found.membership, dtype=np.int64)


def _split_oversized(
    network: Any, labels: Int64, max_size: int, resolution: float, seed: int, iterations: int
) -> Int64:
    """Run Leiden again inside every community above the limit, at twice the resolution each time it stays whole.

    leidenalg 0.12 checks `max_comm_size` when it moves nodes but not when it moves whole aggregates, so communities
    above the limit do come back. What no resolution below 2^20 divides (a clique) is cut into runs of nodes.
    """
    labels = labels.copy()
    unused = int(labels.max(initial=-1)) + 1
    waiting = [(np.flatnonzero(labels == c), resolution) for c in np.flatnonzero(np.bincount(labels) > max_size)]
    while waiting:
        nodes, gamma = waiting.pop()
        if gamma > 2.0**20:
            parts = np.arange(len(nodes)) // max_size
        else:
            parts = _leiden(network.induced_subgraph(nodes), max_size, gamma, seed, iterations)
        for part in range(int(parts.max()) + 1):
            inside = nodes[parts == part]
            if len(inside) > max_size:
                waiting.append((inside, gamma * 2 if len(inside) == len(nodes) else gamma))
            else:
                labels[inside] = unused
                unused += 1
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)
