"""Sampling neighbours: what is drawn, how often, and what PyG makes of it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch_geometric.typing
from hypothesis import given, settings
from hypothesis import strategies as st
from planted import planted
from scipy.stats import chi2, chisquare
from torch_geometric.loader import NodeLoader
from torch_geometric.sampler import BaseSampler, NodeSamplerInput

from btcnb.errors import DataError, ParameterError
from btcnb.learn import NeighbourSampler, prepare_arrays
from btcnb.learn import sampler as sampler_module
from btcnb.learn.graphs import disjoint_union
from btcnb.learn.sampler import derived_seed, draw_batch, neighbour_sampler


def star(leaves: int) -> object:
    """Node 0 receives from nodes 1..leaves."""
    edges = np.stack([np.arange(1, leaves + 1), np.zeros(leaves, dtype=int)])
    return prepare_arrays(np.ones((leaves + 1, 1)), edges, symmetrise=False)


def test_edges_are_sorted_merged_and_symmetrised():
    edges = [[0, 1, 1, 2, 2], [1, 0, 2, 2, 1]]  # 0→1, 1→0, 1→2, a self-loop, 2→1
    graph = prepare_arrays(np.ones((3, 1)), edges, edge_attr=[[1.0], [3.0], [5.0], [9.0], [7.0]])
    assert graph.indptr.tolist() == [0, 1, 3, 4]
    assert graph.source.tolist() == [1, 0, 2, 1]
    assert graph.edge_attr.ravel().tolist() == [2.0, 2.0, 6.0, 6.0]  # both directions carry the mean of the two
    directed = prepare_arrays(np.ones((3, 1)), edges, symmetrise=False)
    assert directed.edge_index().tolist() == [[1, 0, 2, 1], [0, 1, 1, 2]]


@given(st.integers(1, 12), st.integers(1, 8), st.integers(0, 2**40))
@settings(max_examples=60, deadline=None)
def test_draws_are_distinct_neighbours_and_as_many_as_there_are(leaves, fanout, seed):
    out = NeighbourSampler(star(leaves), (fanout,)).sample(np.array([0]), seed)
    drawn = out.node[out.row].tolist()
    assert len(drawn) == len(set(drawn)) == min(leaves, fanout)
    assert set(drawn) <= set(range(1, leaves + 1))


@pytest.mark.parametrize(("leaves", "fanout"), [(7, 3), (20, 15), (6, 5)])
def test_every_neighbour_is_drawn_equally_often(leaves, fanout):
    sampler = NeighbourSampler(star(leaves), (fanout,))
    counts = np.zeros(leaves)
    for seed in range(4000):
        out = sampler.sample(np.array([0]), derived_seed(1, seed))
        counts[out.node[out.row].numpy() - 1] += 1
    # draws without replacement vary less than independent ones, by (leaves − fanout) / (leaves − 1)
    statistic = ((counts - counts.mean()) ** 2 / counts.mean()).sum() * (leaves - 1) / (leaves - fanout)
    assert 1e-3 < chi2.sf(statistic, leaves - 1) < 1 - 1e-6


def test_every_pair_of_neighbours_is_drawn_equally_often():
    sampler = NeighbourSampler(star(5), (2,))
    pairs: dict[tuple[int, ...], int] = {}
    for seed in range(5000):
        out = sampler.sample(np.array([0]), derived_seed(2, seed))
        key = tuple(sorted(out.node[out.row].tolist()))
        pairs[key] = pairs.get(key, 0) + 1
    assert len(pairs) == 10
    assert chisquare(list(pairs.values())).pvalue > 1e-3


def test_the_same_seed_gives_the_same_neighbourhood_whatever_else_is_in_the_batch():
    graph = planted()
    sampler = NeighbourSampler(graph, (3, 2))

    def drawn(seeds: list[int], seed: int) -> set[int]:
        out = sampler.sample(np.array(seeds), seed)
        return set(out.edge[out.col == 0].tolist())

    assert drawn([7], 5) == drawn([7, 3, 90], 5)
    assert any(drawn([7], 5) != drawn([7], other) for other in range(6, 12))
    again = NeighbourSampler(graph, (3, 2)).sample(np.array([7, 3]), 5)
    first = sampler.sample(np.array([7, 3]), 5)
    for name in ("node", "row", "col", "edge"):
        assert torch.equal(getattr(again, name), getattr(first, name))


def test_output_keeps_pygs_promises():
    graph = planted()
    seeds = np.array([11, 4, 77])
    out = NeighbourSampler(graph, (4, 3)).sample(seeds, 0)
    assert out.node[:3].tolist() == seeds.tolist()
    assert len(set(out.node.tolist())) == len(out.node) == sum(out.num_sampled_nodes)
    assert sum(out.num_sampled_edges) == len(out.row)
    assert len(out.num_sampled_nodes) == 3 and len(out.num_sampled_edges) == 2
    assert (out.col.diff() >= 0).all()
    edges = graph.edge_index()
    assert torch.equal(edges[0, out.edge], out.node[out.row])
    assert torch.equal(edges[1, out.edge], out.node[out.col])
    within = out.num_sampled_nodes[0] + out.num_sampled_nodes[1]
    assert int(out.col.max()) < within  # nodes of the last hop receive nothing


def test_repeated_seeds_are_taken_once():
    sampler = NeighbourSampler(planted(), (4, 3))
    asked = NodeSamplerInput(input_id=torch.tensor([0, 1, 2, 3]), node=torch.tensor([9, 5, 9, 5]))
    out = sampler.sample_from_nodes(asked)
    assert out.num_sampled_nodes[0] == 2 and out.node[:2].tolist() == [9, 5]
    assert out.metadata[0].tolist() == [0, 1]


def test_node_loader_walks_the_graph_and_repeats_itself():
    graph = planted(edge_features=True)
    data = graph.to_data()

    def epoch() -> list[torch.Tensor]:
        loader = NodeLoader(data, NeighbourSampler(graph, (4, 3), seed=3), batch_size=50)
        batches = list(loader)
        seen = torch.cat([batch.n_id[: batch.batch_size] for batch in batches])
        assert torch.equal(seen, torch.arange(graph.num_nodes))
        for batch in batches:
            assert torch.equal(batch.x, graph.x[batch.n_id])
            assert torch.equal(batch.edge_attr, graph.edge_attr[batch.e_id])
        return [batch.n_id for batch in batches]

    for first, second in zip(epoch(), epoch(), strict=True):
        assert torch.equal(first, second)


def test_pyg_lib_is_used_where_it_is(monkeypatch):
    graph = planted()
    made = []

    class Recorder(BaseSampler):
        def __init__(self, data, **options):
            made.append((data.num_edges, options))

        def sample_from_nodes(self, index):
            return NeighbourSampler(graph, (4, 3)).sample(index.node.numpy(), int(torch.randint(1 << 40, ())))

        def sample_from_edges(self, index, neg_sampling=None):
            raise NotImplementedError

    monkeypatch.setattr(sampler_module, "PygNeighborSampler", Recorder)
    monkeypatch.setattr(torch_geometric.typing, "WITH_PYG_LIB", False)
    assert isinstance(neighbour_sampler(graph), NeighbourSampler)
    with pytest.raises(ParameterError, match="pyg-lib"):
        neighbour_sampler(graph, backend="pyg-lib")
    monkeypatch.setattr(torch_geometric.typing, "WITH_PYG_LIB", True)
    assert isinstance(neighbour_sampler(graph, backend="numba"), NeighbourSampler)
    chosen = neighbour_sampler(graph, (4, 3))
    assert isinstance(chosen, Recorder)
    assert made == [(graph.num_edges, {"num_neighbors": [4, 3], "is_sorted": True})]
    before = torch.random.get_rng_state()
    first, second = (draw_batch(chosen, graph, np.array([3, 1]), seed=8) for _ in range(2))
    assert torch.equal(first.node, second.node)  # seeded, and torch's generator is left alone
    assert torch.equal(before, torch.random.get_rng_state())


def test_a_union_keeps_graphs_apart():
    graphs = [planted(clusters=3, size=4, seed=seed, edge_features=True) for seed in (1, 2, 3)]
    union, first = disjoint_union(graphs)
    assert first.tolist() == [0, 12, 24] and union.num_nodes == 36
    for graph, start in zip(graphs, first, strict=True):
        rows = slice(int(start), int(start) + 12)
        assert torch.equal(union.x[rows], graph.x)
        begin, end = union.indptr[start], union.indptr[start + 12]
        assert np.array_equal(union.source[begin:end] - start, graph.source)
        assert torch.equal(union.edge_attr[begin:end], graph.edge_attr)
    assert len(np.unique(union.labels)) == sum(len(np.unique(graph.labels)) for graph in graphs)


@pytest.mark.parametrize(
    ("x", "edges", "labels", "message"),
    [
        (np.zeros((0, 3)), np.zeros((2, 0)), None, "holds no rows"),
        ([[1.0], [np.nan]], [[0], [1]], None, "row 1, column 0 is nan"),
        ([[1.0], [np.inf]], [[0], [1]], None, "row 1, column 0 is inf"),
        ([[1.0], [2.0]], [[0], [2]], None, "has no features"),
        ([[1.0], [2.0]], [[0], [1]], [0], "one label per node"),
    ],
)
def test_bad_arrays_are_named(x, edges, labels, message):
    with pytest.raises(DataError, match=message):
        prepare_arrays(x, edges, labels)


def test_bad_requests_are_named():
    with pytest.raises(ParameterError, match="fanout"):
        NeighbourSampler(planted(), ())
    with pytest.raises(ParameterError, match="outside"):
        NeighbourSampler(planted()).sample(np.array([10_000]), 0)
    with pytest.raises(ParameterError, match="backend"):
        neighbour_sampler(planted(), backend="magic")
