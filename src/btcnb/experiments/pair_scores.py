"""Scores of clusterings on labelled pairs: counts by draw, their mean, and what random splits would have done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import roc_auc_score

from btcnb.errors import DataError
from btcnb.paper import balanced_accuracy, macro_f1

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Numbers = dict[str, float | int | str | None]

COUNTS = ("TP", "FP", "FN", "TN")
SCORES = (*COUNTS, "bACC", "F1")
REPEATS = 20
"""Random splits of each draw whose mean is the control."""
ROUNDING = 1e-6
"""Rows are of 32 bits: what is nearer than this is equal, and no order of such distances means anything."""


def scored(name: str, counts: npt.NDArray[Any]) -> Numbers:
    """Mean over draws of `counts` (draws, 4), which may be fractions: shares in % of pairs, bACC, F1, their sd.

    A draw without a pair of one kind has no bACC and no F1: it is left out of their means. Where no draw has them,
    they are None. A draw without any pair is left out of everything.
    """
    table = np.asarray(counts, dtype=np.float64)
    table = table[table.sum(axis=1) > 0]
    shares = 100 * table / table.sum(axis=1, keepdims=True)
    numbers: Numbers = {f"{name}.{kind}": _mean(shares[:, place]) for place, kind in enumerate(COUNTS)}
    both = [row for row in table if both_kinds(row)]
    for score, of in (("bACC", balanced_accuracy), ("F1", macro_f1)):
        values = np.array([of(*row) for row in both])
        numbers[f"{name}.{score}"] = _mean(values)
        numbers[f"{name}.{score}_sd"] = float(values.std(ddof=1)) if len(values) > 1 else None
    return numbers


def both_kinds(counts: npt.NDArray[Any]) -> bool:
    """Whether there are pairs of one name and pairs of two."""
    tp, fp, fn, tn = counts
    return bool(tp + fn > 0 and fp + tn > 0)


def undefined_draws(counts: npt.NDArray[Any]) -> int:
    """Draws without a pair of one kind: their bACC is not defined."""
    return sum(not both_kinds(row) for row in counts)


def random_split(counts: IntArray, lost: int, positive: FloatArray, negative: FloatArray) -> FloatArray:
    """TP, FP, FN, TN after splitting clusters at random until `lost` of their positive pairs are apart, (4,).

    counts: of the clusters before; positive, negative (TP,), (FP,): of the pairs that they join, the first moment at
        which one of the two addresses leaves its cluster, where every address leaves at a random moment of its own.
    False negatives match exactly. Where several positive pairs part at one moment (they share an address) and `lost`
    lies between, false positives are interpolated between before and after.
    """
    tp, fp, fn, tn = (float(value) for value in counts)
    if not (len(positive) == tp and len(negative) == fp and 0 <= lost <= tp):
        raise DataError("pairs", "moments", "do not fit the counts", "give one for each pair that is together")
    moments, parted = np.unique(positive, return_counts=True)
    reached = np.concatenate([[0], np.cumsum(parted)]).astype(np.float64)
    gone = np.concatenate([[0.0], [(negative <= moment).sum() for moment in moments]])
    wrong = float(np.interp(lost, reached, gone))
    return np.array([tp - lost, fp - wrong, fn + lost, tn + wrong])


def moments(leaving: FloatArray, pairs: IntArray) -> FloatArray:
    """The moment at which a pair parts: when the first of its two addresses leaves; (…, k).

    leaving (…, A): a moment for each address, once or several times; pairs (k, 2)
    """
    return np.minimum(leaving[..., pairs[:, 0]], leaving[..., pairs[:, 1]])


def counts_by_draw(labels: IntArray, pairs: IntArray, same: BoolArray, draw: IntArray, draws: int) -> IntArray:
    """TP, FP, FN, TN of several clusterings in every draw, (clusterings, draws, 4); see `pair_counts` for a single one.

    labels (clusterings, A); pairs (k, 2) of addresses, whether they bear one name (k,), and the draw of each (k,)
    """
    together = labels[:, pairs[:, 0]] == labels[:, pairs[:, 1]]
    cell = 4 * draw + np.where(same, 2, 3) - 2 * together  # TP 0, FP 1, FN 2, TN 3
    cell += 4 * draws * np.arange(len(labels))[:, None]
    return np.bincount(cell.ravel(), minlength=4 * draws * len(labels)).reshape(-1, draws, 4)


def separation(distances: Sequence[float] | FloatArray, same: Sequence[bool] | BoolArray) -> float | None:
    """Area under the ROC curve of distance as a sign of two names: 0.5 is chance; None where one kind is missing."""
    apart = ~np.asarray(same, dtype=bool)
    if not len(apart) or apart.all() or not apart.any():
        return None
    return float(roc_auc_score(apart, np.asarray(distances, dtype=np.float64)))


def cosine(rows: npt.NDArray[Any], pairs: IntArray) -> FloatArray:
    """Cosine distance of pairs (k, 2) of unit rows; 0 where it is no more than rounding."""
    a, b = rows[pairs[:, 0]].astype(np.float64), rows[pairs[:, 1]].astype(np.float64)
    far = 1.0 - np.einsum("ij,ij->i", a, b)
    return np.where(far < ROUNDING, 0.0, far)


def table_of(counts: Mapping[str, npt.NDArray[Any]]) -> Numbers:
    """`scored` of every clustering."""
    numbers: Numbers = {}
    for name, each in counts.items():
        numbers |= scored(name, each)
    return numbers


def _mean(values: npt.NDArray[Any]) -> float | None:
    return float(values.mean()) if len(values) else None
