"""Cut ratios as hand-worked fractions; the permutation test against a naive recount; groups against networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from small_graphs import two_cliques_and_a_bridge

from btcnb.errors import ParameterError
from btcnb.theory import band_subgraph, cantelli, cut_ratio, cut_ratio_test, predicted_z
from btcnb.theory.homophily import (
    CLASS,
    degree_matched_groups,
    degree_stand_ins,
    group_pieces,
    weak_components,
)

PATH = np.array([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])  # 0-1-2-3-4-5, node 6 alone


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
    both = [cut_ratio(*band_subgraph(edges, labels, band)) for band in ((3, 4), (2, 4), (2, 3), (7, 9))]
    assert both[:3] == pytest.approx([0, 1 / 4, 0]) and np.isnan(both[3])
    either = [cut_ratio(*band_subgraph(edges, labels, band, endpoints="either")) for band in ((3, 4), (2, 3))]
    assert either == pytest.approx([2 / 4, 2 / 3])


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


def test_fewer_than_two_permuted_nodes_are_refused():
    with pytest.raises(ParameterError, match="at least 2 nodes"):
        cut_ratio_test([[0], [1]], [0, 1], share=0.01)


def test_components_ignore_directions():
    assert weak_components([[0, 2], [1, 1]], 4).tolist() == [0, 0, 0, 1]
    many = np.array([[0] * 300, [1] * 300])  # parallel edges add up to an edge, whatever their number
    assert weak_components(many, 2).tolist() == [0, 0]


def test_pieces_of_a_path():
    """One group holds together, one is interrupted, one has a single node, and node 6 is in none."""
    table = group_pieces(PATH, [5, 5, 9, 5, 5, 7, -1])
    assert table.index.tolist() == [5]  # groups 9 and 7 have one node each
    assert table.loc[5, ["size", "pieces", "largest", "connected"]].tolist() == [4, 2, 0.5, False]
    table = group_pieces(PATH, [0, 0, 0, 1, 1, 2, 2])
    assert table["connected"].tolist() == [True, True, False]
    assert table["largest"].tolist() == [1, 1, 0.5]


@given(st.integers(2, 30), st.integers(0, 60), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_pieces_agree_with_networkx(nodes, edges, number, seed):
    rng = np.random.default_rng(seed)
    pairs, groups = rng.integers(0, nodes, (2, edges)), rng.integers(-1, number, nodes)
    graph = nx.Graph(pairs.T.tolist())
    graph.add_nodes_from(range(nodes))
    table = group_pieces(pairs, groups)
    for group in range(number):
        members = np.flatnonzero(groups == group)
        if len(members) < 2:
            assert group not in table.index
            continue
        parts = list(nx.connected_components(graph.subgraph(members.tolist())))
        assert table.loc[group, "pieces"] == len(parts)
        assert table.loc[group, "largest"] == pytest.approx(max(map(len, parts)) / len(members))


@given(st.lists(st.integers(0, 6), min_size=2, max_size=80), st.integers(0, 2**32 - 1))
def test_stand_ins_have_the_degree_where_enough_do(degrees, seed):
    degree = np.array(degrees)
    nodes = np.arange(len(degree))
    found = degree_stand_ins(degree, nodes, seed, least=4)
    assert (found != nodes).all()
    common = np.bincount(degree)[degree] >= 4
    assert (degree[found] == degree)[common].all()


def test_stand_ins_of_hubs_are_hubs_and_all_are_drawn():
    degree = np.append(np.ones(1000, dtype=int), np.arange(100, 110))
    found = degree_stand_ins(degree, np.full(2000, 1009), seed=0, least=10)
    assert set(degree[found]) == set(range(100, 109))  # nine other hubs, each drawn, itself never
    plain = degree_stand_ins(degree, np.full(20_000, 3), seed=0)
    assert set(plain) == set(range(1000)) - {3}
    assert np.bincount(plain)[:1000].max() < 60  # uniform: 20 expected


def test_dealt_groups_keep_sizes_and_degrees():
    rng = np.random.default_rng(5)
    degree = rng.geometric(0.1, 1000)
    groups = np.where(rng.random(1000) < 0.1, -1, rng.integers(0, 20, 1000))
    dealt = degree_matched_groups(degree, groups, seed=1)
    assert (np.bincount(dealt + 1) == np.bincount(groups + 1)).all()
    assert ((dealt < 0) == (groups < 0)).all()
    assert (dealt != groups).mean() > 0.7
    busy = degree > np.quantile(degree, 0.9)
    before, after = (np.bincount(g[busy & (g >= 0)], minlength=20) for g in (groups, dealt))
    assert abs(after - before).sum() <= 2 * CLASS  # only the block at the border may mix


def test_neighbours_in_a_ring_lose_their_connection():
    """Arcs of a ring are connected; arcs dealt anew, all degrees being two, are not."""
    nodes = np.arange(400)
    ring = np.array([nodes, (nodes + 1) % 400])
    arcs = nodes // 10
    assert group_pieces(ring, arcs)["connected"].all()
    assert not group_pieces(ring, degree_matched_groups(np.full(400, 2), arcs, 0))["connected"].any()
