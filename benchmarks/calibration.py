"""How like the paper's graphs are ours at full size? One row per graph (or chain) and quantity, kept for the book.

    python benchmarks/calibration.py                # the five graphs at size paper, a few minutes
    python benchmarks/calibration.py --size quick

Writes results/calibration_SIZE.csv with columns size, split, quantity, value; chapter 03 shows them beside its own run.
"""

from __future__ import annotations

import argparse
from typing import Any

import pandas as pd
from _measure import RESULTS, in_child

from btcnb import sizes
from btcnb.data import ROLES, HeuristicConfig, Source, build_graph, heuristic_clusters, sample_from_coinbase, simulate
from btcnb.data.structure import chain_shares, graph_structure


def measure(split: str, size: str, seed: int) -> dict[str, float]:
    """Simulate, sample, cluster, build one split; all that chapter 03 compares."""
    source = Source(size=size, seed=seed)
    config = source.economy(split)
    chain = simulate(config)  # not through the store: a chain of this size is not worth its place on the disk
    txs = sample_from_coinbase(chain, seed=config.seed, at_least=source.sample)
    graph = build_graph(txs, heuristic_clusters(txs, config=HeuristicConfig(price_usd=config.price_usd)))
    counts = {
        "transactions": len(txs),
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "clusters": int(graph.labels().max()) + 1,
    }
    return {**counts, **graph_structure(graph), **chain_shares(chain)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="paper", choices=sizes.names())
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for split in ROLES:
        run = in_child(measure, split, arguments.size, arguments.seed)
        if run.error is not None:
            raise SystemExit(f"{split}: {run.error}")
        print(split, f"{run['total'].seconds:.0f} s", f"{run['total'].peak_mb:,.0f} MB", run.value, flush=True)
        rows += [
            {"size": arguments.size, "split": split, "quantity": name, "value": v} for name, v in run.value.items()
        ]
    path = RESULTS.parent / f"calibration_{arguments.size}.csv"
    partial = path.with_suffix(".partial")
    pd.DataFrame(rows).to_csv(partial, index=False, float_format="%.6g")
    partial.replace(path)
    print(f"written to results/{path.name}")


if __name__ == "__main__":
    main()
