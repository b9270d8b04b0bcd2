"""Chapter 05: the theorem on graph neural networks."""

from __future__ import annotations

from typing import Any

import numpy as np

from btcnb import theory
from btcnb.book.exercises import seals, ways
from btcnb.book.exercises.rule import Check


def _stop_band(answer: Any, L: Any, clusters: Any, stop_band: Any) -> str:
    filters = [theory.stop_band_filter(stop_band[0], stop_band[1], degree) for degree in range(1, 7)]
    leaks = [theory.split_spectrum(L, clusters, each)[1].beta for each in filters]
    return ways.numbers(answer, leaks, within=0.01)


def _normalise(answer: Any) -> str:
    """Any graph and features with the wanted property are right."""
    adjacency, labels, features = (np.asarray(part) for part in answer)
    made = theory.linearised_gnn(theory.laplacian(adjacency), features, None, theory.gcn_filter(1))
    euclidean, cosine = (theory.separation(made, labels, metric=metric).separable for metric in ("euclidean", "cosine"))
    return ways.all_hold(
        [
            (euclidean, "the embeddings are not separable by Euclidean distance"),
            (not cosine, "the embeddings are separable after normalising too"),
        ]
    )


CHECKS = {
    "ex-05-hand": Check(
        "one number: the largest σ/β with the printed inequality true and the embeddings not separable",
        seals.Number("ex-05-hand", "41927f617c87/b7ad1a9336ba"),
    ),
    "ex-05-stop-band": Check("six numbers: the least β for degrees 1 to 6", _stop_band),
    "ex-05-normalise": Check("three arrays: adjacency, clusters of the nodes, features XW", _normalise),
}
