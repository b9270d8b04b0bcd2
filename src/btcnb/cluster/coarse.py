"""The coarse partition: communities of bounded size (the paper's evaluation section)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from btcnb.cluster import _gate
from btcnb.cluster._engines import ENGINES, Search
from btcnb.cluster._gate import Bool, Int64
from btcnb.cluster._pieces import joined_again
from btcnb.cluster._progress import Progress, Reporter
from btcnb.cluster.communities import edges_of, found_by, undirected_pairs
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
    method: "igraph" finds Leiden communities without a limit and then takes only those above it apart, into as few
        pieces as modularity and limit allow (see `_pieces`); "leidenalg" keeps to the limit while it moves nodes, as
        the paper may have done: several times slower. Any other of `ENGINES`.
    progress: as in `dendrograms`, in nodes whose community is final
    """
    _gate.choice(method, "method", ENGINES)
    max_size = _gate.whole(max_size, "max_size", 1)
    resolution = _gate.number(resolution, "resolution", 0.0)
    if not _gate.whole(iterations, "iterations", -1, MOST_ITERATIONS):
        raise ParameterError("iterations is 0; pass at least 1, or -1 for as many as improve something.")
    wanted = Search(resolution, _gate.whole(seed, "seed", 0), iterations, max_size)
    edges, nodes = edges_of(graph)
    with Reporter(progress, nodes, "communities", "node") as reporter:
        if not nodes:
            return np.empty(0, dtype=np.int64)
        pairs = undirected_pairs(edges, nodes)
        labels = found_by(method, pairs, nodes, wanted, reporter.add)
        over = np.bincount(labels) > max_size
        reporter.add(int((~over[labels]).sum()))
        if over.any():
            labels = _bounded(labels, over, pairs, method, wanted, reporter.add)
            reporter.add(nodes - reporter.done)
    sizes = np.bincount(labels)
    rank = np.empty(len(sizes), dtype=np.int64)
    rank[np.lexsort((_first_seen(labels, len(sizes)), -sizes))] = np.arange(len(sizes))
    return rank[labels]


def _bounded(labels: Int64, over: Bool, pairs: Int64, method: str, wanted: Search, beat: Callable[[], object]) -> Int64:
    """The labels with the communities `over` the limit taken apart, and their pieces joined again as far as it goes."""
    chosen = np.flatnonzero(over[labels])
    pieces = np.full(len(labels), -1, dtype=np.int64)
    for members, inner in _induced(pairs, labels, over):
        pieces[members] = pieces.max() + 1 + _apart(inner, len(members), method, wanted, beat)
    place = np.cumsum(over[labels]) - 1
    ends = labels[pairs]
    links = place[pairs[(ends[:, 0] == ends[:, 1]) & over[ends[:, 0]]]]
    degree = np.bincount(pairs.ravel(), minlength=len(labels))[chosen].astype(np.float64)
    price = wanted.resolution / max(2 * len(pairs), 1)
    bounded = labels.copy()
    bounded[chosen] = len(over) + joined_again(pieces[chosen], links, degree, wanted.max_size, price)
    return np.unique(bounded, return_inverse=True)[1].astype(np.int64)


def _apart(pairs: Int64, nodes: int, method: str, wanted: Search, beat: Callable[[], object]) -> Int64:
    """Pieces 0..k-1, none above the limit: communities of the communities; what has none (a star, a clique) is dust."""
    pieces, used = np.empty(nodes, dtype=np.int64), 0
    waiting = [(np.arange(nodes), pairs, wanted.resolution)]
    while waiting:
        members, inner, resolution = waiting.pop()
        found = found_by(method, inner, len(members), wanted._replace(resolution=resolution), beat)
        if not found.any():
            if resolution < 1.0:  # too coarse to see what there is
                waiting.append((members, inner, 2 * resolution))
                continue
            found = np.arange(len(members))
        over = np.bincount(found) > wanted.max_size
        pieces[members] = used + found
        used += len(over)
        waiting += [(members[part], deeper, resolution) for part, deeper in _induced(inner, found, over)]
    return np.unique(pieces, return_inverse=True)[1].astype(np.int64)


def _induced(pairs: Int64, labels: Int64, chosen: Bool) -> Iterator[tuple[Int64, Int64]]:
    """Members of each chosen community, and the pairs inside it by their positions among these."""
    order = np.argsort(labels, kind="stable")
    begin = np.concatenate([[0], np.cumsum(np.bincount(labels))])
    place = np.empty(len(labels), dtype=np.int64)
    place[order] = np.arange(len(labels)) - begin[labels[order]]
    ends = labels[pairs]
    inside = pairs[(ends[:, 0] == ends[:, 1]) & chosen[ends[:, 0]]]
    inside = inside[np.argsort(labels[inside[:, 0]], kind="stable")]
    first = np.searchsorted(labels[inside[:, 0]], np.arange(len(begin)))
    for c in np.flatnonzero(chosen):
        yield order[begin[c] : begin[c + 1]], place[inside[first[c] : first[c + 1]]]


def _first_seen(labels: Int64, k: int) -> Int64:
    """First node of each community: among equals of size the earlier comes first."""
    first = np.full(k, len(labels), dtype=np.int64)
    np.minimum.at(first, labels, np.arange(len(labels)))
    return first
