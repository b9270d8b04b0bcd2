"""The silhouette from cluster sums against scikit-learn's: 10,000 points in 1,000 clusters.

    python benchmarks/silhouette.py

To reach: the same value to 1e-9 in float64, at least 50 times faster. Writes results/benchmarks/silhouette.json.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from _measure import in_child, rows, show, stage, touch, write
from sklearn.metrics import silhouette_score

from meanlink import silhouette

SPEED, DIFFERENCE = 50.0, 1e-9


def race(n: int, k: int, repeats: int) -> float:
    """Ours and scikit-learn's a few times each, memory touched before; the difference of the two values."""
    rng = np.random.default_rng(0)
    labels = np.concatenate([np.arange(k), rng.integers(k, size=n - k)])
    X = rng.normal(size=(k, 128))[labels] + rng.normal(size=(n, 128))
    for number in range(repeats):
        with stage(f"ours {number}"):
            ours = silhouette(X, labels)
    touch(16 * n * n)  # distances, and a copy
    for number in range(repeats):
        with stage(f"scikit-learn {number}"):
            theirs = silhouette_score(X, labels, metric="cosine")
    return abs(float(ours) - float(theirs))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=10_000, help="points")
    parser.add_argument("--clusters", type=int, default=1_000, help="clusters")
    options = parser.parse_args()
    repeats = 5
    run = in_child(race, options.n, options.clusters, repeats, warm_up=(race, 400, 40, 1))
    found: dict[str, Any] = {}
    if run.error is None:
        ours, theirs = (
            min(run[f"{name} {number}"].seconds for number in range(repeats)) for name in ("ours", "scikit-learn")
        )
        found = {"speed_up": theirs / ours, "difference": run.value, "fewest_seconds": ours}
        found["reached"] = found["speed_up"] >= SPEED and found["difference"] <= DIFFERENCE
        print(found)
    records = rows("silhouette", run, task="silhouette", n=options.n, clusters=options.clusters, **found)
    show(records, ["n", "clusters", "stage", "seconds", "cpu_seconds", "start_mb", "peak_mb"])
    write("silhouette", records)


if __name__ == "__main__":
    main()
