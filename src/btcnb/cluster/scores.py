"""Scores of a flat partition: against another partition (NMI, AMI, ARI) and on pairs (TP, FP, FN, TN, bACC, macro-F1).

Partitions are one integer or text label per point, (n,).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit
from scipy.special import gammaln
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix, pair_confusion_matrix

Bool = npt.NDArray[np.bool_]
Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]

MIN_DEGREE = 2
"""The paper scores only nodes of at least this degree: addresses at the rim have too little context."""


def scored_nodes(graph: Any, min_degree: int = MIN_DEGREE) -> Bool:
    """Which nodes of a graph count in the paper's scores: degree (in plus out) of at least `min_degree`, bool (N,)."""
    return np.asarray(graph.degree()) >= min_degree


def nmi(a: Any, b: Any) -> float:
    """Normalised mutual information 2 I / (H + H') of two partitions, scikit-learn's (the paper's choice)."""
    return float(normalized_mutual_info_score(a, b, average_method="arithmetic"))


def ari(a: Any, b: Any) -> float:
    """Adjusted Rand index of two partitions, scikit-learn's (the paper's choice)."""
    return float(adjusted_rand_score(a, b))


def ami(a: Any, b: Any) -> float:
    """Adjusted mutual information (I − E[I]) / ((H + H') / 2 − E[I]) of two partitions: 1 if equal, about 0 by chance.

    E[I] is the mean over partitions with the given cluster sizes. Its terms depend on two sizes only, so clusters of
    equal size share them: thousands of clusters have a few hundred sizes, and a million points take seconds. The value
    is that of scikit-learn's `adjusted_mutual_info_score`, which visits all pairs of clusters.
    """
    table = contingency_matrix(a, b, sparse=True, dtype=np.int64)
    both, sizes = table.data, (np.ravel(table.sum(axis=1)), np.ravel(table.sum(axis=0)))
    if len(sizes[0]) == len(sizes[1]) == len(both):
        return 1.0  # the same partition
    n = int(both.sum())
    h_a, h_b, h_both = (_entropy(part / n) for part in (*sizes, both))
    information = max(h_a + h_b - h_both, 0.0)
    kinds = [np.unique(part, return_counts=True) for part in sizes]
    chance = _expected_information(*kinds[0], *kinds[1], gammaln(np.arange(n + 1) + 1.0))
    return float((information - chance) / ((h_a + h_b) / 2 - chance))


def _entropy(share: Float64) -> float:
    return float(-(share * np.log(share)).sum())


@njit(cache=True)
def _expected_information(size_a: Int64, count_a: Int64, size_b: Int64, count_b: Int64, factorial: Float64) -> float:
    """E[I] for clusters of these sizes, so many of each; `factorial[m]` is log m!."""
    n = len(factorial) - 1
    total = 0.0
    for i in range(len(size_a)):
        for j in range(len(size_b)):
            a, b = size_a[i], size_b[j]
            fixed = factorial[a] + factorial[b] + factorial[n - a] + factorial[n - b] - factorial[n]
            expected = 0.0
            for m in range(max(1, a + b - n), min(a, b) + 1):
                ways = factorial[m] + factorial[a - m] + factorial[b - m] + factorial[n - a - b + m]
                expected += m / n * (np.log(n * m / a) - np.log(b)) * np.exp(fixed - ways)
            total += expected * count_a[i] * count_b[j]
    return total


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
        classes = ((self.tp, self.fn), (self.tn, self.fp))
        return _mean([right / (right + wrong) for right, wrong in classes if right + wrong])

    @property
    def macro_f1(self) -> float:
        """Mean of the F1 scores of the two classes; a class that is neither present nor predicted is left out."""
        wrong = self.fp + self.fn
        return _mean([2 * right / (2 * right + wrong) for right in (self.tp, self.tn) if right + wrong])


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else float("nan")


def pairwise_scores(predicted: Any, truth: Any) -> PairCounts:
    """Counts over all n (n - 1) / 2 pairs of points of two partitions, from their contingency table."""
    (tn, fp), (fn, tp) = (pair_confusion_matrix(truth, predicted) // 2).tolist()  # it counts ordered pairs
    return PairCounts(tp, fp, fn, tn)
