"""Chapter 12: hyperparameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from btcnb.book.exercises import seals, ways
from btcnb.book.exercises.rule import Check


def _rank(answer: Any, effective_rank: Any) -> str:
    """The experiment with other random numbers; four thousand rows leave little to chance."""
    wanted, rng = [], np.random.default_rng(12)
    for common in (0.0, 1.0, 5.0, 20.0):
        rows = rng.normal(size=(4_000, 64))
        rows[:, 0] += common
        wanted.append(float(effective_rank(rows / np.linalg.norm(rows, axis=1, keepdims=True))))
    return ways.numbers(answer, wanted, within=0.05)


_WEIGHTS = (
    "ddbb8731ee05/65d50ffd3158",
    "07434159adae/bf4583dbf32e",
    "bf9b4899a837/f160354efe31",
    "988dadbdacc0/5b180c86ee18",
    "247cf4a50735/bf4583dbf32e",
)

CHECKS = {
    "ex-12-weights": Check(
        "five whole numbers: 16, 128, 512, 16 wide, 512 narrow", seals.Numbers("ex-12-weights", _WEIGHTS, digits=6)
    ),
    "ex-12-noise": Check(
        "one number: the mean lead of the highest", seals.Number("ex-12-noise", "b1ac2617d8c9/a4c601448a8e", digits=2)
    ),
    "ex-12-rank": Check("four numbers: effective ranks for a common direction of 0, 1, 5 and 20", _rank),
}
