"""A graph with the size and the shape of the paper's, made in seconds: transactions with heavy-tailed numbers of inputs
and outputs, all inputs linked to all outputs, some addresses used again and again."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from btcnb.learn import PreparedGraph, prepare_arrays

FEATURES = 20
"""Node features of an address graph: 14 columns, six of them also in dollars."""
MOST = 600
"""Inputs or outputs of the largest transactions."""
BATCHED = 0.0115
"""Share of transactions with 30 to 110 inputs and outputs."""


def address_like_arrays(
    transactions: int, seed: int = 0
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Features (N, 20), directed edges (2, E), cluster labels (N,); about 11 nodes and 90 edges a transaction."""
    rng = np.random.default_rng(seed)
    inputs = np.minimum(rng.zipf(2.05, transactions), MOST)
    outputs = np.minimum(1 + rng.zipf(1.9, transactions), MOST)
    batched = rng.random(transactions) < BATCHED  # many pay many: most edges come from a few transactions
    inputs[batched], outputs[batched] = rng.integers(30, 110, (2, batched.sum()))
    slots = int(inputs.sum() + outputs.sum())
    fresh = rng.random(slots) < 0.75
    address = np.cumsum(fresh) - 1
    popular = (address.max() * rng.random(slots) ** 4).astype(np.int64)  # early addresses come back most
    address = np.maximum(np.where(fresh, address, popular), 0)
    start = np.concatenate([[0], np.cumsum(inputs + outputs)])
    sources, targets = [], []
    for i, o, first in zip(inputs, outputs, start[:-1], strict=True):
        sources.append(np.repeat(address[first : first + i], o))
        targets.append(np.tile(address[first + i : first + i + o], i))
    edges = np.stack([np.concatenate(sources), np.concatenate(targets)])
    nodes = int(address.max()) + 1
    shuffled = rng.permutation(nodes)  # ids of real data carry no locality
    labels = np.searchsorted(np.sort(rng.integers(0, nodes, nodes // 7)), np.arange(nodes))
    return rng.normal(size=(nodes, FEATURES)).astype(np.float32), shuffled[edges], labels[np.argsort(shuffled)]


def uniform(nodes: int, edges: int, seed: int = 0) -> PreparedGraph:
    """A random graph without hubs or leaves, about `edges` after symmetrisation: the largest batches there can be."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(nodes, FEATURES)).astype(np.float32)
    return prepare_arrays(x, rng.integers(0, nodes, (2, edges // 2)), rng.integers(0, nodes // 7, nodes))


def address_like(transactions: int, seed: int = 0) -> PreparedGraph:
    """The same, symmetrised and sorted for message passing."""
    return prepare_arrays(*address_like_arrays(transactions, seed))
