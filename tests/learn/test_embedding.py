"""Layer-wise embeddings equal a plain full-graph pass, in any blocks, and need no memory for the edges."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from planted import address_graph, planted
from pyg_reference import PygEncoder

from btcnb.errors import DataError, ParameterError
from btcnb.learn import Encoder, TrainConfig, embed, layer_outputs, prepare, prepare_arrays, train
from btcnb.learn.embed import blocks

OPTIONS = [*product(["gat", "gcn", "sage", "mlp"], [True, False], [False]), ("gat", True, True)]


def encoder(graph: object, **options: object) -> Encoder:
    config = TrainConfig(**{"heads": 2, "hidden": 6, "output": 5, **options})  # type: ignore[arg-type]
    torch.manual_seed(0)
    return Encoder(config, graph.x.shape[1], 0 if graph.edge_attr is None else graph.edge_attr.shape[1])


@pytest.mark.parametrize(("kind", "symmetrise", "edge_features"), OPTIONS)
@pytest.mark.parametrize("edges_per_block", [1, 37, 10**6])
def test_embed_equals_a_plain_forward_pass(kind, symmetrise, edge_features, edges_per_block):
    graph = planted(symmetrise=symmetrise, edge_features=edge_features, loners=2)
    model = encoder(graph, encoder=kind, symmetrise=symmetrise, edge_features=edge_features)
    model.train()
    X = embed(model, graph, edges_per_block)
    assert model.training  # left as it was
    expected = PygEncoder(model.eval())(graph.x, graph.edge_index(), graph.edge_attr).detach().numpy()
    np.testing.assert_allclose(X, expected, atol=1e-5)
    assert X.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1, atol=1e-6)


def test_blocks_cover_every_node_once_and_respect_the_limit():
    indptr = np.array([0, 3, 3, 10, 11, 12, 14])
    assert list(blocks(indptr, 3)) == [(0, 2), (2, 3), (3, 5), (5, 6)]  # the node with 7 in-edges stands alone
    assert list(blocks(indptr, 100)) == [(0, 6)]


def test_memory_does_not_grow_with_the_number_of_edges():
    rng = np.random.default_rng(0)

    def peak(edges: int) -> float:
        graph = prepare_arrays(rng.normal(size=(2000, 4)), rng.integers(0, 2000, (2, edges)))
        model = encoder(graph)
        embed(model, graph, edges_per_block=20_000)
        tracemalloc.start()
        embed(model, graph, edges_per_block=20_000)
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    few, many = peak(20_000), peak(400_000)
    assert many < 1.5 * few


def test_layer_outputs_are_the_stages_of_the_forward_pass():
    graph = planted()
    model = encoder(graph).eval()
    stages = layer_outputs(model, graph)
    assert list(stages) == ["input", "convolution 1", "activation 1", "convolution 2", "unit rows"]
    first = PygEncoder(model).convs[0](graph.x, graph.edge_index()).detach()
    np.testing.assert_allclose(stages["convolution 1"], first.numpy(), atol=1e-5)
    np.testing.assert_allclose(stages["activation 1"], torch.nn.functional.leaky_relu(first).numpy(), atol=1e-5)
    np.testing.assert_allclose(stages["unit rows"], embed(model, graph), atol=1e-6)


def test_a_model_with_edge_features_refuses_a_graph_without():
    seen = planted(edge_features=True)
    model = encoder(seen, edge_features=True)
    assert embed(model, seen).shape == (seen.num_nodes, 5)
    for call in (embed, layer_outputs):
        with pytest.raises(DataError, match="edge features: none per edge, but the model was made for 2"):
            call(model, planted())
    with pytest.raises(DataError, match="edge features"):
        model(seen.x, seen.edge_index())
    with pytest.raises(ParameterError, match="edge_channels is 0"):
        encoder(planted(), edge_features=True)
    blind = encoder(planted())
    np.testing.assert_array_equal(embed(blind, seen), embed(blind, planted()))  # what it never saw is ignored


def test_a_row_without_direction_stays_zero():
    """An untrained encoder has no bias yet: a component whose features are all zero has nothing to say."""
    x = np.zeros((4, 2))
    x[:2] = 1
    X = embed(encoder(graph := prepare_arrays(x, [[0, 2], [1, 3]])), graph)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), [1, 1, 0, 0], atol=1e-6)


def test_a_graph_with_other_features_is_refused():
    with pytest.raises(ParameterError, match="3 features"):
        embed(encoder(planted()), planted(features=3))


@pytest.mark.parametrize("edge_features", [False, True])
def test_a_model_reads_amounts_in_the_unit_it_learnt(edge_features):
    graph = address_graph()
    in_bitcoin, in_satoshi = (prepare(graph, edge_features=edge_features, unit=u) for u in ("bitcoin", "satoshi"))
    model = encoder(in_satoshi, unit="satoshi", edge_features=edge_features)
    np.testing.assert_array_equal(embed(model, graph), embed(model, in_satoshi))
    unaware = prepare_arrays(
        in_bitcoin.x, in_bitcoin.edge_index(), graph.labels(), in_bitcoin.edge_attr, symmetrise=False
    )
    assert not np.allclose(embed(model, unaware), embed(model, graph), atol=1e-3), "the unit is felt"
    for call in (embed, layer_outputs):
        with pytest.raises(
            DataError, match="unit: amounts are in bitcoin, not satoshi; prepare it with unit='satoshi'"
        ):
            call(model, in_bitcoin)


def test_training_prepares_graphs_in_its_unit_and_refuses_another():
    config = TrainConfig(epochs=0, heads=2, hidden=6, output=5, unit="satoshi")
    graph = address_graph()
    given, prepared = (train(config, each, progress=False) for each in (graph, prepare(graph, unit="satoshi")))
    other = train(replace(config, unit="bitcoin"), graph, progress=False)
    assert given.record["data"] == prepared.record["data"] != other.record["data"]
    assert (given.record["unit"], other.record["unit"]) == ("satoshi", "bitcoin")
    with pytest.raises(DataError, match="training graph 1: unit"):
        train(config, prepare(graph), progress=False)
