"""Claims that no chapter is about, on theory and on cost: each measured on what the book has, and judged in parts.

All parts hold: *reproduced*; some: *partly*; none: *not reproduced*; no parts: it cannot be tested here. Chapter 18
tells the rules in words and shows the verdicts. Costs are counted, or read from records of long runs: no verdict hangs
on how busy the machine is that builds the book.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.spatial.distance import pdist

from btcnb import theory
from btcnb.data import Source, load_graph
from btcnb.digits import number
from btcnb.experiments.recipe import Recipe, baseline, recipe
from btcnb.experiments.stages import embeddings
from btcnb.learn import BatchSampler, prepare
from btcnb.paper import value
from btcnb.paper.stats import FEWEST_SEEDS, by_seed, estimate, newest
from btcnb.paper.verdicts import NOT, PARTLY, REPRODUCED, UNTESTED
from btcnb.store import kept

Read = Callable[[str], "pd.DataFrame | None"]
"""Gives the records of a grid by its name, or None."""
Records = Sequence[Mapping[str, Any]]
"""Entries of a benchmark, `results/benchmarks/NAME.json`."""
LINEAR = 1.35
"""Measured exponents up to this count as linear, as in chapter 10: caches and allocators bend every line a little."""
NEIGHBOURS = (2, 4, 8, 16)
LARGE, HUGE = 10**4, 10**6
"""Leaves: *tens of thousands* of nodes, and *millions*."""


@dataclass(frozen=True)
class Judged:
    """A claim, whether each of its parts holds, and the evidence; `numbers` are those that decide."""

    id: str
    claim: str
    where: str
    parts: tuple[bool, ...]
    evidence: str
    numbers: tuple[float, ...] = ()

    @property
    def verdict(self) -> str:
        if not self.parts:
            return UNTESTED
        return REPRODUCED if all(self.parts) else PARTLY if any(self.parts) else NOT


def other_claims(source: Source, read: Read, results: Callable[[str], Any]) -> list[Judged]:
    """All of them, in the order of the claims.

    source: simulated worlds, for what is measured on graphs
    read, results: give the records of a grid, and of a benchmark (`btcnb.book.results`)
    """
    linear = embedding_exponent(newest(read("ablation")), newest(read("paper_size")))
    return [
        eigenvectors(recipe(source)),
        sphere(),
        guarantee(source),
        energy(),
        scale(results("benchmarks/linkage")),
        forward(linear),
        sampled(source),
        communities(results("benchmarks/coarse")),
        distances(),
        bottleneck(linear, results("benchmarks/evaluation")),
        labels(read("entity")),
    ]


def exponent(sizes: npt.ArrayLike, costs: npt.ArrayLike) -> float:
    """The slope of log cost over log size, by least squares."""
    return float(np.polyfit(np.log(np.asarray(sizes)), np.log(np.asarray(costs)), 1)[0])


def eigenvectors(recipe: Recipe) -> Judged:
    """How much of the trained, and of the untrained, embedding is what theory says that contrastive losses recover.

    Positives are pairs of one cluster, so their graph is the ideal cluster graph, whose lowest eigenvectors are the
    clusters' indicators (chapter 04). The share is that of the variance between clusters of two nodes or more; a random
    embedding has that of `chance`.
    """
    labels = load_graph(recipe.source, "test").labels()
    trained, untrained = (between_share(embeddings(r), labels) for r in (recipe, baseline(recipe, "untrained")))
    sizes = np.bincount(labels)
    sizes = sizes[sizes >= 2]
    chance = float((len(sizes) - 1) / (sizes.sum() - 1))
    return Judged(
        "C020",
        "Contrastive losses recover representations that are like eigenvectors",
        "Section 3.3",
        (trained > untrained, trained > 0.5),
        "share of the embedding in the span of the lowest eigenvectors of the graph of positive pairs: trained "
        f"{100 * trained:.0f} %, untrained {100 * untrained:.0f} %, by chance {100 * chance:.0f} % "
        "(one network, simulated)",
        (trained, untrained, chance),
    )


def between_share(X: npt.NDArray[np.floating], labels: npt.NDArray[np.int64]) -> float:
    """The share of the variance of rows (n, d) that lies between clusters, singletons left out."""
    chosen = np.bincount(labels)[labels] >= 2
    _, codes = np.unique(labels[chosen], return_inverse=True)
    rows = X[chosen].astype(np.float64)
    rows -= rows.mean(axis=0)
    sums = np.zeros((codes.max() + 1, rows.shape[1]))
    np.add.at(sums, codes, rows)
    between = (sums**2).sum(axis=1) / np.bincount(codes)
    return float(between.sum() / (rows**2).sum())


def sphere(sets: int = 200, seed: int = 0) -> Judged:
    """Random points on a common sphere; and two clusters on one ray, which differ in length alone."""
    random, alike = np.random.default_rng(seed), 0
    for _ in range(sets):
        points = random.normal(size=(12, 5))
        points *= random.uniform(0.5, 3) / np.linalg.norm(points, axis=1, keepdims=True)
        orders = [np.argsort(pdist(points, metric), kind="stable") for metric in ("euclidean", "cosine")]
        alike += bool((orders[0] == orders[1]).all())
    ray = np.outer([1.0, 1.1, 5.0, 5.1], [0.6, 0.8])
    gaps = [theory.separation(ray, [0, 0, 1, 1], metric=metric).gap for metric in ("euclidean", "cosine")]
    return Judged(
        "C039",
        "The arguments hold for cosine distance on a common sphere",
        "Section 4.1",
        (alike == sets, gaps[0] > 1e-9 >= gaps[1]),
        "on a sphere of radius r, ‖x − y‖² is 2r² times the cosine distance: the same order of pairs in "
        f"{alike} of {sets} random sets. Off it, two clusters on one ray are separable by Euclidean "
        "distance and not by cosine",
    )


def guarantee(source: Source) -> Judged:
    left, right = _lemma_sides(source)
    return Judged(
        "C045",
        "The theory is intuition, not a guarantee that can be verified on such graphs",
        "Section 4.1",
        (left >= right,),
        f"Lemma 1 asks for M below {right:.2g}; on a simulated test graph M is {left:,.0f}. For an unweighted graph "
        "other than the ideal one it is always too large (chapter 04)",
        (left, right),
    )


@kept
def _lemma_sides(source: Source) -> tuple[float, float]:
    """Both sides of the lemma's condition on the test graph, as printed: M, and what it must stay below."""
    graph = load_graph(source, "test")
    L = theory.laplacian(theory.adjacency(graph.edge_index(), graph.num_nodes))
    ideal = theory.ideal_laplacian(graph.labels())
    margin = theory.lemma_margin_at(theory.laplacian_distance(L, ideal, tolerance=1e-3), ideal)
    return margin.left, margin.right


def energy(seed: int = 0) -> Judged:
    """A random signal on a path of six nodes, in two dimensions: its Dirichlet energy, and Σ λ_i‖row i‖² with the rows
    of UᵀH and with those of H."""
    H = np.random.default_rng(seed).normal(size=(6, 2))
    L = theory.laplacian(theory.adjacency(np.array([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]]), 6))
    values, vectors = np.linalg.eigh(L.toarray())
    spectral, rows = (float(values @ (signal**2).sum(axis=1)) for signal in (vectors.T @ H, H))
    exact = theory.dirichlet_energy(L, H)
    return Judged(
        "C050",
        "The Dirichlet energy is Σ λ_i‖H_i‖²",
        "Appendix D.4",
        (abs(exact - spectral) < 1e-9, abs(exact - rows) < 1e-9),
        f"path of six nodes: energy {exact:.3f}; with rows of $U^\\top H$ {spectral:.3f}, with rows of $H$ {rows:.3f}",
        (exact, spectral, rows),
    )


def scale(records: Records) -> Judged:
    """The most leaves of one recorded dendrogram that was grown within the memory of the authors' machine."""
    memory = 1024 * value("text", "value", quantity="memory of the authors' machine")
    trees = [e for e in records if e.get("task") in {"average linkage", "whole tree"} and e["stage"] == "ours"]
    leaves = max((int(entry.get("rows", entry["n"])) for entry in trees if entry["peak_mb"] <= memory), default=0)
    missing = "" if leaves >= HUGE else "; none of a million leaves is on record"
    return Judged(
        "C099",
        "The approach scales to clusters of tens of thousands of nodes, potentially of millions",
        "Section 6.2",
        (leaves >= LARGE, leaves >= HUGE),
        f"largest recorded tree within the authors' {memory / 1024:.0f} GB: {leaves:,} leaves{missing}",
        (float(leaves),),
    )


def embedding_exponent(runs: pd.DataFrame, large: pd.DataFrame, row: str = "gat") -> float:
    """The exponent of the time to embed a graph, over its nodes: records of one encoder at two sizes; NaN without."""
    both = pd.concat([runs[runs["row"] == row], large[large["row"] == row]])
    if "seconds.embed" not in both or both["nodes"].nunique() < 2:
        return float("nan")
    both = both.dropna(subset=["nodes", "seconds.embed"])
    return exponent(both["nodes"].to_numpy(), both["seconds.embed"].to_numpy())


def forward(linear: float) -> Judged:
    return Judged(
        "C150",
        "A forward pass takes O(Md + Nd²) time",
        "Table 11",
        (linear <= LINEAR,) if linear == linear else (),
        f"recorded times to embed whole graphs grow with exponent {linear:.2f} over nodes; edges grow in step, so the "
        "two are not told apart",
        (linear,) if linear == linear else (),
    )


def sampled(source: Source, d: int = 128) -> Judged:
    """Operations a seed, counted on a graph and by the formula of Table 11, up to a constant: k_s · d · (k_s + d)."""
    counted = exponent(NEIGHBOURS, work_per_seed(source, NEIGHBOURS, d))
    printed = exponent(NEIGHBOURS, [k * d * (k + d) for k in NEIGHBOURS])
    return Judged(
        "C151",
        "With neighbour sampling a pass takes O(N k_s^(L−1) d (k_s + d)) time",
        "Table 11",
        (counted <= printed,),
        f"operations counted on a simulated graph grow with exponent {counted:.2f} over k_s, the formula with "
        f"{printed:.2f}: an upper bound, far from tight, since most addresses have few neighbours",
        (counted, printed),
    )


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


def communities(records: Records) -> Judged:
    """The exponent of Leiden's recorded time over edges, by implementation."""
    frame = pd.DataFrame([entry for entry in records if entry["stage"] == "coarse"])
    groups = {str(name): each for name, each in frame.groupby("method") if len(each) > 1}
    found = {name: exponent(each["edges"], each["seconds"]) for name, each in groups.items()}
    told = ", ".join(f"{name} {each:.2f}" for name, each in found.items())
    return Judged(
        "C152",
        "Leiden takes O(M) time",
        "Table 11",
        tuple(each <= LINEAR for each in found.values()),
        f"exponent of recorded times over edges, from two sizes: {told}",
        tuple(found.values()),
    )


def distances(points: Sequence[int] = (500, 1000, 2000, 4000), part: int = 250) -> Judged:
    """Exponents of the bytes of SciPy's condensed distances: of all points, in parts, over the parts' size."""
    rows = np.random.default_rng(0).normal(size=(max(points), 8))

    def needed(count: int, size: int) -> int:
        return sum(pdist(rows[start : min(start + size, count)]).nbytes for start in range(0, count, size))

    whole, parts = (exponent(points, [needed(n, size or n) for n in points]) for size in (0, part))
    sizes = [part, 2 * part, 4 * part]
    size = exponent(sizes, [needed(points[-1], k) for k in sizes])
    return Judged(
        "C153",
        "Distances take O(N²d) time and O(N²) memory; within communities O(N k_l)",
        "Table 11",
        (abs(whole - 2) < 0.05, abs(parts - 1) < 0.05),
        f"distances counted: exponent {whole:.2f} over N; within parts {parts:.2f} over N and "
        f"{size:.2f} over k_l (true by construction). Average linkage needs none of them (chapter 10)",
        (whole, parts, size),
    )


STAGES = {
    "communities": "seconds_coarse",
    "distances and trees": "seconds_linkage",
    "cut and silhouette": "seconds_cut",
    "scores": "seconds_scores",
}


def bottleneck(linear: float, records: Records) -> Judged:
    """Where the time of one whole evaluation goes."""
    (embed,) = [entry for entry in records if entry["stage"] == "embed"]
    seconds = pd.Series(
        {"embedding": embed["seconds"]} | {name: embed[key] for name, key in STAGES.items()}, dtype=float
    )
    share, longest, trees = 100 * seconds / seconds.sum(), str(seconds.idxmax()), "distances and trees"
    return Judged(
        "C156",
        "Embedding is linear; distances and hierarchical clustering are the bottleneck",
        "Appendix G",
        (linear <= LINEAR, longest == trees) if linear == linear else (),
        f"exponent of embedding {linear:.2f}; at {embed['nodes']:,} nodes {trees} take {share[trees]:.0f} % "
        f"of the time, {longest} most ({share[longest]:.0f} %). Ours need no distance matrix",
        (linear, float(share[trees]) / 100) if linear == linear else (),
    )


def labels(records: pd.DataFrame | None) -> Judged:
    """What refinement gains by entity labels (points of balanced accuracy), beside how well that is known."""
    claim, where = "Few ground-truth labels at scale are a key limitation", "Conclusion"
    gains = by_seed(newest(records), "trained 1", "hybrid.average.silhouette.bACC - heuristics.bACC")
    if len(gains) < FEWEST_SEEDS:
        return Judged("C157", claim, where, (), "the grid “entity” has no records from enough worlds")
    gain = estimate(gains.to_numpy())
    half = (gain.high - gain.low) / 2
    mean, low, high = (number(x, "{:+.1f}").replace("-", "−") for x in (gain.mean, gain.low, gain.high))
    return Judged(
        "C157",
        claim,
        where,
        (half > abs(gain.mean) / 2, half > abs(gain.mean)),
        f"by labels, balanced accuracy changes by {mean} points ({low} to {high}) over {gain.count} simulated worlds: "
        f"half the interval is {half / max(abs(gain.mean), 1e-9):.1f} times the change",
        (gain.mean, half),
    )
