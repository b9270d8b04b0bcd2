"""What an encoder reads: features, in-edges by destination, and the heuristic clusters."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data

from btcnb import gates
from btcnb.data.address_graph import AddressGraph
from btcnb.data.features import Unit
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
    unit:      what amounts in `x` and `edge_attr` were counted in; None where features came as plain arrays

    The arrays are checked on the way in, since compiled loops read what they are told to.
    """

    x: Tensor
    indptr: IntArray
    source: npt.NDArray[np.int32]
    edge_attr: Tensor | None
    labels: IntArray
    unit: Unit | None = None

    def __post_init__(self) -> None:
        nodes, edges = _sizes(self)
        if not (
            self.x.shape[0] == nodes >= 1
            and self.indptr[0] == 0
            and self.indptr[-1] == edges
            and (np.diff(self.indptr) >= 0).all()
            and (not edges or (self.source.min() >= 0 and self.source.max() < nodes))
            and (self.edge_attr is None or self.edge_attr.shape[0] == edges)
            and self.labels.shape == (nodes,)
            and self.labels.min() >= 0
            and self.labels.max() < nodes
        ):
            raise DataError("graph", "arrays", "do not fit together", "make the graph by `prepare` or `prepare_arrays`")

    @functools.cached_property
    def fingerprint(self) -> str:
        """A hash of the content, on which every number that a model makes of the graph depends."""
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
) -> PreparedGraph:
    """Check arrays and sort the edges by destination.

    x (N, F); edge_index (2, E), row 0 sends to row 1; labels (N,), any integers; edge_attr (E, D).
    Self-loops are dropped: every convolution here has its own way to see the node itself. `symmetrise` adds the reverse
    of each edge; where an edge then stands twice it is kept once, with the mean of the edge features.
    """
    with np.errstate(over="ignore"):  # what float32 cannot hold is refused below
        features = np.ascontiguousarray(gates.array(f"{name}, features", x, 2), dtype=np.float32)
    _require_rows(features, name, "features")
    edges = _edges(edge_index, len(features), name)
    attributes = None if edge_attr is None else _edge_attributes(edge_attr, edges.shape[1], name)
    if gates.flag("symmetrise", symmetrise):
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

    A graph that is prepared already is handed back as it is, unless its amounts were counted in another unit: then its
    features mean something else, and it is refused.
    """
    gates.choice("unit", unit, get_args(Unit))
    if isinstance(graph, PreparedGraph):
        if graph.unit not in (None, unit):
            raise DataError(name, "unit", f"amounts are in {graph.unit}, not {unit}", f"prepare it with unit={unit!r}")
        return graph
    gates.instance(name, graph, AddressGraph)
    landmarks = gates.whole("landmarks", landmarks, "[0, 65536]")
    if graph.num_nodes == 0:
        raise DataError(name, "nodes", "the graph is empty", "give a graph with at least one node")
    graph.validated(name)
    x = node_table(graph, unit=unit)
    if landmarks:
        x = np.concatenate([x, nearness(graph, landmarks)], axis=1)
    attributes = edge_table(graph, unit=unit) if gates.flag("edge_features", edge_features) else None
    return replace(prepare_arrays(x, graph.edge_index(), graph.labels(), attributes, symmetrise, name), unit=unit)


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
        unit=graphs[0].unit if len({graph.unit for graph in graphs}) == 1 else None,
    )
    return union, first


def _means(values: FloatArray, position: IntArray, number: int) -> FloatArray:
    """Mean of the rows of `values` that share a `position`, shape (number, D)."""
    total = np.zeros((number, values.shape[1]), dtype=np.float64)
    for column in range(values.shape[1]):
        total[:, column] = np.bincount(position, weights=values[:, column], minlength=number)
    return (total / np.bincount(position, minlength=number)[:, None]).astype(np.float32)


def _sizes(graph: PreparedGraph) -> tuple[int, int]:
    """Nodes and edges, once the types are known to be right."""
    for name, value, kind, ndim in (
        ("x", graph.x, torch.float32, 2),
        ("indptr", graph.indptr, np.int64, 1),
        ("source", graph.source, np.int32, 1),
        ("edge_attr", graph.edge_attr, torch.float32, 2),
        ("labels", graph.labels, np.int64, 1),
    ):
        if value is None and name == "edge_attr":
            continue
        if not isinstance(value, Tensor | np.ndarray) or value.dtype != kind or value.ndim != ndim:
            raise DataError("graph", name, "has another type or shape", f"pass {kind} of {ndim} dimensions")
    return len(graph.indptr) - 1, len(graph.source)


def _edges(edge_index: npt.ArrayLike, nodes: int, name: str) -> IntArray:
    given = gates.array(f"{name}, edges", edge_index, 2, "iu")
    if given.shape[0] != 2:
        raise DataError(name, "edges", f"shape {given.shape}", "pass whole numbers of shape (2, edges)")
    if given.size and (given.min() < 0 or given.max() >= nodes):
        raise DataError(name, "edges", "an edge names a node that has no features", "give every node a row")
    return given.astype(np.int64)


def _edge_attributes(edge_attr: npt.ArrayLike, edges: int, name: str) -> FloatArray:
    given = gates.array(f"{name}, edge features", edge_attr, (1, 2))
    with np.errstate(over="ignore"):
        table = (given[:, None] if given.ndim == 1 else given).astype(np.float32)
    if len(table) != edges or not table.shape[1] or not np.isfinite(table).all():
        problem = f"shape {table.shape} for {edges} edges, or beyond float32"
        raise DataError(name, "edge features", problem, "give one finite row per edge")
    return table


def _renumbered(labels: npt.ArrayLike | None, number: int, name: str) -> IntArray:
    if labels is None:
        return np.arange(number, dtype=np.int64)
    given = gates.array(f"{name}, clusters", labels, 1, "iub")
    if given.shape != (number,):
        raise DataError(name, "clusters", f"{given.shape} labels for {number} nodes", "give one label per node")
    return np.unique(given, return_inverse=True)[1].astype(np.int64)


def _require_rows(values: FloatArray, name: str, field: str) -> None:
    if values.size == 0 or len(values) > gates.LARGEST:
        raise DataError(name, field, f"shape {values.shape} holds no rows of numbers", "give one row per node")
    if not np.isfinite(values).all():
        raise DataError(name, field, "a value is beyond float32", "scale it down first")
