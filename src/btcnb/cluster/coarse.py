"""The coarse partition: communities of bounded size (the paper's evaluation section)."""

from __future__ import annotations

from typing import Any

import numpy as np

from btcnb.cluster import _gate
from btcnb.cluster._gate import Int64
from btcnb.cluster._progress import Progress, Reporter
from btcnb.cluster.communities import ENGINES, Search, undirected
from btcnb.errors import ParameterError

MAX_SIZE = 65_000
"""The paper's largest community, set by the memory of the distance matrix that it needed."""

MOST_ITERATIONS = 1_000


def coarse_partition(
    graph: Any,
    max_size: int = MAX_SIZE,
    resolution: float = 1.0,
    seed: int = 0,
    iterations: int = 2,
    method: str = "igraph",
    progress: Progress = None,
) -> Int64:
    """Communities of the symmetrised, unweighted graph: int64 label per node, 0..k-1 by falling size.

    graph: an `AddressGraph` or any `GraphLike`, or (edge_index (2, E), num_nodes), or an igraph graph. No community has
        more than `max_size` nodes.
    resolution: of the configuration model (1 is modularity); iterations: of Leiden, negative for "until nothing
        improves"
    method: "igraph" finds Leiden communities and then splits only those above the limit; "leidenalg" keeps to the limit
        while it moves nodes, as the paper did: many times slower, with many tiny communities on large graphs. Any other
        of `communities.ENGINES`.
    progress: as in `dendrograms`, in nodes whose community is final
    """
    engine = ENGINES[_gate.choice(method, "method", ENGINES)]
    max_size = _gate.whole(max_size, "max_size", 1)
    resolution = _gate.number(resolution, "resolution", 0.0)
    if not _gate.whole(iterations, "iterations", -1, MOST_ITERATIONS):
        raise ParameterError("iterations is 0; pass at least 1, or -1 for as many as improve something.")
    wanted = Search(resolution, _gate.whole(seed, "seed", 0), iterations, max_size)
    network = undirected(graph)
    labels = np.empty(network.vcount(), dtype=np.int64)
    used = 0
    with Reporter(progress, len(labels), "communities", "node") as reporter:
        waiting = [(np.arange(len(labels)), resolution)] if len(labels) else []
        while waiting:
            nodes, gamma = waiting.pop()
            inside = network if len(nodes) == len(labels) else network.induced_subgraph(nodes)
            parts = engine(inside, wanted._replace(resolution=gamma))
            if (gamma > resolution and parts.max() == len(nodes) - 1) or gamma > 2.0**20:
                parts = np.arange(len(nodes)) // max_size  # a clique: whole or dust; it is cut into runs of nodes
            order = np.argsort(parts, kind="stable")
            for part in np.split(nodes[order], np.cumsum(np.bincount(parts))[:-1]):
                if len(part) > max_size:  # leidenalg, too: it lets whole aggregates move past the limit
                    waiting.append((part, gamma * 2 if len(part) == len(nodes) else gamma))
                else:
                    labels[part] = used
                    used += 1
                    reporter.add(len(part))
    sizes = np.bincount(labels, minlength=1)
    rank = np.empty(len(sizes), dtype=np.int64)
    rank[np.lexsort((_first_seen(labels, len(sizes)), -sizes))] = np.arange(len(sizes))
    return rank[labels]


def _first_seen(labels: Int64, k: int) -> Int64:
    """First node of each community: among equals of size the earlier comes first."""
    first = np.full(k, len(labels), dtype=np.int64)
    np.minimum.at(first, labels, np.arange(len(labels)))
    return first
