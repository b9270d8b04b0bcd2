"""Communities above the limit: how they are taken apart, and the search in a process of its own."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from btcnb.cluster import _engines, coarse_partition, communities
from btcnb.cluster._pieces import joined_again
from btcnb.cluster.communities import modularity, undirected_pairs
from btcnb.errors import DataError

WHOLE = 0.01
"""A resolution at which each of these graphs is one community."""


def graph_of(network: nx.Graph) -> tuple[np.ndarray, int]:
    return np.array(network.edges()).reshape(-1, 2).T, len(network)


def sizes(labels: np.ndarray) -> list[int]:
    return np.bincount(labels).tolist()


def hub_with_triangles(leaves: int, triangles: int) -> tuple[np.ndarray, int]:
    """Node 0 with leaves 1..leaves, and triangles that hang on it by one edge each."""
    edges = [(0, leaf) for leaf in range(1, leaves + 1)]
    for k in range(triangles):
        a = leaves + 1 + 3 * k
        edges += [(0, a), (a, a + 1), (a + 1, a + 2), (a + 2, a)]
    return np.array(edges).T, 1 + leaves + 3 * triangles


def test_a_ring_of_cliques_is_cut_between_cliques() -> None:
    ring = graph_of(nx.ring_of_cliques(6, 5))
    assert sizes(coarse_partition(ring, resolution=WHOLE)) == [30]
    labels = coarse_partition(ring, max_size=12, resolution=WHOLE)
    assert sizes(labels) == [10, 10, 10]
    assert all(len(set(labels[i : i + 5])) == 1 for i in range(0, 30, 5))


def test_a_star_is_cut_into_as_few_pieces_as_the_limit_allows() -> None:
    labels = coarse_partition(graph_of(nx.star_graph(30)), max_size=12)
    assert sizes(labels) == [12, 12, 7]


def test_a_clique_is_cut_into_as_few_pieces_as_the_limit_allows() -> None:
    assert sizes(coarse_partition(graph_of(nx.complete_graph(40)), max_size=10)) == [10, 10, 10, 10]


def test_what_hangs_on_a_hub_returns_to_it_until_it_is_full() -> None:
    """The hub has 21 nodes with its leaves: three triangles find room, and three share a community."""
    graph = hub_with_triangles(leaves=20, triangles=6)
    assert sizes(coarse_partition(graph, max_size=39, resolution=WHOLE)) == [39]
    labels = coarse_partition(graph, max_size=30, resolution=WHOLE)
    assert sizes(labels) == [30, 9]
    assert len(set(labels[:21])) == 1
    assert all(len(set(labels[i : i + 3])) == 1 for i in range(21, 39, 3))


def test_joining_never_crosses_into_other_communities() -> None:
    """Two stars, joined by an edge between their hubs: each is cut on its own."""
    star = nx.star_graph(30)
    two = nx.disjoint_union(star, star)
    two.add_edge(0, 31)
    labels = coarse_partition(graph_of(two), max_size=20)
    assert sizes(labels) == [20, 20, 11, 11]
    assert not set(labels[:31]) & set(labels[31:])


@settings(max_examples=60)
@given(
    st.integers(2, 60), st.integers(0, 200), st.integers(1, 30), st.sampled_from([0.05, 1.0, 3.0]), st.integers(0, 9)
)
def test_limit_and_repetition_on_random_graphs(nodes: int, edges: int, limit: int, gamma: float, seed: int) -> None:
    graph = (np.random.default_rng(seed).integers(nodes, size=(2, edges)), nodes)
    labels = coarse_partition(graph, limit, gamma, seed)
    assert max(sizes(labels)) <= limit and min(sizes(labels)) >= 1
    assert sizes(labels) == sorted(sizes(labels), reverse=True)
    np.testing.assert_array_equal(labels, coarse_partition(graph, limit, gamma, seed))


@settings(max_examples=60)
@given(st.integers(2, 40), st.integers(1, 150), st.integers(0, 9))
def test_joining_raises_modularity(nodes: int, edges: int, seed: int) -> None:
    """From single nodes and without a limit, where no piece finds another full."""
    pairs = undirected_pairs(np.random.default_rng(seed).integers(nodes, size=(2, edges)), nodes)
    if not len(pairs):
        return
    degree = np.bincount(pairs.ravel(), minlength=nodes).astype(float)
    alone = np.arange(nodes)
    found = joined_again(alone, pairs, degree, nodes, 1 / (2 * len(pairs)))
    assert modularity(pairs, found) >= modularity(pairs, alone)
    for a in range(found.max() + 1):  # and no two of the result would gain by joining
        for b in range(a):
            both = np.unique(np.where(found == a, b, found), return_inverse=True)[1]
            assert modularity(pairs, both) <= modularity(pairs, found) + 1e-12


@pytest.mark.parametrize("method", ["igraph", "leidenalg", "louvain-igraph"])
def test_a_process_of_its_own_finds_the_same(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ring = graph_of(nx.ring_of_cliques(12, 6))
    here = coarse_partition(ring, 30, 0.3, seed=3, method=method)
    monkeypatch.setattr(_engines, "APART", 0)
    np.testing.assert_array_equal(coarse_partition(ring, 30, 0.3, seed=3, method=method), here)


def test_a_long_search_shows_that_it_goes_on_and_can_be_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_engines, "APART", 0)
    monkeypatch.setattr(_engines, "TICK", 0.005)
    ring = graph_of(nx.ring_of_cliques(12, 6))
    heard: list[tuple[int, int]] = []
    coarse_partition(ring, progress=lambda done, total: heard.append((done, total)))
    assert heard[-1] == (72, 72) and heard.count((0, 72)) > 5  # the child alone takes many ticks to start

    children = []

    def interrupt(done: int, total: int) -> None:
        children.extend(psutil.Process().children())
        if children:
            raise KeyboardInterrupt

    before = set(psutil.Process().children())
    with pytest.raises(KeyboardInterrupt):
        coarse_partition(ring, progress=interrupt)
    assert children and set(psutil.Process().children()) <= before


def test_a_search_that_dies_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setattr(_engines, "APART", 0)
    for script, told in (("import os; os.abort()", "exit status -6"), ("raise MemoryError", "MemoryError")):
        (tmp_path / "child.py").write_text(script)
        monkeypatch.setattr(_engines, "__file__", str(tmp_path / "child.py"))
        with pytest.raises(DataError, match=f"igraph ended early \\({told}"):
            communities(graph_of(nx.complete_graph(4)), "igraph")


def test_the_child_needs_no_room_of_the_package() -> None:
    """Importing the package would take it longer than most searches."""
    assert "btcnb" not in Path(_engines.__file__).read_text(encoding="utf-8")
