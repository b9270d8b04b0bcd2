"""The address graph: the three tables of the paper's dataset, and nothing that the tables do not say."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.data.tables import require
from btcnb.errors import DataError

IntArray = npt.NDArray[np.int64]

NODE_COLUMNS = (
    "node_id",
    "degree_in",
    "degree_out",
    "total_transaction_in",
    "total_transaction_out",
    "first_transaction_in",
    "last_transaction_in",
    "first_transaction_out",
    "last_transaction_out",
    "min_sent",
    "max_sent",
    "total_sent",
    "min_received",
    "max_received",
    "total_received",
)
EDGE_COLUMNS = ("a", "b", "reveal", "last_seen", "total", "min_sent", "max_sent", "total_sent")
CLUSTER_COLUMNS = ("node_id", "alias")
"""Exactly the columns of the paper's table of dataset columns, in its order."""

NEVER_ABSENT = ("node_id", "degree_in", "degree_out", "total_transaction_in", "total_transaction_out")
"""Node columns that always hold a number; the others are NaN for a node that never sent (or never received)."""


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
        """Heuristic cluster per node row, renumbered 0..k-1 in order of first appearance, shape (N,).

        Raises `DataError` where a node has no cluster.
        """
        position = self._positions("clusters", "node_id")
        alias = self.clusters["alias"].to_numpy()
        covered = np.zeros(self.num_nodes, dtype=bool)
        covered[position[~pd.isna(alias)]] = True
        if not covered.all():
            node = self.nodes["node_id"].iloc[int(covered.argmin())]
            raise DataError("graph", "clusters.node_id", f"node {node} has no cluster", "list every node exactly once")
        of_node = np.empty(self.num_nodes, dtype=alias.dtype)
        of_node[position] = alias
        return pd.factorize(of_node)[0].astype(np.int64)

    def degree(self) -> IntArray:
        """Number of distinct neighbours-by-direction per node row: degree_in + degree_out, shape (N,)."""
        return (self.nodes["degree_in"] + self.nodes["degree_out"]).to_numpy(dtype=np.int64)

    def fingerprint(self) -> str:
        """A hash of the three tables: equal for equal content, also across processes."""
        digest = hashlib.sha256()
        for table in (self.nodes, self.edges, self.clusters):
            digest.update(",".join(map(str, table.columns)).encode())
            digest.update(np.ascontiguousarray(pd.util.hash_pandas_object(table, index=False).to_numpy()).tobytes())
        return digest.hexdigest()[:16]

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
        _require_columns(self.nodes, NODE_COLUMNS, source, "nodes")
        _require_columns(self.edges, EDGE_COLUMNS, source, "edges")
        _require_columns(self.clusters, CLUSTER_COLUMNS, source, "clusters")
        if not len(self.nodes):
            raise DataError(source, "nodes", "the table is empty", "a graph needs at least one node")
        _require_ids(self.nodes["node_id"], source, "nodes.node_id")
        ids = self.nodes["node_id"].to_numpy()
        unique, counts = np.unique(ids, return_counts=True)
        if len(unique) != len(ids):
            raise DataError(source, "nodes.node_id", f"{unique[counts > 1][0]} stands twice", "keep one row per node")
        _require_known(self.edges["a"], unique, source, "edges.a")
        _require_known(self.edges["b"], unique, source, "edges.b")
        _require_known(self.clusters["node_id"], unique, source, "clusters.node_id")
        listed, counts = np.unique(self.clusters["node_id"].to_numpy(), return_counts=True)
        if len(listed) != len(unique) or (counts > 1).any():
            raise DataError(
                source,
                "clusters.node_id",
                f"{len(self.clusters)} rows for {len(unique)} nodes",
                "list every node exactly once",
            )
        alias = self.clusters["alias"]
        strange = alias.isna() | alias.isin(["", np.inf, -np.inf])
        if strange.any():
            row = int(strange.to_numpy().argmax())
            raise DataError(
                source, "clusters.alias", f"row {row} is empty, NaN or infinite", "name every node's cluster"
            )
        _require_amounts(self.nodes, NODE_COLUMNS[1:], NEVER_ABSENT, source, "nodes")
        _require_amounts(self.edges, EDGE_COLUMNS[2:], EDGE_COLUMNS, source, "edges")
        return self


def _require_columns(table: pd.DataFrame, columns: tuple[str, ...], source: str, name: str) -> None:
    if not isinstance(table, pd.DataFrame):
        raise DataError(source, name, f"is {type(table).__name__}, not a table", "give a DataFrame")
    for column in columns:
        if list(table.columns).count(column) != 1:
            problem = "column stands twice" if column in table else "column is missing"
            raise DataError(source, f"{name}.{column}", problem, f"expected columns {', '.join(columns)}")


def _require_numbers(values: pd.Series, filled: bool, source: str, name: str) -> None:
    """Finite numbers of at least 0, absent ones only where that is allowed."""
    if values.dtype.kind not in "iuf":
        raise DataError(source, name, f"holds {values.dtype}, not numbers", "write plain numbers")
    missing = values.isna().to_numpy()
    if filled and missing.any():
        raise DataError(source, name, f"row {int(missing.argmax())} is empty or NaN", "fill it in")
    for problem, bad in (("negative", values < 0), ("infinite", values.isin([np.inf]))):
        if bad.any():
            row = int(bad.to_numpy(dtype=bool, na_value=False).argmax())
            raise DataError(
                source, name, f"row {row} is {problem} ({values.iloc[row]})", "write finite numbers from 0 on"
            )


def _require_ids(values: pd.Series, source: str, name: str) -> None:
    if values.dtype.kind not in "iuf":
        raise DataError(source, name, f"holds {values.dtype}, not numbers", "number the nodes")
    missing = values.isna().to_numpy()
    if missing.any():
        raise DataError(source, name, f"row {int(missing.argmax())} is empty or NaN", "every row needs a node id")
    broken = (values % 1 != 0).to_numpy()
    if values.dtype.kind == "f" and broken.any():
        row = int(broken.argmax())
        raise DataError(source, name, f"row {row} is {values.iloc[row]}, not a whole number", "number the nodes")
    if len(values) and not -(2**63) <= int(values.min()) <= int(values.max()) < 2**63:
        raise DataError(source, name, "does not fit 64 bits", "number the nodes")


def _require_known(values: pd.Series, known: IntArray, source: str, name: str) -> None:
    if len(values):
        _require_ids(values, source, name)
    wanted = values.to_numpy()
    position = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    bad = known[position] != wanted
    if bad.any():
        row = int(bad.argmax())
        raise DataError(
            source,
            name,
            f"row {row} names node {wanted[row]}, which the nodes table does not have",
            "drop the row or add the node",
        )


def _require_amounts(
    table: pd.DataFrame, columns: tuple[str, ...], filled: tuple[str, ...], source: str, name: str
) -> None:
    for column in columns:
        if len(table):
            _require_numbers(table[column], column in filled, source, f"{name}.{column}")
