"""One tree over everything beside communities, by hand: who gets what wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from btcnb.cluster import ClusterConfig, cut, linkage
from btcnb.errors import ParameterError
from btcnb.experiments import measures, whole_tree
from btcnb.experiments.recipe import Job


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
    numbers = whole_tree.whole_tree_numbers(X, Graph(labels), torn, ClusterConfig())
    assert [numbers[f"whole_{name}"] for name in ("DP", "NMI", "ARI")] == pytest.approx([1.0] * 3)
    assert numbers["whole_clusters"] == 4 and 0.01 < float(numbers["whole_threshold"] or 0) < 1.0
    assert float(numbers["communities_ARI"] or 0) < 0.05


def test_an_embedding_that_says_nothing_leaves_all_to_the_communities() -> None:
    """Two owners in one place: the tree mixes them, the communities are the owners."""
    labels = np.arange(41) % 2
    numbers = whole_tree.whole_tree_numbers(around(np.eye(3)[:1], 41), Graph(labels), labels, ClusterConfig())
    assert [numbers["communities_ARI"], numbers["communities_NMI"]] == pytest.approx([1.0] * 2)
    assert float(numbers["whole_DP"] or 1) < 0.7 and float(numbers["whole_ARI"] or 0) < 0.3


def test_some_levels_find_what_all_levels_find_where_clusters_are_plain() -> None:
    X = around(np.eye(8), 50)
    Z = linkage(X)
    every, some = (cut(Z, whole_tree.best_threshold(X, Z, limit)) for limit in (400, 399))
    assert len(np.unique(every)) == 8
    assert len(np.unique(some)) in range(6, 12), "24 numbers of clusters from 2 to 200: one of them is near 8"


@pytest.mark.parametrize("name", ["whole_tree", "whole_tree_real"])
def test_what_has_no_embedding_has_no_tree(name: str) -> None:
    job = object.__new__(Job)
    object.__setattr__(job, "method", "louvain")
    with pytest.raises(ParameterError, match="louvain"):
        measures.MEASURES[name](job)
