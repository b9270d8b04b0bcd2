"""Every long stage tells how far it is from its first second to its end, and an interrupt at any word ends it clean."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest

from btcnb.cluster import (
    coarse_partition,
    evaluate,
    refine,
)

ROWS = np.random.default_rng(0).normal(size=(600, 8))
PARTITION = np.repeat(np.arange(6), 100)
GRAPH = (np.array(nx.ring_of_cliques(60, 10).edges()).T, 600)


class Labelled:
    """As much of an address graph as scoring needs."""

    num_nodes = len(ROWS)

    def edge_index(self) -> np.ndarray:
        return GRAPH[0]

    def labels(self) -> np.ndarray:
        return PARTITION

    def degree(self) -> np.ndarray:
        return np.bincount(GRAPH[0].ravel())


LABELLED = Labelled()
STAGES: dict[str, Callable[[Any], object]] = {
    "communities": lambda progress: coarse_partition(GRAPH, progress=progress),
    "communities above the limit": lambda progress: coarse_partition(GRAPH, max_size=15, progress=progress),
    "refinement": lambda progress: refine(ROWS, PARTITION, progress=progress),
    "evaluation": lambda progress: evaluate(ROWS, LABELLED, max_size=200, progress=progress),
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
