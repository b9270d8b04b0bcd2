"""The address graph of a set of transactions (paper, section "Data Acquisition and Graph Construction")."""

from __future__ import annotations

from typing import Any, Literal, Unpack, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
from numba import njit

from btcnb.data.graph import EDGE_COLUMNS, NODE_COLUMNS, AddressGraph
from btcnb.data.heuristics import HeuristicConfig, heuristic_clusters
from btcnb.data.intervals import Interval, price_near
from btcnb.data.transactions import Transactions
from btcnb.data.transfers import Edges, Flow, SplitValue, Transfers, edge_rows, received_extremes, transfers
from btcnb.gates import choice

IntArray = npt.NDArray[np.int64]
Extremes = Literal["transaction", "transfer"]


def build_graph(
    txs: Transactions,
    labels: npt.ArrayLike | None = None,
    price_usd: float | None = None,
    *,
    split_value: SplitValue = "proportional",
    flow: Flow = "gross",
    extremes: Extremes = "transaction",
    keep_isolated: bool = True,
    **interval: Unpack[Interval],
) -> AddressGraph:
    """The directed graph of addresses, with exactly the columns of the paper's table of dataset columns.

    **Nodes** are the addresses that occur in the transactions; `node_id` is the address id in `txs`. Outputs without
    an address (nulldata) are left out, and inputs whose address is unknown. `keep_isolated=False` drops addresses
    without any edge.

    **Edges**: every transaction gives a transfer from each distinct input address to each distinct output address. A
    transfer from an address to itself (change that comes back) is no edge. A coinbase has no senders, so it gives nodes
    but no edges. An edge collects its transfers: first and last block, number, smallest, largest and total value.

    **Value of a transfer** (the paper does not say; `split_value`): with several senders, each output is split
    `"proportional"` to the senders' input values, or `"equal"`; rounded to whole satoshi so that the parts of an output
    add up to the output exactly. `"full"` credits every sender with the whole output, so value is counted once per
    sender. Where an input's value is unknown, or all are zero, that transaction's senders share equally. The fee
    belongs to nobody.

    flow: `"gross"` as above; `"net"` balances what an address pays and gets within one transaction first, so that only
        net payers send and only net payees receive (the authors' public pipeline).
    extremes: node columns min/max of sent and received are taken over sums per `"transaction"` (the table's words) or
        over single `"transfer"`s, that is over the node's edges (the authors' public pipeline).
    labels: one cluster label per address of `txs`; if None, all default rules, on these transactions, at that price.
    price_usd: USD for one bitcoin at the start, kept in `meta` for `features`; if None, that of the paper's interval
        that holds the first block, or unknown outside of them.
    start_block, end_block: the sampled interval, kept in `meta`; first and last block of the transactions if None.

    Columns about sending are NaN for an address that never sent, those about receiving for one that never received.
    """
    choice("split_value", split_value, get_args(SplitValue))
    choice("flow", flow, get_args(Flow))
    choice("extremes", extremes, get_args(Extremes))
    blocks = txs.transactions["block_number"].to_numpy()
    price_usd = price_near(int(blocks[0])) if price_usd is None else price_usd
    flows = transfers(txs, split_value, flow)
    full = split_value == "full"
    rows = edge_rows(flows, txs.num_addresses, full)
    nodes = _node_table(flows, rows, txs.num_addresses, full, extremes)
    keep = _occurring(txs) if keep_isolated else (nodes["degree_in"] + nodes["degree_out"] > 0).to_numpy()
    nodes = nodes[keep].reset_index(drop=True)
    edges = pd.DataFrame({name: getattr(rows, name) for name in EDGE_COLUMNS}, copy=False)
    if labels is None:
        labels = heuristic_clusters(txs, config=rules_at(price_usd))
    alias = np.asarray(labels, dtype=np.int64)
    meta = {
        "start_block": int(blocks[0]),
        "end_block": int(blocks[-1]),
        **{name: block for name, block in interval.items() if block is not None},
        "price_usd": None if price_usd is None else float(price_usd),
        "source": txs.source,
        "transactions": len(txs),
    }
    return AddressGraph(
        nodes=nodes,
        edges=edges,
        clusters=pd.DataFrame({"node_id": nodes["node_id"].to_numpy(), "alias": alias[keep]}),
        truth=None if txs.truth is None else txs.truth.owner[keep],
        addresses=txs.addresses[keep],
        meta=meta,
    )


def rules_at(price_usd: float | None) -> HeuristicConfig:
    """The thresholds of the heuristics at a price of one bitcoin; None: unknown, the default's."""
    return HeuristicConfig() if price_usd is None else HeuristicConfig(price_usd=price_usd)


def _occurring(txs: Transactions) -> npt.NDArray[np.bool_]:
    found = np.zeros(txs.num_addresses + 1, dtype=bool)  # the last slot catches address -1
    found[txs.inputs["address"].to_numpy()] = True
    found[txs.outputs["address"].to_numpy()] = True
    return found[:-1]


def _node_table(flows: Transfers, rows: Edges, number: int, full: bool, extremes: Extremes) -> pd.DataFrame:
    """One row per address of the transactions, whether it occurs or not."""
    sums = [_per_node(end, rows, number) for end in (rows.a, rows.b)]
    columns: dict[str, Any] = {"node_id": np.arange(number)}
    for side, verb, values in (("out", "sent", sums[0]), ("in", "received", sums[1])):
        degree, transfers_, first, last, smallest, largest, total = values
        if extremes == "transaction":
            smallest, largest = (
                (rows.least_of_sender, rows.most_of_sender)
                if verb == "sent"
                else received_extremes(flows, number, full)
            )
        none = degree == 0
        columns |= {f"degree_{side}": degree, f"total_transaction_{side}": transfers_}
        columns |= {f"first_transaction_{side}": _or_nan(first, none), f"last_transaction_{side}": _or_nan(last, none)}
        columns |= {f"min_{verb}": _or_nan(smallest, none), f"max_{verb}": _or_nan(largest, none)}
        columns[f"total_{verb}"] = _or_nan(total, none)
    return pd.DataFrame({name: columns[name] for name in NODE_COLUMNS}, copy=False)


def _or_nan(values: IntArray, none: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    return np.where(none, np.nan, values.astype(np.float64))


@njit(cache=True)
def _per_node(node: IntArray, edges: Edges, number: int) -> tuple[IntArray, ...]:
    """Sums and extremes of the edges at one end, per address."""
    reveal, last_seen, total = edges.reveal, edges.last_seen, edges.total
    min_sent, max_sent, total_sent = edges.min_sent, edges.max_sent, edges.total_sent
    degree = np.zeros(number, dtype=np.int64)
    transfers_ = np.zeros(number, dtype=np.int64)
    first = np.zeros(number, dtype=np.int64)
    last = np.zeros(number, dtype=np.int64)
    smallest = np.zeros(number, dtype=np.int64)
    largest = np.zeros(number, dtype=np.int64)
    value = np.zeros(number, dtype=np.int64)
    for e in range(len(node)):
        v = node[e]
        if degree[v] == 0:
            first[v], smallest[v] = reveal[e], min_sent[e]
        degree[v] += 1
        transfers_[v] += total[e]
        first[v] = min(first[v], reveal[e])
        last[v] = max(last[v], last_seen[e])
        smallest[v] = min(smallest[v], min_sent[e])
        largest[v] = max(largest[v], max_sent[e])
        value[v] += total_sent[e]
    return degree, transfers_, first, last, smallest, largest, value
