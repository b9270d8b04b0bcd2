"""The coarse partition by igraph and by leidenalg: seconds, modularity, communities, and what it does to scores.

    python benchmarks/coarse.py                     # the simulated test graph of size standard
    python benchmarks/coarse.py --size paper --timeout 3600
    python benchmarks/coarse.py --size quick --dry  # a look

Both partitions are of the same graph, with the same limit and seed; the same embedding is then scored under each.
To reach at size standard: igraph at least 20 times faster than leidenalg, modularity no lower.
Adds to results/benchmarks/coarse.json, where it replaces records of the same size.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
from _embedded import embedded, graph_and_model
from _measure import RESULTS, in_child, rows, show, stage, write

from btcnb.cluster import MAX_SIZE, coarse_partition, evaluate
from btcnb.cluster.communities import modularity, simple_pairs

SPEED = 20.0
METHODS = ("igraph", "leidenalg")


def made(size: str, split: str) -> None:
    """Have the graph and the encoder on disk, so that the measured processes only read them."""
    graph_and_model(size, split)


def measure(size: str, split: str, method: str, max_size: int) -> dict[str, Any]:
    graph, model = graph_and_model(size, split)
    with stage("coarse"):
        labels = coarse_partition(graph, max_size, method=method, progress=False)
    sizes = np.bincount(labels)
    found = {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "modularity": modularity(simple_pairs(graph)[0], labels),
        "communities": len(sizes),
        "communities_of_one": int((sizes == 1).sum()),
        "largest_community": int(sizes.max()),
    }
    scores = evaluate(embedded(graph, model), graph, partition=labels, progress=False)
    return found | {key: scores[key] for key in ("threshold", "clusters", "purity", "nmi", "ari")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="standard", help="size of the simulated graph: tiny, quick, standard, paper")
    parser.add_argument("--split", default="test", help="which of the five graphs")
    parser.add_argument("--max-size", type=int, default=MAX_SIZE, help="largest community")
    parser.add_argument("--timeout", type=float, default=None, help="seconds after which a run is given up")
    parser.add_argument("--dry", action="store_true", help="do not write the record")
    options = parser.parse_args()
    ready = in_child(made, options.size, options.split)
    if ready.error:
        raise SystemExit(ready.error)
    records: list[dict[str, Any]] = []
    runs = {}
    for method in METHODS:
        arguments = (options.split, method, options.max_size)
        warm = (measure, "tiny", *arguments)
        runs[method] = run = in_child(measure, options.size, *arguments, warm_up=warm, timeout=options.timeout)
        records += rows("coarse", run, size=options.size, split=options.split, method=method, **(run.value or {}))
        print(method, run.error or {"seconds": round(run["coarse"].seconds, 2), **run.value}, flush=True)
    if not any(run.error for run in runs.values()):
        ours, theirs = (runs[method] for method in METHODS)
        speed_up = theirs["coarse"].seconds / ours["coarse"].seconds
        reached = speed_up >= SPEED and ours.value["modularity"] >= theirs.value["modularity"]
        records = [{**record, "speed_up": speed_up, "reached": bool(reached)} for record in records]
        print(f"igraph is {speed_up:.1f} times faster, wanted {SPEED:.0f}: {'reached' if reached else 'not reached'}")
    show(records, ["method", "stage", "seconds", "cpu_seconds", "start_mb", "peak_mb"])
    if not options.dry:
        path = RESULTS / "coarse.json"
        kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
        kept = [record for record in kept if record["size"] != options.size]
        write("coarse", [*kept, *records])


if __name__ == "__main__":
    main()
