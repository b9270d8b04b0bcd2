"""The forest: rows by hand, splits that do not leak, equal numbers in every process, and data it cannot learn from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from payments import chain, chain_of, payments

from btcnb.data import Transactions
from btcnb.data.change_votes import COLUMNS, HEURISTICS, change_votes, revealed_change
from btcnb.errors import DataError, ParameterError
from btcnb.experiments.change_forest import (
    PUBLISHED_UNIVERSAL_THRESHOLD,
    ForestConfig,
    OutputRows,
    concave_bound,
    equal_error_threshold,
    fold_probabilities,
    gathered,
    held_out,
    majority,
    revealed_rows,
    row_scores,
    split,
    train_forest,
)

SMALL = ForestConfig(trees=5)


def noisy(number: int, groups: int, seed: int = 0) -> OutputRows:
    """Rows whose first vote is right three times out of four; clusters have a habit of their own in the total."""
    rng = np.random.default_rng(seed)
    change = rng.integers(0, 2, number)
    y = np.stack([change == 0, change == 1], axis=1).ravel()
    X = np.zeros((2 * number, len(COLUMNS)), dtype=np.float32)
    right = np.repeat(rng.random(number) < 0.75, 2)
    X[:, 0] = np.where(y == right, 1, -1)
    group = np.repeat(rng.integers(0, groups, number), 2)
    X[:, COLUMNS.index("output_total")] = group
    return OutputRows(X, y, group.astype(np.int64))


# rows -----------------------------------------------------------------------------------------------------------


def test_a_payment_makes_two_rows_of_which_one_is_change() -> None:
    txs = chain_of(3)
    rows = revealed_rows(txs)
    assert rows.transactions == 3 and rows.base_rate == 0.5
    assert rows.y.tolist() == [False, True, True, False, False, True]
    assert rows.X[:, COLUMNS.index("power_of_ten_5")].tolist() == [-1, 1, 1, -1, -1, 1]
    assert rows.X[:, COLUMNS.index("fp_version")].tolist() == [-1, 1, 1, -1, -1, 1]
    assert len(np.unique(rows.group)) == 3
    assert (rows.group[::2] == rows.group[1::2]).all()


def test_payments_without_any_vote_are_left_out_and_counted() -> None:
    story = payments(2)
    story.pay([("b", 46)], {"p": 23, "q": 23}).pay("p", {"pp": 23}).pay(["q", ("b", 23)], {"r": 23, "rr": 23})
    txs = story.build()
    assert len(revealed_change(txs).tx) == 3
    silent = int((~(change_votes(txs).of(revealed_change(txs).tx).votes >= 0).any(axis=1)).sum())
    rows = revealed_rows(txs)
    assert (rows.transactions, rows.silent) == (3 - silent, silent)


def test_clusters_of_different_chains_stay_apart() -> None:
    one = revealed_rows(chain_of(2, each=2))
    both = gathered([one, one])
    assert both.transactions == 8
    assert np.unique(one.group).size == 2 and np.unique(both.group).size == 4
    assert both.silent == 0


# splits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_no_cluster_is_on_both_sides_of_the_split(seed: int) -> None:
    rows = noisy(100, groups=9, seed=seed)
    train, test = split(rows, seed)
    assert not set(rows.group[train]) & set(rows.group[test])
    assert sorted([*train, *test]) == list(range(200))
    train, test = split(rows, seed, grouped=False)  # this one leaks: clusters are on both sides
    assert set(rows.group[train]) & set(rows.group[test])
    assert not set((train // 2).tolist()) & set((test // 2).tolist())  # but no transaction is


def test_an_ungrouped_split_rewards_recognising_the_sender() -> None:
    """Votes are tossed by a coin that each cluster owns: right in some clusters, wrong in others."""
    rng = np.random.default_rng(3)
    group = np.repeat(np.arange(30), 20)
    change = rng.integers(0, 2, len(group))
    y = np.stack([change == 0, change == 1], axis=1).ravel()
    honest = np.repeat(rng.integers(0, 2, 30)[group] == 1, 2)
    X = np.zeros((len(y), len(COLUMNS)), dtype=np.float32)
    X[:, 0] = np.where(y == honest, 1, -1)
    X[:, COLUMNS.index("output_total")] = np.repeat(group, 2)
    rows = OutputRows(X, y, np.repeat(group, 2))
    config = ForestConfig(trees=20, max_features=35)
    fair, leaking = (held_out(rows, config, grouped, seed=1).scores["forest"].auc for grouped in (True, False))
    assert leaking > 0.95
    assert fair < 0.75


def test_one_cluster_cannot_be_split() -> None:
    rows = revealed_rows(chain_of(1, each=3))
    with pytest.raises(DataError, match="1 clusters of senders"):
        split(rows)
    assert len(split(rows, grouped=False)[0])
    with pytest.raises(DataError, match="0 clusters"):
        split(rows.of(np.zeros(len(rows), dtype=bool)))


# scores ---------------------------------------------------------------------------------------------------------


def test_scores_by_hand() -> None:
    y = np.array([1, 0, 0, 1, 1, 0], dtype=bool)
    found = row_scores(y, np.array([0.995, 0.2, 0.6, 0.4, 0.5, 0.5]))
    assert found.accuracy == pytest.approx((1 + 1 + 0 + 0 + 0.5 + 0.5) / 6)
    assert found.choice == pytest.approx((1 + 0 + 0.5) / 3)
    assert (found.tpr, found.fpr, found.rows) == (pytest.approx(1 / 3), 0.0, 6)
    # of 9 pairs of a change and another output: .995 beats 3, .4 beats 1, .5 beats 1 and ties 1
    assert found.auc == pytest.approx((3 + 1 + 1.5) / 9)


def test_scores_of_one_class_are_no_numbers() -> None:
    found = row_scores(np.ones(2, dtype=bool), np.array([0.3, 0.4]))
    assert np.isnan(found[:5]).all() and found.rows == 2


def test_a_majority_vote_is_the_margin() -> None:
    X = np.zeros((2, len(COLUMNS)), dtype=np.float32)
    X[0, :3], X[1, :3] = [1, 1, -1], [-1, -1, 1]
    X[:, len(HEURISTICS) :] = 99  # features have no vote
    assert majority(X) == pytest.approx([0.5 + 1 / 52, 0.5 - 1 / 52])


def test_the_best_accuracy_that_a_concave_curve_allows() -> None:
    # slope 1 between the points: the line reaches 1 at 0.5, where accuracy is (1 + 1 - 0.5) / 2
    assert concave_bound(np.array([0.1, 0.2]), np.array([0.6, 0.7])) == pytest.approx(0.8)  # left of 0.1: 0.6; 0.7-0.1
    # slope 4: from (0.2, 0.8) it reaches 1 at 0.25
    assert concave_bound(np.array([0.1, 0.2]), np.array([0.4, 0.8])) == pytest.approx((1 + 0.75) / 2)


# fitting --------------------------------------------------------------------------------------------------------


def test_settings_are_the_published_ones() -> None:
    full, short = (ForestConfig().classifier(which).get_params() for which in (True, False))
    wanted = {"n_estimators": 100, "max_features": 7, "min_samples_split": 20, "min_samples_leaf": 10}
    assert {name: full[name] for name in wanted} == wanted
    assert {name: short[name] for name in wanted} == wanted | {"max_features": 6}
    assert (full["random_state"], full["max_depth"], full["bootstrap"]) == (1337, None, True)
    assert (ForestConfig().positive, ForestConfig().negative) == (0.99, 0.01)


def test_the_forest_learns_what_users_and_shops_do() -> None:
    forest = train_forest([chain_of(15), chain_of(15)], SMALL)
    txs = chain_of(4, name="new")
    votes = change_votes(txs)
    chance = forest.probabilities(txs, votes)
    own = revealed_change(txs)
    place = np.searchsorted(votes.tx, own.tx)
    assert (chance[place].argmax(axis=1) == own.change).all()
    assert (chance[place].max(axis=1) > 0.9).all()


def test_unspent_outputs_are_the_universal_forests_affair() -> None:
    forest = train_forest([chain_of(30)], SMALL)
    txs = chain(start_block=600_000).pay("a", {"x": 1_000_000, "y": 123_457}).pay("b", {"p": 11, "q": 13}).build()
    votes = change_votes(txs)
    chance = forest.probabilities(txs, votes)
    assert chance[0, 1] > chance[0, 0]
    assert np.isnan(chance[1]).all()  # nobody votes
    assert forest.threshold(votes).tolist() == [forest.universal_threshold] * 2
    assert forest.universal_threshold >= forest.config.positive


def test_folds_never_predict_a_cluster_they_were_fitted_on() -> None:
    """A vote that is right in one cluster only cannot be learned from the others."""
    rows = noisy(60, groups=6)
    found = fold_probabilities(rows, SMALL)
    assert found is not None and found.shape == (120,)
    alone = OutputRows(rows.X, rows.y, np.zeros(120, dtype=np.int64))
    assert fold_probabilities(alone, SMALL) is None
    threshold, rate = equal_error_threshold(alone, SMALL)
    assert threshold == PUBLISHED_UNIVERSAL_THRESHOLD and np.isnan(rate)
    threshold, rate = equal_error_threshold(rows, ForestConfig(trees=5, positive=0.6))
    assert 0.6 <= threshold <= 1 and 0 <= rate <= 1


@pytest.mark.nightly
def test_numbers_are_the_same_in_every_process() -> None:
    code = (
        "from payments import chain_of; from btcnb.experiments.change_forest import *;"
        "from btcnb.data.change_votes import change_votes;"
        "txs = chain_of(25); f = train_forest([txs], ForestConfig(trees=5));"
        "print(f.probabilities(txs, change_votes(txs)).round(12).tolist(), f.universal_threshold)"
    )
    run = [sys.executable, "-c", code]
    here = Path(__file__).parent
    other = {**os.environ, "PYTHONHASHSEED": "7"}
    said = subprocess.run(run, cwd=here, capture_output=True, text=True, check=True, env=other).stdout
    txs = chain_of(25)
    forest = train_forest([txs], ForestConfig(trees=5))
    mine = f"{forest.probabilities(txs, change_votes(txs)).round(12).tolist()} {forest.universal_threshold}\n"
    assert said == mine


# what cannot be learned from ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "txs",
    [
        chain().build(),
        chain().coinbase("m").pay("a", {"b": 1}).build(),  # nothing has two outputs
        chain().pay("a", {"x": 1, "y": 2}).build(),  # nothing is spent
    ],
    ids=["empty", "one output", "unspent"],
)
def test_a_chain_that_reveals_nothing_teaches_nothing(txs: Transactions) -> None:
    assert revealed_rows(txs).transactions == 0
    assert np.isnan(revealed_rows(txs).base_rate)
    with pytest.raises(DataError, match="ground truth: change: 0 transactions"):
        train_forest([txs])


@pytest.mark.parametrize(
    "field", [{"trees": 0}, {"positive": 1.0}, {"negative": 0.6}, {"seed": -1}, {"min_samples_split": 1}]
)
def test_settings_out_of_range_are_refused(field: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=next(iter(field))):
        ForestConfig(**field)
