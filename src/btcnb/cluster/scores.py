"""Scores of a flat partition: against another partition (NMI, ARI) and on labelled pairs (TP, FP, FN, TN, bACC,
macro-F1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from btcnb.cluster import _gate
from btcnb.cluster._gate import Bool, Int64
from btcnb.errors import DataError

MIN_DEGREE = 2
"""The paper scores only nodes of at least this degree: addresses at the rim have too little context."""


def nmi(a: Any, b: Any) -> float:
    """Normalised mutual information 2 I / (H + H') of two partitions, scikit-learn's (the paper's choice)."""
    return float(normalized_mutual_info_score(*_two(a, b, ("a", "b")), average_method="arithmetic"))


def ari(a: Any, b: Any) -> float:
    """Adjusted Rand index of two partitions, scikit-learn's (the paper's choice)."""
    return float(adjusted_rand_score(*_two(a, b, ("a", "b"))))


def _two(a: Any, b: Any, names: tuple[str, str]) -> tuple[Int64, Int64]:
    """Two partitions of the same points, at least one point."""
    second = _gate.classes(b, source=names[1])
    first = _gate.classes(a, len(second), names[0])
    if not len(first):
        raise DataError(names[0], "labels", "are none", "a partition of nothing has no score")
    return first, second


def scored_nodes(graph: Any, min_degree: int = MIN_DEGREE) -> Bool:
    """Which nodes of a graph count in the paper's scores: degree (in plus out) of at least `min_degree`, bool (N,)."""
    min_degree = _gate.whole(min_degree, "min_degree", 0)
    degree = _gate.integers(_gate.asked(graph, "degree"), "graph", "degree")
    return np.atleast_1d(degree >= min_degree)


@dataclass(frozen=True)
class PairCounts:
    """Pairs of points by truth and prediction: "positive" is the same entity, "predicted positive" the same cluster."""

    tp: int
    fp: int
    fn: int
    tn: int

    @property
    def total(self) -> int:
        return self.tp + self.fp + self.fn + self.tn

    @property
    def balanced_accuracy(self) -> float:
        """bACC: mean of the recalls of positive and negative pairs; of the one that occurs, if only one does."""
        recalls = [
            right / (right + wrong) for right, wrong in ((self.tp, self.fn), (self.tn, self.fp)) if right + wrong > 0
        ]
        return sum(recalls) / len(recalls) if recalls else float("nan")

    @property
    def macro_f1(self) -> float:
        """Mean of the F1 scores of the two classes; a class that is neither present nor predicted is left out."""
        wrong = self.fp + self.fn
        scores = [2 * right / (2 * right + wrong) for right in (self.tp, self.tn) if right + wrong > 0]
        return sum(scores) / len(scores) if scores else float("nan")

    def percent(self) -> dict[str, float]:
        """The six columns of the paper's pair tables, in percent."""
        share = 100.0 / self.total if self.total else float("nan")
        return {
            "TP": self.tp * share,
            "FP": self.fp * share,
            "FN": self.fn * share,
            "TN": self.tn * share,
            "bACC": 100.0 * self.balanced_accuracy,
            "F1": 100.0 * self.macro_f1,
        }


def pairwise_counts(labels: Any, pairs: Any, same: Any) -> PairCounts:
    """Counts over labelled pairs: pairs (P, 2) of positions in `labels`, same (P,) whether a pair is one entity."""
    predicted = _gate.classes(labels)
    pairs, same = _gate.integers(pairs, "pairs", "positions"), _gate.array(same, "same")
    if pairs.ndim != 2 or pairs.shape[1] != 2 or same.shape != (len(pairs),) or same.dtype.kind != "b":
        raise DataError(
            "pairs", "shape", f"is {pairs.shape} with {same.shape} answers", "pass (pairs, 2) and one bool a pair"
        )
    if pairs.size and (pairs.min() < 0 or pairs.max() >= len(predicted)):
        raise DataError("pairs", "positions", f"lie outside 0..{len(predicted) - 1}", "use positions in labels")
    together = predicted[pairs[:, 0]] == predicted[pairs[:, 1]]
    return PairCounts(
        int((together & same).sum()),
        int((together & ~same).sum()),
        int((~together & same).sum()),
        int((~together & ~same).sum()),
    )


def pairwise_scores(predicted: Any, truth: Any) -> PairCounts:
    """Counts over all n (n - 1) / 2 pairs of points of two partitions, from their contingency table; no pair is
    listed.
    """
    b = _gate.classes(truth, source="truth")
    n = len(b)
    a = _gate.classes(predicted, n, "predicted")
    table = sparse.coo_matrix((np.ones(n, dtype=np.int64), (a, b))).tocsr()

    def pairs(sizes: Any) -> int:
        return int((sizes.astype(object) * (sizes.astype(object) - 1)).sum()) // 2 if len(sizes) else 0

    both, one, other = pairs(table.data), pairs(np.bincount(a)), pairs(np.bincount(b))
    return PairCounts(both, one - both, other - both, n * (n - 1) // 2 - one - other + both)
