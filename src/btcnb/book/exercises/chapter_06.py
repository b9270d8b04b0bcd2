"""Chapter 06: homophily."""

from __future__ import annotations

from typing import Any

import numpy as np

from btcnb import theory
from btcnb.book.exercises import seals, ways
from btcnb.book.exercises.rule import Check


def _hub(answer: Any, share: Any, trials: Any, seed: Any) -> str:
    """Right is what keeps the cut ratio, raises the largest degree, and brings z nearer to 0."""
    before, after, labels = (np.asarray(part) for part in answer)
    largest = [int(np.bincount(edges.ravel()).max()) for edges in (before, after)]
    ratios = [theory.cut_ratio(edges, labels) for edges in (before, after)]
    z = [theory.cut_ratio_test(edges, labels, share=share, trials=trials, seed=seed).z for edges in (before, after)]
    return ways.all_hold(
        [
            (before.shape == after.shape, "edges were added or lost"),
            (abs(ratios[0] - ratios[1]) < 1e-9, "the cut ratio has changed"),
            (largest[1] > largest[0], "there is no hub"),
            (abs(z[1]) < abs(z[0]), "z has not come nearer to 0: move more edges"),
        ]
    )


CHECKS = {
    "ex-06-normal": Check(
        "two numbers: z and p",
        seals.Numbers("ex-06-normal", ("5fd724255476/8297922f4ccd", "4c3161bb879c/3019ac2a0783")),
    ),
    "ex-06-hub": Check("three arrays: edges (2, E) before, edges after, clusters of the nodes", _hub),
    "ex-06-million": Check("one number", seals.Number("ex-06-million", "44ca2deed4dc/3f2fc7f9a2f7", digits=2)),
}
