"""Communities of a graph: the coarse partition of bounded size, and the Louvain and Leiden baselines.

All functions see the simple undirected graph: without directions, loops and repeated edges. They take a graph with
`num_nodes` and `edge_index()`, a pair (edge_index (2, E), num_nodes), or an igraph graph.

A community above the limit of size is split by its own communities. This leaves more pieces than necessary: around a
hub of 60,000 addresses hang hundreds of small groups that belong to the hub's community in the whole graph. The pieces
are therefore joined again wherever the modularity of the whole graph (m edges) rises and the limit allows it:

    m * gain(A, B) = edges between A and B - resolution * degrees(A) * degrees(B) / (2m).

Pieces whose best neighbour is full share a community with the others that found it full.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd
from numba import njit
from scipy import sparse

from btcnb.cluster.engines import Search, find
from meanlink.progress import Progress, Reporter

Bool = npt.NDArray[np.bool_]
Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]

MAX_SIZE = 65_000
"""The paper's largest community, set by the memory of the distance matrix that it needed."""

RESOLUTIONS = tuple(float(value) for value in np.arange(0.5, 3.01, 0.5))
"""The grid: the paper gives its range, [0.5, 3], not its step."""

BASELINES = {"leiden": ("leidenalg", "igraph"), "louvain": ("louvain-networkx", "louvain-igraph")}
"""The baselines of the paper: the engine of the result, and the faster one that the grid is searched with."""

BASELINE_ITERATIONS = 10

NETWORKX_NODES = 5_000
"""Above this many nodes the Louvain baseline runs in igraph: NetworkX keeps Python dictionaries of every edge."""


class LabelledGraph(Protocol):
    """A directed graph with nodes 0..num_nodes-1, such as an `AddressGraph`; `edge_index()` has shape (2, E).

    Its nodes have a cluster and a degree, which scoring needs and the search for communities does not.
    """

    @property
    def num_nodes(self) -> int: ...

    def edge_index(self) -> Any: ...

    def labels(self) -> Any: ...

    def degree(self) -> Any: ...


def simple_pairs(graph: Any) -> tuple[Int64, int]:
    """Node pairs (P, 2) of the simple undirected graph, each once and sorted, and the number of nodes."""
    if isinstance(graph, tuple):
        ends, nodes = graph
    elif hasattr(graph, "get_edgelist"):  # igraph's
        ends, nodes = np.array(graph.get_edgelist(), dtype=np.int64).reshape(-1, 2).T, graph.vcount()
    else:
        ends, nodes = graph.edge_index(), graph.num_nodes
    one, other = np.asarray(ends, dtype=np.int64)
    low, high = np.minimum(one, other), np.maximum(one, other)
    keys = np.sort((low * nodes + high)[low != high])  # NumPy's `unique` takes fifty times as long
    first = keys[np.diff(keys, prepend=-1) > 0]
    return np.stack(np.divmod(first, max(nodes, 1)), axis=1), int(nodes)


def modularity(pairs: Int64, labels: Int64) -> float:
    """Modularity of communities 0..k-1 of the simple graph with these pairs (P, 2); NaN without any pair."""
    if not len(pairs):
        return float("nan")
    inside = (labels[pairs[:, 0]] == labels[pairs[:, 1]]).mean()
    shares = np.bincount(labels[pairs].ravel()) / (2 * len(pairs))
    return float(inside - (shares * shares).sum())


def communities(graph: Any, method: str = "leiden", resolution: float = 1.0, seed: int = 0) -> Int64:
    """One community per node, int64 (N,).

    method: "louvain" is NetworkX's, as in the paper, or igraph's above `NETWORKX_NODES` nodes; "leiden" is leidenalg's
        with RBConfiguration and ten iterations. Any name in `ENGINES` selects that engine.
    """
    pairs, nodes = simple_pairs(graph)
    slow = method == "louvain" and nodes > NETWORKX_NODES
    engine = BASELINES[method][1 if slow else 0] if method in BASELINES else method
    return find(engine, pairs, nodes, Search(resolution, seed, BASELINE_ITERATIONS))


def tune_resolution(
    graph: Any, method: str = "leiden", grid: Sequence[float] = RESOLUTIONS, seed: int = 0
) -> tuple[float, pd.DataFrame]:
    """The resolution whose communities have the highest modularity, and the whole grid as a table.

    method: a key of `BASELINES`. The search runs in igraph's version of the algorithm, which takes a fraction of the
    time and reaches the same modularity or a little more.
    """
    pairs, nodes = simple_pairs(graph)
    rows = []
    for resolution in grid:
        found = find(BASELINES[method][1], pairs, nodes, Search(resolution, seed, BASELINE_ITERATIONS))
        rows.append((resolution, modularity(pairs, found), len(np.bincount(found))))
    table = pd.DataFrame(rows, columns=["resolution", "modularity", "communities"])
    return float(table["resolution"].to_numpy()[table["modularity"].to_numpy().argmax()]), table


def coarse_partition(
    graph: Any,
    max_size: int = MAX_SIZE,
    resolution: float = 1.0,
    seed: int = 0,
    iterations: int = 2,
    method: str = "igraph",
    progress: Progress = None,
) -> Int64:
    """Communities of at most `max_size` nodes: int64 label per node, 0..k-1 by falling size (the paper's evaluation).

    resolution: of the configuration model (1 is modularity)
    iterations: of Leiden, negative for "until nothing improves"
    method: "igraph" finds Leiden communities without a limit and then splits those above it into as few pieces as
        modularity and limit allow. "leidenalg" keeps to the limit while it moves nodes, as the paper may have done;
        it is several times slower. Any other of `ENGINES`.
    progress: as in `dendrograms`, in nodes whose community is final
    """
    pairs, nodes = simple_pairs(graph)
    search = Search(resolution, seed, iterations, max_size)
    with Reporter(progress, nodes, "communities", "node") as reporter:
        if not nodes:
            return np.empty(0, dtype=np.int64)
        labels = find(method, pairs, nodes, search, reporter.add)
        over = np.bincount(labels) > max_size
        reporter.add(int((~over[labels]).sum()))
        if over.any():
            labels = _bounded(labels, over, pairs, method, search, reporter.add)
            reporter.add(nodes - reporter.done)
    first, sizes = np.unique(labels, return_index=True)[1], np.bincount(labels)
    rank = np.empty(len(sizes), dtype=np.int64)
    rank[np.lexsort((first, -sizes))] = np.arange(len(sizes))  # among equal sizes the earlier node decides
    return rank[labels]


def _bounded(labels: Int64, over: Bool, pairs: Int64, method: str, search: Search, beat: Callable[[], object]) -> Int64:
    """The labels with the communities `over` the limit (k,) split, and their pieces joined again within the limit."""
    chosen = over[labels]
    pieces = np.full(len(labels), -1, dtype=np.int64)
    for members, inner in _induced(pairs, labels, over):
        pieces[members] = pieces.max() + 1 + _split(inner, len(members), method, search, beat)
    place = np.cumsum(chosen) - 1
    ends = labels[pairs]
    links = place[pairs[(ends[:, 0] == ends[:, 1]) & over[ends[:, 0]]]]
    degree = np.bincount(pairs.ravel(), minlength=len(labels))[chosen].astype(np.float64)
    price = search.resolution / max(2 * len(pairs), 1)
    bounded = labels.copy()
    bounded[chosen] = len(over) + joined_again(pieces[chosen], links, degree, search.max_size, price)
    return np.unique(bounded, return_inverse=True)[1].astype(np.int64)


def _split(pairs: Int64, nodes: int, method: str, search: Search, beat: Callable[[], object]) -> Int64:
    """Pieces 0..k-1 within the limit: communities of communities. What has none (a star, a clique) falls into nodes."""
    pieces, used = np.empty(nodes, dtype=np.int64), 0
    waiting = [(np.arange(nodes), pairs, search.resolution)]
    while waiting:
        members, inner, resolution = waiting.pop()
        found = find(method, inner, len(members), search._replace(resolution=resolution), beat)
        if not found.any():
            if resolution < 1.0:  # too coarse to see what there is
                waiting.append((members, inner, 2 * resolution))
                continue
            found = np.arange(len(members))
        over = np.bincount(found) > search.max_size
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


class Pieces(NamedTuple):
    """k pieces: their nodes, the sum of the degrees of these in the whole graph, and neighbours (CSR) with edges."""

    size: Int64  # (k,)
    degree: Float64  # (k,)
    begin: Int64  # (k + 1,)
    neighbour: Int64
    edges: Float64


def _pieces(labels: Int64, degree: Float64, links: Int64) -> Pieces:
    """labels: piece of every node, 0..k-1; links (L, 2): pairs of nodes whose pieces may be joined."""
    k = int(labels.max()) + 1
    ends = labels[links]
    ends = ends[ends[:, 0] != ends[:, 1]]
    both = np.concatenate([ends, ends[:, ::-1]])
    table = sparse.coo_array((np.ones(len(both)), tuple(both.T)), shape=(k, k)).tocsr()  # sums repeated pairs
    begin, neighbour = table.indptr.astype(np.int64), table.indices.astype(np.int64)
    degrees = np.bincount(labels, weights=degree).astype(np.float64)
    return Pieces(np.bincount(labels), degrees, begin, neighbour, table.data)


def joined_again(labels: Int64, links: Int64, degree: Float64, limit: int, price: float) -> Int64:
    """Pieces (a label 0..k-1 per node) joined along `links` (L, 2), pairs of nodes; unions have at most `limit` nodes.

    degree: of every node in the whole graph, which has m edges; price: resolution / (2m). Smaller pieces choose first,
    the one with the earlier label among equals; the result depends on nothing else.
    """
    while True:
        pieces = _pieces(labels, degree, links)
        into = _best_with_room(np.argsort(pieces.size, kind="stable"), pieces, limit, price)
        if (into == np.arange(len(into))).all():
            break
        labels = np.unique(into, return_inverse=True)[1][labels]
    wanted = _best_neighbour(pieces, price)
    into = _shared(np.lexsort((-pieces.size, wanted)), wanted, pieces.size, limit)
    return np.asarray(np.unique(into, return_inverse=True)[1][labels], dtype=np.int64)


@njit(cache=True)
def _best_with_room(order: Int64, p: Pieces, limit: int, price: float) -> Int64:
    """For every piece the one it becomes part of, in one pass over the pieces in `order`.

    A piece joins the neighbour with the largest gain among those with room, unless others have joined it before.
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


@njit(cache=True)
def _best_neighbour(p: Pieces, price: float) -> Int64:
    """For every piece the neighbour with the largest gain, with or without room; itself if no gain is positive."""
    wanted = np.arange(len(p.size))
    for a in range(len(wanted)):
        most = 0.0
        for e in range(p.begin[a], p.begin[a + 1]):
            gain = p.edges[e] - price * p.degree[a] * p.degree[p.neighbour[e]]
            if gain > most:
                wanted[a], most = p.neighbour[e], gain
    return wanted


@njit(cache=True)
def _shared(order: Int64, wanted: Int64, size: Int64, limit: int) -> Int64:
    """Fill communities one after the other with pieces that wanted the same neighbour; `order` groups them."""
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
