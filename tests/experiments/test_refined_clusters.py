"""Recipes of refinement: answers that one can count, the paper's way unchanged, and groups that stay together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from btcnb.cluster import refine
from btcnb.errors import ParameterError
from btcnb.experiments.refine import Refined, Refiner, group_rows, refined
from btcnb.store import fingerprint

ONE = np.zeros(6, dtype=int)
INPUTS = Refiner("inputs", "fixed", 0.3)


def circle(*degrees: float) -> np.ndarray:
    """Points on the unit circle: their cosine distance is one minus the cosine of the angle between them."""
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


THREE_PAIRS = circle(0, 1, 60, 61, 120, 121)


def same(a: Any, b: Any) -> bool:
    """Whether two partitions are equal but for names."""
    return np.array_equal(pd.factorize(np.asarray(a))[0], pd.factorize(np.asarray(b))[0])


def is_refinement(fine: Any, coarse: Any) -> bool:
    return len({*zip(np.asarray(fine).tolist(), np.asarray(coarse).tolist(), strict=True)}) == len(np.unique(fine))


# --- the paper's way ---


@pytest.mark.parametrize("threshold", [None, 0.3, 1e-9, float("inf")])
@pytest.mark.parametrize("method", ["average", "ward"])
def test_trees_over_addresses_are_those_of_refine(threshold: float | None, method: str) -> None:
    rng = np.random.default_rng(3)
    X, clusters = rng.normal(size=(400, 6)), rng.integers(0, 30, 400)
    rule = "lambda" if threshold is None else "fixed"
    ours = refined(X, clusters, Refiner("addresses", rule, threshold, method), progress=False)
    theirs = refine(X, clusters, threshold, method, progress=False)
    assert np.array_equal(ours.partition, theirs.partition)
    assert ours.threshold == theirs.threshold
    assert (ours.thresholds == theirs.threshold).all()
    columns = ["cluster", "height", "excess", "size_left", "size_right", "left", "right", "suspicion"]
    pd.testing.assert_frame_equal(ours.flagged[columns], theirs.suspicious[columns])
    assert int(ours.above().sum()) == len(ours.flagged)


def test_a_cut_between_three_pairs() -> None:
    """Pairs merge at 1 - cos 1°, the pairs at 0.5 and at the mean of 0.5 and 1.5; only the two last exceed 0.3."""
    found = refined(THREE_PAIRS, ONE, Refiner("addresses", "fixed", 0.3))
    assert same(found.partition, [0, 0, 1, 1, 2, 2])
    assert found.flagged["height"].round(2).tolist() == [1.0, 0.5]
    assert found.flagged[["size_left", "size_right"]].to_numpy().tolist() == [[4, 2], [2, 2]]
    assert found.flagged["suspicion"].tolist() == pytest.approx(
        [found.flagged["excess"][0] * 32 / 36, found.flagged["excess"][1]]
    )


# --- groups ---


def test_what_was_spent_together_is_one_leaf() -> None:
    """Addresses 0 and 4 lie 120° apart but were inputs of one transaction: the leaf lies at 60°, with 2, 3 near it."""
    groups = [7, 8, 9, 10, 7, 11]
    found = refined(THREE_PAIRS, ONE, INPUTS, groups)
    assert found.leaf.tolist() == [0, 1, 2, 3, 0, 4]
    assert found.leaf_sizes.tolist() == [2, 1, 1, 1, 1]
    assert same(found.partition, [0, 1, 0, 0, 0, 2])
    top = found.flagged.iloc[0]
    assert sorted([top["size_left"] + top["size_right"], *found.flagged["size_left"]])[-1] == 6
    assert set(found.flagged["left"]) | set(found.flagged["right"]) <= {0, 1, 5}


def test_sizes_count_addresses_and_the_larger_side_is_left() -> None:
    """Two leaves: one address at 0°, and a group of five at 90°."""
    X = circle(0, 90, 90, 90, 90, 90)
    found = refined(X, ONE, INPUTS, [0, 1, 1, 1, 1, 1])
    assert len(found.flagged) == 1
    row = found.flagged.iloc[0]
    assert (row["size_left"], row["size_right"], row["left"], row["right"]) == (5, 1, 1, 0)
    assert row["height"] == pytest.approx(1.0)
    assert row["suspicion"] == pytest.approx(0.7 * 4 * 5 / 36)


def test_a_group_does_not_join_two_clusters() -> None:
    found = refined(THREE_PAIRS, [0, 0, 0, 1, 1, 1], Refiner("inputs", "fixed", float("inf")), ONE)
    assert found.partition.tolist() == [0, 0, 0, 1, 1, 1]
    assert found.leaf.tolist() == [0, 0, 0, 1, 1, 1]
    assert not len(found.flagged)


def test_groups_of_one_are_addresses() -> None:
    rng = np.random.default_rng(5)
    X, clusters = rng.normal(size=(200, 8)), rng.integers(0, 9, 200)
    alone = refined(X, clusters, Refiner("inputs", "fixed", 0.8), np.arange(200))
    paper = refined(X, clusters, Refiner("addresses", "fixed", 0.8))
    assert np.array_equal(alone.partition, paper.partition)
    pd.testing.assert_frame_equal(alone.flagged, paper.flagged, rtol=1e-4)  # rows of leaves are float32


def test_the_row_of_a_group_is_the_direction_of_the_mean_of_unit_rows() -> None:
    X = np.array([[10.0, 0.0], [0.0, 0.1], [0.0, 0.0], [1.0, 0.0], [-1.0, 0.0]])
    assert group_rows(X, np.array([0, 0, 1, 2, 2])) == pytest.approx(np.array([[0.5**0.5] * 2, [0, 0], [0, 0]]))
    assert group_rows(X, np.array([0, 0, 0, 1, 1]))[0] == pytest.approx([0.5**0.5] * 2)  # zeros count for nothing


def test_means_do_not_depend_on_how_many_rows_are_taken_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    X, leaf = rng.normal(size=(100, 5)), pd.factorize(rng.integers(0, 7, 100))[0]
    whole = group_rows(X, leaf)
    monkeypatch.setattr("btcnb.experiments.refine.ROWS_AT_ONCE", 7)
    assert group_rows(X, leaf) == pytest.approx(whole, abs=1e-6)


def test_groups_without_any_direction_share_one() -> None:
    X = np.array([[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0]])
    with pytest.warns(UserWarning, match="all zeros"):
        found = refined(X, [0, 0, 0], Refiner("inputs", "fixed", 2.0), [0, 0, 1])
    assert found.zero_rows == 1


# --- thresholds ---


def test_each_cluster_may_have_its_own_threshold() -> None:
    """Both clusters are three tight pairs, at two scales: one λ for both splits the wide one wrongly, or not at all."""
    X = np.concatenate([circle(0, 1, 60, 61, 120, 121), circle(0, 0.01, 3, 3.01, 6, 6.01)])
    clusters = np.repeat(["wide", "narrow"], 6)
    local = refined(X, clusters, Refiner(threshold_rule="local"))
    assert same(local.partition, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5])
    assert not same(refined(X, clusters, Refiner()).partition, local.partition)
    table = local.flagged
    assert (table["excess"] == table["height"] - table["threshold"]).all() and (table["excess"] >= 0).all()
    assert local.thresholds[local.forest.clusters == "narrow"] < local.thresholds[local.forest.clusters == "wide"]


def test_small_clusters_take_lambda() -> None:
    X = np.concatenate([THREE_PAIRS, circle(0, 90)])
    found = refined(X, [0] * 6 + [1, 1], Refiner(threshold_rule="local"))
    assert found.thresholds[1] == found.threshold == found.thresholds[0]
    assert len(np.unique(found.partition)) == 5


@pytest.mark.parametrize("rule", ["lambda", "local"])
def test_without_a_cluster_that_can_say_nothing_is_split(rule: Any) -> None:
    found = refined(circle(0, 90, 45), [0, 0, 1], Refiner(threshold_rule=rule))
    assert found.threshold == float("inf") and not len(found.flagged)
    assert same(found.partition, [0, 0, 1])


# --- what always holds ---


@given(st.data())
def test_the_result_refines_and_never_splits_a_group(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 30))
    labels = st.lists(st.integers(0, 4), min_size=n, max_size=n)
    clusters, groups = data.draw(labels), data.draw(labels)
    rule = data.draw(st.sampled_from(["fixed", "lambda", "local"]))
    units = data.draw(st.sampled_from(["addresses", "inputs"]))
    X = np.random.default_rng(data.draw(st.integers(0, 9))).normal(size=(n, 3))
    refiner = Refiner(units, rule, 0.4 if rule == "fixed" else None)
    found: Refined = refined(X, clusters, refiner, groups)
    assert is_refinement(found.partition, clusters)
    if units == "inputs":
        together = [(c, g) for c, g in zip(clusters, groups, strict=True)]
        assert is_refinement(pd.factorize(pd.Series(together))[0], found.partition)
    parts = [len(np.unique(found.partition[np.asarray(clusters) == c])) for c in np.unique(clusters)]
    assert sum(parts) - len(parts) == len(found.flagged)  # every undone merge makes one part more


# --- refusals ---


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"units": "outputs"}, "units is 'outputs'"),
        ({"threshold_rule": "best"}, "threshold_rule is 'best'"),
        ({"method": "mean"}, "method is 'mean'"),
        ({"threshold": 0.3}, "finds its threshold itself"),
        ({"threshold_rule": "fixed", "threshold": float("nan")}, "threshold is nan"),
        ({"threshold_rule": "fixed", "threshold": 0.0}, "threshold is 0.0: .* greater than 0"),
        ({"threshold_rule": "fixed", "threshold": "0.3"}, "should be a valid number"),
    ],
)
def test_recipes_that_make_no_sense(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        Refiner(**fields)


def test_a_fixed_threshold_must_be_given() -> None:
    with pytest.raises(ParameterError, match="threshold is None"):
        refined(THREE_PAIRS, ONE, Refiner(threshold_rule="fixed"))


def test_a_recipe_can_be_compared_by_the_store() -> None:
    assert fingerprint(Refiner()) == fingerprint(Refiner()) != fingerprint(INPUTS)
