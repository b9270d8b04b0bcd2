"""The address graph: the three tables of the paper's dataset, and nothing that the tables do not say."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.data.tables import content_hash, gate, require
from btcnb.errors import DataError

IntArray = npt.NDArray[np.int64]

NODE_KINDS: dict[str, str] = {
    "node_id": "int64",
    "degree_in": "number",
    "degree_out": "number",
    "total_transaction_in": "number",
    "total_transaction_out": "number",
    # missing for a node that never received, or never sent
    "first_transaction_in": "number or missing",
    "last_transaction_in": "number or missing",
    "first_transaction_out": "number or missing",
    "last_transaction_out": "number or missing",
    "min_sent": "number or missing",
    "max_sent": "number or missing",
    "total_sent": "number or missing",
    "min_received": "number or missing",
    "max_received": "number or missing",
    "total_received": "number or missing",
}
EDGE_KINDS: dict[str, str] = {
    "a": "int64",
    "b": "int64",
    "reveal": "number",
    "last_seen": "number",
    "total": "number",
    "min_sent": "number",
    "max_sent": "number",
    "total_sent": "number",
}
CLUSTER_KINDS: dict[str, str] = {"node_id": "int64", "alias": "id or name"}
NODE_COLUMNS, EDGE_COLUMNS, CLUSTER_COLUMNS = tuple(NODE_KINDS), tuple(EDGE_KINDS), tuple(CLUSTER_KINDS)
"""Exactly the columns of the paper's table of dataset columns, in its order."""


@dataclass(frozen=True)
class AddressGraph:
    """A directed graph of addresses. Node order is the row order of `nodes`; ids may be any distinct integers.

    nodes, edges, clusters: tables with the columns above; amounts in satoshi, times as block numbers
    truth:     int64 owner per node row, where it is known, else None
    addresses: address string per node row, where it is known, else None
    meta:      plain values: `start_block`, `end_block`, `price_usd` (USD for one bitcoin at the start), `source`,
               `transactions`
    """

    nodes: pd.DataFrame
    edges: pd.DataFrame
    clusters: pd.DataFrame
    truth: IntArray | None = None
    addresses: npt.NDArray[Any] | None = None
    meta: dict[str, Any] = field(default_factory=dict)

    @property
    def num_nodes(self) -> int:
        return len(self.nodes)

    @property
    def num_edges(self) -> int:
        return len(self.edges)

    def edge_index(self) -> IntArray:
        """Directed edges as node row positions, shape (2, E): row 0 sends to row 1."""
        return np.stack([self._positions("edges", "a"), self._positions("edges", "b")])

    def labels(self) -> IntArray:
        """Heuristic cluster per node row, renumbered 0..k-1 in order of first appearance, shape (N,)."""
        alias = np.full(len(self.nodes), -1, dtype=np.int64)
        alias[self._positions("clusters", "node_id")] = pd.factorize(self.clusters["alias"])[0]
        if (alias < 0).any():
            problem = f"node {self.nodes['node_id'].iloc[int((alias < 0).argmax())]} has no cluster"
            raise DataError("graph", "clusters", problem, "give every node one row with an alias")
        return pd.factorize(alias)[0].astype(np.int64)

    def degree(self) -> IntArray:
        """Number of distinct neighbours-by-direction per node row: degree_in + degree_out, shape (N,)."""
        return (self.nodes["degree_in"] + self.nodes["degree_out"]).to_numpy(dtype=np.int64)

    def fingerprint(self) -> str:
        """A hash of the tables, of the truth, and of what features take from `meta`: equal for equal content."""
        about = [self.meta.get(name) for name in ("price_usd", "start_block")]
        return content_hash((self.nodes, self.edges, self.clusters), self.truth, about)

    def _positions(self, table: str, column: str) -> IntArray:
        """Row positions of the nodes that a column names; ids that are 0..N-1 in order are positions themselves."""
        ids, wanted = self.nodes["node_id"].to_numpy(), getattr(self, table)[column].to_numpy()
        in_order = np.array_equal(ids, np.arange(len(ids)))
        order = np.arange(len(ids)) if in_order else np.argsort(ids, kind="stable")
        position = np.asarray(wanted if in_order else np.searchsorted(ids[order], wanted), dtype=np.int64)
        known = (position >= 0) & (position < len(ids))
        known[known] = ids[order[position[known]]] == wanted[known]
        require(known, wanted, "graph", f"{table}.{column}", "name nodes of the nodes table")
        return order[position]

    def validated(self, source: str = "graph") -> AddressGraph:
        """Return self if it keeps the contract; raise `DataError` naming table, column and row otherwise."""
        ids = gate(self.nodes, NODE_KINDS, source, "nodes")["node_id"]
        edges = gate(self.edges, EDGE_KINDS, source, "edges")
        clusters = gate(self.clusters, CLUSTER_KINDS, source, "clusters")["node_id"]
        if not len(ids):
            raise DataError(source, "nodes", "the table is empty", "a graph needs at least one node")
        known, counts = np.unique(ids, return_counts=True)
        if len(known) != len(ids):
            raise DataError(source, "nodes.node_id", f"{known[counts > 1][0]} stands twice", "keep one row per node")
        for where, wanted in (("edges.a", edges["a"]), ("edges.b", edges["b"]), ("clusters.node_id", clusters)):
            require(np.isin(wanted, known), wanted, source, where, "name nodes of the nodes table")
        if len(clusters) != len(known) or len(np.unique(clusters)) != len(known):
            problem = f"{len(clusters)} rows for {len(known)} nodes"
            raise DataError(source, "clusters.node_id", problem, "list every node exactly once")
        return self
