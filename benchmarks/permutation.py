"""The permutation test of the cut ratio on a large graph: 50 trials on four million edges.

    python benchmarks/permutation.py
    python benchmarks/permutation.py --edges 100000 --dry

Beside a plain recount of all edges in numpy, on the same draws. Writes results/benchmarks/permutation.json.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from _measure import in_child, rows, show, stage, write

from btcnb.theory import cut_ratio_test

SHARE, TRIALS, WANTED_S = 0.01, 50, 15.0


def measure(number: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    nodes = max(number // 10, 200)
    edges, labels = rng.integers(0, nodes, (2, number)), rng.integers(0, nodes // 80, nodes)
    codes = np.unique(labels, return_inverse=True)[1]
    with stage("ours"):
        ours = cut_ratio_test(edges, labels, SHARE, TRIALS).permuted
    recounted = np.empty(TRIALS)
    rng = np.random.default_rng(0)
    with stage("recount"):
        for trial in range(TRIALS):
            chosen = rng.choice(nodes, round(SHARE * nodes), replace=False, shuffle=False)
            permuted = codes.copy()
            permuted[chosen] = rng.permutation(codes[chosen])
            recounted[trial] = np.mean(permuted[edges[0]] != permuted[edges[1]])
    return {"nodes": nodes, "edges": number, "trials": TRIALS, "difference": float(np.abs(ours - recounted).max())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--edges", type=int, default=4_000_000)
    parser.add_argument("--dry", action="store_true", help="do not write the record")
    options = parser.parse_args()
    run = in_child(measure, options.edges, warm_up=(measure, 2_000))
    if run.error:
        raise SystemExit(run.error)
    value = {**run.value, "wanted_s": WANTED_S, "reached": run["ours"].seconds <= WANTED_S}
    records = rows("permutation", run, **value)
    show(records, ["stage", "edges", "trials", "seconds", "peak_mb", "difference"])
    if not options.dry:
        write("permutation", records)


if __name__ == "__main__":
    main()
