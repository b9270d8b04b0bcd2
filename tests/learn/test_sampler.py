"""What a step draws: neighbours uniformly, as PyG's loaders take them, and tuples from P_α against its formula."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from planted import planted
from scipy.stats import chi2, chisquare
from torch_geometric.loader import NodeLoader
from torch_geometric.sampler import BaseSampler, NodeSamplerInput

from btcnb.errors import DataError
from btcnb.learn import BatchSampler, NeighbourSampler, TupleSampler, disjoint_union, prepare_arrays
from btcnb.learn.pyg import to_data
from btcnb.learn.sampler import derived_seed


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
    out = BatchSampler(star(leaves), (fanout,)).draw(np.array([0]), seed)
    drawn = out.node[out.edge_index[0]].tolist()
    assert len(drawn) == len(set(drawn)) == min(leaves, fanout)
    assert set(drawn) <= set(range(1, leaves + 1))


@pytest.mark.parametrize(("leaves", "fanout"), [(7, 3), (20, 15), (6, 5)])
def test_every_neighbour_is_drawn_equally_often(leaves, fanout):
    sampler = BatchSampler(star(leaves), (fanout,))
    counts = np.zeros(leaves)
    for seed in range(4000):
        out = sampler.draw(np.array([0]), derived_seed(1, seed))
        counts[out.node[out.edge_index[0]].numpy() - 1] += 1
    # draws without replacement vary less than independent ones, by (leaves − fanout) / (leaves − 1)
    statistic = ((counts - counts.mean()) ** 2 / counts.mean()).sum() * (leaves - 1) / (leaves - fanout)
    assert 1e-3 < chi2.sf(statistic, leaves - 1) < 1 - 1e-6


def test_every_pair_of_neighbours_is_drawn_equally_often():
    sampler = BatchSampler(star(5), (2,))
    pairs: dict[tuple[int, ...], int] = {}
    for seed in range(5000):
        out = sampler.draw(np.array([0]), derived_seed(2, seed))
        key = tuple(sorted(out.node[out.edge_index[0]].tolist()))
        pairs[key] = pairs.get(key, 0) + 1
    assert len(pairs) == 10
    assert chisquare(list(pairs.values())).pvalue > 1e-3


def test_the_same_seed_gives_the_same_neighbourhood_whatever_else_is_in_the_batch():
    graph = planted()
    sampler = BatchSampler(graph, (3, 2))

    def drawn(seeds: list[int], seed: int) -> set[int]:
        _, _, target, edge, _, _ = sampler.neighbours(np.array(seeds), seed)
        return set(edge[target == 0].tolist())

    assert drawn([7], 5) == drawn([7, 3, 90], 5)
    assert any(drawn([7], 5) != drawn([7], other) for other in range(6, 12))
    again = BatchSampler(graph, (3, 2)).neighbours(np.array([7, 3]), 5)
    for one, other in zip(again, sampler.neighbours(np.array([7, 3]), 5), strict=True):
        assert np.array_equal(one, other)


def test_output_keeps_pygs_promises():
    graph = planted()
    seeds = np.array([11, 4, 77])
    out = NeighbourSampler(graph, (4, 3)).sample_from_nodes(NodeSamplerInput(None, torch.from_numpy(seeds)))
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
    assert isinstance(sampler, BaseSampler)
    asked = NodeSamplerInput(input_id=torch.tensor([0, 1, 2, 3]), node=torch.tensor([9, 5, 9, 5]))
    out = sampler.sample_from_nodes(asked)
    assert out.num_sampled_nodes[0] == 2 and out.node[:2].tolist() == [9, 5]
    assert out.metadata[0].tolist() == [0, 1]


def test_node_loader_walks_the_graph_and_repeats_itself():
    graph = planted(edge_features=True)
    data = to_data(graph)

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


def drawn_by_workers(epochs: int) -> list[list[int]]:
    """Neighbours drawn for node 0 by each of two worker processes, epoch after epoch."""
    graph = star(40)
    sampler = NeighbourSampler(graph, (5,), seed=3)
    loader = NodeLoader(to_data(graph), sampler, input_nodes=torch.tensor([0, 0]), batch_size=1, num_workers=2)
    torch.manual_seed(7)  # the loader's workers are seeded by torch's generator
    return [sorted(batch.n_id[1:].tolist()) for _ in range(epochs) for batch in loader]


def test_workers_draw_differently_and_repeatably():
    first = drawn_by_workers(epochs=2)
    assert len({tuple(drawn) for drawn in first}) == 4
    assert drawn_by_workers(epochs=2) == first


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
        (np.zeros((0, 3)), np.zeros((2, 0)), None, "features: there are none"),
        ([[1.0], [np.nan]], [[0], [1]], None, "is not finite"),
        ([[1.0], [np.inf]], [[0], [1]], None, "is not finite"),
        ([[1.0], [2.0]], [[0], [-1]], None, "has no features"),
        ([[1.0], [2.0]], [[0], [2]], None, "has no features"),
        ([[1.0], [2.0]], [[0], [1]], [0], "one label per node"),
    ],
)
def test_bad_arrays_are_named(x, edges, labels, message):
    with pytest.raises(DataError, match=message):
        prepare_arrays(x, edges, labels)


LABELS = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 3])  # clusters of 6, 3, 2 and 1


def test_anchor_probabilities_by_hand():
    """α = 1/2 over the three clusters that have a pair: half of (6, 3, 2)/11, half of 1/3 each."""
    expected = [Fraction(6, 22) + Fraction(1, 6), Fraction(3, 22) + Fraction(1, 6), Fraction(2, 22) + Fraction(1, 6), 0]
    np.testing.assert_allclose(TupleSampler(LABELS, 0.5).anchor_probabilities(), [float(p) for p in expected])


def test_negative_probabilities_by_hand():
    uniform = TupleSampler(LABELS, 0.5, "uniform").negative_probabilities(0)
    np.testing.assert_allclose(uniform, [0, 1 / 3, 1 / 3, 1 / 3])
    weight = [0.5 * size / 12 + 0.5 / 4 for size in (3, 2, 1)]
    mixture = TupleSampler(LABELS, 0.5, "mixture").negative_probabilities(0)
    np.testing.assert_allclose(mixture, [0, *(np.array(weight) / sum(weight))])


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("negatives", ["uniform", "mixture"])
def test_frequencies_follow_the_analytic_probabilities(alpha, negatives):
    sampler = TupleSampler(LABELS, alpha, negatives)
    size = np.bincount(LABELS)
    drawn = sampler.draw(60_000, 2, np.random.default_rng(5))
    by_cluster = sampler.anchor_probabilities()
    node = by_cluster[LABELS] / size[LABELS]
    observed = np.bincount(drawn.anchor, minlength=len(LABELS))
    assert chisquare(observed[node > 0], 60_000 * node[node > 0]).pvalue > 1e-3
    assert observed[node == 0].sum() == 0
    for cluster in range(3):
        rows = LABELS[drawn.anchor] == cluster
        expected = sampler.negative_probabilities(cluster)[LABELS] / size[LABELS]
        seen = np.bincount(drawn.negatives[rows].ravel(), minlength=len(LABELS))
        assert seen[expected == 0].sum() == 0
        assert chisquare(seen[expected > 0], seen.sum() * expected[expected > 0]).pvalue > 1e-3


def test_positives_are_uniform_over_the_rest_of_the_cluster():
    drawn = TupleSampler(LABELS, 0.5).draw(60_000, 1, np.random.default_rng(6))
    for anchor in range(6):
        seen = np.bincount(drawn.positive[drawn.anchor == anchor], minlength=6)
        assert seen[anchor] == 0 and len(seen) == 6
        assert chisquare(np.delete(seen, anchor)).pvalue > 1e-3


@given(st.lists(st.integers(0, 5), min_size=4, max_size=30), st.floats(0, 1), st.booleans(), st.integers(0, 1000))
@settings(max_examples=100, deadline=None)
def test_every_tuple_keeps_its_promises(labels, alpha, mixture, seed):
    numbered = np.unique(labels, return_inverse=True)[1]
    size = np.bincount(numbered)
    if size.max() < 2 or len(size) < 2:
        with pytest.raises(DataError):
            TupleSampler(numbered, alpha)
        return
    sampler = TupleSampler(numbered, alpha, "mixture" if mixture else "uniform")
    drawn = sampler.draw(50, 3, np.random.default_rng(seed))
    assert (drawn.anchor != drawn.positive).all()
    assert (numbered[drawn.anchor] == numbered[drawn.positive]).all()
    assert (numbered[drawn.negatives] != numbered[drawn.anchor][:, None]).all()
    nodes, anchor, positive, negatives = drawn.distinct()
    assert len(np.unique(nodes)) == len(nodes)
    assert np.array_equal(nodes[anchor], drawn.anchor)
    assert np.array_equal(nodes[positive], drawn.positive)
    assert np.array_equal(nodes[negatives], drawn.negatives)


def test_the_same_seed_draws_the_same_tuples():
    first, second = (TupleSampler(LABELS).draw(20, 4, np.random.default_rng(1)) for _ in range(2))
    assert np.array_equal(first.anchor, second.anchor) and np.array_equal(first.negatives, second.negatives)


def test_what_cannot_be_sampled_is_said():
    with pytest.raises(DataError, match="no cluster has two nodes"):
        TupleSampler(np.arange(5))
    with pytest.raises(DataError, match="only one cluster"):
        TupleSampler(np.zeros(5, dtype=int))
