"""Chapter 07: contrastive learning."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from btcnb.book.exercises import seals, ways
from btcnb.book.exercises.rule import Check
from btcnb.learn import TupleSampler

_DRAWS = 20_000
_READINGS: tuple[Literal["uniform", "mixture"], ...] = ("uniform", "mixture")


def _collision(answer: Any, clusters: Any, alpha: Any) -> str:
    """An estimate is right within five standard errors of the difference of two estimates."""
    given = ways.as_numbers(answer, 2)
    said = []
    for percent, reading in zip(given, _READINGS, strict=True):
        drawn = TupleSampler(clusters, alpha, reading).draw(_DRAWS, 4, np.random.default_rng(99)).negatives
        share = float((np.diff(np.sort(drawn, axis=1), axis=1) > 0).all(axis=1).mean())
        error = 100 * 5 * np.sqrt(2 * max(share * (1 - share), 1e-3) / _DRAWS)
        said.append(ways.number(percent, 100 * share, within=error / max(100 * share, 1e-9)))
    return ways.in_order(said)


CHECKS = {
    "ex-07-address": Check(
        "two values of α",
        seals.Numbers("ex-07-address", ("97e8086f9e69/0bff4d204321", "5630d2357cc5/090e539b9f35"), digits=2),
    ),
    "ex-07-gradient": Check("one number", seals.Number("ex-07-gradient", "4683cb9c535a/252deebc48ac")),
    "ex-07-collision": Check("two numbers, in per cent: uniform reading, mixture reading", _collision),
}
