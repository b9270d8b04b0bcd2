"""Chapter 09: dendrograms."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from btcnb.book.exercises import seals, ways
from btcnb.book.exercises.rule import Check
from btcnb.cluster import cut, dendrogram_purity


def _purity(answer: Any, Z: Any, names: Any) -> str:
    """Several choices share the lowest purity; each of them, and its complement, is right."""
    leaves = {word.upper() for word in (list(answer) if isinstance(answer, str) else ways.as_words(answer))}
    if len(leaves) != 3 or not leaves <= set(names):
        raise ways.MisreadError("three different leaves are wanted")

    def purity(chosen: Any) -> float:
        return float(dendrogram_purity(Z, np.isin(names, list(chosen)).astype(int)))

    lowest = min(purity(chosen) for chosen in combinations(names, 3))
    return "there are labels of a lower purity" if purity(leaves) > lowest + 1e-9 else ""


def _own_thresholds(answer: Any, result: Any, graph: Any) -> str:
    own = dict(zip(result.local["cluster"], result.local["threshold"], strict=True))
    wanted, used = np.zeros(graph.num_nodes, dtype=np.int64), 0
    for label, members, tree in result.forest:
        parts = cut(tree, own.get(label, np.inf)) if len(members) > 1 else np.zeros(1, dtype=np.int64)
        wanted[members] = used + parts
        used += int(parts.max()) + 1
    return ways.partition(answer, wanted)


CHECKS = {
    "ex-09-purity": Check('the three leaves of one owner, such as "ABC"', _purity),
    "ex-09-bound": Check(
        "one number: the bound for seven heights", seals.Number("ex-09-bound", "5a9248d044ae/41fa2700c2c6")
    ),
    "ex-09-lambda": Check("a partition: one label for each address of the graph", _own_thresholds),
}
