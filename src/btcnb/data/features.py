"""Node and edge features as the GNN sees them (paper, appendix "Feature Preprocessing").

Every column of the node (or edge) table goes through x ↦ log(1+x), then through min–max scaling between its own 5th
and 95th percentile in this graph, and missing values become 0. Amounts appear twice: in bitcoins, and in US dollars at
the price of the graph's first day. Graphs hold whole satoshi; the unit matters because the logarithm bends where x is
about 1: log(1 + bitcoins) is nearly linear for most payments, log(1 + satoshi) is a logarithm throughout.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import wasserstein_distance

from btcnb.data.checks import positive, real
from btcnb.data.graph import EDGE_COLUMNS, NODE_COLUMNS, AddressGraph
from btcnb.data.graph_construction import _occurring, _per_node
from btcnb.data.intervals import SATOSHI_PER_BITCOIN
from btcnb.data.transactions import Transactions
from btcnb.data.transfers import Edges, Transfers, edge_rows, received_extremes, transfers
from btcnb.errors import DataError, ParameterError
from btcnb.gates import choice, flag, instance

FloatArray = npt.NDArray[np.float32]
Blocks = Literal["absolute", "relative"]
Unit = Literal["bitcoin", "satoshi"]

NODE_FEATURES = NODE_COLUMNS[1:]
EDGE_FEATURES = EDGE_COLUMNS[2:]
BLOCK_COLUMNS = (
    "first_transaction_in",
    "last_transaction_in",
    "first_transaction_out",
    "last_transaction_out",
    "reveal",
    "last_seen",
)
AMOUNT_COLUMNS = ("min_sent", "max_sent", "total_sent", "min_received", "max_received", "total_received")
SATOSHI_PER: dict[Unit, float] = {"bitcoin": float(SATOSHI_PER_BITCOIN), "satoshi": 1.0}
"""Satoshi in one unit of amounts."""


def feature_names(usd: bool = True) -> list[str]:
    """Column names of `features`: the node columns without the id, then the amounts in dollars (`…_usd`)."""
    return _names(NODE_FEATURES, flag("usd", usd))


def edge_feature_names(usd: bool = True) -> list[str]:
    """Column names of `edge_features`."""
    return _names(EDGE_FEATURES, flag("usd", usd))


def features(
    graph: AddressGraph,
    usd: bool | None = None,
    *,
    price_usd: float | None = None,
    clip: bool = False,
    percentiles: tuple[float, float] = (5.0, 95.0),
    blocks: Blocks = "absolute",
    unit: Unit = "bitcoin",
) -> FloatArray:
    """Scaled node features, shape (N, 20), or (N, 14) without dollars; float32, always finite.

    usd: add the six amounts in US dollars. None: if the price is known; True: a missing price is an error.
    price_usd: USD for one bitcoin; the graph's own `meta["price_usd"]` if None.
    clip: cut scaled values off to [0, 1]. The paper does not say; not clipping keeps the hubs apart: the default.
    percentiles: the two percentiles, over the nodes that have a value, that become 0 and 1. Where they coincide (most
        addresses have one and the same value) the column's own minimum and maximum stand in; a constant column is 0.
    blocks: block indices go through the logarithm as they are (`"absolute"`, the paper's words: all features are
        log-transformed; over a short interval that is as good as linear), or counted from the graph's first block
        (`"relative"`, which spreads the first blocks out).
    unit: what amounts are counted in before the logarithm: `"bitcoin"`, the paper's words, or `"satoshi"`. Dollars are
        dollars either way.
    """
    return _scaled(graph, "nodes", usd, price_usd, clip, percentiles, blocks, unit)


def edge_features(
    graph: AddressGraph,
    usd: bool | None = None,
    *,
    price_usd: float | None = None,
    clip: bool = False,
    percentiles: tuple[float, float] = (5.0, 95.0),
    blocks: Blocks = "absolute",
    unit: Unit = "bitcoin",
) -> FloatArray:
    """Scaled edge features in the row order of `graph.edges`, shape (E, 9), (E, 6) without dollars; as `features`."""
    return _scaled(graph, "edges", usd, price_usd, clip, percentiles, blocks, unit)


def scale_column(
    values: npt.NDArray[np.float64], percentiles: tuple[float, float] = (5.0, 95.0), clip: bool = False
) -> npt.NDArray[np.float64]:
    """x ↦ (log(1+x) − p_low) / (p_high − p_low), percentiles of log(1+x) where x is known; 0 where x is NaN."""
    if not (isinstance(values, np.ndarray) and values.dtype.kind in "iuf"):
        raise ParameterError("values must be an array of numbers.")
    _check_scaling(percentiles, clip)
    logs = np.log1p(_not_negative("values", values.astype(np.float64)))
    known = ~np.isnan(logs)
    seen = logs[known]
    if not len(seen):
        return np.zeros_like(logs)
    low, high = np.percentile(seen, percentiles)
    if high - low <= 1e-12 * max(abs(low), 1.0):  # equal but for rounding
        low, high = seen.min(), seen.max()
    if high == low:
        return np.zeros_like(logs)
    scaled = (logs - low) / (high - low)
    if clip:
        np.clip(scaled, 0.0, 1.0, out=scaled)
    scaled[~known] = 0.0
    return scaled


def _scaled(
    graph: AddressGraph,
    kind: Literal["nodes", "edges"],
    usd: bool | None,
    price_usd: float | None,
    clip: bool,
    percentiles: tuple[float, float],
    blocks: Blocks,
    unit: Unit,
) -> FloatArray:
    instance("graph", graph, AddressGraph)
    table, names = (graph.nodes, NODE_FEATURES) if kind == "nodes" else (graph.edges, EDGE_FEATURES)
    choice("blocks", blocks, get_args(Blocks))
    satoshi = SATOSHI_PER[choice("unit", unit, get_args(Unit))]
    _check_scaling(percentiles, clip)
    if usd is None:
        usd = price_usd is not None or graph.meta.get("price_usd") is not None
    flag("usd", usd)
    dollars = _dollars_per_satoshi(graph, price_usd) if usd else None
    first_block = int(graph.meta.get("start_block", _first_block(graph))) if blocks == "relative" else 0
    out = np.empty((len(table), len(_names(names, usd))), dtype=np.float32)
    columns = _columns(table, names, satoshi, dollars, first_block)  # one float64 column at a time
    for position, values in enumerate(columns):
        out[:, position] = scale_column(values, percentiles, clip)
    return out


def _columns(
    table: pd.DataFrame, names: Sequence[str], satoshi: float, dollars: float | None, first_block: int
) -> Iterator[npt.NDArray[np.float64]]:
    for name in names:
        values = _numbers(table, name)
        if first_block and name in BLOCK_COLUMNS:
            values = np.maximum(values - first_block, 0.0)
        yield values / satoshi if name in AMOUNT_COLUMNS else values
    if dollars is not None:
        for name in names:
            if name in AMOUNT_COLUMNS:
                yield _numbers(table, name) * dollars


def _numbers(table: pd.DataFrame, name: str) -> npt.NDArray[np.float64]:
    try:
        values = table[name].to_numpy(dtype=np.float64, na_value=np.nan)
    except (KeyError, TypeError, ValueError) as error:
        problem = "is missing" if name not in table else "holds something other than numbers"
        raise DataError("features", name, problem, "give the columns of the paper's tables") from error
    return _not_negative(name, values)


def _not_negative(name: str, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    low, high = np.nanmin(values, initial=0.0), np.nanmax(values, initial=0.0)
    if low < 0 or np.isinf(high):
        problem = "holds a negative value" if low < 0 else "holds an infinite value"
        raise DataError("features", name, problem, "amounts, counts and blocks are finite and at least 0")
    return values


def _names(names: Sequence[str], usd: bool) -> list[str]:
    return [*names, *(f"{name}_usd" for name in names if usd and name in AMOUNT_COLUMNS)]


def _dollars_per_satoshi(graph: AddressGraph, price_usd: float | None) -> float:
    price = graph.meta.get("price_usd") if price_usd is None else price_usd
    if price is None:
        raise ParameterError(
            "the graph does not know the price of a bitcoin on its first day; give price_usd=…, or usd=False to leave "
            "the dollar columns out."
        )
    return positive("price_usd", price, " of USD for one bitcoin") / SATOSHI_PER_BITCOIN


def _first_block(graph: AddressGraph) -> int:
    return int(graph.edges["reveal"].min()) if graph.num_edges else 0


def _check_scaling(percentiles: tuple[float, float], clip: bool) -> None:
    flag("clip", clip)
    if not isinstance(percentiles, tuple | list) or len(percentiles) != 2:
        raise ParameterError(f"percentiles are {percentiles!r}, but must be a pair, such as (5, 95).")
    low, high = (real("a percentile", value, 0, 100) for value in percentiles)
    if low >= high:
        raise ParameterError(f"percentiles are {percentiles!r}; they must rise.")


IntArray = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
PERCENTILES = (5.0, 95.0)
SENT = ("first_transaction_out", "last_transaction_out", "min_sent", "max_sent", "total_sent")
RECEIVED = ("first_transaction_in", "last_transaction_in", "min_received", "max_received", "total_received")
"""Columns that are known of addresses that sent, and of those that received; the others are known of all."""


class LocalArrays(NamedTuple):
    """A graph whose nodes are the addresses of some transactions, all of them, in their order."""

    x: npt.NDArray[np.float32]  # (A, 20), or (A, 14) without a price: as `features`
    edges: IntArray  # (2, E): row 0 sends to row 1, in the order of `build_graph`


def local_arrays(txs: Transactions, price_usd: float | None, unit: Unit) -> LocalArrays:
    """`features(build_graph(txs, …, price_usd), unit=unit)` and its edges; no price: no dollars.

    Raises `DataError` where an address occurs in none of the transactions: it would be no node.
    """
    require_all_occur(txs)
    flows = transfers(txs, "proportional", "gross")
    rows = edge_rows(flows, txs.num_addresses, full=False)
    columns, known = _local_columns(flows, rows, txs.num_addresses)
    scaled: dict[str, Floats] = {}
    satoshi, dollars = SATOSHI_PER[unit], None if price_usd is None else price_usd / SATOSHI_PER_BITCOIN
    for names, there in known:
        units = [columns[name] / satoshi if name in AMOUNT_COLUMNS else columns[name] for name in names]
        wanted = dict(zip(names, units, strict=True))
        if dollars is not None:
            wanted |= {f"{name}_usd": columns[name] * dollars for name in names if name in AMOUNT_COLUMNS}
        scaled |= dict(zip(wanted, _local_scaled(np.stack(list(wanted.values())), there), strict=True))
    order = [*NODE_FEATURES, *(f"{name}_usd" for name in NODE_FEATURES if f"{name}_usd" in scaled)]
    x = np.empty((txs.num_addresses, len(order)), dtype=np.float32)
    for position, name in enumerate(order):
        x[:, position] = scaled[name]
    return LocalArrays(x, np.stack([rows.a, rows.b]))


def require_all_occur(txs: Transactions) -> None:
    """Raise `DataError` where an address occurs in none of the transactions."""
    missing = int((~_occurring(txs)).sum())
    if missing:
        problem = f"{missing} of a piece occur in none of its transactions"
        raise DataError(txs.source, "addresses", problem, "cut pieces by `select` or `sample_around`")


Known = list[tuple[tuple[str, ...], npt.NDArray[np.bool_]]]


def _local_columns(flows: Transfers, rows: Edges, number: int) -> tuple[dict[str, Floats], Known]:
    """The node columns of the paper's table, and which of them are known of whom."""
    columns: dict[str, IntArray] = {}
    for side, verb, end in (("out", "sent", rows.a), ("in", "received", rows.b)):
        degree, total, first, last, _, _, value = _per_node(end, rows, number)
        columns |= {f"degree_{side}": degree, f"total_transaction_{side}": total}
        columns |= {f"first_transaction_{side}": first, f"last_transaction_{side}": last, f"total_{verb}": value}
    columns |= {"min_sent": rows.least_of_sender, "max_sent": rows.most_of_sender}
    columns["min_received"], columns["max_received"] = received_extremes(flows, number, full=False)
    always = tuple(name for name in NODE_FEATURES if name not in SENT + RECEIVED)
    known: Known = [
        (always, np.ones(number, dtype=bool)),
        (SENT, columns["degree_out"] > 0),
        (RECEIVED, columns["degree_in"] > 0),
    ]
    return {name: values.astype(np.float64) for name, values in columns.items()}, known


def _local_scaled(values: Floats, known: npt.NDArray[np.bool_]) -> Floats:
    """`scale_column` of every row of (columns, A), known of the same addresses; 0 elsewhere."""
    out = np.zeros_like(values)
    if not known.any():
        return out
    logs = np.log1p(values[:, known])
    low, high = np.percentile(logs, PERCENTILES, axis=1)
    level = high - low <= 1e-12 * np.maximum(np.abs(low), 1.0)  # equal but for rounding
    low, high = np.where(level, logs.min(axis=1), low), np.where(level, logs.max(axis=1), high)
    some = high != low
    out[np.ix_(some, known)] = (logs[some] - low[some, None]) / (high - low)[some, None]
    return out


def feature_shift(graphs: Mapping[str, AddressGraph], unit: Unit = "bitcoin") -> pd.DataFrame:
    """Per column of `features`: how far two graphs lie apart `before` and `after` scaling, and the column's `kind`.

    The distance is Wasserstein's, after the logarithm, in units of a graph's own 5–95 % range, over the nodes that have
    a value; the median over pairs of graphs. NaN where no two graphs have values. `kind`: block numbers, amounts (in
    `unit`), counts, and, where every graph knows its price, dollars.
    """
    usd = all(graph.meta.get("price_usd") is not None for graph in graphs.values())
    scaled = {name: features(graph, usd=usd, unit=unit) for name, graph in graphs.items()}
    columns = feature_names(usd=usd)
    rows = [_shift(graphs, scaled, column, position, unit) for position, column in enumerate(columns)]
    table = pd.DataFrame(rows, index=columns, columns=["before", "after"])
    return table.assign(kind=[_kind(column) for column in columns])


def dollar_correlations(graph: AddressGraph) -> pd.DataFrame:
    """Pearson's correlation of each scaled dollar column with its twin, one row per amount, one column per unit.

    Over the nodes that have a value: where it is missing both twins are 0, which says nothing. Ranks always agree; what
    is measured is how differently the two bend the same order. NaN without a price, or where a column is constant.
    """
    units = get_args(Unit)
    table = pd.DataFrame(np.nan, index=pd.Index(AMOUNT_COLUMNS, name="amount"), columns=list(units))
    if graph.meta.get("price_usd") is None:
        return table
    names = feature_names()
    for unit in units:
        scaled = features(graph, usd=True, unit=unit).astype(np.float64)
        for amount in AMOUNT_COLUMNS:
            known = graph.nodes[amount].notna().to_numpy()
            twins = [scaled[known, names.index(name)] for name in (amount, f"{amount}_usd")]
            if all(len(values) and np.ptp(values) > 0 for values in twins):
                table.loc[amount, unit] = np.corrcoef(*twins)[0, 1]
    return table


def _shift(
    graphs: Mapping[str, AddressGraph], scaled: Mapping[str, FloatArray], column: str, position: int, unit: Unit
) -> tuple[float, float]:
    raw = {name: graph.nodes[column.removesuffix("_usd")].to_numpy(dtype=float) for name, graph in graphs.items()}
    known = {name: ~np.isnan(values) for name, values in raw.items() if not np.isnan(values).all()}
    logs = {name: np.log1p(raw[name][rows] * _per_satoshi(graphs[name], column, unit)) for name, rows in known.items()}
    ranges = [np.ptp(np.percentile(values, [5, 95])) or np.ptp(values) for values in logs.values()]
    spread = float(np.median(ranges)) if ranges else 0.0
    pairs = list(combinations(known, 2))
    if not pairs or not spread:
        return float("nan"), float("nan")
    after = {name: scaled[name][rows, position].astype(np.float64) for name, rows in known.items()}
    return (
        float(np.median([wasserstein_distance(logs[i], logs[j]) / spread for i, j in pairs])),
        float(np.median([wasserstein_distance(after[i], after[j]) for i, j in pairs])),
    )


def _per_satoshi(graph: AddressGraph, column: str, unit: Unit) -> float:
    """What the values of a column are multiplied by before the logarithm."""
    if column.endswith("_usd"):
        return float(graph.meta["price_usd"]) / SATOSHI_PER["bitcoin"]
    return 1 / SATOSHI_PER[unit] if column in AMOUNT_COLUMNS else 1.0


def _kind(column: str) -> str:
    if column.startswith(("first", "last")):
        return "block numbers"
    if column.endswith("_usd"):
        return "dollars"
    return "amounts" if column in AMOUNT_COLUMNS else "counts"
