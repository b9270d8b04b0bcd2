"""One panel of scores: flat clusters against heuristic clusters and owners, one tree over the whole graph, and what an
embedding looks like. Every measure takes its numbers from here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from btcnb.cluster import (
    ClusterConfig,
    ari,
    cut,
    cut_silhouette,
    dendrogram_purity,
    dendrograms,
    fill_zero_rows,
    forest_purity,
    linkage,
    nmi,
    scored_nodes,
    silhouette_levels,
)
from btcnb.cluster.communities import LabelledGraph
from btcnb.cluster.scores import ami
from btcnb.data import AddressGraph
from btcnb.data.landmarks import landmark_distances
from btcnb.experiments.quality import quality

Numbers = dict[str, float | int | str | None]
FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]

OTHER_DEGREES = (0, 1, 3)
"""Smallest degrees of scored nodes besides the paper's 2."""
EVERY_LEVEL = 100_000
"""Nodes up to which every level of a whole tree is compared; above, `LEVELS` of them are."""
LEVELS = 24
"""Levels compared in larger trees: numbers of clusters in geometric progression."""
FAR = 5
"""Hops from which on two addresses are far apart: two layers on either side do not meet."""
SOURCES, PARTNERS = 200, 10
"""Addresses drawn, and partners drawn for each, in search of look-alikes."""


def agreement(labels: npt.NDArray[Any], flat: npt.NDArray[Any]) -> Numbers:
    """Flat clusters against labels, both (n,)."""
    return {"NMI": nmi(labels, flat), "AMI": ami(labels, flat), "ARI": ari(labels, flat)}


def flat_scores(graph: AddressGraph, flat: IntArray, min_degree: int) -> Numbers:
    """Flat clusters (n,) against the heuristics' and against owners, where known, on the nodes that are scored."""
    scored = scored_nodes(graph, min_degree)
    mine = flat[scored]
    numbers: Numbers = {"clusters": len(np.unique(mine))} | agreement(graph.labels()[scored], mine)
    if graph.truth is None:
        return numbers
    found = quality(mine, graph.truth[scored])
    return numbers | {
        "owner_NMI": found.nmi,
        "owner_AMI": found.ami,
        "owner_ARI": found.ari,
        "precision": found.precision,
        "recall": found.recall,
    }


def other_degrees(graph: AddressGraph, flat: IntArray, min_degree: int) -> Numbers:
    """The scores with other smallest degrees, and without the largest cluster."""
    labels, numbers = graph.labels(), Numbers()
    for degree in OTHER_DEGREES:
        mask = scored_nodes(graph, degree)
        numbers |= {
            f"NMI_degree_{degree}": nmi(labels[mask], flat[mask]),
            f"ARI_degree_{degree}": ari(labels[mask], flat[mask]),
            f"clusters_degree_{degree}": len(np.unique(flat[mask])),
        }
    scored = scored_nodes(graph, min_degree)
    for degree, mask in ((0, scored_nodes(graph, 0)), (min_degree, scored)):
        numbers[f"labels_per_node_degree_{degree}"] = len(np.unique(labels[mask])) / int(mask.sum())
    rest = scored & (labels != np.bincount(labels[scored]).argmax())  # without the largest cluster
    if rest.any():
        for name, score in (("NMI", nmi), ("ARI", ari)):
            whole = score(labels[scored], flat[scored])
            numbers[f"{name}_largest_shift"] = abs(whole - score(labels[rest], flat[rest]))
    return numbers


def whole_purity(X: Any, graph: AddressGraph, config: ClusterConfig) -> float:
    """The purity of one tree over the whole graph."""
    rows, _ = fill_zero_rows(X, config.zero_rows)
    tree = dendrograms(rows, np.zeros(len(rows), dtype=np.int64), config.method, progress=False)
    return forest_purity(tree, graph.labels(), scored_nodes(graph, config.min_degree))


def whole_tree_scores(X: Any, graph: LabelledGraph, partition: Any, config: ClusterConfig) -> Numbers:
    """Scores of one tree over all nodes, cut where its own silhouette is best (`whole_…`), and of the communities (n,)
    alone, taken for clusters (`communities_…`), on the nodes that the paper scores."""
    rows, _ = fill_zero_rows(X, config.zero_rows)
    labels, scored = graph.labels(), scored_nodes(graph, config.min_degree)
    Z = linkage(rows, config.method, progress=False)
    threshold = best_threshold(rows, Z)
    flat = cut(Z, threshold)
    whole: Numbers = {"DP": dendrogram_purity(Z, labels, scored), "threshold": threshold}
    whole |= {"clusters": len(np.unique(flat[scored])), **agreement(labels[scored], flat[scored])}
    alone = agreement(labels[scored], np.asarray(partition)[scored])
    return prefixed("whole_", whole) | prefixed("communities_", alone)


def prefixed(start: str, numbers: Numbers) -> Numbers:
    return {f"{start}{name}": value for name, value in numbers.items()}


def best_threshold(X: Any, Z: Any, every_level: int = EVERY_LEVEL) -> float:
    """Where the silhouette of a dendrogram Z (n-1, 4) is largest: of all levels, or of some in a large tree."""
    n = len(Z) + 1
    if n <= every_level:
        return cut_silhouette(X, Z)
    levels = silhouette_levels(X, Z, clusters=np.geomspace(2, n // 2, LEVELS).astype(np.int64))
    return float(levels.threshold[levels.best]) if len(levels.score) else cut_silhouette(X, Z)


def side_by_side(embeddings: Sequence[FloatArray]) -> FloatArray:
    """Embeddings (n, d_i) in one, (n, Σ d_i): its cosine distances are the means of theirs. Rows of zeros stay zero."""
    rows = [X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), np.finfo(np.float32).tiny) for X in embeddings]
    return np.asarray(np.concatenate(rows, axis=1) / np.float32(np.sqrt(len(rows))), dtype=np.float32)


def effective_rank(X: npt.ArrayLike) -> float:
    """exp of the entropy of the normalised singular values of X (n, d): how many dimensions an embedding uses."""
    rows = np.asarray(X, dtype=np.float64)
    values = np.sqrt(np.clip(np.linalg.eigvalsh(rows.T @ rows), 0.0, None))
    share = values[values > 0] / max(values.sum(), np.finfo(float).tiny)
    return float(np.exp(-(share * np.log(share)).sum())) if len(share) else 0.0


def far_lookalikes(X: npt.ArrayLike, graph: AddressGraph, seed: int = 0) -> Numbers:
    """Mean cosine of pairs with equal in- and out-degree in different clusters, `FAR` or more hops apart.

    X (n, d): embeddings. `far_cosine` is NaN where no such pair was found; `far_pairs` counts them; `far_cosine_any` is
    the mean cosine of pairs as far apart whose degrees differ.
    """
    rows = np.asarray(X, dtype=np.float64)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = rows / np.where(length > 0, length, 1.0)
    alike, others = _far_pairs(graph, np.random.default_rng([seed, 11]))

    def mean_cosine(pairs: IntArray) -> float:
        return float((unit[pairs[0]] * unit[pairs[1]]).sum(axis=1).mean()) if pairs.size else float("nan")

    return {"far_cosine": mean_cosine(alike), "far_cosine_any": mean_cosine(others), "far_pairs": alike.shape[1]}


def _far_pairs(graph: AddressGraph, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Positions of far look-alikes, (2, P), and of far pairs that do not look alike."""
    degrees = graph.nodes[["degree_in", "degree_out"]].to_numpy(dtype=np.int64)
    kind = degrees[:, 0] * (int(degrees[:, 1].max(initial=0)) + 1) + degrees[:, 1]
    labels = graph.labels()
    sources = np.sort(rng.choice(graph.num_nodes, min(SOURCES, graph.num_nodes), replace=False))
    hops = landmark_distances(graph, sources)
    alike: list[Any] = [np.empty((2, 0), dtype=np.int64)]
    others = list(alike)
    for column, source in enumerate(sources):
        far = (labels != labels[source]) & (hops[:, column] >= FAR)
        for found, wanted in ((alike, kind == kind[source]), (others, kind != kind[source])):
            nodes = np.flatnonzero(far & wanted)
            if len(nodes):
                chosen = rng.choice(nodes, min(PARTNERS, len(nodes)), replace=False)
                found.append(np.stack([np.full(len(chosen), source), chosen]))
    return np.concatenate(alike, axis=1), np.concatenate(others, axis=1)
