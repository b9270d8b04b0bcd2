"""Communities on graphs with an obvious answer."""

from __future__ import annotations

import igraph
import networkx as nx
import numpy as np
import pytest

from btcnb.cluster import ENGINES, GraphLike, communities, tune_resolution
from btcnb.cluster._engines import Search
from btcnb.cluster.communities import BASELINES, RESOLUTIONS, modularity, simple_pairs, undirected
from btcnb.errors import DataError, ParameterError


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
    graph = undirected(Planted())
    first, second = (ENGINES[engine](graph, Search(1.0, 3, 10)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    other = communities(graph, "leiden", 1.0, 3)
    assert graph.modularity(first.tolist()) == pytest.approx(graph.modularity(other.tolist()), abs=0.03)


@pytest.mark.parametrize("method", BASELINES)
def test_higher_resolution_gives_smaller_communities(method: str) -> None:
    graph = undirected(Planted(groups=10))
    counts = [len(np.unique(communities(graph, method, r, seed=0))) for r in (0.2, 6.0)]
    assert counts[0] < counts[1]


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
    assert isinstance(graph, GraphLike)
    simple = undirected(graph)
    assert simple.vcount() == graph.num_nodes and simple.is_simple()
    pairs = {tuple(sorted(pair)) for pair in graph.edge_index().T.tolist() if pair[0] != pair[1]}
    assert simple.ecount() == len(pairs)
    again = undirected((graph.edge_index(), graph.num_nodes))
    assert again.get_edgelist() == simple.get_edgelist()


def test_modularity_is_igraphs() -> None:
    pairs, nodes = simple_pairs(Planted())
    labels = np.random.default_rng(1).integers(7, size=nodes)
    assert modularity(pairs, labels) == pytest.approx(undirected(Planted()).modularity(labels.tolist()), abs=1e-12)
    assert np.isnan(modularity(np.empty((0, 2), dtype=np.int64), np.zeros(3, dtype=np.int64)))


def test_an_igraph_graph_counts_without_directions_and_repetitions() -> None:
    plain = igraph.Graph.Full(4)
    odd = igraph.Graph(4, [*plain.get_edgelist(), (3, 0), (1, 1)], directed=True)
    np.testing.assert_array_equal(simple_pairs(odd)[0], simple_pairs(plain)[0])
    np.testing.assert_array_equal(communities(odd, "igraph"), communities(plain, "igraph"))


def test_bad_requests_are_named() -> None:
    graph = ring_of_cliques(3, 3)
    with pytest.raises(ParameterError, match="method"):
        communities(graph, "spectral")
    for resolution in (0.0, np.nan, None, "1"):
        with pytest.raises(ParameterError, match="resolution"):
            communities(graph, resolution=resolution)
    with pytest.raises(ParameterError, match="method"):
        tune_resolution(graph, "igraph")
    with pytest.raises(DataError, match="are none"):
        tune_resolution(graph, grid=())
    for wrong in (None, "graph", 3, (np.zeros((2, 1)),), (np.zeros((2, 1)), 10**15)):
        with pytest.raises((DataError, ParameterError), match=r"graph|num_nodes"):
            communities(wrong)
