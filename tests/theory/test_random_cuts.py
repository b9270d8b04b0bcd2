"""Random separated sets: what counts as the same partition, and that the trials can tell a linkage that fails."""

from __future__ import annotations

import numpy as np

from btcnb.theory.random_cuts import perfect_cut_trials, same_partition


def test_names_do_not_matter_and_splits_do():
    assert same_partition([1, 1, 2, 3], [7, 7, 0, 1])
    assert not same_partition([1, 1, 2, 2], [1, 1, 1, 1])
    assert not same_partition([1, 1, 1, 1], [1, 1, 2, 2])
    assert not same_partition([1, 1, 2, 2], [1, 2, 1, 2])


def test_three_linkages_never_fail_and_a_fourth_does():
    methods = ["single", "average", "complete", "ward"]
    separated, perfect = perfect_cut_trials(60, methods, np.random.default_rng(1))
    assert 50 < separated <= 60
    assert all(perfect[method] == separated for method in methods[:3])
    assert perfect["ward"] < separated  # its heights are no distances, so a cut inside the gap is no cut of it


def test_no_trials_find_nothing():
    assert perfect_cut_trials(0, ["single"], np.random.default_rng(0)) == (0, {"single": 0})
