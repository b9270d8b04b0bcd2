"""Average linkage without the distance matrix: speed and memory against SciPy and fastcluster, and agreement.

    python benchmarks/linkage.py            # 20,000 and 65,000 points in 128 dimensions
    python benchmarks/linkage.py --n 4000 --large 8000 --agreement 1000
    python benchmarks/linkage.py --sizes 65000 200000 1000000 --only-trained   # the long record

To reach: at 20,000 points at least 6 times faster than pdist + fastcluster in the same run, with at most 1/8 of its
extra memory; 65,000 points within 60 s and 1.5 GB extra; heights within 1e-6 of SciPy's and equal partitions at 100
cuts away from ties. With --sizes also whole trees of trained embeddings (rows of simulated graphs of size paper: the
test graph, and what it lacks from the first training graph) and, up to --hard rows, of uniform directions, where
nothing can be left out; a million rows within 15 minutes on two idle cores. A run that was killed goes on: sizes that
are done are read from the folder, the one that was not from its checkpoint, and then its seconds are those since.
Writes results/benchmarks/linkage.json.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import fastcluster
import numpy as np
from _measure import RESULTS, in_child, rows, show, stage, touch, write
from scipy.cluster import hierarchy
from scipy.spatial.distance import pdist

from meanlink import linkage

DIMENSION = 128
SPEED, MEMORY, SECONDS, GIGABYTES = 6.0, 8.0, 60.0, 1.5
MILLION_SECONDS = 900.0
KEPT = RESULTS.parents[1] / "runs" / "linkage"


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
        heights = linkage(X, progress=False)[:, 2]
    if not peers:
        return float(heights[-1])
    touch(8 * n * n)  # the distances of all pairs, and the copy that SciPy works on
    with stage("pdist + fastcluster"):
        theirs = fastcluster.linkage(pdist(X.astype(np.float64), "cosine"), "average")[:, 2]
    with stage("pdist + SciPy"):
        hierarchy.linkage(pdist(X.astype(np.float64), "cosine"), "average")
    return float(np.abs(heights - theirs).max())


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


def trained_rows(n: int, folder: str) -> Any:
    """n rows of the embedded test graph of size paper, drawn by a fixed seed; more than it has come from `train1`."""
    X = embedded_rows("test", folder)
    if n > len(X):
        X = np.concatenate([X, embedded_rows("train1", folder)])
    return np.ascontiguousarray(X[np.sort(np.random.default_rng(0).permutation(len(X))[:n])])


def embedded_rows(split: str, folder: str) -> Any:
    """All rows of an embedded graph of size paper; made once, kept in the folder."""
    path = Path(folder) / f"trained_rows_{split}.npy"
    if not path.exists():
        from _embedded import embedded, graph_and_model

        np.save(path, embedded(*graph_and_model("paper", split)))
    return np.load(path, mmap_mode="r")


def whole(shape: str, n: int, folder: str) -> dict[str, Any]:
    """The whole tree of n rows, or of all there are; how busy the machine was, and whether the run had begun before."""
    X = trained_rows(n, folder) if shape == "trained" else points(shape, n)
    path = Path(folder) / f"{shape}_{n}.checkpoint"
    told = {"rows": len(X), "resumed": path.exists(), "load_before": os.getloadavg()[0]}
    with stage("ours"):
        Z = linkage(X, progress=True, checkpoint=path)
    return {**told, "load_after": os.getloadavg()[0], "distinct": int((Z[:, 2] > 0).sum()) + 1, "top": float(Z[-1, 2])}


def whole_trees(options: Any, done: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records of every size asked for, those that are done already included; with fitted exponents of CPU seconds."""
    records = list(done)
    for shape in ("trained", "uniform"):
        for n in options.sizes:
            known = any(r["shape"] == shape and r["n"] == n and "error" not in r for r in records)
            if known or (shape == "uniform" and (options.only_trained or n > options.hard)):
                continue
            run = in_child(whole, shape, n, options.checkpoint, warm_up=(warm_up,))
            found = run.value or {}
            if run.error is None:
                found["reached"] = n < 1_000_000 or run["ours"].seconds <= MILLION_SECONDS
                print(shape, n, found, f"{run['ours'].seconds:.0f} s, CPU {run['ours'].cpu_seconds:.0f} s", flush=True)
            records += rows("linkage", run, task="whole tree", shape=shape, n=n, d=DIMENSION, **found)
            Path(options.checkpoint, "done.json").write_text(json.dumps(records), encoding="utf-8")
    return [_with_exponent(record, records) for record in records]


def _with_exponent(record: dict[str, Any], records: list[dict[str, Any]]) -> dict[str, Any]:
    """The record with the exponent of CPU seconds over rows, by least squares, where its shape has several sizes."""
    own = [r for r in records if r["stage"] == "ours" and r["shape"] == record["shape"] and not r.get("resumed")]
    if len(own) < 2:
        return record
    n, seconds = np.log([r["rows"] for r in own]), np.log([r["cpu_seconds"] for r in own])
    return {**record, "exponent": float(np.polyfit(n, seconds, 1)[0])}


def warm_up() -> None:
    """Both ways through `linkage`, compiled."""
    rng = np.random.default_rng(0)
    clumps = np.repeat(rng.normal(size=(200, 16)), 210, axis=0)
    linkage(clumps + 1e-3 * rng.normal(size=clumps.shape), progress=False)
    linkage(clumps[::80], progress=False)


def warm_race() -> None:
    """Everything that a race calls, imported and compiled."""
    race("clustered", 300, True)
    warm_up()


def extra(part: Any) -> float:
    return part.peak_mb - part.start_mb


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=20_000, help="points of the race")
    parser.add_argument("--large", type=int, default=65_000, help="points of the large run")
    parser.add_argument("--agreement", type=int, default=5_000, help="points of each comparison with SciPy")
    parser.add_argument(
        "--sizes", type=int, nargs="*", default=[], help="rows of whole trees, for instance 65000 200000"
    )
    parser.add_argument("--hard", type=int, default=65_000, help="most rows of a whole tree of uniform directions")
    parser.add_argument(
        "--only-trained", action="store_true", help="whole trees of trained embeddings and nothing else"
    )
    parser.add_argument("--checkpoint", default=str(KEPT), help="folder of what a killed run goes on from")
    options = parser.parse_args()
    Path(options.checkpoint).mkdir(parents=True, exist_ok=True)
    begun = Path(options.checkpoint, "done.json")
    trees = whole_trees(options, json.loads(begun.read_text("utf-8")) if begun.exists() else [])
    records = [*trees, *(others(written()) if options.only_trained else races(options))]
    show(records, ["task", "shape", "n", "stage", "seconds", "cpu_seconds", "start_mb", "peak_mb"])
    write("linkage", records)
    begun.unlink(missing_ok=True)


def written() -> list[dict[str, Any]]:
    path = RESULTS / "linkage.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else []


def others(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records that whole trees do not replace."""
    return [record for record in records if record["task"] != "whole tree"]


def races(options: Any) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    for shape in ("clustered", "uniform"):
        run = in_child(race, shape, options.n, True, warm_up=(warm_race,))
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
        run = in_child(race, shape, options.large, False, warm_up=(warm_race,))
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
    return records


if __name__ == "__main__":
    main()
