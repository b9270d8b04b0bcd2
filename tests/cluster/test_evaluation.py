"""Coarse communities and the whole evaluation, on graphs whose communities are known."""

from __future__ import annotations

import cluster_shapes as shapes
import numpy as np
import pytest

from btcnb.cluster import coarse_partition, dendrogram_purity, evaluate, linkage, nmi, scored_nodes
from btcnb.cluster.coarse import undirected_pairs
from btcnb.errors import DataError, ParameterError


def cliques(sizes: list[int], bridges: int = 1) -> tuple[np.ndarray, int]:
    """Cliques in a ring, neighbours joined by single edges."""
    edges, start, firsts = [], 0, []
    for size in sizes:
        firsts.append(start)
        edges += [(start + i, start + j) for i in range(size) for j in range(i)]
        start += size
    edges += [(firsts[i], firsts[(i + 1) % len(firsts)]) for i in range(len(firsts)) for _ in range(bridges)]
    return np.array(edges).T, start


class Graph:
    """As much of an address graph as scoring needs."""

    def __init__(self, edge_index: np.ndarray, num_nodes: int, labels: np.ndarray) -> None:
        self._edges, self.num_nodes, self._labels = edge_index, num_nodes, labels

    def edge_index(self) -> np.ndarray:
        return self._edges

    def labels(self) -> np.ndarray:
        return self._labels

    def degree(self) -> np.ndarray:
        return np.bincount(self._edges.ravel(), minlength=self.num_nodes)


def test_cliques_are_communities() -> None:
    sizes = [12, 9, 7, 5]
    labels = coarse_partition(cliques(sizes))
    assert labels.dtype == np.int64
    np.testing.assert_array_equal(labels, np.repeat(np.arange(4), sizes))  # numbered by falling size


@pytest.mark.parametrize("limit", [1, 5, 11, 40])
def test_no_community_is_larger_than_asked(limit: int) -> None:
    labels = coarse_partition(cliques([40, 30, 20]), max_size=limit)
    assert np.bincount(labels).max() <= limit


def test_direction_repetition_and_loops_do_not_count() -> None:
    edges, nodes = cliques([8, 8, 8])
    noisy = np.concatenate([edges, edges[::-1], edges[:, :5], np.stack([np.arange(nodes)] * 2)], axis=1)
    np.testing.assert_array_equal(undirected_pairs(noisy, nodes), undirected_pairs(edges, nodes))
    np.testing.assert_array_equal(coarse_partition((noisy, nodes)), coarse_partition((edges, nodes)))


def test_same_seed_same_communities_and_isolated_nodes_stay_alone() -> None:
    rng = np.random.default_rng(0)
    graph = (rng.integers(300, size=(2, 900)), 310)
    first = coarse_partition(graph, seed=4)
    np.testing.assert_array_equal(first, coarse_partition(graph, seed=4))
    assert len(np.unique(first[300:])) == 10
    assert coarse_partition((np.empty((2, 0), dtype=int), 3)).tolist() == [0, 1, 2]


def test_bad_graphs_and_parameters() -> None:
    with pytest.raises(DataError, match="outside"):
        coarse_partition((np.array([[0], [9]]), 5))
    with pytest.raises(DataError, match="shape"):
        coarse_partition((np.zeros((3, 4)), 5))
    with pytest.raises(ParameterError, match="max_size"):
        coarse_partition(cliques([3]), max_size=0)
    with pytest.raises(ParameterError, match="resolution"):
        coarse_partition(cliques([3]), resolution=0)


def sample() -> tuple[np.ndarray, Graph]:
    """Two communities of two users each, one user in three addresses of degree 1."""
    edges, nodes = cliques([20, 16])
    hanging = np.array([[0, 1, 20], [nodes, nodes + 1, nodes + 2]])
    users = np.concatenate([np.repeat([0, 1], 10), np.repeat([2, 3], 8), [4, 4, 4]])
    X = np.eye(5)[users] + 0.05 * np.random.default_rng(0).normal(size=(nodes + 3, 5))
    return X.astype(np.float32), Graph(np.concatenate([edges, hanging], axis=1), nodes + 3, users)


def test_scored_nodes_have_degree_two() -> None:
    _, graph = sample()
    np.testing.assert_array_equal(np.flatnonzero(~scored_nodes(graph)), [36, 37, 38])


def test_a_perfect_embedding_scores_one() -> None:
    X, graph = sample()
    record = evaluate(X, graph)
    assert record["nodes"] == 39 and record["scored_nodes"] == 36 and record["communities"] == 2
    assert record["purity"] == pytest.approx(1.0) and record["purity_sampled"] == 1.0
    assert record["nmi"] == pytest.approx(1.0) and record["ari"] == pytest.approx(1.0) and record["clusters"] == 4
    assert {"seconds_coarse", "seconds_linkage", "seconds_cut", "seconds_scores"} <= record.keys()


def test_a_random_embedding_scores_what_its_parts_say() -> None:
    _, graph = sample()
    X = shapes.uniform(39, 4)
    record = evaluate(X, graph, partition=np.zeros(39), seed=3)
    mask = scored_nodes(graph)
    assert record["purity"] == pytest.approx(dendrogram_purity(linkage(X), graph.labels(), mask), abs=1e-12)
    assert abs(record["purity_sampled"] - record["purity"]) < 5 * record["purity_sampled_error"]
    assert record["nmi"] < nmi(graph.labels(), graph.labels())
    again = evaluate(X, graph, partition=np.zeros(39), seed=3)
    assert {k: v for k, v in record.items() if "seconds" not in k} == {
        k: v for k, v in again.items() if "seconds" not in k
    }


def test_labels_must_fit() -> None:
    X, graph = sample()
    with pytest.raises(DataError, match="one label per node"):
        evaluate(X, graph, labels=[0, 1])
