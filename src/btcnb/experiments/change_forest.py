"""Möser and Narayanan's random forest: which of two outputs is the change?

    forest = train_forest([txs, other])                   # on what later common inputs reveal in them
    forest.probabilities(txs, change_votes(txs))          # (E, 2)

Two forests, as published: the full one sees 26 votes and nine features; the universal one sees the nine heuristics that
need no spending transaction, and serves where an output is not spent yet. Settings are those of the authors' public
notebooks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import Field
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold, GroupShuffleSplit

from btcnb.configuration import Real, Whole, configuration
from btcnb.data import Transactions
from btcnb.data.change_votes import (
    HEURISTICS,
    UNIVERSAL,
    ChangeVotes,
    KnownChange,
    change_votes,
    has_vote,
    output_rows,
    revealed_change,
    universal,
)
from btcnb.errors import DataError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

PUBLISHED_UNIVERSAL_THRESHOLD = 0.9977
"""Where the universal forest has the false-positive rate that the full one has at 0.99, in the original study."""
FOLDS = 5
TEACHERS = ("train1", "train2", "train3", "valid")
"""Roles whose whole intervals teach the forest."""


Count = Annotated[Whole, Field(ge=1, le=100_000)]


@configuration
class ForestConfig:
    """Settings of the two forests and of their use; defaults are the published ones."""

    trees: Count = 100
    max_features: Count = 7
    """inputs tried at a split of the full forest"""
    universal_features: Count = 6
    """inputs tried at a split of the universal forest"""
    min_samples_split: Annotated[Whole, Field(ge=2, le=100_000)] = 20
    min_samples_leaf: Count = 10
    positive: Annotated[Real, Field(ge=0.5, lt=1)] = 0.99
    """an output is change above this probability (full forest)"""
    negative: Annotated[Real, Field(ge=0, le=0.5)] = 0.01
    """below this probability it is not, and a cannot-link says so"""
    seed: Annotated[Whole, Field(ge=0, lt=2**31)] = 1337

    def classifier(self, full: bool = True) -> RandomForestClassifier:
        """An unfitted forest of scikit-learn, on one thread."""
        return RandomForestClassifier(
            n_estimators=self.trees,
            max_features=self.max_features if full else self.universal_features,
            min_samples_split=self.min_samples_split,
            min_samples_leaf=self.min_samples_leaf,
            random_state=self.seed,
            n_jobs=1,
        )


class OutputRows(NamedTuple):
    """Outputs whose part is known: two rows for each transaction, one of them change."""

    X: npt.NDArray[np.float32]  # (2n, 35) votes and features, see `output_rows`
    y: BoolArray  # (2n,) is it the change?
    group: IntArray  # (2n,) cluster of the senders, by common inputs: numbered over all chains
    silent: int = 0  # transactions that were left out because no heuristic votes

    def __len__(self) -> int:
        return len(self.y)

    @property
    def transactions(self) -> int:
        return len(self.y) // 2

    @property
    def base_rate(self) -> float:
        """Share of the more frequent class: what saying the same of every row is right about; NaN of no rows."""
        return float(max(self.y.mean(), 1 - self.y.mean())) if len(self.y) else float("nan")

    def of(self, chosen: BoolArray) -> OutputRows:
        """The rows of a mask (2n,)."""
        return OutputRows(self.X[chosen], self.y[chosen], self.group[chosen], self.silent)


def labelled_rows(txs: Transactions, known: KnownChange, senders: IntArray, votes: ChangeVotes) -> OutputRows:
    """Rows of the transactions whose change is known; those without any vote are left out and counted.

    senders: (n,) cluster of the senders of each transaction in `known`
    """
    X = output_rows(txs, votes.of(known.tx))
    y = np.stack([known.change == 0, known.change == 1], axis=1).ravel()
    voted = has_vote(X)
    return OutputRows(X, y, np.repeat(senders, 2), int((~voted).sum()) // 2).of(voted)


def revealed_rows(txs: Transactions) -> OutputRows:
    """The ground truth of a chain, from what later common inputs reveal; see `revealed_change`. May be empty."""
    found = revealed_change(txs)
    return labelled_rows(txs, found.known, found.cluster, change_votes(txs))


def gathered(parts: Sequence[OutputRows]) -> OutputRows:
    """Rows of several chains in one; clusters of different chains stay apart."""
    chain = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    X, y, group = (np.concatenate(columns) for columns in list(zip(*parts, strict=True))[:3])
    number = pd.DataFrame({"chain": chain, "group": group}).groupby(["chain", "group"]).ngroup()
    return OutputRows(X, y, np.asarray(number, dtype=np.int64), sum(part.silent for part in parts))


@dataclass(frozen=True)
class ChangeForest:
    """Two fitted forests, and from which probability on each is believed."""

    full: RandomForestClassifier
    universal: RandomForestClassifier
    config: ForestConfig
    universal_threshold: float

    def probabilities(self, txs: Transactions, votes: ChangeVotes) -> FloatArray:
        """(E, 2): how likely each output is change; NaN for transactions in which no usable heuristic votes.

        The full forest speaks where both outputs are spent in the data, the universal one elsewhere.
        """
        X = output_rows(txs, votes)
        spent = np.repeat(votes.both_spent, 2)
        found = np.full(len(X), np.nan)
        for rows, forest, chosen in (
            (X, self.full, spent & has_vote(X)),
            (universal(X), self.universal, ~spent & has_vote(X, UNIVERSAL)),
        ):
            if chosen.any():
                found[chosen] = forest.predict_proba(rows[chosen])[:, 1]
        return found.reshape(-1, 2)

    def threshold(self, votes: ChangeVotes) -> FloatArray:
        """(E,) the probability above which an output of each transaction is taken for change."""
        return np.where(votes.both_spent, self.config.positive, self.universal_threshold)


def train_forest(chains: Iterable[Transactions], config: ForestConfig | None = None) -> ChangeForest:
    """Fit both forests on all that common inputs reveal in one or more chains."""
    return fit_forest(gathered([revealed_rows(txs) for txs in chains]), config)


def fit_forest(rows: OutputRows, config: ForestConfig | None = None) -> ChangeForest:
    """Fit both forests on known rows; both classes are needed. The universal one skips rows that it has no vote in."""
    settings = config or ForestConfig()
    spoken = rows.of(has_vote(rows.X, UNIVERSAL))
    for name, part in (("votes", rows), ("universal votes", spoken)):
        if len(np.unique(part.y)) < 2:
            problem = f"{part.transactions} transactions with known change have {name}"
            raise DataError("ground truth", "change", problem, "give more or longer chains")
    return ChangeForest(
        full=settings.classifier().fit(rows.X, rows.y),
        universal=settings.classifier(full=False).fit(universal(spoken.X), spoken.y),
        config=settings,
        universal_threshold=equal_error_threshold(rows, settings)[0],
    )


def equal_error_threshold(rows: OutputRows, config: ForestConfig) -> tuple[float, float]:
    """The threshold of the universal forest with at most the full one's false-positive rate, and that rate.

    Both are predicted for clusters that they were not fitted on (five folds). Never below the full forest's threshold.
    Where there are too few clusters for folds, the published one, with NaN.
    """
    full, short = (fold_probabilities(rows, config, which) for which in (True, False))
    if full is None or short is None:
        return max(PUBLISHED_UNIVERSAL_THRESHOLD, config.positive), float("nan")
    wrong, spoken = ~rows.y, has_vote(rows.X, UNIVERSAL) & ~rows.y
    rate = float((full[wrong] > config.positive).mean())
    scores = np.sort(short[spoken])[::-1]  # from the most to the least suspicious mistake
    allowed = int(np.floor(rate * len(scores)))
    threshold = float(scores[allowed]) if allowed < len(scores) else config.positive
    return min(max(threshold, config.positive), 1.0), rate


def fold_probabilities(rows: OutputRows, config: ForestConfig, full: bool = True) -> FloatArray | None:
    """(2n,) the probability of each row from a forest that saw no row of its cluster; None where folds are impossible.

    Rows that the universal forest has no vote in get 0.5.
    """
    place = np.flatnonzero(_usable(rows, full))
    number = min(FOLDS, len(np.unique(rows.group[place])))
    if number < 2:
        return None
    found = np.full(len(rows), 0.5)
    for train, test in GroupKFold(number).split(place, groups=rows.group[place]):
        found[place[test]] = _predicted(rows, config, place[train], place[test], full)
    return found


def _usable(rows: OutputRows, full: bool) -> BoolArray:
    """The rows that a forest can speak of: all, or those with a universal vote."""
    return np.ones(len(rows), dtype=bool) if full else has_vote(rows.X, UNIVERSAL)


def _predicted(rows: OutputRows, config: ForestConfig, train: IntArray, test: IntArray, full: bool) -> FloatArray:
    """(test,) the probability of some rows from a forest fitted on others; 0.5 where it cannot speak."""
    usable, X = _usable(rows, full), rows.X if full else universal(rows.X)
    taught, asked = train[usable[train]], usable[test]
    found = np.full(len(test), 0.5)
    if len(np.unique(rows.y[taught])) == 2 and asked.any():
        found[asked] = config.classifier(full).fit(X[taught], rows.y[taught]).predict_proba(X[test[asked]])[:, 1]
    return found


HELD_OUT = 0.2
OPERATING = 0.99


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
    """What came of a split of the rows, on its test part."""

    y: BoolArray  # (test,) is it the change?
    probability: dict[str, FloatArray]  # (test,) per method
    scores: dict[str, Scores]


def row_scores(y: BoolArray, score: FloatArray, above: float = OPERATING) -> Scores:
    """Scores of rows in pairs: rows 2k and 2k+1 are the outputs of one transaction; score in [0, 1]."""
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


def split(rows: OutputRows, seed: int = 1337, grouped: bool = True) -> tuple[IntArray, IntArray]:
    """Positions of the rows for training and for testing; both rows of a transaction stay together.

    grouped: by cluster of the senders, the fair way; False: transaction by transaction
    """
    groups = rows.group if grouped else np.repeat(np.arange(rows.transactions), 2)
    number = len(np.unique(groups))
    if number < 2:
        what = "clusters of senders" if grouped else "transactions"
        raise DataError("ground truth", "split", f"{number} {what} with known change", "two are needed: give more data")
    halves = GroupShuffleSplit(n_splits=1, test_size=HELD_OUT, random_state=seed).split(rows.X, rows.y, groups)
    train, test = next(halves)
    return train.astype(np.int64), test.astype(np.int64)


def held_out(
    rows: OutputRows, config: ForestConfig | None = None, grouped: bool = True, seed: int = 1337, short: bool = True
) -> HeldOut:
    """Fit on four fifths, score on the last; the majority vote is scored on the same rows.

    grouped: as in `split`
    short: also the universal forest, fitted and scored on rows with a universal vote; it says 1/2 of the others
    """
    settings = config or ForestConfig()
    train, test = split(rows, seed, grouped)
    found = {"forest": _predicted(rows, settings, train, test, full=True), "majority": majority(rows.X[test])}
    if short:
        found["universal"] = _predicted(rows, settings, train, test, full=False)
    y = rows.y[test]
    return HeldOut(y, found, {name: row_scores(y, value, settings.positive) for name, value in found.items()})


def concave_bound(fpr: FloatArray, tpr: FloatArray) -> float:
    """The best accuracy on balanced rows that a concave ROC curve through the given points allows.

    Accuracy is (TPR + 1 − FPR) / 2. Between two points the curve cannot rise above the right one, and right of the last
    point it rises no faster than between the last two.
    """
    x, y = np.asarray(fpr), np.asarray(tpr)
    slope = (y[-1] - y[-2]) / (x[-1] - x[-2])
    reach = min(x[-1] + (1 - y[-1]) / slope, 1.0) if slope > 0 else x[-1]  # where the line meets 1
    beyond = [y[-1] + slope * (at - x[-1]) - at for at in (x[-1], reach)]
    before = y - np.concatenate([[0.0], x[:-1]])  # left of each point, as far left as the one before it
    return float((1 + max(*beyond, float(before.max()))) / 2)
