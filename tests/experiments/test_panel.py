"""The panel of scores by hand: far look-alikes where one can count hops, and one tree beside communities."""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from btcnb.cluster import ClusterConfig, cut, linkage
from btcnb.data import AddressGraph
from btcnb.errors import ParameterError
from btcnb.experiments import measures
from btcnb.experiments.panel import FAR, PARTNERS, SOURCES, best_threshold, far_lookalikes, whole_tree_scores
from btcnb.experiments.recipe import Job


def graph_of(edges: list[tuple[int, int]], labels: list[int]) -> AddressGraph:
    """As much of an address graph as the measurement reads: a node for each label, edges from sender to receiver."""
    ends = pd.DataFrame(edges, columns=["a", "b"], dtype=np.int64)
    nodes = pd.DataFrame({"node_id": np.arange(len(labels))})
    for name, end in (("degree_in", "b"), ("degree_out", "a")):
        nodes[name] = np.bincount(ends[end], minlength=len(labels))
    return AddressGraph(nodes, ends, pd.DataFrame({"node_id": nodes["node_id"], "alias": labels}))


def path(labels: list[int]) -> AddressGraph:
    """Money goes from each node to the next."""
    return graph_of([(i, i + 1) for i in range(len(labels) - 1)], labels)


def rows(*degrees: float) -> np.ndarray:
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def test_a_path_of_eight() -> None:
    """Inner nodes look alike; of these only 1 and 6 are five hops apart. The ends look like nobody."""
    X = rows(0, 10, 20, 30, 40, 50, 70, 90)
    found = far_lookalikes(X, path(list(range(8))))
    assert found["far_pairs"] == 2, "both were drawn, each finds the other"
    assert found["far_cosine"] == pytest.approx(np.cos(np.radians(60)))
    others = [50, 70, 90, 80, 70]  # 0-5, 0-6, 0-7, 1-7, 2-7
    assert found["far_cosine_any"] == pytest.approx(np.cos(np.radians(others)).mean())


def test_the_length_of_a_row_does_not_count_and_a_row_of_zeros_is_like_nobody() -> None:
    X = rows(0, 10, 20, 30, 40, 50, 70, 90)
    graph = path(list(range(8)))
    stretched = far_lookalikes(X * np.arange(1, 9)[:, None], graph)
    assert stretched == pytest.approx(far_lookalikes(X, graph))
    X[6] = 0.0
    assert far_lookalikes(X, graph)["far_cosine"] == 0.0


def test_pairs_of_one_cluster_do_not_count() -> None:
    found = far_lookalikes(rows(*range(8)), path([0, 1, 2, 3, 4, 5, 1, 7]))
    assert found["far_pairs"] == 0 and np.isnan(found["far_cosine"])
    assert np.isfinite(found["far_cosine_any"])


def test_who_cannot_be_reached_is_not_far_but_nowhere() -> None:
    two = graph_of([(0, 1), (1, 2), (3, 4), (4, 5)], list(range(6)))
    found = far_lookalikes(rows(*range(6)), two)
    assert found["far_pairs"] == 0 and np.isnan([found["far_cosine"], found["far_cosine_any"]]).all()


def test_hops_count_against_the_flow_too() -> None:
    """0 and 5 only send, along a chain whose money meets in the middle: no money goes from one to the other."""
    graph = graph_of([(0, 1), (1, 2), (3, 2), (4, 3), (5, 4)], list(range(6)))
    found = far_lookalikes(rows(0, 0, 0, 0, 0, 30), graph)
    assert found["far_pairs"] == 2
    assert found["far_cosine"] == pytest.approx(np.cos(np.radians(30)))


def test_long_lists_are_drawn_from() -> None:
    """On a ring of 300 all look alike and nearly all are far: 200 sources, ten partners each."""
    ring = graph_of([(i, (i + 1) % 300) for i in range(300)], list(range(300)))
    X = np.random.default_rng(0).normal(size=(300, 5))
    found = far_lookalikes(X, ring, seed=1)
    assert found["far_pairs"] == SOURCES * PARTNERS
    assert abs(found["far_cosine"]) < 0.1, "random rows have no common direction"
    assert found == pytest.approx(far_lookalikes(X, ring, seed=1), nan_ok=True)
    assert found["far_cosine"] != far_lookalikes(X, ring, seed=2)["far_cosine"]


@given(st.data())
def test_trees_against_networkx(data: st.DataObject) -> None:
    """Trees of so few nodes that everybody is drawn: the means are over all ordered pairs."""
    n = data.draw(st.integers(2, PARTNERS + 1))
    above = [data.draw(st.integers(max(0, i - 2), i - 1)) for i in range(1, n)]  # long rather than bushy
    turned = data.draw(st.lists(st.booleans(), min_size=n - 1, max_size=n - 1))
    edges = [(i, a) if turn else (a, i) for i, (a, turn) in enumerate(zip(above, turned, strict=True), 1)]
    labels = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    graph, X = graph_of(edges, labels), np.random.default_rng(n).normal(size=(n, 3))
    hops = dict(nx.all_pairs_shortest_path_length(nx.Graph(edges)))
    kinds = graph.nodes[["degree_in", "degree_out"]].to_numpy().tolist()
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    cosines: dict[bool, list[float]] = {True: [], False: []}
    for i in range(n):
        for j in range(n):
            if labels[i] != labels[j] and hops[i][j] >= FAR:
                cosines[kinds[i] == kinds[j]].append(float(unit[i] @ unit[j]))
    means = {alike: np.mean(values) if values else np.nan for alike, values in cosines.items()}
    expected = {"far_cosine": means[True], "far_cosine_any": means[False], "far_pairs": len(cosines[True])}
    assert far_lookalikes(X, graph) == pytest.approx(expected, nan_ok=True)


@dataclass
class Graph:
    """Nodes with labels; the last one has too small a degree to count."""

    given: np.ndarray

    def labels(self) -> np.ndarray:
        return self.given

    def degree(self) -> np.ndarray:
        return np.where(np.arange(len(self.given)) < len(self.given) - 1, 2, 1)


def around(directions: np.ndarray, each: int) -> np.ndarray:
    noise = 0.01 * np.random.default_rng(0).normal(size=(len(directions) * each, directions.shape[1]))
    return np.repeat(directions, each, axis=0) + noise


def test_an_owner_torn_apart_by_communities_is_whole_in_one_tree() -> None:
    labels = np.repeat(np.arange(4), 10)
    X = around(np.eye(4), 10)
    torn = np.arange(40) % 2  # every owner half in either community
    numbers = whole_tree_scores(X, Graph(labels), torn, ClusterConfig())
    assert [numbers[f"whole_{name}"] for name in ("DP", "NMI", "ARI")] == pytest.approx([1.0] * 3)
    assert numbers["whole_clusters"] == 4 and 0.01 < float(numbers["whole_threshold"] or 0) < 1.0
    assert float(numbers["communities_ARI"] or 0) < 0.05


def test_an_embedding_that_says_nothing_leaves_all_to_the_communities() -> None:
    """Two owners in one place: the tree mixes them, the communities are the owners."""
    labels = np.arange(41) % 2
    numbers = whole_tree_scores(around(np.eye(3)[:1], 41), Graph(labels), labels, ClusterConfig())
    assert [numbers["communities_ARI"], numbers["communities_NMI"]] == pytest.approx([1.0] * 2)
    assert float(numbers["whole_DP"] or 1) < 0.7 and float(numbers["whole_ARI"] or 0) < 0.3


def test_some_levels_find_what_all_levels_find_where_clusters_are_plain() -> None:
    X = around(np.eye(8), 50)
    Z = linkage(X)
    every, some = (cut(Z, best_threshold(X, Z, limit)) for limit in (400, 399))
    assert len(np.unique(every)) == 8
    assert len(np.unique(some)) in range(6, 12), "24 numbers of clusters from 2 to 200: one of them is near 8"


@pytest.mark.parametrize("graph", ["simulated", "real"])
def test_what_has_no_embedding_has_no_tree(graph: str) -> None:
    job = object.__new__(Job)
    object.__setattr__(job, "method", "louvain")
    with pytest.raises(ParameterError, match="louvain"):
        measures.whole_tree(job, graph)
