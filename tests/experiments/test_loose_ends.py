"""Claims that no chapter is about: each measurement on cases that one can work out by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from btcnb.data import Source, load_graph
from btcnb.errors import DataError
from btcnb.experiments.loose_ends import (
    HEURISTICS,
    HYBRID,
    Shares,
    between_share,
    community_exponents,
    dirichlet_two_ways,
    distance_exponents,
    embedding_exponent,
    evaluation_shares,
    exponent,
    label_gain,
    largest_tree,
    lemma_sides,
    on_and_off_the_sphere,
    printed_work,
    work_per_seed,
)


def test_exponents_of_powers() -> None:
    assert exponent([1, 2, 4], [3.0, 12.0, 48.0]) == pytest.approx(2)
    assert exponent([10, 1000], [7.0, 7.0]) == pytest.approx(0)


def test_on_a_sphere_both_distances_order_pairs_alike_and_off_it_they_do_not() -> None:
    assert on_and_off_the_sphere(sets=30) == (30, 30, True, False)


def test_the_energy_needs_the_spectral_coefficients() -> None:
    found = dirichlet_two_ways()
    assert found.energy == pytest.approx(found.spectral) and found.rows != pytest.approx(found.energy, rel=0.01)


def test_the_share_between_clusters_by_hand() -> None:
    # rows 0, 2 | 4, 6 around the mean 3: total 20, of which 2·4 + 2·4 lie between; the node alone is left out
    rows = np.array([[0.0], [2.0], [4.0], [6.0], [99.0]])
    labels = np.array([0, 0, 1, 1, 2])
    assert between_share(rows, labels) == pytest.approx(16 / 20)
    assert between_share(np.array([[1.0], [1.0], [5.0], [5.0]]), labels[:4]) == pytest.approx(1)


def test_times_of_two_sizes_give_the_exponent() -> None:
    small = pd.DataFrame({"row": ["gat", "gat", "mlp"], "nodes": [100, 100, 100], "seconds.embed": [1.0, 1.0, 50.0]})
    large = pd.DataFrame({"row": ["gat"], "nodes": [1000], "seconds.embed": [10.0]})
    assert embedding_exponent(small, large) == pytest.approx(1)
    with pytest.raises(DataError, match="one size only"):
        embedding_exponent(small, small)


def test_communities_by_implementation() -> None:
    entries = [
        {"stage": "coarse", "method": name, "edges": edges, "seconds": seconds}
        for name, edges, seconds in (("a", 10, 1.0), ("a", 100, 10.0), ("b", 10, 1.0), ("b", 100, 100.0), ("c", 9, 1.0))
    ]
    found = community_exponents([*entries, {"stage": "total", "method": "a", "edges": 10, "seconds": 77.0}])
    assert found == {"a": pytest.approx(1), "b": pytest.approx(2)}


def test_sampled_work_stays_below_what_is_printed() -> None:
    source, neighbours = Source.of(size="tiny"), (1, 2, 4)
    counted = work_per_seed(source, neighbours, d=8, seeds=64)
    assert counted == sorted(counted), "more neighbours, more work"
    most = [2 * (k + k * k) * 8 + (2 + k) * 64 for k in neighbours]  # every node with k neighbours, none met twice
    assert all(0 < done <= bound for done, bound in zip(counted, most, strict=True))
    assert printed_work((2,), d=8) == [2 * 8 * 10]


def test_distances_are_counted() -> None:
    found = distance_exponents(points=(200, 400, 800), part=50)
    assert found.whole == pytest.approx(2, abs=0.02)
    assert found.parts == pytest.approx(1, abs=0.001) and found.size == pytest.approx(1, abs=0.03)


def test_where_the_time_of_an_evaluation_goes() -> None:
    entry = {"nodes": 9, "seconds_coarse": 1.0, "seconds_linkage": 4.0, "seconds_cut": 3.0, "seconds_scores": 0.0}
    found = evaluation_shares(
        [{**entry, "stage": "total", "seconds": 99.0}, {**entry, "stage": "embed", "seconds": 2.0}]
    )
    assert isinstance(found, Shares) and found.longest == "distances and trees"
    assert found.share("embedding") == pytest.approx(0.2) and found.nodes == 9


def test_the_largest_tree_within_memory() -> None:
    trees = [
        {"task": "average linkage", "stage": stage, "n": n, "peak_mb": peak}
        for stage, n, peak in (("ours", 10, 5.0), ("ours", 50, 90.0), ("pdist + SciPy", 40, 5.0))
    ]
    assert largest_tree([*trees, {"task": "agreement", "stage": "ours", "n": 70}], 10.0) == 10
    assert largest_tree(trees, 100.0) == 50 and largest_tree(trees, 1.0) == 0
    whole = {"task": "whole tree", "stage": "ours", "n": 100, "rows": 80, "peak_mb": 9.0}
    assert largest_tree([*trees, whole], 10.0) == 80, "asked for 100, there were 80"


def test_the_gain_by_labels_is_paired_by_world() -> None:
    frame = pd.DataFrame({"row": "trained 1", "state": "done", HYBRID: [61.0, 62.0, 63.0], HEURISTICS: 60.0})
    found = label_gain(frame)
    assert found is not None and found.mean == pytest.approx(2) and found.count == 3
    assert label_gain(frame.iloc[:2]) is None and label_gain(None) is None
    assert label_gain(frame.drop(columns=HYBRID)) is None


def test_the_lemma_is_far_from_holding_on_a_simulated_graph() -> None:
    source = Source.of(size="tiny")
    left, right = lemma_sides(source)
    largest = int(np.bincount(load_graph(source, "test").labels()).max())
    assert right == pytest.approx(1 / np.sqrt(2 * largest)) and left > right
