"""Landmark encoding: a path one can count, networkx and SciPy as oracles."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from btcnb.data import AddressGraph
from btcnb.data.landmarks import landmark_distances, landmark_nodes, landmarks
from btcnb.errors import DataError, ParameterError


def graph_of(number: int, pairs: list[tuple[int, int]], first_id: int = 0) -> AddressGraph:
    """Only the columns that a search through the graph needs."""
    ends = np.array(sorted(set(pairs)), dtype=np.int64).reshape(-1, 2)
    nodes = pd.DataFrame(
        {
            "node_id": np.arange(number) + first_id,
            "degree_in": np.bincount(ends[:, 1], minlength=number),
            "degree_out": np.bincount(ends[:, 0], minlength=number),
        }
    )
    edges = pd.DataFrame({"a": ends[:, 0] + first_id, "b": ends[:, 1] + first_id})
    return AddressGraph(nodes, edges, pd.DataFrame({"node_id": nodes["node_id"], "alias": 0}))


STAR_WITH_A_TAIL = [(0, 1), (0, 2), (3, 0), (3, 4), (4, 5)]  # 0 is the hub; 6 stands alone


def test_distances_from_the_hub() -> None:
    graph = graph_of(7, STAR_WITH_A_TAIL)
    assert landmark_nodes(graph, 1).tolist() == [0]
    assert landmark_distances(graph, np.array([0]))[:, 0].tolist() == [0, 1, 1, 1, 2, 3, -1]
    assert landmark_distances(graph, np.array([0]), symmetrize=False)[:, 0].tolist() == [0, 1, 1, -1, -1, -1, -1]


def test_similarity_and_its_normalisation() -> None:
    graph = graph_of(7, STAR_WITH_A_TAIL)
    plain = landmarks(graph, 1, normalise="none")[:, 0]
    assert np.allclose(plain, [1, 1 / 2, 1 / 2, 1 / 2, 1 / 3, 1 / 4, 0])
    scaled = landmarks(graph, 1)[:, 0]
    assert np.allclose(scaled, [1, 1 / 3, 1 / 3, 1 / 3, 1 / 9, 0, 0]), "(x − 1/4) / (1 − 1/4), unreachable 0"
    standard = landmarks(graph, 1, normalise="standard")[:, 0]
    assert np.allclose([standard[:6].mean(), standard[:6].std(), standard[6]], [0, 1, 0], atol=1e-6)


def test_landmarks_are_the_highest_degrees_ties_by_row() -> None:
    graph = graph_of(7, STAR_WITH_A_TAIL)  # degrees 3 1 1 2 2 1 0
    assert landmark_nodes(graph, 5).tolist() == [0, 3, 4, 1, 2]


def test_ids_need_not_be_positions() -> None:
    assert np.array_equal(
        landmarks(graph_of(7, STAR_WITH_A_TAIL), 3), landmarks(graph_of(7, STAR_WITH_A_TAIL, first_id=10**9), 3)
    )


@pytest.mark.parametrize("k", [64, 128, 256])
def test_sizes_of_the_paper(k: int) -> None:
    """A cycle of 300: distances are min(d, 300 − d), whatever word a landmark falls into."""
    number = 300
    graph = graph_of(number, [(v, (v + 1) % number) for v in range(number)])
    nearness = landmarks(graph, k, normalise="none")
    assert nearness.shape == (number, k) and nearness.dtype == np.float32
    apart = np.abs(np.arange(number)[:, None] - np.arange(k)[None, :])  # ties by row: landmark j is node j
    assert np.allclose(nearness, 1 / (1 + np.minimum(apart, number - apart)))


def test_isolated_landmark_is_near_itself_only() -> None:
    graph = graph_of(3, [(0, 1)])
    assert landmarks(graph, 3)[:, 2].tolist() == [0, 0, 1]


def test_k_out_of_range_is_refused() -> None:
    for k in (0, 8):
        with pytest.raises(ParameterError, match=f"k is {k}"):
            landmarks(graph_of(7, STAR_WITH_A_TAIL), k)


graphs = st.integers(1, 25).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda e: e[0] != e[1]), max_size=50),
    )
)


@settings(max_examples=100, deadline=None)
@given(graphs, st.booleans())
def test_distances_are_those_of_networkx(shape: tuple[int, list[Any]], symmetrize: bool) -> None:
    number, pairs = shape
    distance = landmark_distances(graph_of(number, pairs), np.arange(number), symmetrize)
    oracle = nx.Graph() if symmetrize else nx.DiGraph()
    oracle.add_nodes_from(range(number))
    oracle.add_edges_from(pairs)
    for source in range(number):
        lengths = nx.single_source_shortest_path_length(oracle, source)
        assert distance[:, source].tolist() == [lengths.get(v, -1) for v in range(number)]


def test_a_larger_graph_against_scipy() -> None:
    """3,000 nodes with hubs and long chains, 130 sources: three words, the last one partly used."""
    rng = np.random.default_rng(5)
    hubs = [(int(h), int(v)) for h, v in zip(rng.integers(0, 20, 2000), rng.integers(20, 2000, 2000), strict=True)]
    chains = [(v, v + 1) for v in range(2000, 2998)]
    graph = graph_of(3_000, [*hubs, *chains, (0, 2_500)])
    chosen = landmark_nodes(graph, 130)
    source, target = graph.edge_index()
    matrix = coo_array((np.ones(graph.num_edges), (source, target)), shape=(3_000, 3_000)).tocsr()
    for symmetrize in (True, False):
        exact = shortest_path(matrix, unweighted=True, directed=not symmetrize, indices=chosen).T
        ours = landmark_distances(graph, chosen, symmetrize)
        assert np.array_equal(np.where(np.isinf(exact), -1, exact), ours)


@pytest.mark.parametrize("node", [-1, 7, 2**40, -(2**40)])
def test_an_edge_to_an_unknown_node_is_refused_before_the_compiled_search(node: int) -> None:
    graph = graph_of(7, STAR_WITH_A_TAIL)
    graph.edges.loc[0, "b"] = node
    with pytest.raises(DataError, match=r"edges.b: row 0"):
        landmarks(graph, 1)
