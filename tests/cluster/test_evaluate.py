"""The whole evaluation on a graph whose communities are known, its settings, and the progress of long stages."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, get_args, get_type_hints

import networkx as nx
import numpy as np
import point_sets as shapes
import pytest
from clique_rings import cliques

from btcnb.cluster import (
    CUTS,
    ENGINES,
    LINKAGES,
    ClusterConfig,
    ari,
    coarse_partition,
    evaluate,
    evaluation,
    forest_purity,
    nmi,
    refine,
    scored_nodes,
)
from btcnb.errors import DataError, ParameterError


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


@pytest.mark.parametrize("cut", ["silhouette", "gap", "inconsistency"])
def test_what_an_evaluation_reports_is_true_of_its_partition(cut: str) -> None:
    _, graph = sample()
    X, coarse = shapes.uniform(39, 4), np.arange(39) % 3
    found = evaluation(X, graph, partition=coarse, cut=cut, seed=3)
    labels, flat = graph.labels()[found.scored], found.partition[found.scored]
    assert found.record["nmi"] == nmi(labels, flat) < 1
    assert found.record["ari"] == ari(labels, flat)
    assert found.record["clusters"] == len(np.unique(flat))
    assert found.record["purity"] == pytest.approx(forest_purity(found.forest, graph.labels(), found.scored), abs=1e-12)
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
    with pytest.raises(ValueError, match="Row 3 of X is all zeros"):
        evaluate(X, graph, zero_rows="refuse")


def test_settings_can_be_named_one_by_one_or_together() -> None:
    X, graph = sample()
    one, other = (
        evaluate(X, graph, method="ward", cut="gap"),
        evaluate(X, graph, config=ClusterConfig(method="ward", cut="gap")),
    )
    assert one["threshold"] == other["threshold"] and one["method"] == "ward" and one["cut"] == "gap"
    with pytest.raises(ParameterError, match="linkage is no parameter of ClusterConfig"):
        evaluate(X, graph, linkage="ward")


def test_the_settings_name_what_there_is() -> None:
    kinds = get_type_hints(ClusterConfig)
    assert get_args(kinds["coarse"]) == tuple(ENGINES)
    assert set(get_args(kinds["method"])) == set(LINKAGES)
    assert get_args(kinds["cut"]) == tuple(CUTS)
    assert ClusterConfig(cut="inconsistency").compared == "inconsistent"
    assert ClusterConfig(cut="inconsistency", criterion="distance").compared == "distance"


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("method", ["median", None]),
        ("cut", ["elbow"]),
        ("criterion", ["x"]),
        ("coarse", ["louvain"]),
        ("zero_rows", ["drop"]),
        ("n_min", [1, 2.5, "3"]),
        ("max_size", [0, True]),
        ("resolution", [0.0, "1", float("inf")]),
        ("alpha", [0.0, -5.0, float("nan"), None]),
        ("depth", [0]),
        ("pairs", [1, 10**12]),
        ("min_degree", [-1]),
    ],
)
def test_a_wrong_setting_is_named(field: str, values: list[object]) -> None:
    for value in values:
        with pytest.raises(ParameterError, match=f"^{field} is"):
            ClusterConfig(**{field: value})


ROWS = np.random.default_rng(0).normal(size=(600, 8))
PARTITION = np.repeat(np.arange(6), 100)
RING = (np.array(nx.ring_of_cliques(60, 10).edges()).T, 600)
STAGES: dict[str, Callable[[Any], object]] = {
    "communities": lambda progress: coarse_partition(RING, progress=progress),
    "communities above the limit": lambda progress: coarse_partition(RING, max_size=15, progress=progress),
    "refinement": lambda progress: refine(ROWS, PARTITION, progress=progress),
    "evaluation": lambda progress: evaluate(ROWS, Graph(*RING, PARTITION), max_size=200, progress=progress),
}


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_counts_from_nothing_to_all(stage: str) -> None:
    heard: list[tuple[int, int]] = []
    STAGES[stage](lambda done, total: heard.append((done, total)))
    assert heard[0][0] == 0
    assert heard[-1][0] == heard[-1][1] > 0
    for (before, total), (after, whole) in itertools.pairwise(heard):
        assert after >= before or (before == total and after == 0)  # the next stage begins when the last is at its end
        assert whole == total or after == 0
