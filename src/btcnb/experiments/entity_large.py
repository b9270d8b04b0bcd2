"""The large graph beside the local ones: clusters of all addresses of an interval, in one piece."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

from btcnb.cluster import ClusterConfig, coarse_partition, refine
from btcnb.cluster.evaluation import evaluation
from btcnb.data import Transactions, build_graph
from btcnb.data.entity_pairs import interval_config
from btcnb.data.heuristics import heuristic_clusters
from btcnb.experiments.local_graphs import HEURISTICS
from btcnb.learn import Encoder, embed

IntArray = npt.NDArray[np.int64]


def large_labels(model: Encoder, txs: Transactions, seed: int = 0) -> dict[str, IntArray]:
    """One label per address of the chain: heuristics, the paper's pipeline, and its refinement (average, silhouette).

    The pipeline is the paper's for large graphs: communities, a tree in each, one λ for all (Section 3.4).
    """
    config = interval_config(txs)
    labels = heuristic_clusters(txs, config=config)
    graph = build_graph(txs, labels, config.price_usd)
    node = graph.nodes["node_id"].to_numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zero rows share a direction; local graphs count theirs
        rows = embed(model, graph)
        communities = coarse_partition(graph, seed=seed)
        whole = evaluation(rows, graph, partition=communities, config=ClusterConfig(), seed=seed, progress=False)
        inner = refine(rows, graph.labels(), progress=False)
    found = {"gnn.average.silhouette": whole.partition, "hybrid.average.silhouette": inner.partition}
    return {HEURISTICS: labels} | {name: _of_addresses(flat, node, txs.num_addresses) for name, flat in found.items()}


def _of_addresses(flat: IntArray, node: IntArray, addresses: int) -> IntArray:
    """Labels by address id; an address that is no node stands alone."""
    out = np.arange(addresses, dtype=np.int64) + int(flat.max(initial=0)) + 1
    out[node] = flat
    return out
