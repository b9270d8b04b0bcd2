"""The programs that find communities, and the child process in which a long search runs.

The programs do not react to Ctrl-C while they compute. A long search therefore runs in a child process, and this file
is the child's program: it imports NumPy and the chosen library only, reads the edges from standard input and writes
the communities to standard output. The parent process ends the child when it is interrupted.
"""

from __future__ import annotations

import contextlib
import io
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]

CHILD_SIZE = 200_000
"""Nodes plus edges from which a search runs in a child process. A smaller search is faster than starting one."""

TICK = 0.2
"""Seconds between two calls of `beat` while a child process works."""


class Search(NamedTuple):
    """Settings of a search. iterations: negative for "until nothing improves"; max_size: 0 for no limit."""

    resolution: float
    seed: int
    iterations: int = 2
    max_size: int = 0


def _with_igraph_seed(seed: int, method: Callable[..., Any], **settings: Any) -> Int64:
    """Call a method of an igraph graph with a generator of its own, so that Python's global one is left alone.

    igraph cannot tell which generator it had before. Afterwards it has its default one.
    """
    import igraph

    igraph.set_random_number_generator(random.Random(seed))
    try:
        found = method(**settings)
    finally:
        igraph.set_random_number_generator(random)
    return np.asarray(found.membership, dtype=np.int64)


def _igraph_leiden(network: Any, search: Search) -> Int64:
    settings = {"resolution": search.resolution, "n_iterations": search.iterations}
    return _with_igraph_seed(search.seed, network.community_leiden, objective_function="modularity", **settings)


def _igraph_louvain(network: Any, search: Search) -> Int64:
    return _with_igraph_seed(search.seed, network.community_multilevel, resolution=search.resolution)


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


def _networkx_louvain(network: Any, search: Search) -> Int64:
    import networkx as nx

    labels = np.empty(network.vcount(), dtype=np.int64)
    graph = network.to_networkx()
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
"""Every way to find communities of an igraph graph. The first two are Leiden."""


def network_of(pairs: Int64, nodes: int) -> Any:
    """The igraph graph of node pairs (P, 2)."""
    import igraph

    return igraph.Graph(n=nodes, edges=pairs, directed=False)


def find(engine: str, pairs: Int64, nodes: int, search: Search, beat: Callable[[], object] = lambda: None) -> Int64:
    """Community 0..k-1 of every node of the simple graph with these pairs (P, 2); no community is empty.

    beat: called every `TICK` seconds while a child process works. An exception that it raises ends the search.
    """
    if nodes + len(pairs) < CHILD_SIZE:
        return ENGINES[engine](network_of(pairs, nodes), search)
    command = [sys.executable, "-P", __file__, engine, str(nodes), *map(repr, search)]
    pipe = subprocess.PIPE
    with tempfile.TemporaryFile() as question:  # a pipe would stall: after a timeout `communicate` sends nothing more
        np.save(question, pairs)
        question.seek(0)
        with subprocess.Popen(command, stdin=question, stdout=pipe, stderr=pipe, start_new_session=True) as child:
            try:
                while True:
                    beat()
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        answer, errors = child.communicate(timeout=TICK)
                        break
            finally:
                child.kill()  # no effect on a child that has ended
    if child.returncode or not answer:
        from btcnb.errors import DataError  # not at the top: the child does not load the package

        reason = errors.decode(errors="replace").strip().splitlines()[-1:] or [f"exit status {child.returncode}"]
        problem = f"the search of {engine} ended early ({reason[0]})"
        raise DataError("graph", "communities", problem, "free memory and try again")
    return np.asarray(np.load(io.BytesIO(answer), allow_pickle=False), dtype=np.int64)


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
