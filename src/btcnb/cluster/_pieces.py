"""Pieces of communities joined again, as far as a limit of size allows.

A community above the limit is taken apart by its own communities. That leaves more pieces than need be: around a hub of
60,000 addresses hang hundreds of small groups, each of which belongs to the hub's community in the eyes of the whole
graph. So pieces are joined again wherever the modularity of the whole graph rises and the union keeps to the limit:

    m * gain(A, B) = edges between A and B - resolution * degrees(A) * degrees(B) / (2m).

What belongs to a community that is full shares one with the others that found it full.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from btcnb.cluster._compile import compiled
from btcnb.cluster._gate import Float64, Int64


class Pieces(NamedTuple):
    """k pieces: their nodes, the sum of the degrees of these in the whole graph, and neighbours (CSR) with edges."""

    size: Int64  # (k,)
    degree: Float64  # (k,)
    begin: Int64  # (k + 1,)
    neighbour: Int64
    edges: Float64


def pieces_of(labels: Int64, degree: Float64, links: Int64) -> Pieces:
    """labels: piece of every node, 0..k-1; links (L, 2): pairs of nodes whose pieces may be joined."""
    k = int(labels.max()) + 1
    ends = labels[links]
    ends = ends[ends[:, 0] != ends[:, 1]]
    keys = np.sort(np.concatenate([ends[:, 0] * k + ends[:, 1], ends[:, 1] * k + ends[:, 0]]))
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else np.empty(0, np.int64)
    begin = np.searchsorted(keys[first], np.arange(k + 1) * k)
    edges = np.diff(first, append=len(keys)).astype(np.float64)
    return Pieces(
        np.bincount(labels, minlength=k),
        np.bincount(labels, weights=degree, minlength=k).astype(np.float64),
        begin,
        keys[first] % max(k, 1),
        edges,
    )


@compiled()
def _joined(order: Int64, p: Pieces, limit: int, price: float) -> Int64:
    """For every piece the one it becomes part of: one pass over the pieces in `order`, each joins what it gains most
    from among what has room, unless others have joined it by then.
    """
    into = np.arange(len(p.size))
    size, degree = p.size.copy(), p.degree.copy()
    visited = np.zeros(len(size), dtype=np.bool_)
    between = np.zeros(len(size))
    for a in order:
        if visited[a]:
            continue
        for e in range(p.begin[a], p.begin[a + 1]):
            between[into[p.neighbour[e]]] += p.edges[e]
        best, most = -1, 0.0
        for e in range(p.begin[a], p.begin[a + 1]):
            b = into[p.neighbour[e]]
            gain = between[b] - price * degree[a] * degree[b]
            if size[a] + size[b] <= limit and (gain > most or (gain == most and most > 0.0 and b < best)):
                best, most = b, gain
        for e in range(p.begin[a], p.begin[a + 1]):
            between[into[p.neighbour[e]]] = 0.0
        if best >= 0:
            into[a] = best
            size[best] += size[a]
            degree[best] += degree[a]
            visited[best] = True
    return into


@compiled()
def _full(p: Pieces, price: float) -> Int64:
    """For every piece the neighbour it gains most from, room or not; itself if it gains from none."""
    wanted = np.arange(len(p.size))
    for a in range(len(wanted)):
        most = 0.0
        for e in range(p.begin[a], p.begin[a + 1]):
            gain = p.edges[e] - price * p.degree[a] * p.degree[p.neighbour[e]]
            if gain > most:
                wanted[a], most = p.neighbour[e], gain
    return wanted


@compiled()
def _shared(order: Int64, wanted: Int64, size: Int64, limit: int) -> Int64:
    """Fill one community after the other with pieces that wanted the same neighbour; `order` has them in a row."""
    into = np.arange(len(size))
    room, open_at, last = 0, -1, -1
    for a in order:
        if wanted[a] == a:
            continue
        if wanted[a] != last or size[a] > room:
            open_at, last, room = a, wanted[a], limit
        into[a] = open_at
        room -= size[a]
    return into


def joined_again(labels: Int64, links: Int64, degree: Float64, limit: int, price: float) -> Int64:
    """Pieces (a label 0..k-1 per node) joined along `links` (L, 2), pairs of nodes; unions have at most `limit` nodes.

    degree: of every node in the whole graph, which has m edges; price: resolution / (2m). Smaller pieces choose first,
    the one with the earlier label among equals; the result depends on nothing else.
    """
    while True:
        pieces = pieces_of(labels, degree, links)
        into = _joined(np.argsort(pieces.size, kind="stable"), pieces, limit, price)
        if (into == np.arange(len(into))).all():
            break
        labels = np.unique(into, return_inverse=True)[1][labels]
    wanted = _full(pieces, price)
    order = np.lexsort((-pieces.size, wanted))
    into = _shared(order, wanted, pieces.size, limit)
    return np.asarray(np.unique(into, return_inverse=True)[1][labels], dtype=np.int64)
