"""The paper's evaluation of an embedding as one call: Leiden, linkage in each community, λ, scores."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from btcnb.cluster import _gate
from btcnb.cluster._gate import Bool, Int64
from btcnb.cluster._progress import Progress
from btcnb.cluster.coarse import coarse_partition
from btcnb.cluster.communities import LabelledGraph
from btcnb.cluster.config import ClusterConfig, configured
from btcnb.cluster.forest import Forest, cut_forest, dendrograms, merge_values
from btcnb.cluster.purity import exact_purity, labelled, sampled_purity
from btcnb.cluster.refine import thresholds
from btcnb.cluster.scores import ari, nmi, scored_nodes
from btcnb.errors import DataError


class Evaluation(NamedTuple):
    """What an evaluation found: the flat record, and what it was made from."""

    record: dict[str, float | int | str]
    forest: Forest
    partition: Int64
    """one flat cluster per node, (n,), scored or not"""
    scored: Bool
    """which nodes count, (n,)"""


def evaluate(
    X: Any,
    graph: LabelledGraph,
    labels: Any = None,
    *,
    partition: Any = None,
    config: ClusterConfig | None = None,
    seed: int = 0,
    progress: Progress = None,
    **changes: Any,
) -> dict[str, float | int | str]:
    """Score embeddings X (n, d) of an `AddressGraph` as the paper does; one flat record, seconds of each stage
    included.

    labels: partition to recover, by default the graph's heuristic clusters
    partition: coarse partition, by default communities of at most `max_size` nodes
    config, changes: settings, all of them or single ones by name, see `ClusterConfig`
    progress: as in `dendrograms`, for one stage after the other
    Dendrograms hold all nodes of a community; scores (purity, NMI, ARI) count only nodes of degree >= min_degree, and
    without any such node there is nothing to score: `DataError`.
    Purity draws its pairs inside a community, as the paper does: `purity` is exact, `purity_sampled` the estimate
    from `pairs` pairs. `zero_rows` counts embeddings without a direction.
    """
    return evaluation(
        X, graph, labels, partition=partition, config=config, seed=seed, progress=progress, **changes
    ).record


def evaluation(
    X: Any,
    graph: LabelledGraph,
    labels: Any = None,
    *,
    partition: Any = None,
    config: ClusterConfig | None = None,
    seed: int = 0,
    progress: Progress = None,
    **changes: Any,
) -> Evaluation:
    """As `evaluate`, with the trees and the flat clusters that were scored."""
    config = configured(config, changes)
    seed = _gate.whole(seed, "seed", 0)
    rows, zero_rows = _gate.directed(X, config.zero_rows)
    given = _gate.array(_gate.asked(graph, "labels") if labels is None else labels, "labels")
    mask = scored_nodes(graph, config.min_degree)
    if given.shape != (len(rows),) or mask.shape != (len(rows),):
        problem = f"is {given.shape} for {len(rows)} embeddings and {len(mask)} nodes"
        raise DataError("labels", "length", problem, "pass one label per node")
    if not mask.any():
        problem = f"no node has degree {config.min_degree} or more"
        raise DataError("graph", "degree", problem, "there is nothing to score; lower min_degree")
    truth = _gate.classes(given)
    seconds: dict[str, float] = {}
    with _lap(seconds, "coarse"):
        if partition is None:
            partition = coarse_partition(
                graph, config.max_size, config.resolution, seed, method=config.coarse, progress=progress
            )
    with _lap(seconds, "linkage"):
        forest = dendrograms(rows, partition, config.method, memory_limit=config.memory_limit, progress=progress)
    with _lap(seconds, "cut"):
        _, threshold = thresholds(rows, forest, config, progress)
        flat = cut_forest(forest, merge_values(forest, config.compared, config.depth), threshold)
    with _lap(seconds, "scores"):
        found = labelled(forest, truth, mask)
        estimate, error = sampled_purity(found, config.pairs, seed)
        record: dict[str, float | int | str] = {
            "nodes": len(truth),
            "scored_nodes": int(mask.sum()),
            "zero_rows": zero_rows,
            "communities": len(forest),
            "largest_community": int(forest.sizes.max()),
            "method": config.method,
            "cut": config.cut,
            "threshold": threshold,
            "clusters": len(np.unique(flat[mask])),
            "purity": exact_purity(found),
            "purity_sampled": estimate,
            "purity_sampled_error": error,
            "nmi": nmi(truth[mask], flat[mask]),
            "ari": ari(truth[mask], flat[mask]),
        }
    record |= {f"seconds_{stage}": spent for stage, spent in seconds.items()}
    return Evaluation(record, forest, flat, mask)


@contextmanager
def _lap(seconds: dict[str, float], stage: str) -> Iterator[None]:
    begin = time.perf_counter()
    yield
    seconds[stage] = time.perf_counter() - begin
