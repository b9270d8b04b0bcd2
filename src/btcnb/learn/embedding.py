"""Embeddings of every node from full neighbourhoods, layer by layer, in blocks of destinations."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from btcnb import gates
from btcnb.data.address_graph import AddressGraph
from btcnb.errors import ParameterError
from btcnb.learn.devices import device_of, moved
from btcnb.learn.encoders import Encoder
from btcnb.learn.graphs import PreparedGraph, prepare
from btcnb.learn.layers import Block

FloatArray = npt.NDArray[np.float32]

EDGES_PER_BLOCK = 1_000_000
"""In-edges handled at once; their attention takes a few dozen megabytes."""
PLAIN_EDGES_PER_BLOCK = 200_000
"""The same for PyG's own convolutions, which make tensors of the size edges × heads × width."""
NODES_PER_BLOCK = 50_000
"""Targets handled at once; their sums take heads × width × 4 bytes each."""


def embed(model: Encoder, graph: AddressGraph | PreparedGraph, edges_per_block: int = EDGES_PER_BLOCK) -> FloatArray:
    """One unit row per node, float32, node order of the graph, shape (N, d); equal to a full-graph forward pass.

    A node whose last convolution is exactly zero has no direction: its row is zero, not unit. That happens where all
    features in reach are zero and no bias was learnt yet, so in untrained encoders only; whoever compares such rows
    by cosine must say what their distance is.

    Memory: two layers' activations and one block of in-edges, whatever the number of edges. It runs where
    `model.config.device` says; the model stays where it is. An address graph's features are made as the model learnt
    them, its unit of amounts included; a prepared graph with amounts in another unit is refused.
    """
    with torch.no_grad():
        *_, last = _layers(model, graph, edges_per_block)
    return functional.normalize(last[1], dim=-1).numpy()


def layer_outputs(model: Encoder, graph: AddressGraph | PreparedGraph) -> dict[str, FloatArray]:
    """Every stage on the way: `input`, `convolution 1`, `activation 1`, …, `unit rows`; each (N, width)."""
    with torch.no_grad():
        stages = {name: value.numpy() for name, value in _layers(model, graph, EDGES_PER_BLOCK)}
    last = torch.from_numpy(stages[f"convolution {len(model.convs)}"])
    return stages | {"unit rows": functional.normalize(last, dim=-1).numpy()}


def _prepared(model: Encoder, graph: AddressGraph | PreparedGraph) -> PreparedGraph:
    config = gates.instance("model", model, Encoder).config
    prepared = prepare(graph, config.symmetrise, config.edge_features, config.landmarks, unit=config.unit)
    if prepared.x.shape[1] != model.in_channels:
        raise ParameterError(
            f"the graph has {prepared.x.shape[1]} features a node, but the model was made for {model.in_channels}."
        )
    model.require_edge_features(0 if prepared.edge_attr is None else prepared.edge_attr.shape[1])
    return prepared


def _layers(model: Encoder, given: AddressGraph | PreparedGraph, edges_per_block: int) -> Iterator[tuple[str, Tensor]]:
    """Name and value (on the CPU) of each stage, without dropout; the model is left as it was."""
    graph = _prepared(model, given)
    edges_per_block = min(gates.whole("edges_per_block", edges_per_block, "[1, inf)"), gates.LARGEST)
    device = device_of(model.config)
    was_training = model.training
    model.eval()
    try:
        with moved(model, device):
            limit = edges_per_block if model.compiled else min(edges_per_block, PLAIN_EDGES_PER_BLOCK)
            x = graph.x.to(device)
            yield "input", graph.x
            degree = torch.from_numpy(graph.in_degree())
            for layer in range(len(model.convs)):
                out: Tensor | None = None
                for begin, end in blocks(graph.indptr, limit):
                    part = model.convolve(layer, x, _block(graph, begin, end, degree).to(device))
                    if out is None:
                        out = torch.empty(graph.num_nodes, part.shape[1], device=device)
                    out[begin:end] = part
                assert out is not None
                x = out
                yield f"convolution {layer + 1}", x.cpu()
                if layer < len(model.convs) - 1:
                    x = model.between(layer, x)
                    yield f"activation {layer + 1}", x.cpu()
    finally:
        model.train(was_training)


def _block(graph: PreparedGraph, begin: int, end: int, degree: Tensor) -> Block:
    indptr = graph.indptr[begin : end + 1]
    edges = slice(int(indptr[0]), int(indptr[-1]))
    return Block(
        indptr=torch.from_numpy(indptr - indptr[0]),
        source=torch.from_numpy(graph.source[edges].astype(np.int64)),
        first=begin,
        edge_attr=None if graph.edge_attr is None else graph.edge_attr[edges],
        degree=degree,
    )


def blocks(indptr: npt.NDArray[np.int64], edges_per_block: int) -> Iterator[tuple[int, int]]:
    """Runs of nodes with at most `edges_per_block` in-edges and `NODES_PER_BLOCK` nodes (always one node at least)."""
    nodes, begin = len(indptr) - 1, 0
    while begin < nodes:
        end = int(np.searchsorted(indptr, indptr[begin] + edges_per_block, side="right")) - 1
        end = min(max(end, begin + 1), begin + NODES_PER_BLOCK, nodes)
        yield begin, end
        begin = end
