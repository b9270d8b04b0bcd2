"""Embeddings of every node from full neighbourhoods, layer by layer, in blocks of targets."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from btcnb.data.graph import AddressGraph
from btcnb.errors import ParameterError
from btcnb.learn import kernels
from btcnb.learn.encoder import Block, Encoder, moved
from btcnb.learn.graphs import FloatArray, IntArray, PreparedGraph, prepare

EDGES_PER_BLOCK = 1_000_000
"""In-edges handled at once; their attention takes a few dozen megabytes."""
DEVICE_EDGES_PER_BLOCK = 200_000
"""The same where torch's own operations make tensors of the size edges × features."""
NODES_PER_BLOCK = 50_000
"""Targets handled at once; their sums take heads × width × 4 bytes each."""


def embed(model: Encoder, graph: AddressGraph | PreparedGraph, edges_per_block: int = EDGES_PER_BLOCK) -> FloatArray:
    """One unit row per node, float32, node order of the graph, shape (N, d); equal to a full-graph forward pass.

    A node whose last convolution is exactly zero has no direction: its row is zero, not unit. That happens where all
    features in reach are zero and no bias was learnt yet, so only in untrained encoders. Comparing such rows by cosine
    needs a convention for their distance.

    Memory: two layers' activations and one block of in-edges, whatever the number of edges. It runs where
    `model.config.device` says; the model is left where it was. An address graph is prepared as the model learnt it,
    with its unit of amounts; a prepared graph with amounts in another unit is refused.
    """
    with torch.no_grad():
        *_, last = _layers(model, graph, edges_per_block)
    return functional.normalize(last[1], dim=-1).numpy()


def layer_outputs(model: Encoder, graph: AddressGraph | PreparedGraph) -> dict[str, FloatArray]:
    """The output of every stage: `input`, `convolution 1`, `activation 1`, …, `unit rows`; each (N, width)."""
    with torch.no_grad():
        stages = {name: value.numpy() for name, value in _layers(model, graph, EDGES_PER_BLOCK)}
    last = torch.from_numpy(stages[f"convolution {len(model.convs)}"])
    return stages | {"unit rows": functional.normalize(last, dim=-1).numpy()}


def _layers(model: Encoder, given: AddressGraph | PreparedGraph, edges_per_block: int) -> Iterator[tuple[str, Tensor]]:
    """Name and value (on the CPU) of each stage, without dropout; the model is left as it was."""
    config = model.config
    graph = prepare(given, config.symmetrise, config.edge_features, config.landmarks, unit=config.unit)
    if graph.x.shape[1] != model.in_channels:
        raise ParameterError(
            f"the graph has {graph.x.shape[1]} features per node, but the model was made for {model.in_channels}."
        )
    model.require_edge_features(graph.edge_channels)
    device, before, was_training = config.torch_device(), model.device, model.training
    limit = edges_per_block if device.type in kernels.COMPILED else min(edges_per_block, DEVICE_EDGES_PER_BLOCK)
    degree = torch.from_numpy(graph.in_degree())
    model.eval().to(device)
    try:
        x = graph.x.to(device)
        yield "input", graph.x
        for layer, conv in enumerate(model.convs):
            out = x.new_empty(graph.num_nodes, model.widths[layer])
            for begin, end in blocks(graph.indptr, limit):
                out[begin:end] = conv(x, moved(_block(graph, begin, end, degree), device))
            x = out
            yield f"convolution {layer + 1}", x.cpu()
            if layer < len(model.convs) - 1:
                x = model.between(layer, x)
                yield f"activation {layer + 1}", x.cpu()
    finally:
        model.train(was_training).to(before)


def _block(graph: PreparedGraph, begin: int, end: int, degree: Tensor) -> Block:
    """The in-edges of nodes begin..end-1."""
    indptr = graph.indptr[begin : end + 1]
    edges = slice(int(indptr[0]), int(indptr[-1]))
    return Block(
        indptr=torch.from_numpy(indptr - indptr[0]),
        source=torch.from_numpy(graph.source[edges].astype(np.int64)),
        first=begin,
        edge_attr=None if graph.edge_attr is None else graph.edge_attr[edges],
        degree=degree,
    )


def blocks(indptr: IntArray, edges_per_block: int) -> Iterator[tuple[int, int]]:
    """Runs of nodes with at most `edges_per_block` in-edges and `NODES_PER_BLOCK` nodes (always one node at least)."""
    nodes, begin = len(indptr) - 1, 0
    while begin < nodes:
        end = int(np.searchsorted(indptr, indptr[begin] + edges_per_block, side="right")) - 1
        end = min(max(end, begin + 1), begin + NODES_PER_BLOCK, nodes)
        yield begin, end
        begin = end
