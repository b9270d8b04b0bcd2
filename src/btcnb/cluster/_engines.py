"""The programs that find communities, and how one is run apart from us.

They compute for seconds or minutes without a look at Ctrl-C. So a long search runs in a child process, which is this
file: it needs NumPy and the program alone, reads the edges from its standard input and answers with the communities.
The parent waits, shows that it does, and ends the child when it is interrupted. Nothing touches the disk.
"""

from __future__ import annotations

import io
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]

APART = 200_000
"""Nodes and edges from which a search runs in a child process: below, it takes less than starting one."""

TICK = 0.2
"""Seconds between two signs of life."""


class Search(NamedTuple):
    """What an engine is asked for. iterations: negative for "until nothing improves"; max_size: 0 for no limit."""

    resolution: float
    seed: int
    iterations: int = 2
    max_size: int = 0


class EngineError(Exception):
    """The child ended without an answer; says how."""


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


def network_of(pairs: Int64, nodes: int) -> Any:
    """An igraph graph of node pairs (P, 2)."""
    import igraph

    return igraph.Graph(n=nodes, edges=pairs, directed=False)


def find(engine: str, pairs: Int64, nodes: int, search: Search, beat: Callable[[], object] = lambda: None) -> Int64:
    """Community 0..k-1 of every node of the simple graph with these pairs (P, 2); no community is empty.

    beat: called from time to time while a long search runs; what it raises ends the search
    """
    if nodes + len(pairs) < APART:
        return ENGINES[engine](network_of(pairs, nodes), search)
    command = [sys.executable, "-P", __file__, engine, str(nodes), *map(repr, search)]
    child = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    talks: list[Any] = [None, None]

    def talk() -> None:
        message = io.BytesIO()
        np.save(message, pairs)
        talks[:] = child.communicate(message.getvalue())

    talking = Thread(target=talk, daemon=True)
    talking.start()
    try:
        while talking.is_alive():
            beat()
            talking.join(TICK)
    finally:
        child.kill()  # nothing to an ended one
        child.wait()
        talking.join()
    if child.returncode or not talks[0]:
        words = (talks[1] or b"").decode(errors="replace").strip().splitlines()
        raise EngineError(words[-1] if words else f"exit status {child.returncode}")
    return np.asarray(np.load(io.BytesIO(talks[0]), allow_pickle=False), dtype=np.int64)


def main() -> None:
    """The child: engine, number of nodes and `Search` as arguments, pairs on standard input, communities on output."""
    engine, nodes, resolution, *rest = sys.argv[1:]
    pairs = np.load(io.BytesIO(sys.stdin.buffer.read()), allow_pickle=False)
    found = ENGINES[engine](network_of(pairs, int(nodes)), Search(float(resolution), *map(int, rest)))
    answer = io.BytesIO()
    np.save(answer, found)
    sys.stdout.buffer.write(answer.getbuffer())


if __name__ == "__main__":
    main()
