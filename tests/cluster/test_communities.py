"""Communities on graphs with an obvious answer, the limit of size, and the search in a child process."""

from __future__ import annotations

import random
import subprocess
import sys

import igraph
import networkx as nx
import numpy as np
import psutil
import pytest
from clique_rings import cliques
from hypothesis import given, settings
from hypothesis import strategies as st

from btcnb.cluster import ENGINES, coarse_partition, communities, engines, tune_resolution
from btcnb.cluster.communities import BASELINES, RESOLUTIONS, joined_again, modularity, simple_pairs
from btcnb.cluster.engines import Search, network_of
from btcnb.errors import DataError

WHOLE = 0.01
"""A resolution at which each of the graphs with a limit is one community."""


def ring_of_cliques(cliques: int, size: int) -> igraph.Graph:
    return igraph.Graph.from_networkx(nx.ring_of_cliques(cliques, size))


class Planted:
    """Groups of nodes with many edges inside and few between, some of them twice, reversed, or loops."""

    def __init__(self, groups: int = 6, size: int = 40, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.num_nodes = groups * size
        inside = rng.integers(size, size=(2, groups * size * 4)) + size * rng.integers(groups, size=groups * size * 4)
        across = rng.integers(self.num_nodes, size=(2, groups * size // 2))
        self._edges = np.concatenate([inside, across, inside[::-1, :50]], axis=1)

    def edge_index(self) -> np.ndarray:
        return self._edges


@pytest.mark.parametrize("method", ["louvain", "leiden", *ENGINES])
def test_a_ring_of_cliques_falls_into_its_cliques(method: str) -> None:
    found = communities(ring_of_cliques(6, 5), method, seed=1)
    assert found.dtype == np.int64 and found.shape == (30,)
    assert len(np.unique(found)) == 6
    assert all(len(set(found[i : i + 5])) == 1 for i in range(0, 30, 5))


@pytest.mark.parametrize("engine", ENGINES)
def test_all_engines_repeat_themselves_and_reach_the_same_modularity(engine: str) -> None:
    graph = network_of(*simple_pairs(Planted()))
    first, second = (ENGINES[engine](graph, Search(1.0, 3, 10)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    other = communities(graph, "leiden", 1.0, 3)
    assert graph.modularity(first.tolist()) == pytest.approx(graph.modularity(other.tolist()), abs=0.03)


@pytest.mark.parametrize("method", BASELINES)
def test_the_grid_is_searched_for_modularity(method: str) -> None:
    best, table = tune_resolution(ring_of_cliques(6, 5), method, seed=0)
    assert table["resolution"].tolist() == list(RESOLUTIONS) == [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
    assert table.loc[table["resolution"] == best, "modularity"].item() == table["modularity"].max()


def test_the_resolution_is_that_of_the_graph_it_was_tuned_on() -> None:
    """Two graphs that want different resolutions: the choice must follow the graph."""
    grid = (0.02, 1.0)
    cliques, one = ring_of_cliques(6, 5), igraph.Graph.Full(12)
    assert tune_resolution(cliques, grid=grid)[0] == 1.0
    best, table = tune_resolution(one, grid=(0.5, 60.0))
    assert best == 0.5 and table["communities"].tolist() == [1, 12]


def test_the_undirected_graph_has_each_pair_once() -> None:
    graph = Planted()
    pairs, nodes = simple_pairs(graph)
    expected = {tuple(sorted(pair)) for pair in graph.edge_index().T.tolist() if pair[0] != pair[1]}
    assert nodes == graph.num_nodes and [tuple(pair) for pair in pairs.tolist()] == sorted(expected)
    for other in ((graph.edge_index(), graph.num_nodes), network_of(pairs, nodes)):
        np.testing.assert_array_equal(simple_pairs(other)[0], pairs)


def test_modularity_is_igraphs() -> None:
    pairs, nodes = simple_pairs(Planted())
    labels = np.random.default_rng(1).integers(7, size=nodes)
    expected = network_of(pairs, nodes).modularity(labels.tolist())
    assert modularity(pairs, labels) == pytest.approx(expected, abs=1e-12)
    assert np.isnan(modularity(np.empty((0, 2), dtype=np.int64), np.zeros(3, dtype=np.int64)))


@pytest.mark.parametrize("method", ENGINES)
def test_cliques_are_communities(method: str) -> None:
    sizes = [12, 9, 7, 5]
    labels = coarse_partition(cliques(sizes), method=method)
    assert labels.dtype == np.int64
    np.testing.assert_array_equal(labels, np.repeat(np.arange(4), sizes))  # numbered by falling size


@pytest.mark.parametrize("method", ["igraph", "leidenalg"])
@pytest.mark.parametrize("limit", [1, 5, 11, 40])
def test_no_community_is_larger_than_asked(limit: int, method: str) -> None:
    labels = coarse_partition(cliques([40, 30, 20]), max_size=limit, method=method)
    assert np.bincount(labels).max() <= limit
    assert len(np.unique(labels)) <= {1: 90, 5: 18, 11: 9, 40: 3}[limit]


def test_only_communities_above_the_limit_are_split() -> None:
    graph = cliques([40, 12, 9, 7])
    whole, split = coarse_partition(graph), coarse_partition(graph, max_size=20)
    small = np.bincount(whole)[whole] <= 20
    assert small.sum() == 28 and len(np.unique(split[~small])) > 1
    for c in np.unique(whole[small]):
        assert len(np.unique(split[whole == c])) == 1


def test_nobody_elses_random_numbers_matter_or_change() -> None:
    graph = (np.random.default_rng(0).integers(300, size=(2, 900)), 300)
    random.seed(5)
    first = coarse_partition(graph)
    after = random.random()
    np.testing.assert_array_equal(first, coarse_partition(graph))
    random.seed(5)
    assert random.random() == after


def test_direction_repetition_and_loops_do_not_count() -> None:
    edges, nodes = cliques([8, 8, 8])
    noisy = np.concatenate([edges, edges[::-1], edges[:, :5], np.stack([np.arange(nodes)] * 2)], axis=1)
    np.testing.assert_array_equal(simple_pairs((noisy, nodes))[0], simple_pairs((edges, nodes))[0])
    np.testing.assert_array_equal(coarse_partition((noisy, nodes)), coarse_partition((edges, nodes)))


def test_same_seed_same_communities_and_isolated_nodes_stay_alone() -> None:
    rng = np.random.default_rng(0)
    graph = (rng.integers(300, size=(2, 900)), 310)
    first = coarse_partition(graph, seed=4)
    np.testing.assert_array_equal(first, coarse_partition(graph, seed=4))
    assert len(np.unique(first[300:])) == 10
    assert coarse_partition((np.empty((2, 0), dtype=int), 3)).tolist() == [0, 1, 2]


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
    pairs, _ = simple_pairs((np.random.default_rng(seed).integers(nodes, size=(2, edges)), nodes))
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
    monkeypatch.setattr(engines, "CHILD_SIZE", 0)
    np.testing.assert_array_equal(coarse_partition(ring, 30, 0.3, seed=3, method=method), here)


def test_a_long_search_shows_that_it_goes_on_and_can_be_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "CHILD_SIZE", 0)
    monkeypatch.setattr(engines, "TICK", 0.005)
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


def test_a_child_that_is_slow_to_read_gets_all_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    """More edges than a pipe holds, and a child that has not started when the parent first looks up."""
    ring = graph_of(nx.ring_of_cliques(300, 10))
    here = coarse_partition(ring, seed=3)
    monkeypatch.setattr(engines, "CHILD_SIZE", 0)
    monkeypatch.setattr(engines, "TICK", 0.001)
    np.testing.assert_array_equal(coarse_partition(ring, seed=3), here)


def test_a_search_that_dies_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setattr(engines, "CHILD_SIZE", 0)
    for script, told in (("import os; os.abort()", "exit status -6"), ("raise MemoryError", "MemoryError")):
        (tmp_path / "child.py").write_text(script)
        monkeypatch.setattr(engines, "__file__", str(tmp_path / "child.py"))
        with pytest.raises(DataError, match=f"igraph ended early \\({told}"):
            communities(graph_of(nx.complete_graph(4)), "igraph")


def test_the_child_loads_neither_the_package_nor_numba() -> None:
    """Importing them would take it longer than most searches."""
    code = f"""if True:
        import runpy, sys
        runpy.run_path({engines.__file__!r})
        print(*({{name.partition(".")[0] for name in sys.modules}} & {{"btcnb", "numba", "pandas"}}))"""
    found = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []
