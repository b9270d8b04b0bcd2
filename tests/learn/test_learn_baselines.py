"""Baselines: communities on graphs with an obvious answer, and objectives that beat chance."""

from __future__ import annotations

from dataclasses import replace

import igraph
import networkx as nx
import numpy as np
import pytest
from planted import address_graph, planted

from btcnb.errors import DataError, ParameterError
from btcnb.learn import TrainConfig, baseline_config, communities, prepare_arrays, train, tune_resolution
from btcnb.learn import communities as _function
from btcnb.learn.communities import _igraph_leiden, _igraph_louvain, _networkx_louvain, undirected

SMALL = TrainConfig(heads=2, hidden=8, output=8, anchors=64, fanout=(4, 3), steps_per_epoch=5)


def ring_of_cliques(cliques: int, size: int) -> igraph.Graph:
    return igraph.Graph.from_networkx(nx.ring_of_cliques(cliques, size))


@pytest.mark.parametrize("method", ["louvain", "leiden"])
def test_a_ring_of_cliques_falls_into_its_cliques(method):
    found = communities(ring_of_cliques(6, 5), method, seed=1)
    assert found.dtype == np.int64 and found.shape == (30,)
    assert len(np.unique(found)) == 6
    assert all(len(set(found[i : i + 5])) == 1 for i in range(0, 30, 5))


@pytest.mark.parametrize("search", [_networkx_louvain, _igraph_louvain, _igraph_leiden])
def test_all_engines_repeat_themselves_and_reach_the_same_modularity(search):
    graph = undirected(address_graph())
    first, second = search(graph, 1.0, 3), search(graph, 1.0, 3)
    assert np.array_equal(first, second)
    other = communities(graph, "leiden", 1.0, 3)
    assert graph.modularity(first.tolist()) == pytest.approx(graph.modularity(other.tolist()), abs=0.03)


def test_higher_resolution_gives_smaller_communities():
    graph = undirected(address_graph(clusters=10))
    for method in ("louvain", "leiden"):
        counts = [len(np.unique(communities(graph, method, r, seed=0))) for r in (0.5, 3.0)]
        assert counts[0] < counts[1]


def test_the_grid_is_searched_for_modularity():
    graph = ring_of_cliques(6, 5)
    best, table = tune_resolution(graph, "leiden", seed=0)
    assert table["resolution"].tolist() == [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
    assert table.loc[table["resolution"] == best, "modularity"].item() == table["modularity"].max()


def test_the_undirected_graph_has_each_pair_once():
    graph = address_graph()
    simple = undirected(graph)
    assert simple.vcount() == graph.num_nodes and simple.is_simple()
    pairs = {tuple(sorted(pair)) for pair in graph.edge_index().T.tolist() if pair[0] != pair[1]}
    assert simple.ecount() == len(pairs)


@pytest.mark.parametrize("name", ["gae", "dgi"])
def test_unsupervised_objectives_beat_a_coin(name):
    config = replace(baseline_config(name, SMALL), learning_rate=1e-2)
    assert config.epochs == 20
    run = train(config, planted(seed=1), valid=planted(seed=2), progress=False)
    assert run.history["valid_loss"].min() < min(0.67, run.history["valid_loss"].iloc[0])  # a coin scores log 2 = 0.693


def test_an_untrained_encoder_is_one_of_zero_epochs():
    run = train(baseline_config("untrained", SMALL), planted(), progress=False)
    assert len(run.history) == 0 and run.record["epochs_run"] == 0
    assert run.history.columns[0] == "epoch"


def test_baselines_keep_shorter_runs_short():
    assert baseline_config("gae", replace(SMALL, epochs=3)).epochs == 3


def test_bad_requests_are_named():
    with pytest.raises(ParameterError, match="baseline"):
        baseline_config("node2vec")
    with pytest.raises(ParameterError, match="method"):
        _function(ring_of_cliques(3, 3), "spectral")
    with pytest.raises(ParameterError, match="resolution"):
        communities(ring_of_cliques(3, 3), resolution=0.0)
    empty = prepare_arrays(np.ones((4, 2)), np.zeros((2, 0)), [0, 0, 1, 1])
    with pytest.raises(DataError, match="no edge"):
        train(baseline_config("gae", SMALL), empty, progress=False)
