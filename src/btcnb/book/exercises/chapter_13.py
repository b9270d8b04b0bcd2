"""Chapter 13: refinement."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from btcnb.book.exercises import seals, ways
from btcnb.book.exercises.rule import Check
from btcnb.cluster import cut, pairwise_scores


def _pure_cut(answer: Any, tree: Any, members: Any, owners: Any) -> str:
    who = pd.factorize(pd.Series(owners[members]).map(str))[0]
    for height in [*np.sort(tree[:, 2])[::-1], -1.0]:
        scores = pairwise_scores(cut(tree, height - 1e-12), who)
        if scores.fp == 0:
            return ways.number(answer, 100 * scores.fn / max(scores.tp + scores.fn, 1), within=0.01)
    return "there is no pure cut"


CHECKS = {
    "ex-13-cut": Check("one number: pairs of one owner that the highest pure cut parts, in per cent", _pure_cut),
    "ex-13-random": Check(
        "two numbers between 0 and 1: precision before and after",
        seals.Numbers("ex-13-random", ("e3ea1bf0de9b/b67cd21cdc06", "72bdf7569394/b67cd21cdc06")),
    ),
    "ex-13-twice": Check(
        'groups of names, such as [{"a"}, {"b", "c"}]', seals.Groups("ex-13-twice", ("5a0b44de18a0", "b5a728a6dfb2"))
    ),
    "ex-13-kinds": Check(
        'two words, "flip" or "sweep": which leaves a trace, which is thousands of pairs',
        seals.Words("ex-13-kinds", ("f6a3d9dd0633", "c1996e8abd09"), ordered=True),
    ),
}
