"""How wrong the comparisons are that heuristic clusters offer to a contrastive loss, where true owners are known."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from btcnb import gates
from btcnb.errors import DataError
from btcnb.learn import Tuples


class LabelNoise(NamedTuple):
    """Shares of wrong comparisons; NaN where none could be judged.

    positives: of the positives, the share whose owner is not the anchor's: a false merge, pulled together
    negatives: of the negatives, the share whose owner is the anchor's: a missed merge, pushed apart
    anchors: of the anchors, the share with a wrong positive or with at least one wrong negative
    """

    positives: float
    negatives: float
    anchors: float


def label_noise(tuples: Tuples, owners: Any) -> LabelNoise:
    """Judge tuples by the true owner of every node, (N,); comparisons with an unknown owner (negative) do not count."""
    gates.instance("tuples", tuples, Tuples)
    truth = gates.array("owners", owners, 1, "iu").astype(np.int64)
    highest = max(int(nodes.max(initial=-1)) for nodes in (tuples.anchor, tuples.positive, tuples.negatives))
    if highest >= len(truth):
        raise DataError("owners", "length", f"is {len(truth)}, but node {highest} was drawn", "give one for each node")
    anchor, positive, negatives = truth[tuples.anchor], truth[tuples.positive], truth[tuples.negatives]
    known = anchor >= 0
    judged_positive = known & (positive >= 0)
    judged_negative = known[:, None] & (negatives >= 0)
    wrong_positive = judged_positive & (positive != anchor)
    wrong_negative = judged_negative & (negatives == anchor[:, None])
    judged = judged_positive | judged_negative.any(axis=1)
    return LabelNoise(
        _share(wrong_positive, judged_positive),
        _share(wrong_negative, judged_negative),
        _share(wrong_positive | wrong_negative.any(axis=1), judged),
    )


def _share(wrong: npt.NDArray[np.bool_], judged: npt.NDArray[np.bool_]) -> float:
    return float(wrong.sum() / judged.sum()) if judged.any() else float("nan")
