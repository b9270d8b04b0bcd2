"""Anybody's transactions (or graph) as one graph with initial clusters: what the command `btcnb refine` starts from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from btcnb.data import AddressGraph, HeuristicConfig, Transactions, build_graph, heuristic_clusters, read_release
from btcnb.data.intervals import price_near
from btcnb.data.readers import READERS, RELEASE, sniff
from btcnb.data.readers.files import UNREADABLE, Member, members, reading
from btcnb.data.readers.release import release_splits
from btcnb.data.tables import plain, writable
from btcnb.errors import DataError

Missing = Literal["refuse", "alone"]
IntArray = npt.NDArray[np.int64]
Texts = npt.NDArray[Any]

COLUMNS = ("address", "cluster")


@dataclass(frozen=True)
class SourceData:
    """A source, read: its transactions, or the graph of a release, which has none."""

    kind: str
    transactions: Transactions | None
    graph: AddressGraph | None

    @property
    def blocks(self) -> tuple[int, int]:
        if self.transactions is not None:
            numbers = self.transactions.transactions["block_number"]
            return int(numbers.iloc[0]), int(numbers.iloc[-1])
        meta = {} if self.graph is None else self.graph.meta
        return int(meta.get("start_block") or 0), int(meta.get("end_block") or 0)

    def price(self, given: float | None) -> float | None:
        """USD for one bitcoin: the given number, what the release says, or the paper's where the blocks are its."""
        if given is not None:
            return given
        known = None if self.graph is None else self.graph.meta.get("price_usd")
        return price_near(self.blocks[0]) if known is None else known


@dataclass(frozen=True)
class Material:
    """What is refined: a graph, the initial cluster of every node, and which addresses were inputs together.

    names:  address of every node (its id, where a release tells no addresses)
    labels: int64 initial cluster per node; titles: name of cluster `labels[i]` is titles[labels[i]]
    groups: int64 per node, addresses that common inputs tie together; None where the transactions are not known
    unused: addresses of the user's file that are not in the source; alone: addresses of the source not in that file
    """

    graph: AddressGraph
    names: Texts
    labels: IntArray
    titles: Texts
    groups: IntArray | None
    unused: int = 0
    alone: int = 0


def read_source(path: str | Path) -> SourceData:
    """All of a source, whatever its kind; of a release, its only graph."""
    kind = sniff(path)
    if kind != RELEASE:
        return SourceData(kind, READERS[kind].read(str(path)), None)
    splits = release_splits(path)
    if len(splits) > 1:
        problem = f"holds {len(splits)} graphs ({', '.join(map(plain, splits))})"
        raise DataError(path, "release", problem, "name the folder of one of them")
    return SourceData(kind, None, read_release(path))


def material(
    data: SourceData, price: float | None, clusters: str | Path | None, missing: Missing, with_groups: bool
) -> Material:
    """The graph of a source with heuristic clusters, or with those of the file `clusters`."""
    txs = data.transactions
    if txs is None:
        return _of_release(data, price, clusters, missing)
    rules = HeuristicConfig() if price is None else HeuristicConfig(price_usd=price)
    found, titles, unused, alone = (
        (heuristic_clusters(txs, config=rules), None, 0, 0)
        if clusters is None
        else given_clusters(clusters, txs.addresses, missing)
    )
    groups = heuristic_clusters(txs, ("common_input",), rules) if with_groups else None
    graph = build_graph(txs, labels=found, price_usd=price)
    node = graph.nodes["node_id"].to_numpy()
    if titles is None:
        titles = np.arange(int(found.max(initial=-1)) + 1).astype(str).astype(object)
    return Material(
        replace(graph, meta={**graph.meta, "price_usd": price}),
        txs.addresses[node],
        found[node],
        titles,
        None if groups is None else groups[node],
        unused,
        alone,
    )


def _of_release(data: SourceData, price: float | None, clusters: str | Path | None, missing: Missing) -> Material:
    graph = data.graph
    assert graph is not None, "a source has transactions or a graph"
    graph = replace(graph, meta={**graph.meta, "price_usd": price})
    ids = graph.nodes["node_id"].to_numpy()
    names = ids.astype(str).astype(object) if graph.addresses is None else np.asarray(graph.addresses, dtype=object)
    if clusters is not None:
        labels, titles, unused, alone = given_clusters(clusters, names, missing)
        return Material(graph, names, labels, titles, None, unused, alone)
    labels, place = graph.labels(), pd.Index(ids).get_indexer(pd.Index(graph.clusters["node_id"]))
    titles = np.empty(int(labels.max()) + 1, dtype=object)
    titles[labels[place]] = graph.clusters["alias"].astype(str).to_numpy(dtype=object)
    return Material(graph, names, labels, titles, None)


def given_clusters(path: str | Path, addresses: Texts, missing: Missing) -> tuple[IntArray, Texts, int, int]:
    """Cluster per address by a file with the columns address and cluster, and the clusters' names.

    Also how many addresses of the file are not among `addresses`, and how many of these the file does not name: those
    are refused, or stand alone, each as a cluster named after itself.
    """
    table = _cluster_table(path).drop_duplicates()
    twice = table["address"].duplicated(keep=False).to_numpy()
    if twice.any():
        rows = table[twice]
        first = rows[rows["address"] == rows["address"].iloc[0]]
        problem = f"{plain(first['address'].iloc[0])} is in {' and '.join(map(plain, first['cluster'].iloc[:2]))}"
        raise DataError(path, "address", problem, "keep one cluster for each address")
    place = pd.Index(table["address"]).get_indexer(pd.Index(addresses))
    absent = np.flatnonzero(place < 0)
    if len(absent) and missing == "refuse":
        problem = (
            f"{len(absent):,} of {len(addresses):,} addresses of the source are missing, {_first(addresses, absent)}"
        )
        raise DataError(path, "address", problem, "add them, or let each stand alone with --missing alone")
    unused = len(table) - int((place >= 0).sum())
    names = np.empty(len(addresses), dtype=object)
    names[place >= 0] = table["cluster"].to_numpy(dtype=object)[place[place >= 0]]
    labels, titles = pd.factorize(names)  # those not named are -1
    labels = labels.astype(np.int64)
    labels[absent] = len(titles) + np.arange(len(absent))
    taken = {*titles}
    lone = [f"{name} (alone)" if name in taken else name for name in addresses[absent]]
    return labels, np.array([*titles, *lone], dtype=object), unused, len(absent)


def _first(addresses: Texts, absent: IntArray) -> str:
    return f"{'the' if len(absent) == 1 else 'the first'} is {plain(addresses[absent[0]])}"


def _cluster_table(path: str | Path) -> pd.DataFrame:
    """The two columns as text, none empty."""
    found = members(path)
    if len(found) != 1:
        raise DataError(path, "file", f"is a folder of {len(found)} files", "name one CSV or Parquet file")
    member = found[0]
    table = _parquet(member) if member.head(4) == b"PAR1" else _csv(member)
    if not len(table):
        raise DataError(path, "rows", "there are none", "give every address its cluster")
    for column in COLUMNS:
        empty = (table[column].isna() | (table[column] == "")).to_numpy()
        if empty.any():
            raise DataError(path, column, f"row {int(empty.argmax()) + 1} is empty", "fill or drop it")
        writable(table[column].to_numpy(dtype=object), plain(path), column)
    return table


def _csv(member: Member) -> pd.DataFrame:
    remedy = "give a CSV or Parquet file with the columns address and cluster"
    with reading(member.source, "CSV", remedy=remedy, errors=(*UNREADABLE, ValueError)):
        with member.open() as stream:
            names = pd.read_csv(stream, dtype="str", header=None, nrows=1, encoding="utf-8-sig").iloc[0].tolist()
        _require_columns(member.source, names)  # of two columns with one name pandas would take the first
        with member.open() as stream:
            table = pd.read_csv(stream, dtype="str", keep_default_na=False, encoding="utf-8-sig")
        if not isinstance(table.index, pd.RangeIndex):  # pandas takes the first column for names of rows
            raise ValueError("rows have more fields than there are columns")
    return table[list(COLUMNS)]


def _parquet(member: Member) -> pd.DataFrame:
    with reading(member.source, "Parquet"):
        file = pq.ParquetFile(member.seekable())
        _require_columns(member.source, file.schema_arrow.names)
        table = file.read(columns=list(COLUMNS))
        for column in COLUMNS:
            kind = table.schema.field(column).type
            kind = kind.value_type if pa.types.is_dictionary(kind) else kind
            is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
            if not (is_text or (column == "cluster" and pa.types.is_integer(kind))):
                raise DataError(member.source, column, f"holds {kind}, not text", "write it as text")
        texts = {column: table.column(column).cast(pa.string()).to_pandas() for column in COLUMNS}
    return pd.DataFrame(texts)


def _require_columns(source: str, names: list[str]) -> None:
    for column in COLUMNS:
        if names.count(column) != 1:
            problem = "column stands twice" if column in names else "column is missing"
            raise DataError(source, column, problem, "the file needs the columns address and cluster")
