"""The layers give PyG's own outputs and gradients, by the compiled loops and by torch's operations."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from planted import planted
from pyg_reference import PygEncoder
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

from btcnb.learn import BatchSampler, Encoder, TrainConfig, kernels
from btcnb.learn.kernels import dropout, segment_softmax, weighted_sums

CASES = [
    {"encoder": encoder, "symmetrise": symmetrise}
    for encoder, symmetrise in product(["gat", "gcn", "sage", "mlp"], [True, False])
]
CASES += [{"encoder": "gat", "edge_features": True}, {"encoder": "gat", "output_heads": "one"}]
THREE_LAYERS = [{"encoder": kind, "fanout": (4, 3, 2)} for kind in ("gat", "mlp")]


def small(**options: object) -> TrainConfig:
    return TrainConfig(**{"heads": 3, "hidden": 5, "output": 7, **options})  # type: ignore[arg-type]


def model_and_graph(options: dict[str, object]) -> tuple[Encoder, object]:
    config = small(**options)
    graph = planted(symmetrise=config.symmetrise, edge_features=config.edge_features, loners=3)
    torch.manual_seed(1)
    edge_channels = 0 if graph.edge_attr is None else graph.edge_attr.shape[1]
    return Encoder(config, graph.x.shape[1], edge_channels).eval(), graph


@pytest.fixture(params=["compiled", "torch"])
def way(request, monkeypatch):
    """Both implementations of the operations; the second is the one of other devices, here on the CPU."""
    if request.param == "torch":
        monkeypatch.setattr(kernels, "COMPILED", ())
    return request.param


def outputs_and_gradients(forward, graph, model):
    weight = torch.randn(graph.num_nodes, 7, generator=torch.Generator().manual_seed(2))
    model.zero_grad()
    out = forward(graph.x, graph.edge_index(), graph.edge_attr)
    (out * weight).sum().backward()
    return out.detach(), {name: value.grad.clone() for name, value in model.named_parameters()}


@pytest.mark.parametrize(
    "options", [*CASES, *({"encoder": kind, "fanout": (4, 3, 2)} for kind in ("gat", "mlp"))], ids=str
)
def test_whole_graph_equals_pyg_in_outputs_and_gradients(options, way):
    model, graph = model_and_graph(options)
    ours, gradients = outputs_and_gradients(model, graph, model)
    reference = PygEncoder(model)
    theirs, wanted = outputs_and_gradients(reference, graph, reference)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    assert any(float(value.abs().max()) > 1e-3 for value in wanted.values())
    assert gradients.keys() == wanted.keys()
    for name, value in gradients.items():
        torch.testing.assert_close(value, wanted[name], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("options", CASES, ids=str)
def test_torchs_operations_equal_the_compiled_loops(options, monkeypatch):
    """In double precision to 1e-12, outputs and gradients; in float32 to 1e-6."""
    model, graph = model_and_graph(options)
    for kind, tolerance in ((torch.float32, 1e-6), (torch.float64, 1e-12)):
        model.to(kind)
        edges = None if graph.edge_attr is None else graph.edge_attr.to(kind)
        weight = torch.randn(graph.num_nodes, 7, generator=torch.Generator().manual_seed(2), dtype=kind)
        found = []
        for devices in (("cpu",), ()):
            monkeypatch.setattr(kernels, "COMPILED", devices)
            model.zero_grad()
            out = model(graph.x.to(kind), graph.edge_index(), edges)
            (out * weight).mean().backward()
            found.append([out.detach(), *(value.grad.clone() for value in model.parameters())])
        for compiled, other in zip(*found, strict=True):
            torch.testing.assert_close(other, compiled, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize(
    ("encoder", "theirs"),
    [
        ("gat", lambda width, size: GATConv(width, size, 3, edge_dim=2)),
        ("gcn", GCNConv),
        ("sage", SAGEConv),
        ("mlp", torch.nn.Linear),
    ],
)
def test_parameters_are_pygs_also_their_draws(encoder, theirs):
    """Names, shapes, order and values for the same seed."""
    torch.manual_seed(4)
    ours = Encoder(small(encoder=encoder, edge_features=encoder == "gat"), 6, 2).convs[0].state_dict()
    torch.manual_seed(4)
    wanted = theirs(6, 5).state_dict()
    assert list(ours) == list(wanted)
    for name, value in wanted.items():
        assert torch.equal(ours[name], value), name


@pytest.mark.parametrize("options", CASES, ids=str)
def test_a_trimmed_sample_equals_pyg_on_the_whole_sample_and_trimmed(options, way):
    model, graph = model_and_graph(options)
    batch = BatchSampler(graph, (3, 2)).draw(np.arange(0, 40, 3), seed=4)
    hops, seeds = (batch.nodes_per_hop, batch.edges_per_hop), batch.nodes_per_hop[0]
    sample = (batch.x, batch.edge_index, batch.edge_attr, batch.degree)
    trimmed = model(*sample, *hops)
    assert trimmed.shape == (seeds, 7)
    reference = PygEncoder(model)
    torch.testing.assert_close(trimmed, reference(*sample)[:seeds], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(trimmed, reference(*sample, *hops), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("options", CASES, ids=str)
def test_full_fanout_equals_the_full_neighbourhood(options):
    model, graph = model_and_graph(options)
    most = int(graph.in_degree().max())
    seeds = np.array([5, 80, 33, 120])
    batch = BatchSampler(graph, (most, most)).draw(seeds, seed=0)
    sampled = model(batch.x, batch.edge_index, batch.edge_attr, batch.degree, batch.nodes_per_hop, batch.edges_per_hop)
    whole = PygEncoder(model)(graph.x, graph.edge_index(), graph.edge_attr)[torch.from_numpy(seeds)]
    torch.testing.assert_close(sampled, whole, atol=1e-5, rtol=1e-5)


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


@pytest.mark.parametrize("encoder", ["gat", "gcn", "sage", "mlp"])
def test_all_encoders_but_the_mlp_see_edges(encoder):
    model, graph = model_and_graph({"encoder": encoder})
    edges = graph.edge_index()
    nodes = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(3))
    seen = model(graph.x, edges)
    for other in (nodes[edges], edges[:, :0]):  # the same edges between other nodes, and none
        same = torch.allclose(model(graph.x, other), seen, atol=1e-5)
        assert same == (encoder == "mlp")


def test_gcn_sample_is_unbiased():
    """The mean over many samples of the first convolution is the full convolution."""
    model, graph = model_and_graph({"encoder": "gcn", "fanout": (2,)})
    node = int(graph.in_degree().argmax())
    full = model(graph.x, graph.edge_index(), unit=False)[node]
    sampler = BatchSampler(graph, (2,))
    draws = []
    with torch.no_grad():
        for seed in range(3000):
            b = sampler.draw(np.array([node]), seed)
            out = model(b.x, b.edge_index, None, b.degree, b.nodes_per_hop, b.edges_per_hop, unit=False)
            draws.append(out[0])
    stacked = torch.stack(draws)
    error = stacked.std(0) / len(draws) ** 0.5
    assert bool(((stacked.mean(0) - full).abs() < 5 * error).all())


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


def test_gradients_of_the_operations_by_finite_differences(way):
    generator = torch.Generator().manual_seed(0)
    indptr, source = torch.tensor([0, 2, 2, 5]), torch.tensor([1, 0, 3, 3, 2])
    x = torch.randn(4, 3, dtype=torch.float64, generator=generator, requires_grad=True)
    weight = torch.randn(5, 2, dtype=torch.float64, generator=generator, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, w: weighted_sums(x, w, indptr, source), (x, weight))
    assert torch.autograd.gradcheck(lambda w: segment_softmax(w, indptr), (weight,))
    torch.testing.assert_close(segment_softmax(weight, indptr)[:2].sum(0), torch.ones(2, dtype=torch.float64))
    assert weighted_sums(x, weight, indptr, source)[1].abs().sum() == 0  # a target without in-edges


def test_the_default_is_the_papers_table():
    first, second = Encoder(TrainConfig(), 20).convs
    assert (first.in_channels, first.heads, first.out_channels, first.concat) == (20, 4, 64, True)
    assert (second.in_channels, second.heads, second.out_channels, second.concat) == (256, 4, 128, False)
