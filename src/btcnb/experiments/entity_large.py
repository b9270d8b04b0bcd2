"""The large graph beside the local ones: clusters of all addresses of an interval, in one piece."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

from btcnb import gates
from btcnb.cluster import ClusterConfig, coarse_partition, refine
from btcnb.cluster.evaluate import evaluation
from btcnb.data import Transactions, build_graph
from btcnb.data.heuristics import HeuristicConfig, heuristic_clusters
from btcnb.data.intervals import price_near
from btcnb.experiments.local_graphs import HEURISTICS
from btcnb.learn import Encoder, embed

IntArray = npt.NDArray[np.int64]


def price_and_rules(txs: Transactions, price_usd: float | None = None) -> tuple[float | None, HeuristicConfig]:
    """USD for one bitcoin, None where nobody knows it, and the thresholds of the heuristics at that price.

    As graphs that encoders are trained on have it: a price that is given counts, else the paper's where the chain
    begins in one of its intervals. Without a price the heuristics take their default, and features have no dollars.
    """
    blocks = gates.instance("txs", txs, Transactions).transactions["block_number"]
    if price_usd is None and len(blocks):
        price_usd = price_near(int(blocks.iloc[0]))
    return price_usd, HeuristicConfig() if price_usd is None else HeuristicConfig(price_usd=price_usd)


def large_labels(
    model: Encoder, txs: Transactions, seed: int = 0, price_usd: float | None = None
) -> dict[str, IntArray]:
    """One label per address of the chain: heuristics, the paper's pipeline, and its refinement (average, silhouette).

    The pipeline is the paper's for large graphs: communities, a tree in each, one λ for all (Section 3.4).
    """
    price, config = price_and_rules(txs, price_usd)
    labels = heuristic_clusters(txs, config=config)
    graph = build_graph(txs, labels, price)
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
