"""Coarse communities and the whole evaluation, on graphs whose communities are known."""

from __future__ import annotations

import random

import cluster_shapes as shapes
import numpy as np
import pytest

from btcnb.cluster import (
    ENGINES,
    ClusterConfig,
    ari,
    coarse_partition,
    dendrogram_purity,
    evaluate,
    forest_purity,
    linkage,
    nmi,
    refine,
    scored_nodes,
)
from btcnb.cluster.communities import undirected_pairs
from btcnb.cluster.evaluation import evaluation
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


def test_progress_counts_nodes() -> None:
    heard: list[tuple[int, int]] = []
    coarse_partition(cliques([40, 12, 9]), max_size=10, progress=lambda done, total: heard.append((done, total)))
    assert heard[0] == (0, 61) and heard[-1] == (61, 61)


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
    flat = refine(X, np.zeros(39)).partition
    assert record["nmi"] == nmi(graph.labels()[mask], flat[mask]) < 1
    assert record["ari"] == ari(graph.labels()[mask], flat[mask])
    again = evaluate(X, graph, partition=np.zeros(39), seed=3)
    assert {k: v for k, v in record.items() if "seconds" not in k} == {
        k: v for k, v in again.items() if "seconds" not in k
    }


def test_an_evaluation_hands_out_the_partition_that_it_scored() -> None:
    X, graph = sample()
    found = evaluation(X, graph)
    assert np.array_equal(found.scored, scored_nodes(graph))
    assert np.unique(np.stack([found.partition, graph.labels()])[:, found.scored], axis=1).shape[1] == 4, "the users"
    assert sorted(found.forest.members) == list(range(39)) and found.partition.shape == (39,)


@pytest.mark.parametrize("cut", ["silhouette", "gap", "inconsistency"])
def test_what_an_evaluation_reports_is_true_of_its_partition(cut: str) -> None:
    _, graph = sample()
    X, coarse = shapes.uniform(39, 4), np.arange(39) % 3
    found = evaluation(X, graph, partition=coarse, cut=cut, seed=3)
    labels, flat = graph.labels()[found.scored], found.partition[found.scored]
    assert found.record["nmi"] == nmi(labels, flat) < 1
    assert found.record["ari"] == ari(labels, flat)
    assert found.record["clusters"] == len(np.unique(flat))
    assert found.record["purity"] == pytest.approx(
        forest_purity(found.forest.labelled(graph.labels(), found.scored)), abs=1e-12
    )
    inside = np.unique(np.stack([found.partition, coarse]), axis=1)
    assert inside.shape[1] == len(np.unique(found.partition)), "no cluster lies in two communities"
    again = evaluate(X, graph, partition=coarse, cut=cut, seed=3)
    assert {k: v for k, v in found.record.items() if "seconds" not in k} == {
        k: v for k, v in again.items() if "seconds" not in k
    }


def test_labels_of_ones_own_are_scored_instead_of_the_graphs() -> None:
    X, graph = sample()
    mine = np.zeros(39, dtype=int)
    found = evaluation(X, graph, mine)
    assert found.record["ari"] == ari(mine[found.scored], found.partition[found.scored]) == 0.0
    assert found.record["purity"] == pytest.approx(1.0)


def test_labels_must_fit() -> None:
    X, graph = sample()
    with pytest.raises(DataError, match="one label per node"):
        evaluate(X, graph, labels=[0, 1])


def test_without_a_node_to_score_there_is_no_score() -> None:
    X, graph = sample()
    with pytest.raises(DataError, match="no node has degree 100"):
        evaluate(X, graph, min_degree=100)


def test_rows_of_zeros_are_counted_or_refused() -> None:
    X, graph = sample()
    X[[3, 30]] = 0.0
    with pytest.warns(UserWarning, match="2 of 39 rows"):
        record = evaluate(X, graph)
    assert record["zero_rows"] == 2 and record["purity"] < 1
    with pytest.raises(DataError, match="row 3: is all zeros"):
        evaluate(X, graph, zero_rows="refuse")


def test_settings_can_be_named_one_by_one_or_together() -> None:
    X, graph = sample()
    one, other = (
        evaluate(X, graph, method="ward", cut="gap"),
        evaluate(X, graph, config=ClusterConfig(method="ward", cut="gap")),
    )
    assert one["threshold"] == other["threshold"] and one["method"] == "ward" and one["cut"] == "gap"
    with pytest.raises(ParameterError, match="no setting"):
        evaluate(X, graph, linkage="ward")
    with pytest.raises(ParameterError, match="config"):
        evaluate(X, graph, config={"method": "ward"})
