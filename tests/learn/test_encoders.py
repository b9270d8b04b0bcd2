"""The fast way through the convolutions gives PyG's own outputs and gradients."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest
import torch
from planted import planted
from torch_geometric.nn import GATConv, GCNConv, SAGEConv
from torch_geometric.utils import trim_to_layer

from btcnb.errors import ParameterError
from btcnb.learn import Encoder, NeighbourSampler, TrainConfig
from btcnb.learn.aggregation import dropout, segment_softmax, weighted_sums
from btcnb.learn.sampler import draw_batch

CASES = [
    {"encoder": encoder, "symmetrise": symmetrise}
    for encoder, symmetrise in product(["gat", "gcn", "sage", "mlp"], [True, False])
]
CASES += [{"encoder": "gat", "edge_features": True}, {"encoder": "gat", "output_heads": "one"}]


def small(**options: object) -> TrainConfig:
    return TrainConfig(**{"heads": 3, "hidden": 5, "output": 7, **options})  # type: ignore[arg-type]


def model_and_graph(options: dict[str, object]) -> tuple[Encoder, object]:
    config = small(**options)
    graph = planted(symmetrise=config.symmetrise, edge_features=config.edge_features, loners=3)
    torch.manual_seed(1)
    edge_channels = 0 if graph.edge_attr is None else graph.edge_attr.shape[1]
    return Encoder(config, graph.x.shape[1], edge_channels).eval(), graph


@pytest.mark.parametrize("options", CASES, ids=str)
def test_whole_graph_equals_plain_pyg_in_outputs_and_gradients(options):
    model, graph = model_and_graph(options)
    weight = torch.randn(graph.num_nodes, 7, generator=torch.Generator().manual_seed(2))
    results = []
    for forward in (model.forward, model.plain):
        model.zero_grad()
        out = forward(graph.x, graph.edge_index(), graph.edge_attr)
        (out * weight).sum().backward()
        results.append((out.detach(), [p.grad.clone() for p in model.parameters()]))
    (fast, fast_grads), (plain, plain_grads) = results
    torch.testing.assert_close(fast, plain, atol=1e-5, rtol=1e-5)
    assert any(float(grad.abs().max()) > 1e-3 for grad in plain_grads)
    for ours, theirs in zip(fast_grads, plain_grads, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("options", CASES, ids=str)
def test_a_trimmed_sample_equals_plain_pyg_on_the_whole_sample(options):
    model, graph = model_and_graph(options)
    batch = draw_batch(NeighbourSampler(graph, (3, 2)), graph, np.arange(0, 40, 3), seed=4)
    seeds = batch.nodes_per_hop[0]
    trimmed = model(batch.x, batch.edge_index, batch.edge_attr, batch.degree, batch.nodes_per_hop, batch.edges_per_hop)
    assert trimmed.shape == (seeds, 7)
    plain = model.plain(batch.x, batch.edge_index, batch.edge_attr, batch.degree)[:seeds]
    torch.testing.assert_close(trimmed, plain, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("options", CASES, ids=str)
def test_full_fanout_equals_the_full_neighbourhood(options):
    model, graph = model_and_graph(options)
    most = int(graph.in_degree().max())
    seeds = np.array([5, 80, 33, 120])
    batch = draw_batch(NeighbourSampler(graph, (most, most)), graph, seeds, seed=0)
    sampled = model(batch.x, batch.edge_index, batch.edge_attr, batch.degree, batch.nodes_per_hop, batch.edges_per_hop)
    whole = model.plain(graph.x, graph.edge_index(), graph.edge_attr)[torch.from_numpy(seeds)]
    torch.testing.assert_close(sampled, whole, atol=1e-5, rtol=1e-5)


def test_trimming_is_that_of_pyg():
    model, graph = model_and_graph({"encoder": "gat"})
    batch = draw_batch(NeighbourSampler(graph, (3, 2)), graph, np.arange(10), seed=4)
    x, edges = batch.x, batch.edge_index
    for layer, conv in enumerate(model.convs):
        x, edges, _ = trim_to_layer(layer, batch.nodes_per_hop, batch.edges_per_hop, x, edges)
        x = model.between(layer, conv(x, edges))
    expected = torch.nn.functional.normalize(x[:10], dim=-1)
    ours = model(batch.x, batch.edge_index, None, None, batch.nodes_per_hop, batch.edges_per_hop)
    torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-5)


def test_gcn_on_a_whole_graph_is_the_standard_gcn():
    """With all neighbours drawn, our weights are those PyG computes itself."""
    model, graph = model_and_graph({"encoder": "gcn"})
    x, edges = graph.x, graph.edge_index()
    for layer, conv in enumerate(model.convs):
        standard = GCNConv(conv.in_channels, conv.out_channels)
        standard.load_state_dict(conv.state_dict())
        x = model.between(layer, standard(x, edges))
    ours = model(graph.x, edges)
    torch.testing.assert_close(ours, torch.nn.functional.normalize(x, dim=-1), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("convolutions", ["compiled", "plain"])
def test_an_mlp_is_linear_layers_on_a_nodes_own_features(convolutions):
    model, graph = model_and_graph({"encoder": "mlp", "fanout": (4, 3, 2), "convolutions": convolutions})
    first, second, third = model.convs
    assert [(layer.in_features, layer.out_features) for layer in model.convs] == [(6, 5), (5, 5), (5, 7)]
    relu = torch.nn.functional.leaky_relu
    expected = torch.nn.functional.normalize(third(relu(second(relu(first(graph.x))))), dim=-1)
    torch.testing.assert_close(model(graph.x, graph.edge_index()), expected, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("encoder", ["gat", "gcn", "sage", "mlp"])
def test_all_encoders_but_the_mlp_see_edges(encoder):
    model, graph = model_and_graph({"encoder": encoder})
    edges = graph.edge_index()
    nodes = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(3))
    seen = model(graph.x, edges)
    for forward in (model.forward, model.plain):
        for other in (nodes[edges], edges[:, :0]):  # the same edges between other nodes, and none
            same = torch.allclose(forward(graph.x, other), seen, atol=1e-5)
            assert same == (encoder == "mlp")


def test_gcn_sample_is_unbiased():
    """The mean over many samples of the first convolution is the full convolution."""
    model, graph = model_and_graph({"encoder": "gcn", "fanout": (2,)})
    node = int(graph.in_degree().argmax())
    full = model.raw(graph.x, graph.edge_index())[node]
    sampler = NeighbourSampler(graph, (2,))
    draws = []
    with torch.no_grad():
        for seed in range(3000):
            b = draw_batch(sampler, graph, np.array([node]), seed)
            draws.append(model.raw(b.x, b.edge_index, None, b.degree, b.nodes_per_hop, b.edges_per_hop)[0])
    stacked = torch.stack(draws)
    error = stacked.std(0) / len(draws) ** 0.5
    assert bool(((stacked.mean(0) - full).abs() < 5 * error).all())


def test_the_default_is_the_papers_table():
    model = Encoder(TrainConfig(), 20)
    first, second = model.convs
    assert isinstance(first, GATConv) and (first.heads, first.out_channels, first.concat) == (4, 64, True)
    assert isinstance(second, GATConv) and (second.heads, second.out_channels, second.concat) == (4, 128, False)
    assert second.in_channels == 256
    assert isinstance(Encoder(TrainConfig(encoder="sage"), 20).convs[0], SAGEConv)


def test_rows_have_unit_norm_and_dropout_acts_in_training_only():
    model, graph = model_and_graph({"encoder": "gat"})
    edges = graph.edge_index()
    out = model(graph.x, edges)
    torch.testing.assert_close(out.norm(dim=1), torch.ones(graph.num_nodes))
    torch.testing.assert_close(out, model(graph.x, edges), atol=0, rtol=0)
    model.train()
    assert not torch.equal(model(graph.x, edges), model(graph.x, edges))


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_dropout_drops_its_share_independently_and_keeps_the_mean(share):
    torch.manual_seed(3)
    x = torch.ones(1001, 301, requires_grad=True)
    out = dropout(x, share, training=True)
    dropped = (out == 0).double()
    error = (share * (1 - share) / x.numel()) ** 0.5
    assert abs(dropped.mean().item() - share) < 4 * error
    assert out.unique().tolist() == pytest.approx([0.0, 1 / (1 - share)])
    flat = dropped.flatten() - share
    for lag in (1, 2, 301):  # neighbours, also the two halves of one draw, know nothing of each other
        assert abs(float((flat[:-lag] * flat[lag:]).mean())) < 4 * share * (1 - share) / len(flat) ** 0.5
    out.sum().backward()
    assert torch.equal(x.grad, out.detach())  # the gradient goes through the same mask
    torch.manual_seed(3)
    assert torch.equal(dropout(x, share, training=True), out)
    assert not torch.equal(dropout(x, share, training=True), out)
    assert dropout(x, share, training=False) is x


def test_unsorted_edges_are_accepted():
    model, graph = model_and_graph({"encoder": "gat", "edge_features": True})
    shuffled = torch.randperm(graph.num_edges, generator=torch.Generator().manual_seed(0))
    ours = model(graph.x, graph.edge_index()[:, shuffled], graph.edge_attr[shuffled])
    torch.testing.assert_close(ours, model(graph.x, graph.edge_index(), graph.edge_attr), atol=1e-5, rtol=1e-5)


def test_gradients_of_the_kernels_by_finite_differences():
    generator = torch.Generator().manual_seed(0)
    indptr, source = torch.tensor([0, 2, 2, 5]), torch.tensor([1, 0, 3, 3, 2])
    x = torch.randn(4, 3, dtype=torch.float64, generator=generator, requires_grad=True)
    weight = torch.randn(5, 2, dtype=torch.float64, generator=generator, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, w: weighted_sums(x, w, indptr, source), (x, weight))
    assert torch.autograd.gradcheck(lambda w: segment_softmax(w, indptr), (weight,))
    torch.testing.assert_close(segment_softmax(weight, indptr)[:2].sum(0), torch.ones(2, dtype=torch.float64))
    assert weighted_sums(x, weight, indptr, source)[1].abs().sum() == 0  # a target without in-edges


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"encoder": "gin"}, "encoder"),
        ({"alpha": 1.5}, "alpha"),
        ({"temperature": 0.0}, "temperature"),
        ({"fanout": ()}, "fanout"),
        ({"edge_features": True, "encoder": "gcn"}, "edge_features"),
        ({"edge_features": True, "encoder": "mlp"}, "edge_features"),
        ({"negatives": "hard"}, "negatives"),
    ],
)
def test_bad_settings_are_named(options, names):
    with pytest.raises(ParameterError, match=names):
        TrainConfig(**options)


def test_a_configuration_survives_json():
    config = TrainConfig(encoder="sage", fanout=(4, 3), seed=7)
    assert TrainConfig.from_json(config.to_json()) == config
    with pytest.raises(ParameterError, match="warmth"):
        TrainConfig.from_json('{"warmth": 1}')


def test_a_configuration_without_a_unit_is_of_the_time_of_satoshi():
    written = json.loads(TrainConfig(seed=7).to_json())
    assert written.pop("unit") == "bitcoin"
    assert TrainConfig.from_json(json.dumps(written)) == TrainConfig(seed=7, unit="satoshi")
