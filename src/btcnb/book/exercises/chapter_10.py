"""Chapter 10: without the matrix."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from btcnb.book.exercises import seals, ways
from btcnb.book.exercises.rule import Check


def _centroid(answer: Any) -> str:
    """Any three points are right whose second merge, of centroids, lies below the first."""
    points = np.asarray(answer, dtype=float)
    if points.ndim != 2 or len(points) != 3:
        raise ways.MisreadError("an array of three rows is wanted")
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)

    def apart(one: Any, other: Any) -> float:
        return float(1 - one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))

    heights = {pair: apart(unit[pair[0]], unit[pair[1]]) for pair in combinations(range(3), 2)}
    first = min(heights, key=lambda pair: heights[pair])
    third = ({0, 1, 2} - set(first)).pop()
    second = apart(unit[list(first)].sum(axis=0), unit[third])
    before = min(height for pair, height in heights.items() if pair != first)
    return ways.all_hold(
        [
            (second < before, "the union of the closest pair is not nearer to the third than its members were"),
            (second < heights[first], "it is not reducible, but the second merge still lies above the first"),
        ]
    )


CHECKS = {
    "ex-10-ties": Check(
        "one number: how many correct dendrograms", seals.Number("ex-10-ties", "600e6f809ab6/204ee50d32df")
    ),
    "ex-10-centroid": Check("an array of three rows, the points; their lengths do not matter", _centroid),
}
