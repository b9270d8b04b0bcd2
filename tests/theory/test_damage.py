"""Growing damage: each step contains the one before, and agrees with what is computed graph by graph."""

from __future__ import annotations

import numpy as np
import pytest

from btcnb.errors import ParameterError
from btcnb.theory import Separation, ideal_adjacency, ideal_laplacian, lemma_margin, separation
from btcnb.theory.damage import Damage, DamagePath, bridge_ratios, condition_end, damage_path, last_separable
from btcnb.theory.examples import two_cliques_and_a_bridge

LABELS = np.repeat([0, 1, 2], 5)


@pytest.fixture
def damage():
    return Damage.random(LABELS, np.random.default_rng(0))


def test_flips_delete_inside_and_create_between(damage):
    ideal = ideal_adjacency(LABELS)
    assert damage.pairs == 15 * 14 // 2
    assert np.array_equal(damage.graph(0), ideal)
    assert np.array_equal(damage.graph(damage.pairs), (1 - ideal) - np.eye(15))
    changed = [np.triu(damage.graph(flips) != ideal) for flips in (10, 30)]
    assert [int(mask.sum()) for mask in changed] == [10, 30] and not (changed[0] & ~changed[1]).any()


def test_a_weight_flips_in_part(damage):
    A = damage.graph(20, weight=0.25)
    assert np.array_equal(A, A.T)
    assert np.allclose(A, 0.75 * ideal_adjacency(LABELS) + 0.25 * damage.graph(20))


@pytest.mark.parametrize(("flips", "weight"), [(-1, 1.0), (106, 1.0), (1, 1.5), (1, -0.1)])
def test_impossible_damage_is_refused(damage, flips, weight):
    with pytest.raises(ParameterError):
        damage.graph(flips, weight)


def test_the_path_agrees_with_single_graphs(damage):
    path = damage_path(damage, 40, [0.1, 0.6], normalised=True)
    for step, weight in enumerate((0.1, 0.6)):
        found = damage.separation(40, weight, normalised=True)
        assert (path.intra[step], path.inter[step]) == pytest.approx((found.intra_max, found.inter_min))
        margin = lemma_margin(damage.graph(40, weight), LABELS, normalised=True)
        assert path.distance[step] == pytest.approx(margin.distance)


def test_the_truth_ends_before_the_first_failure():
    ideal, steps = ideal_laplacian(LABELS), np.array([1.0, 2.0, 3.0, 4.0])
    one = np.ones(4)
    assert DamagePath(ideal, steps, np.array([0.5, 0.5, 2.0, 0.5]), one).truth == 2.0
    assert DamagePath(ideal, steps, 0.5 * one, one).truth == 4.0
    assert DamagePath(ideal, steps, 2 * one, one).truth == 0.0


def test_the_last_separable_step_ignores_later_luck():
    good, bad = Separation(0.1, 0.2), Separation(0.2, 0.1)
    assert last_separable({1: good, 5: good, 9: bad, 12: good}) == 5
    assert last_separable({1: bad, 2: good}) == 0 and last_separable({}) == 0


def test_a_condition_ends_where_both_sides_are_equal():
    ideal = ideal_laplacian(LABELS)
    assert condition_end(ideal, "sharp") == pytest.approx(5 * np.sqrt(1 / 5) / 2)
    assert condition_end(ideal, "printed") == pytest.approx(1 / (np.sqrt(10) * 4 * np.sqrt(6) * 0.8))
    assert condition_end(ideal_laplacian([0, 1, 2]), "printed") == np.inf


def test_the_bridge_is_the_graph_with_a_bridge():
    forms = ("printed", "proof", "sharp")
    for size, row in zip((5, 17), bridge_ratios((5, 17), forms), strict=True):
        A, labels = two_cliques_and_a_bridge(size)
        margins = [lemma_margin(A, labels, form=form) for form in forms]
        assert row == pytest.approx([margin.left / margin.right for margin in margins])


def test_separation_of_a_graph_without_damage_is_the_ideal_one(damage):
    assert damage.separation(0).inter_min == pytest.approx(np.sqrt(2 / 5))
    assert damage.separation(0).intra_max == pytest.approx(0, abs=1e-9)
    assert separation(np.eye(15), LABELS).separable is False
