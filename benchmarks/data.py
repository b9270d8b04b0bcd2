"""The data part at full size: simulate, sample, cluster, build; time and memory per stage, growth, and two peers.

    python benchmarks/data.py                  # one graph of the paper's order, and one of a tenth of it
    python benchmarks/data.py --size quick     # a look

Writes results/benchmarks/data.json. The peers do the same work on the same transactions in the same run: a pandas join
and groupby for the edges, SciPy's breadth-first search for the landmarks; their answers are compared with ours.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from _measure import Run, growth, in_child, rows, show, stage, write
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from btcnb import sizes
from btcnb.data import (
    HeuristicConfig,
    SimulationConfig,
    Source,
    Transactions,
    build_graph,
    features,
    heuristic_clusters,
    landmarks,
    sample_from_coinbase,
    simulate,
)
from btcnb.data.landmarks import landmark_distances, landmark_nodes
from btcnb.data.transactions import SCRIPT_TYPES

PAPER_LIMITS = {"seconds": 180.0, "peak_mb": 6 * 1024.0}
STAGES = ("simulate", "sample", "cluster", "build")
EXPANDED = 5_000  # transactions that a step of the sampling expands, as in the paper


def tenth(config: SimulationConfig) -> SimulationConfig:
    """The same economy with a tenth of the people, services and traffic; blocks and batch sizes stay."""
    smaller = {name: max(getattr(config, name) // 10, 2) for name in ("users", "exchanges", "pools", "merchants")}
    return replace(config, transactions_per_block=max(config.transactions_per_block // 10, 5), **smaller)


def sampled(config: SimulationConfig, expanded: int, at_least: int) -> tuple[Transactions, dict[str, int]]:
    with stage("simulate"):
        chain = simulate(config)
    with stage("sample"):
        txs = sample_from_coinbase(chain, seed=config.seed, max_expanded=expanded, at_least=at_least)
    return txs, {"chain": len(chain), "transactions": len(txs)}


def pipeline(config: SimulationConfig, expanded: int, at_least: int) -> dict[str, int]:
    """What the time limit is about; counts come back."""
    txs, counts = sampled(config, expanded, at_least)
    with stage("cluster"):
        labels = heuristic_clusters(txs, config=HeuristicConfig(price_usd=config.price_usd))
    with stage("build"):
        graph = build_graph(txs, labels)
    clusters = int(graph.labels().max()) + 1
    return {**counts, "nodes": graph.num_nodes, "edges": graph.num_edges, "clusters": clusters}


def inputs_of_training(config: SimulationConfig, expanded: int, at_least: int) -> dict[str, int]:
    """Features and landmarks, which a training run adds, and the peers."""
    txs, _ = sampled(config, expanded, at_least)
    with stage("graph, ours"):
        graph = build_graph(txs, np.zeros(txs.num_addresses, dtype=np.int64))
    with stage("graph, pandas"):
        edges = pandas_edges(txs)
    for name in ("a", "b", "total"):
        assert np.array_equal(graph.edges[name], edges[name]), "the peer counts other edges"
    rounding = np.abs(graph.edges["total_sent"].to_numpy() - edges["total_sent"].to_numpy()).max()
    assert rounding <= graph.edges["total"].max(), "the peer moves other amounts"
    with stage("features"):
        features(graph)
    with stage("landmarks 64"):
        landmarks(graph, 64)
    chosen = landmark_nodes(graph, 64)
    with stage("distances, ours"):
        ours = landmark_distances(graph, chosen)
    with stage("distances, scipy"):
        theirs = scipy_distances(graph.edge_index(), graph.num_nodes, chosen)
    assert np.array_equal(ours, theirs), "the peer finds other distances"
    return {"edges": graph.num_edges}


def pandas_edges(txs: Transactions) -> pd.DataFrame:
    """The edge table as a user of pandas would make it: join both sides on the transaction, group by the pair."""
    nulldata = SCRIPT_TYPES.index("nulldata")
    senders = txs.inputs[txs.inputs["address"] >= 0].groupby(["tx", "address"], as_index=False)["value"].sum()
    payable = (txs.outputs["address"] >= 0) & (txs.outputs["script_type"] != nulldata)
    recipients = txs.outputs[payable].groupby(["tx", "address"], as_index=False)["value"].sum()
    senders["share"] = senders["value"] / senders.groupby("tx")["value"].transform("sum")
    pairs = senders.merge(recipients, on="tx", suffixes=("_a", "_b"))
    pairs = pairs[pairs["address_a"] != pairs["address_b"]]
    pairs["sent"] = pairs["share"] * pairs["value_b"]
    pairs["block"] = txs.transactions["block_number"].to_numpy()[pairs["tx"]]
    return (
        pairs.groupby(["address_a", "address_b"])
        .agg(
            reveal=("block", "min"),
            last_seen=("block", "max"),
            total=("tx", "size"),
            min_sent=("sent", "min"),
            max_sent=("sent", "max"),
            total_sent=("sent", "sum"),
        )
        .reset_index(names=["a", "b"])
    )


def scipy_distances(edge_index: np.ndarray, number: int, sources: np.ndarray) -> np.ndarray:
    """Hops by SciPy, one search per landmark."""
    ones = np.ones(edge_index.shape[1], dtype=np.int8)
    matrix = coo_array((ones, (edge_index[0], edge_index[1])), shape=(number, number)).tocsr()
    hops = dijkstra(matrix, directed=False, indices=sources, unweighted=True)
    return np.where(np.isinf(hops), -1, hops).T.astype(np.int32)


def warm_up() -> None:
    """Compile everything on a tiny chain."""
    config = Source(size="tiny").economy("train1")
    pipeline(config, EXPANDED, 50)
    inputs_of_training(config, EXPANDED, 50)


def report(small: Run, large: Run) -> list[dict[str, Any]]:
    found = []
    for name in STAGES:
        measure = "chain" if name in ("simulate", "sample") else "edges" if name == "build" else "transactions"
        ratio = large.value[measure] / small.value[measure]
        times = small[name].seconds, large[name].seconds
        found.append(
            {
                "benchmark": "data",
                "stage": f"{name}: growth",
                "measure": measure,
                "size_ratio": round(ratio, 2),
                "time_ratio": round(times[1] / times[0], 2),
                "exponent": round(growth(*times, ratio), 3),
            }
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="paper", choices=sizes.names())
    parser.add_argument("--split", default="train2", help="train2 is the paper's smallest graph")
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    source = Source(size=arguments.size, seed=arguments.seed)
    full, least = source.economy(arguments.split), source.sample
    jobs = {
        "1/10": (tenth(full), EXPANDED // 10, least // 20),
        arguments.size: (full, EXPANDED, least),
    }
    records: list[dict[str, Any]] = []
    runs = {}
    for name, job in jobs.items():
        run = runs[name] = in_child(pipeline, *job, warm_up=(warm_up,))
        if run.error is not None:
            raise SystemExit(f"{name}: {run.error}")
        part = rows("data", run, size=name, split=arguments.split, seed=arguments.seed, **run.value)
        show(part, ["size", "chain", "transactions", "nodes", "edges", "clusters", "stage", "seconds", "peak_mb"])
        records += part
    grown = report(runs["1/10"], runs[arguments.size])
    show(grown, ["stage", "measure", "size_ratio", "time_ratio", "exponent"])
    run = in_child(inputs_of_training, *jobs[arguments.size], warm_up=(warm_up,))
    if run.error is not None:
        raise SystemExit(f"peers: {run.error}")
    part = rows("data peers", run, size=arguments.size, split=arguments.split, seed=arguments.seed, **run.value)
    show(part, ["size", "edges", "stage", "seconds", "peak_mb", "start_mb"])
    for work, peer in (("graph", "pandas"), ("distances", "scipy")):
        ratio = run[f"{work}, {peer}"].seconds / run[f"{work}, ours"].seconds
        print(f"{work}: {peer} takes {ratio:.1f} times as long as ours")
    total = runs[arguments.size]["total"]
    kept = total.seconds <= PAPER_LIMITS["seconds"] and total.peak_mb <= PAPER_LIMITS["peak_mb"]
    print(f"total {total.seconds:.0f} s, {total.peak_mb:,.0f} MB: {'inside' if kept else 'OUTSIDE'} 180 s and 6,144 MB")
    path = write("data" if arguments.size == "paper" else f"data_{arguments.size}", [*records, *grown, *part])
    print(f"written to {path.relative_to(path.parents[2])}")


if __name__ == "__main__":
    main()
