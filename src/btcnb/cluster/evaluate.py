"""The paper's evaluation of an embedding as one call: Leiden, linkage in each community, λ, scores."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from btcnb.cluster.communities import LabelledGraph, coarse_partition
from btcnb.cluster.refine import ClusterConfig, fill_zero_rows, thresholds
from btcnb.cluster.scores import ari, nmi, scored_nodes
from btcnb.errors import DataError
from meanlink import Forest, cut_forest, dendrograms, forest_purity, forest_purity_sampled
from meanlink.forest import merge_values
from meanlink.progress import Progress

Record = dict[str, float | int | str]


class Evaluation(NamedTuple):
    """The flat record of an evaluation, and what it was made from."""

    record: Record
    forest: Forest
    partition: npt.NDArray[np.int64]
    """one flat cluster per node, (n,), scored or not"""
    scored: npt.NDArray[np.bool_]
    """which nodes count, (n,)"""


def evaluate(X: Any, graph: LabelledGraph, labels: Any = None, **options: Any) -> Record:
    """The record of `evaluation`, which explains the arguments."""
    return evaluation(X, graph, labels, **options).record


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
    """Score embeddings X (n, d) of an `AddressGraph` as the paper does.

    labels: partition to recover (n,), by default the graph's heuristic clusters
    partition: coarse partition (n,), by default communities of at most `max_size` nodes
    config, changes: settings, all of them or single ones by name, see `ClusterConfig`
    progress: as in `dendrograms`, for one stage after the other

    Dendrograms hold all nodes of a community. Scores (purity, NMI, ARI) count only nodes of degree >= min_degree;
    without any such node there is nothing to score: `DataError`. Purity draws its pairs inside a community, as the
    paper does: `purity` is exact, `purity_sampled` the estimate from `pairs` pairs. The record also has the seconds of
    each stage, and `zero_rows` counts embeddings without a direction.
    """
    config = replace(config or ClusterConfig(), **changes)
    rows, zero_rows = fill_zero_rows(X, config.zero_rows)
    truth = np.unique(graph.labels() if labels is None else labels, return_inverse=True)[1]
    mask = scored_nodes(graph, config.min_degree)
    if not mask.any():
        problem = f"no node has degree {config.min_degree} or more"
        raise DataError("graph", "degree", problem, "there is nothing to score; lower min_degree")
    seconds: dict[str, float] = {}
    with _timed(seconds, "coarse"):
        if partition is None:
            partition = coarse_partition(
                graph, config.max_size, config.resolution, seed, method=config.coarse, progress=progress
            )
    with _timed(seconds, "linkage"):
        forest = dendrograms(rows, partition, config.method, progress=progress)
    with _timed(seconds, "cut"):
        _, threshold = thresholds(rows, forest, config, progress)
        flat = cut_forest(forest, merge_values(forest, config.compared, config.depth), threshold)
    with _timed(seconds, "scores"):
        estimate, error = forest_purity_sampled(forest, truth, mask, config.pairs, seed)
        record: Record = {
            "nodes": len(truth),
            "scored_nodes": int(mask.sum()),
            "zero_rows": zero_rows,
            "communities": len(forest),
            "largest_community": int(forest.sizes.max()),
            "method": config.method,
            "cut": config.cut,
            "threshold": threshold,
            "clusters": len(np.unique(flat[mask])),
            "purity": forest_purity(forest, truth, mask),
            "purity_sampled": estimate,
            "purity_sampled_error": error,
            "nmi": nmi(truth[mask], flat[mask]),
            "ari": ari(truth[mask], flat[mask]),
        }
    record |= {f"seconds_{stage}": spent for stage, spent in seconds.items()}
    return Evaluation(record, forest, flat, mask)


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    begin = time.perf_counter()
    yield
    seconds[stage] = time.perf_counter() - begin
