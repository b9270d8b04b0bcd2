"""Features and edges of many small graphs: what `features` makes of `build_graph`, without making tables of it.

A table costs as much as the numbers of a thousand addresses, and there is a graph for each of thousands of labelled
transactions. So columns stay arrays here, and those that are known of the same addresses are scaled together. The
numbers are the same to the last bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from btcnb.data._transfers import Edges, Transfers, edge_rows, received_extremes, transfers
from btcnb.data.features import AMOUNT_COLUMNS, NODE_FEATURES, SATOSHI_PER, Unit
from btcnb.data.graph_construction import _occurring, _per_node
from btcnb.data.intervals import SATOSHI_PER_BITCOIN
from btcnb.data.transactions import Transactions
from btcnb.errors import DataError

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
    columns, known = _columns(flows, rows, txs.num_addresses)
    scaled: dict[str, Floats] = {}
    satoshi, dollars = SATOSHI_PER[unit], None if price_usd is None else price_usd / SATOSHI_PER_BITCOIN
    for names, there in known:
        units = [columns[name] / satoshi if name in AMOUNT_COLUMNS else columns[name] for name in names]
        wanted = dict(zip(names, units, strict=True))
        if dollars is not None:
            wanted |= {f"{name}_usd": columns[name] * dollars for name in names if name in AMOUNT_COLUMNS}
        scaled |= dict(zip(wanted, _scaled(np.stack(list(wanted.values())), there), strict=True))
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


def _columns(flows: Transfers, rows: Edges, number: int) -> tuple[dict[str, Floats], Known]:
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


def _scaled(values: Floats, known: npt.NDArray[np.bool_]) -> Floats:
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
