"""What an encoder reads: node features, in-edges sorted by target, and the heuristic clusters."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from btcnb.data.features import Unit
from btcnb.data.features import edge_features as edge_table
from btcnb.data.features import features as node_table
from btcnb.data.graph import AddressGraph
from btcnb.data.landmarks import landmarks as nearness
from btcnb.errors import DataError

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PreparedGraph:
    """A graph ready for message passing; edges sorted by (target, source), without self-loops or parallel edges.

    x:         float32 node features, shape (N, F)
    indptr:    int64, shape (N+1): the in-edges of node v are `indptr[v]:indptr[v+1]`
    source:    int32, shape (E): the node a message comes from
    edge_attr: float32 edge features, shape (E, D), or None
    labels:    int64 heuristic cluster per node, 0..k-1, shape (N,)
    unit:      unit of the amounts in `x` and `edge_attr`; None where features came as plain arrays
    """

    x: Tensor
    indptr: IntArray
    source: npt.NDArray[np.int32]
    edge_attr: Tensor | None
    labels: IntArray
    unit: Unit | None = None

    @functools.cached_property
    def fingerprint(self) -> str:
        """A hash of the arrays."""
        digest = hashlib.sha256()
        attributes = None if self.edge_attr is None else self.edge_attr.numpy()
        for part in (self.x.numpy(), self.indptr, self.source, attributes, self.labels):
            if part is not None:
                digest.update(f"{part.dtype.str}{part.shape}".encode())
                digest.update(np.ascontiguousarray(part).data)
        return digest.hexdigest()[:16]

    @property
    def num_nodes(self) -> int:
        return len(self.indptr) - 1

    @property
    def num_edges(self) -> int:
        return len(self.source)

    @property
    def edge_channels(self) -> int:
        """Features per edge; 0 without edge features."""
        return 0 if self.edge_attr is None else self.edge_attr.shape[1]

    def in_degree(self) -> IntArray:
        """Number of in-neighbours, shape (N,)."""
        return np.diff(self.indptr)

    def edge_index(self) -> Tensor:
        """Edges as PyG wants them, int64, shape (2, E), sorted by target: row 0 sends to row 1."""
        target = np.repeat(np.arange(self.num_nodes), self.in_degree())
        return torch.from_numpy(np.stack([self.source.astype(np.int64), target]))


def prepare_arrays(
    x: npt.ArrayLike,
    edge_index: npt.ArrayLike,
    labels: npt.ArrayLike | None = None,
    edge_attr: npt.ArrayLike | None = None,
    symmetrise: bool = True,
    name: str = "graph",
) -> PreparedGraph:
    """Check arrays and sort the edges by target.

    x (N, F); edge_index (2, E), row 0 sends to row 1; labels (N,), any integers; edge_attr (E, D).
    Self-loops are dropped, because every convolution here has its own way to see the node itself. `symmetrise` adds
    the reverse of each edge. Parallel edges become one edge with the mean of their features.
    """
    features = np.ascontiguousarray(x, dtype=np.float32)
    nodes = len(features)
    source, target = np.asarray(edge_index, dtype=np.int64)
    clusters = np.arange(nodes) if labels is None else np.unique(labels, return_inverse=True)[1]
    # compiled loops follow these arrays without bounds checks, so numbers that do not fit end here
    if not features.size or not np.isfinite(features).all():
        raise DataError(name, "features", "there are none, or one is not finite", "give finite rows, one per node")
    if len(source) and not 0 <= min(source.min(), target.min()) <= max(source.max(), target.max()) < nodes:
        raise DataError(name, "edges", "an edge names a node that has no features", "give every node a row")
    if clusters.shape != (nodes,):
        raise DataError(name, "clusters", f"{len(clusters)} labels for {nodes} nodes", "give one label per node")
    loops = source == target
    source, target = source[~loops], target[~loops]
    attributes = None if edge_attr is None else np.asarray(edge_attr, dtype=np.float32)[~loops]
    key = target * nodes + source
    if symmetrise:
        key = np.concatenate([key, source * nodes + target])
        attributes = None if attributes is None else np.concatenate([attributes, attributes])
    if attributes is None:
        key.sort()  # np.unique without positions goes through a hash table, which takes ten times as long
        key = key[np.diff(key, prepend=-1) > 0]
    else:
        key, position = np.unique(key, return_inverse=True)
        attributes = _means(attributes, position, len(key))
    return PreparedGraph(
        x=torch.from_numpy(features),
        indptr=np.concatenate([[0], np.cumsum(np.bincount(key // nodes, minlength=nodes))]),
        source=(key % nodes).astype(np.int32),
        edge_attr=None if attributes is None else torch.from_numpy(attributes),
        labels=clusters.astype(np.int64),
    )


def prepare(
    graph: AddressGraph | PreparedGraph,
    symmetrise: bool = True,
    edge_features: bool = False,
    landmarks: int = 0,
    name: str = "graph",
    unit: Unit = "bitcoin",
) -> PreparedGraph:
    """An address graph with the paper's preprocessing (log, 5 to 95 % scaling, dollars) and optional landmarks.

    Nearness to landmarks ignores the direction of edges, also where message passing does not.
    A prepared graph is returned as it is. One with amounts in another unit is refused: its features mean something
    else.
    """
    if isinstance(graph, PreparedGraph):
        if graph.unit not in (None, unit):
            raise DataError(name, "unit", f"amounts are in {graph.unit}, not {unit}", f"prepare it with unit={unit!r}")
        return graph
    if graph.num_nodes == 0:
        raise DataError(name, "nodes", "the graph is empty", "give a graph with at least one node")
    graph.validated(name)
    x = node_table(graph, unit=unit)
    if landmarks:
        x = np.concatenate([x, nearness(graph, landmarks)], axis=1)
    attributes = edge_table(graph, unit=unit) if edge_features else None
    return replace(prepare_arrays(x, graph.edge_index(), graph.labels(), attributes, symmetrise, name), unit=unit)


def disjoint_union(graphs: Sequence[PreparedGraph]) -> tuple[PreparedGraph, IntArray]:
    """Put graphs side by side, with no edge between them; returns the union and the first node of each, shape (G,)."""
    first = _starts([graph.num_nodes for graph in graphs])
    edges = _starts([graph.num_edges for graph in graphs])
    clusters = _starts([int(graph.labels.max()) + 1 for graph in graphs])
    attributes = [graph.edge_attr for graph in graphs if graph.edge_attr is not None]
    ends = [graph.indptr[1:] + start for graph, start in zip(graphs, edges, strict=True)]
    union = PreparedGraph(
        x=torch.cat([graph.x for graph in graphs]),
        indptr=np.concatenate([np.zeros(1, np.int64), *ends]),
        source=np.concatenate([graph.source + np.int32(start) for graph, start in zip(graphs, first, strict=True)]),
        edge_attr=torch.cat(attributes) if attributes else None,
        labels=np.concatenate([graph.labels + start for graph, start in zip(graphs, clusters, strict=True)]),
        unit=graphs[0].unit if len({graph.unit for graph in graphs}) == 1 else None,
    )
    return union, first


def _starts(sizes: list[int]) -> IntArray:
    return np.cumsum([0, *sizes[:-1]], dtype=np.int64)


def _means(values: FloatArray, position: IntArray, number: int) -> FloatArray:
    """Mean of the rows of `values` that share a `position`, shape (number, D)."""
    total = np.stack([np.bincount(position, weights=column, minlength=number) for column in values.T], axis=1)
    return (total / np.bincount(position, minlength=number)[:, None]).astype(np.float32)
