"""The address graph: the three tables of the paper's dataset, and nothing that the tables do not say."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.errors import DataError
from btcnb.store import storable

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


@storable("address-graph")
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
        positions = self._positions()
        return np.stack([positions(self.edges["a"].to_numpy()), positions(self.edges["b"].to_numpy())])

    def labels(self) -> IntArray:
        """Heuristic cluster per node row, renumbered 0..k-1 in order of first appearance, shape (N,)."""
        alias = np.empty(self.num_nodes, dtype=self.clusters["alias"].to_numpy().dtype)
        alias[self._positions()(self.clusters["node_id"].to_numpy())] = self.clusters["alias"].to_numpy()
        return pd.factorize(alias)[0].astype(np.int64)

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

    def _positions(self) -> Any:
        """A function from node ids to row positions; the identity when ids are 0..N-1 in order."""
        ids = self.nodes["node_id"].to_numpy()
        if np.array_equal(ids, np.arange(len(ids))):
            return lambda wanted: np.asarray(wanted, dtype=np.int64)
        order = np.argsort(ids, kind="stable")
        ordered = ids[order]
        return lambda wanted: order[np.searchsorted(ordered, wanted)].astype(np.int64)

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
        _require_amounts(self.nodes, NODE_COLUMNS[1:], NEVER_ABSENT, source, "nodes")
        _require_amounts(self.edges, EDGE_COLUMNS[2:], EDGE_COLUMNS, source, "edges")
        return self


def _require_columns(table: pd.DataFrame, columns: tuple[str, ...], source: str, name: str) -> None:
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise DataError(source, f"{name}.{missing[0]}", "column is missing", f"expected columns {', '.join(columns)}")


def _require_ids(values: pd.Series, source: str, name: str) -> None:
    if not pd.api.types.is_numeric_dtype(values):
        raise DataError(source, name, f"holds {values.dtype}, not numbers", "number the nodes")
    missing = values.isna().to_numpy()
    if missing.any():
        raise DataError(source, name, f"row {int(missing.argmax())} is empty or NaN", "every row needs a node id")
    if pd.api.types.is_float_dtype(values) and (values % 1 != 0).any():
        row = int((values % 1 != 0).to_numpy().argmax())
        raise DataError(source, name, f"row {row} is {values.iloc[row]}, not a whole number", "number the nodes")


def _require_known(values: pd.Series, known: IntArray, source: str, name: str) -> None:
    wanted = values.to_numpy()
    if values.isna().any():
        raise DataError(
            source, name, f"row {int(values.isna().to_numpy().argmax())} is empty or NaN", "every row needs a node id"
        )
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
        values = table[column]
        if not pd.api.types.is_numeric_dtype(values):
            raise DataError(source, f"{name}.{column}", f"holds {values.dtype}, not numbers", "write plain numbers")
        missing = values.isna().to_numpy()
        if column in filled and missing.any():
            raise DataError(source, f"{name}.{column}", f"row {int(missing.argmax())} is empty or NaN", "fill it in")
        negative = (values < 0).to_numpy(dtype=bool, na_value=False)
        if negative.any():
            raise DataError(
                source,
                f"{name}.{column}",
                f"row {int(negative.argmax())} is negative ({values.iloc[int(negative.argmax())]})",
                "amounts and counts are at least 0",
            )
