"""The hot loops: adjacency by destination, neighbour sampling, and weighted sums over neighbourhoods.

All are plain loops over arrays, compiled once and kept on disk. They run in one thread, so that results do not depend
on the number of cores and nothing clashes with torch's own threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit, types

Array = npt.NDArray[Any]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # constants of the SplitMix64 generator
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


@njit(cache=True)
def in_edges(source: Array, target: Array, num_nodes: int) -> tuple[Array, Array, Array]:
    """Sort edges by (target, source), self-loops dropped: `indptr` (N+1), `source` (E'), position in the input (E').

    Two stable counting sorts, so the time is linear in nodes and edges.
    """
    counts = np.zeros(num_nodes + 1, np.int64)
    for e in range(len(source)):
        if source[e] != target[e]:
            counts[source[e] + 1] += 1
    for v in range(num_nodes):
        counts[v + 1] += counts[v]
    by_source = np.empty(counts[num_nodes], np.int64)
    for e in range(len(source)):
        if source[e] != target[e]:
            by_source[counts[source[e]]] = e
            counts[source[e]] += 1
    indptr = np.zeros(num_nodes + 1, np.int64)
    for e in by_source:
        indptr[target[e] + 1] += 1
    for v in range(num_nodes):
        indptr[v + 1] += indptr[v]
    fill = indptr[:-1].copy()
    order = np.empty(len(by_source), np.int64)
    ordered_source = np.empty(len(by_source), np.int32)
    for e in by_source:
        place = fill[target[e]]
        order[place] = e
        ordered_source[place] = source[e]
        fill[target[e]] += 1
    return indptr, ordered_source, order


@njit(cache=True)
def merge_parallel(indptr: Array, source: Array) -> tuple[Array, Array, Array]:
    """Merge equal (source, target) pairs of sorted edges: new `indptr`, `source`, and the new position of each edge."""
    new_indptr = np.zeros_like(indptr)
    position = np.empty(len(source), np.int64)
    kept = 0
    for v in range(len(indptr) - 1):
        for e in range(indptr[v], indptr[v + 1]):
            if e == indptr[v] or source[e] != source[e - 1]:
                kept += 1
            position[e] = kept - 1
        new_indptr[v + 1] = kept
    new_source = np.empty(kept, source.dtype)
    for e in range(len(source)):
        new_source[position[e]] = source[e]
    return new_indptr, new_source, position


@njit(types.uint64(types.uint64), cache=True, inline="always")
def _mixed(value: Any) -> Any:
    value = (value ^ (value >> np.uint64(30))) * _MIX_1
    value = (value ^ (value >> np.uint64(27))) * _MIX_2
    return value ^ (value >> np.uint64(31))


@njit(cache=True)
def sample_neighbours(
    indptr: Array, source: Array, seeds: Array, fanout: Array, seed: int, position: Array
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Draw up to `fanout[h]` in-neighbours of every node first reached at hop h, uniformly and without replacement.

    seeds: distinct node ids. position: int32 scratch, one entry per node, all -1; left all -1 again.
    Returns node (n), row (e), col (e), edge (e), nodes per hop (hops+1), edges per hop (hops). `node` begins with the
    seeds; `row` and `col` index `node`; edges run from `row` to `col`, sorted by `col`; `edge` indexes `source`.
    The draw for a node depends on the seed, the hop and the node's id alone, not on what else is in the batch.
    """
    hops = len(fanout)
    node = np.empty(len(seeds), np.int64)
    edge, row, col = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64)
    nodes_per_hop, edges_per_hop = np.zeros(hops + 1, np.int64), np.zeros(hops, np.int64)
    for i in range(len(seeds)):
        node[i] = seeds[i]
        position[seeds[i]] = i
    begin, num_nodes, num_edges = 0, len(seeds), 0
    nodes_per_hop[0] = num_nodes
    for hop in range(hops):  # three passes, each with loads that do not wait for one another
        room = 0
        for i in range(begin, num_nodes):
            room += min(indptr[node[i] + 1] - indptr[node[i]], fanout[hop])
        edge, row, col = _longer(edge, num_edges, room), _longer(row, num_edges, room), _longer(col, num_edges, room)
        node = _longer(node, num_nodes, room)
        at = num_edges
        for i in range(begin, num_nodes):
            at = _choose(indptr, node[i], fanout[hop], np.uint64(seed), np.uint64(node[i] * hops + hop + 1), edge, at)
            col[num_edges:at] = i
            edges_per_hop[hop] += at - num_edges
            num_edges = at
        before = num_edges - edges_per_hop[hop]
        for e in range(before, num_edges):
            row[e] = source[edge[e]]
        begin = num_nodes
        for e in range(before, num_edges):
            u = row[e]
            if position[u] < 0:
                position[u] = num_nodes
                node[num_nodes] = u
                num_nodes += 1
            row[e] = position[u]
        nodes_per_hop[hop + 1] = num_nodes - begin
    for i in range(num_nodes):
        position[node[i]] = -1
    return node[:num_nodes], row, col, edge, nodes_per_hop, edges_per_hop


@njit(cache=True)
def _choose(indptr: Array, v: int, k: int, seed: Any, stream: Any, edge: Array, at: int) -> int:
    """Write min(k, degree) distinct in-edges of v to `edge[at:]`; returns where they end."""
    first, degree = indptr[v], indptr[v + 1] - indptr[v]
    if degree <= k:
        for j in range(degree):
            edge[at + j] = first + j
        return at + degree
    state = _mixed(seed + _GOLDEN * stream)
    for j in range(k):  # Floyd's algorithm: k draws, every k-subset equally likely
        state += _GOLDEN
        top = degree - k + j
        pick = first + np.int64(_mixed(state) % np.uint64(top + 1))
        for other in range(j):
            if edge[at + other] == pick:
                pick = first + top
                break
        edge[at + j] = pick
    return at + k


@njit(cache=True)
def _longer(array: Array, used: int, room: int) -> Array:
    """A copy of the used part with room for more."""
    longer = np.empty(used + room, array.dtype)
    longer[:used] = array[:used]
    return longer


@njit(cache=True)
def with_self_loops(indptr: Array, source: Array, first: int) -> tuple[Array, Array, Array]:
    """Append to each target its own row `first + target`: `indptr` (D+1), `source` (E+D), places of the old edges."""
    targets = len(indptr) - 1
    new_indptr = np.empty_like(indptr)
    new_source = np.empty(indptr[targets] - indptr[0] + targets, np.int64)
    place = np.empty(indptr[targets] - indptr[0], np.int64)
    new_indptr[0] = 0
    at = 0
    for d in range(targets):
        for e in range(indptr[d], indptr[d + 1]):
            new_source[at] = source[e]
            place[e - indptr[0]] = at
            at += 1
        new_source[at] = first + d
        at += 1
        new_indptr[d + 1] = at
    return new_indptr, new_source, place


@njit(cache=True, fastmath={"reassoc", "contract"})
def weighted_sums(x: Array, weight: Array, indptr: Array, source: Array) -> Array:
    """out[d, h] = Σ over edges e of target d: weight[e, h] · x[source[e]]; x (S, F), weight (E, H), out (D, H, F)."""
    targets, heads, width = len(indptr) - 1, weight.shape[1], x.shape[1]
    out = np.zeros((targets, heads, width), x.dtype)
    for d in range(targets):
        for e in range(indptr[d], indptr[d + 1]):
            row = x[source[e]]
            for h in range(heads):
                w = weight[e, h]
                for f in range(width):
                    out[d, h, f] += w * row[f]
    return out


@njit(cache=True, fastmath={"reassoc", "contract"})
def weighted_sums_backward_weight(grad: Array, x: Array, indptr: Array, source: Array) -> Array:
    """Gradient of `weighted_sums` by its weights: grad (D, H, F) to (E, H)."""
    targets, heads, width = grad.shape
    out = np.empty((len(source), heads), x.dtype)
    for d in range(targets):
        for e in range(indptr[d], indptr[d + 1]):
            row = x[source[e]]
            for h in range(heads):
                total = x.dtype.type(0.0)
                for f in range(width):
                    total += grad[d, h, f] * row[f]
                out[e, h] = total
    return out


@njit(cache=True, fastmath={"reassoc", "contract"})
def weighted_sums_backward_x(grad: Array, weight: Array, indptr: Array, source: Array, num_sources: int) -> Array:
    """Gradient of `weighted_sums` by x: grad (D, H, F) to (S, F)."""
    targets, heads, width = grad.shape
    out = np.zeros((num_sources, width), grad.dtype)
    for d in range(targets):
        for e in range(indptr[d], indptr[d + 1]):
            s = source[e]
            for h in range(heads):
                w = weight[e, h]
                for f in range(width):
                    out[s, f] += w * grad[d, h, f]
    return out


@njit(cache=True)
def segment_softmax(logits: Array, indptr: Array) -> Array:
    """Softmax of logits (E, H) over the edges of each target, head by head; stable because the largest is taken off."""
    out = np.empty_like(logits)
    for d in range(len(indptr) - 1):
        begin, end = indptr[d], indptr[d + 1]
        for h in range(logits.shape[1]):
            largest = logits.dtype.type(-np.inf)
            for e in range(begin, end):
                largest = max(largest, logits[e, h])
            total = logits.dtype.type(0.0)
            for e in range(begin, end):
                out[e, h] = np.exp(logits[e, h] - largest)
                total += out[e, h]
            for e in range(begin, end):
                out[e, h] /= total
    return out


@njit(cache=True)
def segment_softmax_backward(grad: Array, softmax: Array, indptr: Array) -> Array:
    """Gradient of `segment_softmax`: s · (g − Σ s g), over the edges of each target."""
    out = np.empty_like(grad)
    for d in range(len(indptr) - 1):
        begin, end = indptr[d], indptr[d + 1]
        for h in range(grad.shape[1]):
            total = grad.dtype.type(0.0)
            for e in range(begin, end):
                total += softmax[e, h] * grad[e, h]
            for e in range(begin, end):
                out[e, h] = softmax[e, h] * (grad[e, h] - total)
    return out


@njit(cache=True)
def keep_mask(number: int, keep: float, seed: int) -> Array:
    """`number` float32 values, 1/keep with probability `keep` and 0 otherwise, independently; the same for a seed."""
    out = np.empty(number, np.float32)
    scale = np.float32(1.0 / keep)
    limit = np.uint64(keep * 4294967296.0)
    low = np.uint64(0xFFFFFFFF)
    state = np.uint64(seed)
    for i in range(0, number - 1, 2):  # one 64-bit draw serves two values
        state += _GOLDEN
        bits = _mixed(state)
        out[i] = scale if (bits & low) < limit else np.float32(0.0)
        out[i + 1] = scale if (bits >> np.uint64(32)) < limit else np.float32(0.0)
    if number % 2:
        out[number - 1] = scale if (_mixed(state + _GOLDEN) & low) < limit else np.float32(0.0)
    return out
