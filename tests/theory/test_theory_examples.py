"""Growing damage: each step contains the one before, and agrees with single graphs; random separated points."""

from __future__ import annotations

import numpy as np
import pytest

from btcnb.theory import ideal_adjacency, lemma_margin, separation
from btcnb.theory.examples import Damage, damage_path, perfect_cut_trials

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


def test_the_path_agrees_with_single_graphs(damage):
    path = damage_path(damage, 40, [0.1, 0.6], normalised=True)
    for step, weight in enumerate((0.1, 0.6)):
        found = damage.separation(40, weight, normalised=True)
        assert (path["intra"][step], path["inter"][step]) == pytest.approx((found.intra_max, found.inter_min))
        margin = lemma_margin(damage.graph(40, weight), LABELS, normalised=True)
        assert path["distance"][step] == pytest.approx(margin.distance)


def test_separation_of_a_graph_without_damage_is_the_ideal_one(damage):
    assert damage.separation(0).inter_min == pytest.approx(np.sqrt(2 / 5))
    assert damage.separation(0).intra_max == pytest.approx(0, abs=1e-9)
    assert separation(np.eye(15), LABELS).separable is False


def test_three_linkages_never_fail_and_a_fourth_does():
    methods = ["single", "average", "complete", "ward"]
    separated, perfect = perfect_cut_trials(60, methods, np.random.default_rng(1))
    assert 50 < separated <= 60
    assert all(perfect[method] == separated for method in methods[:3])
    assert perfect["ward"] < separated  # its heights are no distances, so a cut inside the gap is no cut of it
