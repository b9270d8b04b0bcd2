"""Structural positional encoding by landmarks (paper, section "Experimental Setup", model variation 3).

The k addresses of highest degree are landmarks; an address is described by how near each of them is. All searches run
together, 64 landmarks in the bits of one machine word: an edge is looked at once per level, not once per landmark.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
from numba import njit

from btcnb.data.graph import AddressGraph
from btcnb.errors import ParameterError

IntArray = npt.NDArray[np.int64]
Normalise = Literal["minmax", "standard", "none"]

WORD = 64


def landmarks(
    graph: AddressGraph,
    k: int = 64,
    symmetrize: bool = True,
    *,
    normalise: Normalise = "minmax",
) -> npt.NDArray[np.float32]:
    """Nearness of every node to the k landmarks, shape (N, k), float32; column j is `landmark_nodes(graph, k)[j]`'s.

    A distance of x hops becomes the similarity 1/(1+x); then each column is normalised over the nodes that reach its
    landmark: `"minmax"` to [0, 1] (the landmark itself is 1, the farthest node 0), `"standard"` to mean 0 and
    variance 1, `"none"` not at all. The paper says "normalized dimension-wise" and no more. Unreachable is 0.

    symmetrize: edges count in both directions; otherwise paths follow the money from the landmark to the node.
    """
    chosen = landmark_nodes(graph, k)
    offsets, neighbours = _adjacency(graph, symmetrize)
    out = np.empty((graph.num_nodes, k), dtype=np.float32)
    for start in range(0, k, WORD):
        distance = _distances(offsets, neighbours, chosen[start : start + WORD])
        for column in range(distance.shape[1]):
            out[:, start + column] = _similarity(distance[:, column], normalise)
    return out


def landmark_nodes(graph: AddressGraph, k: int) -> IntArray:
    """Row positions of the k nodes of highest degree (in plus out), highest first, ties by row."""
    if not 1 <= k <= graph.num_nodes:
        raise ParameterError(f"k is {k}; it must be at least 1 and at most the number of nodes, {graph.num_nodes:,}.")
    return np.argsort(-graph.degree(), kind="stable")[:k].astype(np.int64)


def landmark_distances(graph: AddressGraph, nodes: IntArray, symmetrize: bool = True) -> npt.NDArray[np.int32]:
    """Hops from each given node (row position) to every node, shape (N, len(nodes)); -1 where there is no path."""
    offsets, neighbours = _adjacency(graph, symmetrize)
    parts = [_distances(offsets, neighbours, nodes[i : i + WORD]) for i in range(0, len(nodes), WORD)]
    return np.concatenate(parts, axis=1) if parts else np.empty((graph.num_nodes, 0), dtype=np.int32)


def _similarity(distance: npt.NDArray[np.int32], normalise: Normalise) -> npt.NDArray[np.float32]:
    reached = distance >= 0
    near = np.where(reached, 1.0 / (1.0 + np.maximum(distance, 0)), 0.0)
    if normalise != "none":
        seen = near[reached]  # never empty: the landmark reaches itself
        shift, scale = (seen.min(), np.ptp(seen)) if normalise == "minmax" else (seen.mean(), seen.std())
        if scale > 0:
            near = (near - shift) / scale
        near[~reached] = 0.0
    return near.astype(np.float32)


def _adjacency(graph: AddressGraph, symmetrize: bool) -> tuple[IntArray, npt.NDArray[np.int32]]:
    source, target = graph.edge_index()  # refuses nodes that the table does not have
    return _csr(source, target, graph.num_nodes, symmetrize)  # type: ignore[no-any-return]


@njit(cache=True)
def _csr(source, target, number, both):  # type: ignore[no-untyped-def]
    """Neighbour lists by counting sort; `both` adds every edge in the other direction too (repeats do no harm here)."""
    offsets = np.zeros(number + 1, dtype=np.int64)
    for e in range(len(source)):
        offsets[source[e] + 1] += 1
        if both:
            offsets[target[e] + 1] += 1
    for v in range(number):
        offsets[v + 1] += offsets[v]
    neighbours = np.empty(offsets[number], dtype=np.int32)
    place = offsets[:-1].copy()
    for e in range(len(source)):
        u, v = source[e], target[e]
        neighbours[place[u]] = v
        place[u] += 1
        if both:
            neighbours[place[v]] = u
            place[v] += 1
    return offsets, neighbours


@njit(cache=True)
def _distances(offsets, neighbours, sources):  # type: ignore[no-untyped-def]
    """Breadth-first search from up to 64 sources at once; shape (N, len(sources)), -1 where there is no path.

    Bit j of a word stands for source j. `wave[v]` holds the sources whose search reached v in the last level; a level
    costs one look at each edge that leaves a node of the wave.
    """
    number = len(offsets) - 1
    distance = np.full((number, len(sources)), -1, dtype=np.int32)
    seen = np.zeros(number, dtype=np.uint64)
    wave = np.zeros(number, dtype=np.uint64)
    fresh = np.zeros(number, dtype=np.uint64)
    active = np.empty(number, dtype=np.int32)
    touched = np.empty(number, dtype=np.int32)
    size = 0
    for j in range(len(sources)):
        v = sources[j]
        distance[v, j] = 0
        if wave[v] == 0:
            active[size] = v
            size += 1
        wave[v] |= np.uint64(1) << np.uint64(j)
        seen[v] |= wave[v]
    level = 0
    while size > 0:
        level += 1
        found = 0
        for i in range(size):
            u = active[i]
            bits = wave[u]
            wave[u] = 0
            for position in range(offsets[u], offsets[u + 1]):
                v = neighbours[position]
                new = bits & ~seen[v]
                if new != 0:
                    if fresh[v] == 0:
                        touched[found] = v
                        found += 1
                    fresh[v] |= new
        for i in range(found):
            v = touched[i]
            new = fresh[v]
            fresh[v] = 0
            seen[v] |= new
            wave[v] = new
            active[i] = v
            for j in range(len(sources)):
                if (new >> np.uint64(j)) & np.uint64(1):
                    distance[v, j] = level
        size = found
    return distance
