"""Chapter 11: the ablation."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from btcnb.book.exercises import seals, ways
from btcnb.book.exercises.rule import Check


def _many(answer: Any, against_default: Any) -> str:
    known = against_default.dropna(subset=["mean"])
    bar = stats.t.ppf(1 - 0.025 / max(len(known), 1), known["n"] - 1) * known["sd"] / np.sqrt(known["n"])
    usual = int(((known["low"] > 0) | (known["high"] < 0)).sum())
    return ways.numbers(answer, [usual, int((known["mean"].abs() > bar).sum())])


_JUDGES = ("9a4d5c419b66/2d7f3a70d6d0", "36c94268f654/bf6ea017a706", "36c94268f654/bf6ea017a706")

CHECKS = {
    "ex-11-pairing": Check(
        "one number of worlds", seals.Number("ex-11-pairing", "6221aac518a4/c3899b353e39", digits=2)
    ),
    "ex-11-many": Check("two numbers: intervals clear of 0, and those left after the correction", _many),
    "ex-11-judges": Check(
        "four numbers: ARI of A by heuristics and by owners, then of B",
        seals.Numbers("ex-11-judges", (*_JUDGES, _JUDGES[0]), digits=2),
    ),
}
