"""A recipe is chosen on validation worlds by a rule that leaves nothing to taste."""

from __future__ import annotations

import pandas as pd
import pytest

from btcnb.errors import DataError
from btcnb.experiments.selection import (
    NOTHING,
    PAPER,
    Candidate,
    best_fixed,
    by_factors,
    candidates,
    choose,
    difference,
    hindsight,
    ranking,
    scores,
)


def records(*rows: tuple[str, int, float, float, float, int, int]) -> pd.DataFrame:
    """(row, seed, ARI of heuristics, of lambda, of twice.local, clusters of lambda, of twice.local)"""
    names = [
        "row",
        "seed",
        "heuristics.ari",
        "lambda.ari",
        "twice.local.ari",
        "lambda.clusters",
        "twice.local.clusters",
    ]
    return by_factors(pd.DataFrame(rows, columns=names).assign(**{"heuristics.clusters": 5}))


TWO_WORLDS = records(
    ("paper 1", 1, 0.5, 0.4, 0.6, 10, 8),
    ("paper 1", 2, 0.7, 0.6, 0.8, 10, 8),
    ("paper 2", 1, 0.3, 0.5, 0.4, 10, 8),
    ("paper 2", 2, 0.1, 0.3, 0.2, 10, 8),
    ("untrained 1", 1, 0.5, 0.2, 0.1, 10, 8),
    ("untrained 1", 2, 0.7, 0.2, 0.1, 10, 8),
    ("untrained 2", 1, 0.3, 0.2, 0.1, 10, 8),
    ("untrained 2", 2, 0.1, 0.2, 0.1, 10, 8),
)


def test_rows_are_named_by_encoder_and_disorder() -> None:
    assert TWO_WORLDS["encoder"].unique().tolist() == ["paper", "untrained"]
    assert sorted(TWO_WORLDS["disorder"].unique()) == [1.0, 2.0]


def test_candidates_are_what_the_records_hold_and_doing_nothing() -> None:
    found = candidates(TWO_WORLDS)
    assert found[0] == Candidate() and found[0].cut == NOTHING
    assert [each.metric for each in found[1:]] == ["lambda", "twice.local"] * 2


def test_the_best_mean_over_worlds_and_disorders_wins() -> None:
    # twice.local of paper: (.6 + .8 + .4 + .2) / 4 = .5; lambda: (.4 + .6 + .5 + .3) / 4 = .45; nothing: .4
    table = ranking(TWO_WORLDS)
    assert table["ari"].head(3).tolist() == pytest.approx([0.5, 0.45, 0.4])
    assert table["gain"].iloc[0] == pytest.approx(0.1)
    assert choose(TWO_WORLDS) == Candidate("paper", "twice", "local")
    assert choose(TWO_WORLDS, "untrained") == Candidate("untrained", "addresses", "lambda")


def test_among_equals_the_one_that_splits_least_is_chosen() -> None:
    even = records(("paper 1", 1, 0.5, 0.6, 0.6, 10, 8), ("paper 1", 2, 0.5, 0.6, 0.6, 10, 8))
    assert choose(even).units == "twice"
    nothing = records(("paper 1", 1, 0.6, 0.6, 0.6, 10, 8))
    assert choose(nothing) == Candidate()


def test_differences_are_paired_by_world() -> None:
    table = difference(TWO_WORLDS, PAPER, Candidate()).set_index("disorder")
    assert table.loc[1.0, ["mean", "low", "high"]].tolist() == pytest.approx([-0.1] * 3)  # the same in both worlds
    assert table.loc[2.0, "mean"] == pytest.approx(0.2)
    assert table["worlds"].tolist() == [2, 2]


def test_scores_stand_by_world_and_disorder() -> None:
    assert scores(TWO_WORLDS, Candidate()).mean().tolist() == pytest.approx([0.6, 0.2])


def test_what_was_not_recorded_is_named() -> None:
    with pytest.raises(DataError, match=r"inputs.lambda.ari"):
        difference(TWO_WORLDS, Candidate("paper", "inputs", "lambda"), Candidate())
    with pytest.raises(DataError, match="robust"):
        choose(TWO_WORLDS, "robust")


def test_failed_runs_and_older_records_are_left_out() -> None:
    frame = pd.DataFrame(
        {"row": ["paper 1"] * 3, "seed": [1, 1, 2], "state": ["done", "done", "failed"], "x": [1, 2, 3]}
    )
    assert by_factors(frame)["x"].tolist() == [2]


def test_hindsight_takes_the_best_of_each_world() -> None:
    # disorder 1: +.1 and +.1 by twice.local of paper; disorder 2: +.2 and +.2 by lambda of paper
    assert hindsight(TWO_WORLDS)["mean"].tolist() == pytest.approx([0.1, 0.2])


def test_the_best_fixed_threshold_is_found_for_each_disorder_alone() -> None:
    """At disorder 1 the threshold 0.10 gains most, at 2 the threshold 0.90, which loses least."""
    names = ["row", "seed", "heuristics.ari", *(f"at.{0.05 * step:.2f}.ari" for step in range(1, 21))]
    flat = [0.4] * 20
    first, second = ([*flat] for _ in range(2))
    first[1], second[17] = 0.8, 0.45
    frame = pd.DataFrame([["paper 1", 1, 0.5, *first], ["paper 2", 1, 0.5, *second]], columns=names)
    found = best_fixed(by_factors(frame), "paper")
    assert found["disorder"].tolist() == [1.0, 2.0]
    assert found["mean"].tolist() == pytest.approx([0.3, -0.05])
