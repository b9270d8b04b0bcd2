"""Chapter 04: the spectral lemma."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.cluster.hierarchy import linkage

from btcnb import theory
from btcnb.book.exercises import seals, ways
from btcnb.book.exercises.rule import Check


def _ward(answer: Any) -> str:
    """Any set of points with the wanted property is right."""
    points, owners = answer
    line = np.asarray(points, dtype=float).reshape(-1, 1)
    labels = ways.as_labels(owners, len(line))
    sizes = np.sort(np.bincount(labels))
    return ways.all_hold(
        [
            (len(sizes) == 3 and sizes[1] == 1 < sizes[2], "one large cluster and two single points are wanted"),
            (theory.separation(line, labels).separable, "the points are not separated"),
            (not theory.best_cut(linkage(line, "ward"), labels).perfect, "Ward's tree has a perfect cut"),
        ]
    )


_K = (
    *("944e98d2916f/84c82a2859b5", "d1620fce0542/84c82a2859b5", "7f621b6de42a/84c82a2859b5"),
    *3 * ("f3d322fc2901/dbdbc4e21a8b",),
)
_ISOLATED = ("5935701944a0", "30de3b358ae9", "36517da7c441")

CHECKS = {
    "ex-04-ward": Check("a pair: places on the line, and the cluster of each", _ward),
    "ex-04-k": Check(
        "six numbers: the printed ratio for 2, 4 and 8 cliques, then the sharp one", seals.Numbers("ex-04-k", _K)
    ),
    "ex-04-isolated": Check(
        "three times yes or no: printed condition holds; separable with a zero row; with a 1",
        seals.Words("ex-04-isolated", _ISOLATED, ordered=True),
    ),
}
