"""Addresses that look alike but lie far apart: does an embedding take them for one another?"""

from __future__ import annotations

from typing import Any

import numpy as np

from btcnb import gates
from btcnb.data import AddressGraph
from btcnb.data.landmarks import landmark_distances
from btcnb.errors import DataError

FAR = 5
"""Hops from which on two addresses are far apart: two layers on either side do not meet."""
SOURCES, PARTNERS = 200, 10
"""Addresses drawn, and partners drawn for each."""


def far_lookalikes(X: Any, graph: AddressGraph, seed: int = 0) -> dict[str, float | int]:
    """Mean cosine of pairs with equal in- and out-degree in different clusters, `FAR` or more hops apart.

    X (n, d): embeddings. `far_cosine` is NaN where no such pair was found; `far_pairs` counts them; `far_cosine_any` is
    the mean cosine of pairs as far apart whose degrees differ.
    """
    gates.instance("graph", graph, AddressGraph)
    rows = gates.array("X", X, 2).astype(np.float64)
    if len(rows) != graph.num_nodes:
        raise DataError("X", "rows", f"are {len(rows)} for {graph.num_nodes} nodes", "give one row per node")
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = rows / np.where(length > 0, length, 1.0)
    rng = np.random.default_rng([seed, 11])
    alike, others = _pairs(graph, rng)
    return {
        "far_cosine": _mean_cosine(unit, alike),
        "far_cosine_any": _mean_cosine(unit, others),
        "far_pairs": alike.shape[1],
    }


def _mean_cosine(unit: Any, pairs: Any) -> float:
    return float((unit[pairs[0]] * unit[pairs[1]]).sum(axis=1).mean()) if pairs.size else float("nan")


def _pairs(graph: AddressGraph, rng: np.random.Generator) -> tuple[Any, Any]:
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
