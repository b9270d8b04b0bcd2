"""Neighbour sampling with feature gathering on a graph of the paper's size: 15 then 5 neighbours around 3,072 seeds.

    python benchmarks/neighbours.py            # about 600k nodes and 10M edges
    python benchmarks/neighbours.py --transactions 5000

Against PyG's NeighborLoader where it can run (it needs pyg-lib or torch-sparse); elsewhere against the 111 ms a batch
that torch-sparse's took on 643k nodes and 10.6M edges. Writes results/benchmarks/neighbours.json.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from _address_like import address_like, uniform
from _measure import in_child, rows, show, stage, write
from torch_geometric.loader import NeighborLoader, NodeLoader

from btcnb.learn import BatchSampler, PreparedGraph
from btcnb.learn.pyg import NeighbourSampler, to_data

RECORDED_MS = 111.0
"""A batch of torch-sparse's NeighborLoader, measured once on 643k nodes and 10.6M edges (two cores)."""
SEEDS, FANOUT, BATCHES = 3_072, (15, 5), 40
WANTED = 5.0


def median_ms(work: Callable[[int], Any], batches: int) -> tuple[float, float]:
    """Median milliseconds of `work(i)`, by the wall clock and of CPU, after two calls that do not count."""
    times = []
    for i in range(batches + 2):
        wall, cpu = time.perf_counter(), time.process_time()
        work(i)
        times.append((time.perf_counter() - wall, time.process_time() - cpu))
    wall, cpu = 1000 * np.median(times[2:], axis=0)
    return float(wall), float(cpu)


def measure(shape: str, transactions: int, batches: int) -> dict[str, Any]:
    """Sample on an address-like graph, or on a uniform one of about the same size."""
    graph = address_like(transactions) if shape == "address-like" else uniform(10 * transactions, 170 * transactions)
    rng = np.random.default_rng(0)
    seeds = [rng.choice(graph.num_nodes, min(SEEDS, graph.num_nodes // 2), replace=False) for _ in range(batches + 2)]
    found: dict[str, Any] = {"shape": shape, "nodes": graph.num_nodes, "edges": graph.num_edges}
    sampler = BatchSampler(graph, FANOUT, degree=False)
    with stage("ours"):
        ours = median_ms(lambda i: sampler.draw(seeds[i], i), batches)
    batch = sampler.draw(seeds[0], 0)
    found["batch_nodes"], found["batch_edges"] = len(batch.node), batch.edge_index.shape[1]
    loader = NodeLoader(to_data(graph), NeighbourSampler(graph, FANOUT), batch_size=SEEDS)
    with stage("ours in PyG's NodeLoader"):
        in_loader = median_ms(lambda i: loader(torch.from_numpy(seeds[i])), batches)
    found["ours_ms"], found["ours_cpu_ms"] = ours
    found["node_loader_ms"], found["node_loader_cpu_ms"] = in_loader
    found["peer"], found["peer_ms"] = _peer(graph, seeds, batches)
    return found


def _peer(graph: PreparedGraph, seeds: list[Any], batches: int) -> tuple[str, float]:
    try:
        loader = NeighborLoader(to_data(graph), num_neighbors=list(FANOUT), batch_size=SEEDS, is_sorted=True)
        with stage("PyG's NeighborLoader"):
            wall, _ = median_ms(lambda i: loader(torch.from_numpy(seeds[i])), batches)
        return "PyG's NeighborLoader, this run", wall
    except ImportError:
        return "torch-sparse's NeighborLoader, recorded", RECORDED_MS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--transactions", type=int, default=58_000, help="transactions behind the graph")
    parser.add_argument("--batches", type=int, default=BATCHES, help="batches timed")
    parser.add_argument("--dry", action="store_true", help="do not write the record")
    options = parser.parse_args()
    records = []
    for shape in ("address-like", "uniform"):
        run = in_child(measure, shape, options.transactions, options.batches, warm_up=(measure, shape, 300, 1))
        if run.error:
            raise SystemExit(run.error)
        value = run.value
        for key in ("ours_ms", "node_loader_ms"):
            value[key.replace("_ms", "_ratio")] = round(value["peer_ms"] / value[key], 2)
        value["wanted"], value["reached"] = WANTED, value["ours_ratio"] >= WANTED
        records += rows("neighbours", run, seeds=SEEDS, fanout="15 5", **value)
        print(sentence(value))
    show(records, ["shape", "stage", "seconds", "peak_mb"])
    if not options.dry:
        write("neighbours", records)


def sentence(value: dict[str, Any]) -> str:
    return (
        f"{value['shape']}: {value['nodes']:,} nodes, {value['edges']:,} edges, a batch {value['batch_nodes']:,} nodes "
        f"and {value['batch_edges']:,} edges\n  ours {value['ours_ms']:.1f} ms ({value['ours_cpu_ms']:.1f} ms of CPU), "
        f"in NodeLoader {value['node_loader_ms']:.1f} ms ({value['node_loader_cpu_ms']:.1f}), "
        f"{value['peer']} {value['peer_ms']:.1f} ms: {value['ours_ratio']:.1f} times faster "
        f"({value['node_loader_ratio']:.1f} in NodeLoader), wanted {WANTED:.0f}: "
        f"{'reached' if value['reached'] else 'not reached'}"
    )


if __name__ == "__main__":
    main()
