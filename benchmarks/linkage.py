"""Average linkage without the distance matrix: speed and memory against SciPy and fastcluster, and agreement.

    python benchmarks/linkage.py            # 20,000 and 65,000 points in 128 dimensions
    python benchmarks/linkage.py --n 4000 --large 8000 --agreement 1000

To reach: at 20,000 points at least 6 times faster than pdist + fastcluster in the same run, with at most 1/8 of its
extra memory; 65,000 points within 60 s and 1.5 GB extra; heights within 1e-6 of SciPy's and equal partitions at
100 cuts away from ties. Writes results/benchmarks/linkage.json.
"""

from __future__ import annotations

import argparse
from typing import Any

import fastcluster
import numpy as np
from _measure import in_child, rows, show, stage, write
from scipy.cluster import hierarchy
from scipy.spatial.distance import pdist

from btcnb.cluster import linkage

DIMENSION = 128
SPEED, MEMORY, SECONDS, GIGABYTES = 6.0, 8.0, 60.0, 1.5


def points(shape: str, n: int, d: int = DIMENSION, seed: int = 0) -> Any:
    """float32 (n, d): clustered (25 points a cluster), uniform directions, few directions repeated, zeros and ones."""
    rng = np.random.default_rng(seed)
    if shape == "uniform":
        return rng.normal(size=(n, d)).astype(np.float32)
    if shape == "repeated":
        return rng.normal(size=(n // 10, d))[rng.integers(n // 10, size=n)].astype(np.float32)
    if shape == "bits":
        return (rng.integers(0, 2, size=(n, d)) + np.eye(d)[0]).astype(np.float32)
    centres = rng.normal(size=(max(2, n // 25), d))
    return (centres[rng.integers(len(centres), size=n)] + 0.5 * rng.normal(size=(n, d))).astype(np.float32)


def race(shape: str, n: int, peers: bool) -> float:
    """Our linkage, then the peers, on the same points; the largest difference of heights to fastcluster's."""
    X = points(shape, n)
    with stage("ours"):
        Z = linkage(X, progress=False)
    if not peers:
        return float(Z[-1, 2])
    with stage("pdist + fastcluster"):
        theirs = fastcluster.linkage(pdist(X.astype(np.float64), "cosine"), "average")
    difference = float(np.abs(Z[:, 2] - theirs[:, 2]).max())
    del theirs
    with stage("pdist + SciPy"):
        hierarchy.linkage(pdist(X.astype(np.float64), "cosine"), "average")
    return difference


def agreement(shape: str, n: int) -> dict[str, Any]:
    """Heights and 100 partitions against SciPy's; for ties also SciPy against itself with the points shuffled."""
    X = points(shape, n).astype(np.float64)
    ours, theirs = linkage(X), _scipy(X)
    order = np.random.default_rng(1).permutation(n)
    heights = np.unique(theirs[:, 2])
    wide = np.flatnonzero(np.diff(heights) > 1e-7)
    chosen = wide[np.unique(np.linspace(0, len(wide) - 1, 100).astype(int))]
    middles = (heights[chosen] + heights[chosen + 1]) / 2
    return {
        "height_difference": float(np.abs(ours[:, 2] - theirs[:, 2]).max()),
        "scipy_shuffled_difference": float(np.abs(_scipy(X[order])[:, 2] - theirs[:, 2]).max()),
        "cuts": len(middles),
        "equal_cuts": sum(
            _same(hierarchy.fcluster(ours, t, "distance"), hierarchy.fcluster(theirs, t, "distance")) for t in middles
        ),
    }


def _scipy(X: Any) -> Any:
    return hierarchy.linkage(np.maximum(pdist(X, "cosine"), 0.0), "average")


def _same(a: Any, b: Any) -> bool:
    return len(np.unique(np.stack([a, b]), axis=1).T) == len(np.unique(a)) == len(np.unique(b))


def extra(part: Any) -> float:
    return part.peak_mb - part.start_mb


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=20_000, help="points of the race")
    parser.add_argument("--large", type=int, default=65_000, help="points of the large run")
    parser.add_argument("--agreement", type=int, default=5_000, help="points of each comparison with SciPy")
    options = parser.parse_args()
    records: list[dict[str, Any]] = []
    for shape in ("clustered", "uniform"):
        run = in_child(race, shape, options.n, True, warm_up=(race, shape, 300, True))
        found: dict[str, Any] = {}
        if run.error is None:
            ours, peer, scipys = run["ours"], run["pdist + fastcluster"], run["pdist + SciPy"]
            found = {
                "speed_up": peer.seconds / ours.seconds,
                "speed_up_scipy": scipys.seconds / ours.seconds,
                "memory_ratio": extra(peer) / max(extra(ours), 1.0),
                "height_difference": run.value,
            }
            found["reached"] = found["speed_up"] >= SPEED and found["memory_ratio"] >= MEMORY
            print(shape, options.n, found, flush=True)
        records += rows("linkage", run, task="average linkage", shape=shape, n=options.n, d=DIMENSION, **found)
    for shape in ("clustered", "uniform"):
        run = in_child(race, shape, options.large, False, warm_up=(race, shape, 300, False))
        found = {}
        if run.error is None:
            ours = run["ours"]
            found = {"reached": ours.seconds <= SECONDS and extra(ours) <= 1024 * GIGABYTES}
            print(shape, options.large, f"{ours.seconds:.1f} s, {extra(ours):.0f} MB extra", found, flush=True)
        records += rows("linkage", run, task="average linkage", shape=shape, n=options.large, d=DIMENSION, **found)
    for shape in ("clustered", "uniform", "repeated", "bits"):
        run = in_child(agreement, shape, options.agreement)
        found = run.value or {}
        if found:
            found["reached"] = found["height_difference"] < 1e-6 and found["equal_cuts"] == found["cuts"]
            print(shape, options.agreement, found, flush=True)
        records += rows("linkage", run, task="agreement", shape=shape, n=options.agreement, d=DIMENSION, **found)
    show(records, ["task", "shape", "n", "stage", "seconds", "cpu_seconds", "start_mb", "peak_mb"])
    write("linkage", records)


if __name__ == "__main__":
    main()
