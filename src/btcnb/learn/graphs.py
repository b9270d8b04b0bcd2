"""What an encoder reads: features, in-edges by destination, and the heuristic clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data

from btcnb.data.address_graph import AddressGraph
from btcnb.data.features import edge_features as edge_table
from btcnb.data.features import features as node_table
from btcnb.data.landmarks import landmarks as nearness
from btcnb.errors import DataError
from btcnb.learn import kernels

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
    fingerprint: hash of the tables the graph was made from
    """

    x: Tensor
    indptr: IntArray
    source: npt.NDArray[np.int32]
    edge_attr: Tensor | None
    labels: IntArray
    fingerprint: str = ""

    @property
    def num_nodes(self) -> int:
        return len(self.indptr) - 1

    @property
    def num_edges(self) -> int:
        return len(self.source)

    def in_degree(self) -> IntArray:
        """Number of in-neighbours, shape (N,)."""
        return np.diff(self.indptr)

    def edge_index(self) -> Tensor:
        """Edges as PyG wants them, int64, shape (2, E), sorted by target: row 0 sends to row 1."""
        target = np.repeat(np.arange(self.num_nodes), self.in_degree())
        return torch.from_numpy(np.stack([self.source.astype(np.int64), target]))

    def to_data(self) -> Data:
        """The graph as PyG's `Data`, for its loaders and convolutions."""
        return Data(x=self.x, edge_index=self.edge_index(), edge_attr=self.edge_attr, y=torch.from_numpy(self.labels))


def prepare_arrays(
    x: npt.ArrayLike,
    edge_index: npt.ArrayLike,
    labels: npt.ArrayLike | None = None,
    edge_attr: npt.ArrayLike | None = None,
    symmetrise: bool = True,
    name: str = "graph",
    fingerprint: str = "",
) -> PreparedGraph:
    """Check arrays and sort the edges by destination.

    x (N, F); edge_index (2, E), row 0 sends to row 1; labels (N,), any integers; edge_attr (E, D).
    Self-loops are dropped: every convolution here has its own way to see the node itself. `symmetrise` adds the reverse
    of each edge; where an edge then stands twice it is kept once, with the mean of the edge features.
    """
    features = np.ascontiguousarray(x, dtype=np.float32)
    _require_finite(features, name, "features")
    edges = np.asarray(edge_index, dtype=np.int64).reshape(2, -1)
    if edges.size and (edges.min() < 0 or edges.max() >= len(features)):
        raise DataError(name, "edges", "an edge names a node that has no features", "give every node a row")
    attributes = None if edge_attr is None else np.asarray(edge_attr, dtype=np.float32).reshape(edges.shape[1], -1)
    if attributes is not None:
        _require_finite(attributes, name, "edge features", empty_ok=True)
    if symmetrise:
        edges = np.concatenate([edges, edges[::-1]], axis=1)
        attributes = None if attributes is None else np.concatenate([attributes, attributes])
    indptr, source, order = kernels.in_edges(edges[0], edges[1], len(features))
    indptr, source, position = kernels.merge_parallel(indptr, source)
    return PreparedGraph(
        x=torch.from_numpy(features),
        indptr=indptr,
        source=source,
        edge_attr=None if attributes is None else torch.from_numpy(_means(attributes[order], position, len(source))),
        labels=_renumbered(labels, len(features), name),
        fingerprint=fingerprint,
    )


def prepare(
    graph: AddressGraph | PreparedGraph,
    symmetrise: bool = True,
    edge_features: bool = False,
    landmarks: int = 0,
    name: str = "graph",
) -> PreparedGraph:
    """An address graph with the paper's preprocessing (log, 5 to 95 % scaling, dollars) and optional landmarks.

    Nearness to landmarks ignores the direction of edges, also where message passing does not.

    A graph that is prepared already is handed back as it is.
    """
    if isinstance(graph, PreparedGraph):
        return graph
    if graph.num_nodes == 0:
        raise DataError(name, "nodes", "the graph is empty", "give a graph with at least one node")
    x = node_table(graph)
    if landmarks:
        x = np.concatenate([x, nearness(graph, landmarks)], axis=1)
    attributes = edge_table(graph) if edge_features else None
    return prepare_arrays(
        x, graph.edge_index(), graph.labels(), attributes, symmetrise, name=name, fingerprint=graph.fingerprint()
    )


def disjoint_union(graphs: Sequence[PreparedGraph]) -> tuple[PreparedGraph, IntArray]:
    """Put graphs side by side, with no edge between them; returns the union and the first node of each, shape (G,)."""
    sizes = np.array([graph.num_nodes for graph in graphs])
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    edges = np.concatenate([[0], np.cumsum([graph.num_edges for graph in graphs])[:-1]]).astype(np.int64)
    clusters = np.concatenate([[0], np.cumsum([int(graph.labels.max()) + 1 for graph in graphs])[:-1]])
    attributes = [graph.edge_attr for graph in graphs if graph.edge_attr is not None]
    union = PreparedGraph(
        x=torch.cat([graph.x for graph in graphs]),
        indptr=np.concatenate(
            [[0], *(graph.indptr[1:] + start for graph, start in zip(graphs, edges, strict=True))]
        ).astype(np.int64),
        source=np.concatenate(
            [graph.source + start for graph, start in zip(graphs, first.astype(np.int32), strict=True)]
        ),
        edge_attr=torch.cat(attributes) if attributes else None,
        labels=np.concatenate([graph.labels + start for graph, start in zip(graphs, clusters, strict=True)]),
        fingerprint="+".join(graph.fingerprint for graph in graphs),
    )
    return union, first


def _means(values: FloatArray, position: IntArray, number: int) -> FloatArray:
    """Mean of the rows of `values` that share a `position`, shape (number, D)."""
    total = np.zeros((number, values.shape[1]), dtype=np.float64)
    for column in range(values.shape[1]):
        total[:, column] = np.bincount(position, weights=values[:, column], minlength=number)
    return (total / np.bincount(position, minlength=number)[:, None]).astype(np.float32)


def _renumbered(labels: npt.ArrayLike | None, number: int, name: str) -> IntArray:
    if labels is None:
        return np.arange(number, dtype=np.int64)
    given = np.asarray(labels)
    if given.shape != (number,):
        raise DataError(name, "clusters", f"{given.shape} labels for {number} nodes", "give one label per node")
    return np.unique(given, return_inverse=True)[1].astype(np.int64)


def _require_finite(values: npt.NDArray[Any], name: str, field: str, empty_ok: bool = False) -> None:
    if values.ndim != 2 or (not empty_ok and values.size == 0):
        raise DataError(name, field, f"shape {values.shape} holds no rows of numbers", "give one row per node")
    bad = ~np.isfinite(values)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise DataError(
            name, field, f"row {row}, column {column} is {values[row, column]}", "impute missing values first"
        )
