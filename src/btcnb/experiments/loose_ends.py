"""Claims that no chapter is about, each measured on what the book has: small examples, kept stages, records.

Chapter 18 judges them. Costs are counted, or read from records of long runs: no verdict hangs on how busy the machine
is that builds the book.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.spatial.distance import pdist

from btcnb import gates, theory
from btcnb.data import Source, load_graph
from btcnb.errors import DataError
from btcnb.experiments.recipe import Recipe, baseline
from btcnb.experiments.stages import embeddings
from btcnb.learn import BatchSampler, prepare
from btcnb.paper.records import FEWEST_SEEDS
from btcnb.paper.statistics import Estimate, estimate
from btcnb.store import kept

Records = Sequence[Mapping[str, Any]]
LINEAR = 1.35
"""Measured exponents up to this count as linear, as in chapter 10: caches and allocators bend every line a little."""


def exponent(sizes: npt.ArrayLike, costs: npt.ArrayLike) -> float:
    """The slope of log cost over log size, by least squares."""
    x, y = (np.log(gates.array(name, values, 1, "iuf")) for name, values in (("sizes", sizes), ("costs", costs)))
    return float(np.polyfit(x, y, 1)[0])


# ---- theory


class Sphere(NamedTuple):
    """How often cosine and Euclidean distance order all pairs alike, of how many random sets; and off the sphere, in an
    example, whether the clusters are separable by either."""

    alike: int
    sets: int
    euclidean: bool
    cosine: bool


def on_and_off_the_sphere(sets: int = 200, seed: int = 0) -> Sphere:
    """Random points on a common sphere; and two clusters on one ray, which differ in length alone."""
    random = np.random.default_rng(gates.whole("seed", seed, "[0, inf)"))
    alike = 0
    for _ in range(gates.whole("sets", sets, "[1, 100000]")):
        points = random.normal(size=(12, 5))
        points *= random.uniform(0.5, 3) / np.linalg.norm(points, axis=1, keepdims=True)
        orders = [np.argsort(pdist(points, metric), kind="stable") for metric in ("euclidean", "cosine")]
        alike += bool((orders[0] == orders[1]).all())
    ray = np.outer([1.0, 1.1, 5.0, 5.1], [0.6, 0.8])
    apart = [theory.separation(ray, [0, 0, 1, 1], metric=metric).gap > 1e-9 for metric in ("euclidean", "cosine")]
    return Sphere(alike, sets, *apart)


class Energies(NamedTuple):
    """A Dirichlet energy, and Σ λ_i‖row i‖² with the rows of UᵀH and with those of H."""

    energy: float
    spectral: float
    rows: float


def dirichlet_two_ways(seed: int = 0) -> Energies:
    """A random signal on a path of six nodes, in two dimensions."""
    H = np.random.default_rng(seed).normal(size=(6, 2))
    L = theory.laplacian(theory.adjacency(np.array([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]]), 6))
    values, vectors = np.linalg.eigh(L.toarray())
    spectral, rows = (float(values @ (signal**2).sum(axis=1)) for signal in (vectors.T @ H, H))
    return Energies(theory.dirichlet_energy(L, H), spectral, rows)


@kept
def lemma_sides(source: Source, role: str = "test") -> tuple[float, float]:
    """Both sides of the lemma's condition on a graph, as printed: M, and what it must stay below."""
    graph = load_graph(source, role)
    L = theory.laplacian(theory.adjacency(graph.edge_index(), graph.num_nodes))
    ideal = theory.ideal_laplacian(graph.labels())
    margin = theory.lemma_margin_at(theory.laplacian_distance(L, ideal, tolerance=1e-3), ideal)
    return margin.left, margin.right


# ---- what contrastive training recovers


class Spectral(NamedTuple):
    """Shares of an embedding's energy in the span of the lowest eigenvectors of the positive pairs' graph."""

    trained: float
    untrained: float
    chance: float


def spectral_share(recipe: Recipe, role: str = "test") -> Spectral:
    """How much of the trained, and of the untrained, embedding is what theory says that contrastive losses recover.

    Positives are pairs of one cluster, so their graph is the ideal cluster graph, whose lowest eigenvectors are the
    clusters' indicators (chapter 04). The share is that of the variance between clusters of two nodes or more; a random
    embedding has that of `chance`.
    """
    gates.instance("recipe", recipe, Recipe)
    labels = load_graph(recipe.source, role).labels()
    return Spectral(
        between_share(embeddings(recipe, role), labels),
        between_share(embeddings(baseline(recipe, "untrained"), role), labels),
        _chance(labels),
    )


def between_share(X: npt.NDArray[np.floating], labels: npt.NDArray[np.int64]) -> float:
    """The share of the variance of rows (n, d) that lies between clusters, singletons left out."""
    sizes = np.bincount(labels)
    chosen = sizes[labels] >= 2
    _, codes = np.unique(labels[chosen], return_inverse=True)
    rows = X[chosen].astype(np.float64)
    rows -= rows.mean(axis=0)
    sums = np.zeros((codes.max() + 1, rows.shape[1]))
    np.add.at(sums, codes, rows)
    between = (sums**2).sum(axis=1) / np.bincount(codes)
    return float(between.sum() / (rows**2).sum())


def _chance(labels: npt.NDArray[np.int64]) -> float:
    sizes = np.bincount(labels)
    sizes = sizes[sizes >= 2]
    return float((len(sizes) - 1) / (sizes.sum() - 1))


# ---- costs


def embedding_exponent(runs: pd.DataFrame, large: pd.DataFrame, row: str = "gat") -> float:
    """The exponent of the time to embed a graph, over its nodes: records of one encoder at two sizes."""
    both = pd.concat([frame[frame["row"] == row] for frame in (runs, large)]).dropna(subset=["nodes", "seconds.embed"])
    if both["nodes"].nunique() < 2:
        raise DataError("results/sweeps", "nodes", "are of one size only", "run the grids ablation and paper_size")
    return exponent(both["nodes"].to_numpy(), both["seconds.embed"].to_numpy())


def community_exponents(records: Records) -> dict[str, float]:
    """The exponent of Leiden's time over edges, by implementation, from the benchmark `coarse`."""
    stages = [entry for entry in records if entry["stage"] == "coarse"]
    methods = sorted({str(entry["method"]) for entry in stages})
    found = {name: [entry for entry in stages if entry["method"] == name] for name in methods}
    return {
        name: exponent([each["edges"] for each in entries], [each["seconds"] for each in entries])
        for name, entries in found.items()
        if len(entries) > 1
    }


def work_per_seed(source: Source, neighbours: Sequence[int], d: int = 128, seeds: int = 256) -> list[float]:
    """Operations a seed of a two-layer pass costs when k_s neighbours a hop are sampled: edges · d + nodes · d²."""
    graph = prepare(load_graph(source, "test"))
    nodes = np.random.default_rng(0).choice(graph.num_nodes, size=min(seeds, graph.num_nodes), replace=False)
    found = []
    for k in neighbours:
        batch = BatchSampler(graph, (k, k)).draw(nodes, 0)
        near, far = batch.nodes_per_hop, batch.edges_per_hop
        hidden = near[0] + near[1]  # nodes whose first-layer state is needed
        first, second = sum(far), far[0]  # edges that each layer passes over
        found.append(float((first + second) * d + (hidden + near[0]) * d**2) / near[0])
    return found


def printed_work(neighbours: Sequence[int], d: int = 128) -> list[float]:
    """What Table 11 says of the same, a seed, up to a constant: k_s · d · (k_s + d)."""
    return [float(k * d * (k + d)) for k in neighbours]


class Distances(NamedTuple):
    """Exponents of the bytes that distances take: over points, of all pairs and within parts; over the part's size."""

    whole: float
    parts: float
    size: float


def distance_exponents(points: Sequence[int] = (500, 1000, 2000, 4000), part: int = 250) -> Distances:
    """Bytes of SciPy's condensed distances, for all points at once and in parts of `part` (and of 2 · `part`)."""
    rows = np.random.default_rng(0).normal(size=(max(points), 8))

    def needed(count: int, size: int) -> int:
        return sum(pdist(rows[start : min(start + size, count)]).nbytes for start in range(0, count, size))

    whole, parts = [needed(n, n) for n in points], [needed(n, part) for n in points]
    sizes = [part, 2 * part, 4 * part]
    return Distances(
        exponent(points, whole), exponent(points, parts), exponent(sizes, [needed(points[-1], k) for k in sizes])
    )


@dataclass(frozen=True)
class Shares:
    """Seconds of the stages of one whole evaluation, and the stage that takes longest."""

    nodes: int
    seconds: dict[str, float]

    @property
    def longest(self) -> str:
        return max(self.seconds, key=lambda name: self.seconds[name])

    def share(self, stage: str) -> float:
        return self.seconds[stage] / sum(self.seconds.values())


STAGES = {
    "communities": "seconds_coarse",
    "distances and trees": "seconds_linkage",
    "cut and silhouette": "seconds_cut",
    "scores": "seconds_scores",
}


def evaluation_shares(records: Records) -> Shares:
    """Where the time goes, from the benchmark `evaluation`."""
    (embed,) = [entry for entry in records if entry["stage"] == "embed"]
    seconds = {"embedding": float(embed["seconds"])} | {name: float(embed[key]) for name, key in STAGES.items()}
    return Shares(int(embed["nodes"]), seconds)


def largest_tree(records: Records, at_most_mb: float) -> int:
    """The most leaves of one recorded dendrogram that was grown within so much memory; 0: none."""
    trees = [e for e in records if e.get("task") in {"average linkage", "whole tree"} and e["stage"] == "ours"]
    return max((int(entry.get("rows", entry["n"])) for entry in trees if entry["peak_mb"] <= at_most_mb), default=0)


# ---- labels

HYBRID, HEURISTICS = "hybrid.average.silhouette.bACC", "heuristics.bACC"


def label_gain(records: pd.DataFrame | None, row: str = "trained 1") -> Estimate | None:
    """What refinement gains by entity labels (points of balanced accuracy), over worlds; None where it was not run."""
    if records is None or not {HYBRID, HEURISTICS} <= set(records.columns):
        return None
    lines = records[(records["row"] == row) & (records["state"] == "done")]
    gains = (lines[HYBRID] - lines[HEURISTICS]).dropna()
    return estimate(gains.to_numpy()) if len(gains) >= FEWEST_SEEDS else None
