"""Cut ratios as hand-worked fractions; the permutation test against a naive recount."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from btcnb.errors import DataError, ParameterError
from btcnb.theory import band_subgraph, cantelli, cut_ratio, cut_ratio_by_size, cut_ratio_test, predicted_z
from btcnb.theory.examples import two_cliques_and_a_bridge


def edges_of(A):
    return np.stack(np.nonzero(np.triu(A)))


def random_graph(n, number, clusters, seed):
    rng = np.random.default_rng(seed)
    return rng.integers(0, n, (2, number)), rng.integers(0, clusters, n)


def test_two_triangles_and_a_bridge_cut_one_edge_in_seven():
    A, labels = two_cliques_and_a_bridge(3)
    assert cut_ratio(edges_of(A), labels) == pytest.approx(1 / 7)
    assert cut_ratio(edges_of(A), np.zeros(6)) == 0 and cut_ratio(edges_of(A), np.arange(6)) == 1


def test_path_and_star():
    assert cut_ratio([[0, 1, 2], [1, 2, 3]], [5, 5, 8, 8]) == pytest.approx(1 / 3)
    assert cut_ratio([[0, 0, 0, 0], [1, 2, 3, 4]], [1, 1, 2, 2, 2]) == pytest.approx(3 / 4)


def test_self_loops_are_edges_that_are_never_cut():
    assert cut_ratio([[0, 0], [0, 1]], [0, 1]) == 0.5


def test_bands_by_hand():
    """Clusters of 3 (nodes 0–2), 2 (nodes 3, 4) and 1 (node 5)."""
    edges = np.array([[0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 5, 5]])
    labels = np.array([0, 0, 0, 1, 1, 2])
    assert cut_ratio_by_size(edges, labels, ((3, 4), (2, 4), (7, 9)))[(3, 4)] == 0
    assert cut_ratio_by_size(edges, labels, ((2, 4),))[(2, 4)] == pytest.approx(1 / 4)
    assert np.isnan(cut_ratio_by_size(edges, labels, ((7, 9),))[(7, 9)])
    either = cut_ratio_by_size(edges, labels, ((3, 4), (2, 3)), endpoints="either")
    assert either == {(3, 4): pytest.approx(2 / 4), (2, 3): pytest.approx(2 / 3)}
    assert cut_ratio(edges, labels, (2, 3), endpoints="either") == pytest.approx(2 / 3)
    assert cut_ratio(edges, labels, (2, 3)) == 0 and np.isnan(cut_ratio(edges, labels, (7, 9)))


def test_a_band_subgraph_keeps_its_isolated_nodes():
    edges, labels = band_subgraph([[0], [1]], [0, 0, 0, 1], (2, 9))
    assert edges.tolist() == [[0], [1]] and labels.tolist() == [0, 0, 0]


@settings(deadline=None, max_examples=40)
@given(st.integers(4, 40), st.integers(1, 120), st.integers(1, 6), st.floats(0.2, 1), st.integers(0, 9999))
def test_every_trial_is_the_cut_ratio_of_permuted_labels(n, number, clusters, share, seed):
    """Replay the same random draws and recount all edges: multi-edges, self-loops and full permutations included."""
    edges, labels = random_graph(n, number, clusters, seed)
    assume(round(share * n) >= 2)
    found = cut_ratio_test(edges, labels, share=share, trials=5, seed=seed)
    codes = np.unique(labels, return_inverse=True)[1]
    rng = np.random.default_rng(seed)
    for trial in range(5):
        nodes = rng.choice(n, round(share * n), replace=False, shuffle=False)
        permuted = codes.copy()
        permuted[nodes] = rng.permutation(codes[nodes])
        assert found.permuted[trial] == pytest.approx(cut_ratio(edges, permuted))
    assert found.observed == pytest.approx(cut_ratio(edges, labels))


def test_same_seed_same_answer():
    edges, labels = random_graph(500, 3000, 20, 0)
    first, second = (cut_ratio_test(edges, labels, seed=4) for _ in range(2))
    np.testing.assert_array_equal(first.permuted, second.permuted)
    assert not np.array_equal(first.permuted, cut_ratio_test(edges, labels, seed=5).permuted)


def test_random_labels_are_not_significant_and_cliques_are():
    edges, labels = random_graph(2000, 20_000, 40, 1)
    noise = cut_ratio_test(edges, labels, share=0.05)
    assert 0.2 < noise.p_value < 0.8 and abs(noise.z) < 1.5
    clusters = np.arange(2000) // 10
    inside = np.stack([np.arange(2000), (np.arange(2000) // 10) * 10 + (np.arange(2000) + 1) % 10])
    strong = cut_ratio_test(np.concatenate([inside, edges], axis=1), clusters)
    assert strong.p_value == 0 and strong.p_value_valid == pytest.approx(1 / 301) and strong.z < -3


def test_the_z_score_is_predicted_by_the_spread_of_internal_degrees():
    """Regular internal degrees give a large |z|, a few hubs a small one, at the same cut ratio and p = 0."""
    n = 20_000
    clusters = np.arange(n) // 100
    rng = np.random.default_rng(0)
    centre = (np.arange(n) // 100) * 100
    noise = rng.integers(0, n, (2, 2 * n))
    ring = np.stack([np.arange(n), centre + (np.arange(n) + 1) % 100])
    star = np.stack([centre, np.arange(n)])[:, np.arange(n) % 100 > 0]
    by_ring, by_star = (np.concatenate([inner, noise], axis=1) for inner in (ring, star))
    found = {"ring": cut_ratio_test(by_ring, clusters), "star": cut_ratio_test(by_star, clusters)}
    assert found["ring"].p_value == found["star"].p_value == 0
    assert found["ring"].observed == pytest.approx(found["star"].observed, abs=0.01)
    assert found["ring"].z < 5 * found["star"].z < 0
    assert found["star"].z == pytest.approx(predicted_z(by_star, clusters), rel=0.15)


def test_a_z_of_minus_one_with_p_zero_exists():
    """One hub carries the internal edges of the band: permuting never helps, but how much it hurts hangs on one
    node."""
    n = 3000
    clusters = np.arange(n) // 100
    ring = np.stack([np.arange(n), (np.arange(n) // 100) * 100 + (np.arange(n) + 1) % 100])
    hub = np.stack([np.zeros(99 * 40, dtype=int), 1 + np.arange(99 * 40) % 99])
    found = cut_ratio_test(np.concatenate([ring, hub], axis=1), clusters, share=0.01, trials=300, seed=0)
    assert found.p_value < 0.01 and -2 < found.z < -0.3 and found.skewness > 1


@settings(deadline=None)
@given(st.lists(st.integers(0, 20), min_size=2, max_size=60), st.integers(0, 20))
def test_cantelli_bounds_every_sample(values, observed):
    """The only exact link between z and p: the share at or below a point z < 0 is at most 1 / (1 + z²)."""
    sample = np.array(values, dtype=float)
    assume(sample.std() > 0 and observed < sample.mean())
    z = (observed - sample.mean()) / sample.std()
    assert np.mean(sample <= observed) <= cantelli(z) + 1e-12


def test_mistakes_are_named():
    with pytest.raises(DataError, match="no edge"):
        cut_ratio(np.empty((2, 0), dtype=int), [0, 1])
    with pytest.raises(ParameterError, match="at least 2 nodes"):
        cut_ratio_test([[0], [1]], [0, 1], share=0.01)
    with pytest.raises(ParameterError, match="trials"):
        cut_ratio_test([[0], [1]], [0, 1], share=1.0, trials=1)
    with pytest.raises(ParameterError, match="endpoints"):
        band_subgraph([[0], [1]], [0, 1], (1, 2), endpoints="one")
