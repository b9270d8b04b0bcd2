"""Exact dendrogram purity of a million leaves against the paper's Monte-Carlo estimate of 10,000 pairs.

    python benchmarks/purity.py

To reach: under 10 s, and within the estimate's error (four standard errors). Two trees: one from merging random pairs
of clusters, and a caterpillar, the deepest tree there is. Writes results/benchmarks/purity.json.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from _measure import in_child, rows, show, stage, write
from scipy.cluster import hierarchy

from meanlink import dendrogram_purity, dendrogram_purity_sampled

SECONDS = 10.0


def tree(shape: str, n: int, seed: int = 0) -> Any:
    """Linkage matrix (n-1, 4): rounds of random pairs, or leaves joined one after the other."""
    rng = np.random.default_rng(seed)
    if shape == "caterpillar":
        order = rng.permutation(n).astype(float)
        step = np.arange(n - 1)
        left = np.concatenate([order[:1], n + step[:-1]])
        return np.stack([np.minimum(left, order[1:]), np.maximum(left, order[1:]), step / n, step + 2.0], axis=1)
    nodes, size, rows_, formed = np.arange(n), np.ones(2 * n - 1), [], n
    while len(nodes) > 1:
        nodes = rng.permutation(nodes)
        pairs = np.sort(nodes[: 2 * (len(nodes) // 2)].reshape(-1, 2), axis=1)
        new = formed + np.arange(len(pairs))
        size[new] = size[pairs[:, 0]] + size[pairs[:, 1]]
        rows_.append(np.column_stack([pairs, new - n, size[new]]))
        nodes = np.concatenate([new, nodes[2 * len(pairs) :]])
        formed += len(pairs)
    return np.concatenate(rows_).astype(float)


def labels_for(Z: Any, classes: int, noise: float, seed: int = 1) -> Any:
    """Classes that follow the tree (runs of leaves in drawing order), a share of the leaves relabelled at random."""
    rng = np.random.default_rng(seed)
    n = len(Z) + 1
    leaves = hierarchy.leaves_list(Z)
    labels = np.empty(n, dtype=np.int64)
    labels[leaves] = np.arange(n) * classes // n
    wrong = rng.random(n) < noise
    labels[wrong] = rng.integers(classes, size=wrong.sum())
    return labels


def measure(shape: str, n: int) -> dict[str, float]:
    Z = tree(shape, n)
    labels = labels_for(Z, max(2, n // 20), 0.2)
    with stage("exact"):
        exact = dendrogram_purity(Z, labels)
    with stage("10,000 pairs"):
        estimate, error = dendrogram_purity_sampled(Z, labels)
    return {"exact": exact, "estimate": estimate, "standard_error": error}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--leaves", type=int, default=1_000_000)
    options = parser.parse_args()
    records: list[dict[str, Any]] = []
    for shape in ("random pairs", "caterpillar"):
        run = in_child(measure, shape, options.leaves, warm_up=(measure, shape, 1000))
        found: dict[str, Any] = dict(run.value or {})
        if found:
            near = abs(found["exact"] - found["estimate"]) <= 4 * found["standard_error"]
            found["reached"] = bool(run["exact"].seconds < SECONDS and near)
            print(shape, f"{run['exact'].seconds:.2f} s", found, flush=True)
        records += rows("purity", run, task="dendrogram purity", shape=shape, n=options.leaves, **found)
    show(records, ["shape", "n", "stage", "seconds", "cpu_seconds", "start_mb", "peak_mb"])
    write("purity", records)


if __name__ == "__main__":
    main()
