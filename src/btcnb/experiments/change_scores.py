"""How well are change outputs found? Held-out scores of the forest, of a majority vote, and of what leaks.

Rows of one cluster of senders share software and habits. A split that puts some of them on either side lets a forest
recognise the sender instead of the change, so the fair split is by cluster (`grouped=True`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.model_selection import GroupShuffleSplit

from btcnb import gates
from btcnb.data.change_votes import HEURISTICS, UNIVERSAL, has_vote, universal
from btcnb.errors import DataError
from btcnb.experiments.change_forest import ForestConfig, OutputRows

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

HELD_OUT = 0.2
OPERATING = 0.99
FPR_POINTS = (0.001, 0.005, 0.01, 0.05)
"""False-positive rates at which the original study prints the true-positive rate (but for the last)."""


class Scores(NamedTuple):
    """Scores of one way to find change, over rows (two a transaction) but for `choice`.

    NaN where nothing can be counted: no rows, or one class only.
    """

    auc: float
    accuracy: float  # share of rows on the right side of 1/2
    choice: float  # share of transactions whose change has the higher score; a tie counts half
    tpr: float  # at the operating point: share of change outputs above 0.99
    fpr: float  # share of other outputs above it
    rows: int


class HeldOut(NamedTuple):
    """A split of the rows and what came of it."""

    train: IntArray  # positions of rows
    test: IntArray
    y: npt.NDArray[np.bool_]  # (test,) is it the change?
    probability: dict[str, FloatArray]  # (test,) per method
    scores: dict[str, Scores]


def scored(y: npt.NDArray[np.bool_], score: FloatArray, above: float = OPERATING) -> Scores:
    """Scores of rows in pairs: rows 2k and 2k+1 are the outputs of one transaction; score in [0, 1]."""
    y, score = gates.array("y", y, 1).astype(bool), gates.array("score", score, 1)
    if len(y) != len(score) or len(y) % 2:
        raise DataError("score", "shape", f"{len(score)} scores of {len(y)} rows", "give two rows a transaction")
    if len(np.unique(y)) < 2:
        nothing = float("nan")
        return Scores(nothing, nothing, nothing, nothing, nothing, len(y))
    pairs, change = score.reshape(-1, 2), y.reshape(-1, 2)
    lead = (pairs[:, 0] - pairs[:, 1]) * np.where(change[:, 0], 1, -1)
    return Scores(
        auc=float(roc_auc_score(y, score)),
        accuracy=float(np.where(score == 0.5, 0.5, (score > 0.5) == y).mean()),
        choice=float(np.where(lead == 0, 0.5, lead > 0).mean()),
        tpr=float((score[y] > above).mean()),
        fpr=float((score[~y] > above).mean()),
        rows=len(y),
    )


def majority(X: npt.NDArray[np.float32]) -> FloatArray:
    """The threshold vote: margin of votes for an output over votes against it, moved to [0, 1]; 1/2 is a draw."""
    margin = X[:, : len(HEURISTICS)].sum(axis=1)
    return np.asarray(0.5 + margin / (2 * len(HEURISTICS)), dtype=np.float64)


def split(
    rows: OutputRows, seed: int = 1337, grouped: bool = True, share: float = HELD_OUT
) -> tuple[IntArray, IntArray]:
    """Positions of the rows for training and for testing; both rows of a transaction stay together.

    grouped: by cluster of the senders, the fair way; False: transaction by transaction
    """
    gates.flag("grouped", grouped), gates.real("share", share, "(0, 1)")
    seed = gates.whole("seed", seed, "[0, 2147483647]")
    groups = rows.group if grouped else np.repeat(np.arange(rows.transactions), 2)
    number = len(np.unique(groups))
    if number < 2:
        what = "clusters of senders" if grouped else "transactions"
        raise DataError("ground truth", "split", f"{number} {what} with known change", "two are needed: give more data")
    halves = GroupShuffleSplit(n_splits=1, test_size=share, random_state=seed).split(rows.X, rows.y, groups)
    train, test = next(halves)
    return train.astype(np.int64), test.astype(np.int64)


def held_out(
    rows: OutputRows, config: ForestConfig | None = None, grouped: bool = True, seed: int = 1337, short: bool = True
) -> HeldOut:
    """Fit on four fifths, score on the last; the majority vote is scored on the same rows.

    short: also the universal forest, fitted and scored on rows with a universal vote; it says 1/2 of the others
    """
    settings = ForestConfig() if config is None else gates.instance("config", config, ForestConfig)
    train, test = split(rows, seed, grouped)
    full = settings.classifier().fit(rows.X[train], rows.y[train]).predict_proba(rows.X[test])[:, 1]
    found = {"forest": full, "majority": majority(rows.X[test])}
    if gates.flag("short", short):
        found["universal"] = _universal(rows, settings, train, test)
    y = rows.y[test]
    return HeldOut(train, test, y, found, {name: scored(y, value, settings.positive) for name, value in found.items()})


def _universal(rows: OutputRows, config: ForestConfig, train: IntArray, test: IntArray) -> FloatArray:
    """Probabilities (test,) of the universal forest."""
    usable = has_vote(rows.X, UNIVERSAL)
    taught, asked = train[usable[train]], usable[test]
    found = np.full(len(test), 0.5)
    if len(np.unique(rows.y[taught])) == 2 and asked.any():
        model = config.classifier(full=False).fit(universal(rows.X[taught]), rows.y[taught])
        found[asked] = model.predict_proba(universal(rows.X[test[asked]]))[:, 1]
    return found


def tpr_at(y: npt.NDArray[np.bool_], score: FloatArray, fpr: float) -> float:
    """The highest true-positive rate whose false-positive rate does not exceed `fpr`; NaN with one class only."""
    if len(np.unique(y)) < 2:
        return float("nan")
    false, true, _ = roc_curve(y, score)
    return float(true[false <= fpr].max())


def concave_bound(fpr: FloatArray, tpr: FloatArray) -> float:
    """The best accuracy on balanced rows that a concave ROC curve through the given points allows.

    Accuracy is (TPR + 1 − FPR) / 2. Between two points the curve cannot rise above the right one, and right of the last
    point it rises no faster than between the last two.
    """
    x, y = (gates.array(name, value, 1).astype(np.float64) for name, value in (("fpr", fpr), ("tpr", tpr)))
    if len(x) < 2 or len(x) != len(y) or (np.diff(x) <= 0).any():
        raise DataError("fpr", "points", f"{len(x)} points", "give two or more, from left to right")
    slope = (y[-1] - y[-2]) / (x[-1] - x[-2])
    reach = min(x[-1] + (1 - y[-1]) / slope, 1.0) if slope > 0 else x[-1]  # where the line meets 1
    beyond = [y[-1] + slope * (at - x[-1]) - at for at in (x[-1], reach)]
    before = y - np.concatenate([[0.0], x[:-1]])  # left of each point, as far left as the one before it
    return float((1 + max(*beyond, float(before.max()))) / 2)
