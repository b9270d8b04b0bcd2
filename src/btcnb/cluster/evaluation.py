"""The paper's evaluation of an embedding as one call: Leiden, linkage in each community, λ, scores."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from btcnb.cluster.coarse import MAX_SIZE, coarse_partition
from btcnb.cluster.cuts import N_MIN, global_threshold
from btcnb.cluster.forest import cut_forest, dendrograms, local_thresholds, merge_values
from btcnb.cluster.purity import PAPER_PAIRS, forest_purity, forest_purity_sampled
from btcnb.cluster.scores import MIN_DEGREE, ari, nmi, scored_nodes
from btcnb.errors import DataError


def evaluate(
    X: Any,
    graph: Any,
    labels: Any = None,
    *,
    partition: Any = None,
    max_size: int = MAX_SIZE,
    resolution: float = 1.0,
    method: str = "average",
    cut: str = "silhouette",
    n_min: int = N_MIN,
    alpha: float = 1.0,
    min_degree: int = MIN_DEGREE,
    pairs: int = PAPER_PAIRS,
    seed: int = 0,
    memory_limit: int | None = None,
) -> dict[str, float | int | str]:
    """Score embeddings X (n, d) of an `AddressGraph` as the paper does; one flat record, seconds of each stage
    included.

    labels: partition to recover, by default the graph's heuristic clusters
    partition: coarse partition, by default Leiden communities of at most `max_size` nodes
    Dendrograms hold all nodes of a community; scores (purity, NMI, ARI) count only nodes of degree >= min_degree.
    Purity draws its pairs inside a community, as the paper does: `purity` is exact, `purity_sampled` the estimate
    from `pairs` pairs.
    """
    seconds: dict[str, float] = {}
    truth = np.asarray(graph.labels() if labels is None else labels)
    if len(truth) != len(X):
        raise DataError("labels", "length", f"is {len(truth)} for {len(X)} embeddings", "pass one label per node")
    clock = time.perf_counter()
    if partition is None:
        partition = coarse_partition(graph, max_size, resolution, seed)
    clock = _lap(seconds, "coarse", clock)
    forest = dendrograms(X, partition, method, memory_limit=memory_limit)
    clock = _lap(seconds, "linkage", clock)
    local = local_thresholds(X, forest, cut, n_min=n_min, alpha=alpha)
    threshold = global_threshold(forest.sizes, local, n_min)
    values = merge_values(forest, "inconsistent" if cut == "inconsistency" else "distance")
    flat = cut_forest(forest, values, np.inf if np.isnan(threshold) else threshold)
    clock = _lap(seconds, "cut", clock)
    mask = scored_nodes(graph, min_degree)
    estimate, error = forest_purity_sampled(forest.labelled(truth, mask), pairs, seed)
    record: dict[str, float | int | str] = {
        "nodes": len(truth),
        "scored_nodes": int(mask.sum()),
        "communities": len(forest),
        "largest_community": int(forest.sizes.max()),
        "method": method,
        "cut": cut,
        "threshold": threshold,
        "clusters": len(np.unique(flat[mask])),
        "purity": forest_purity(forest.labelled(truth, mask)),
        "purity_sampled": estimate,
        "purity_sampled_error": error,
        "nmi": nmi(truth[mask], flat[mask]),
        "ari": ari(truth[mask], flat[mask]),
    }
    _lap(seconds, "scores", clock)
    return record | {f"seconds_{stage}": spent for stage, spent in seconds.items()}


def _lap(seconds: dict[str, float], stage: str, since: float) -> float:
    now = time.perf_counter()
    seconds[stage] = now - since
    return now
