"""Pieces of groups by hand, and controls that keep what they promise to keep."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from btcnb.errors import ParameterError
from btcnb.theory.connected import (
    CLASS,
    degree_matched_groups,
    degree_stand_ins,
    group_pieces,
    weak_components,
)

PATH = np.array([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])  # 0-1-2-3-4-5, node 6 alone


def test_components_ignore_directions() -> None:
    assert weak_components([[0, 2], [1, 1]], 4).tolist() == [0, 0, 0, 1]
    many = np.array([[0] * 300, [1] * 300])  # parallel edges add up to an edge, whatever their number
    assert weak_components(many, 2).tolist() == [0, 0]


def test_pieces_of_a_path() -> None:
    """One group holds together, one is interrupted, one has a single node, and node 6 is in none."""
    table = group_pieces(PATH, [5, 5, 9, 5, 5, 7, -1])
    assert table.index.tolist() == [5]  # groups 9 and 7 have one node each
    assert table.loc[5, ["size", "pieces", "largest", "connected"]].tolist() == [4, 2, 0.5, False]
    table = group_pieces(PATH, [0, 0, 0, 1, 1, 2, 2])
    assert table["connected"].tolist() == [True, True, False]
    assert table["largest"].tolist() == [1, 1, 0.5]


@given(st.integers(2, 30), st.integers(0, 60), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_pieces_agree_with_networkx(nodes: int, edges: int, number: int, seed: int) -> None:
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
def test_stand_ins_have_the_degree_where_enough_do(degrees: list[int], seed: int) -> None:
    degree = np.array(degrees)
    nodes = np.arange(len(degree))
    found = degree_stand_ins(degree, nodes, seed, least=4)
    assert (found != nodes).all()
    common = np.bincount(degree)[degree] >= 4
    assert (degree[found] == degree)[common].all()


def test_stand_ins_of_hubs_are_hubs_and_all_are_drawn() -> None:
    degree = np.append(np.ones(1000, dtype=int), np.arange(100, 110))
    found = degree_stand_ins(degree, np.full(2000, 1009), seed=0, least=10)
    assert set(degree[found]) == set(range(100, 109))  # nine other hubs, each drawn, itself never
    plain = degree_stand_ins(degree, np.full(20_000, 3), seed=0)
    assert set(plain) == set(range(1000)) - {3}
    assert np.bincount(plain)[:1000].max() < 60  # uniform: 20 expected


def test_stand_ins_refuse_what_they_cannot_do() -> None:
    with pytest.raises(ParameterError, match="no node has a stand-in"):
        degree_stand_ins([3], [0], 0)
    with pytest.raises(ParameterError, match="between 0 and 1"):
        degree_stand_ins([3, 3], [2], 0)


def test_dealt_groups_keep_sizes_and_degrees() -> None:
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
    with pytest.raises(ParameterError, match="one per node"):
        degree_matched_groups(degree[1:], groups, 0)


def test_neighbours_in_a_ring_lose_their_connection() -> None:
    """Arcs of a ring are connected; arcs dealt anew, all degrees being two, are not."""
    nodes = np.arange(400)
    ring = np.array([nodes, (nodes + 1) % 400])
    arcs = nodes // 10
    assert group_pieces(ring, arcs)["connected"].all()
    assert not group_pieces(ring, degree_matched_groups(np.full(400, 2), arcs, 0))["connected"].any()
