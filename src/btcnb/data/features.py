"""Node and edge features as the GNN sees them (paper, appendix "Feature Preprocessing").

Every column of the node (or edge) table goes through x ↦ log(1+x), then through min–max scaling between its own 5th
and 95th percentile in this graph, and missing values become 0. Amounts appear twice: in bitcoins, and in US dollars at
the price of the graph's first day. Graphs hold whole satoshi; the unit matters because the logarithm bends where x is
about 1: log(1 + bitcoins) is nearly linear for most payments, log(1 + satoshi) is a logarithm throughout.

`feature_shift` and `dollar_correlations` measure what this scaling does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import wasserstein_distance

from btcnb.data.graph import EDGE_COLUMNS, NODE_COLUMNS, AddressGraph
from btcnb.data.intervals import SATOSHI_PER_BITCOIN
from btcnb.errors import ParameterError

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


class Scaling(NamedTuple):
    """How columns become features; the fields are those of `features`."""

    clip: bool
    percentiles: tuple[float, float]
    blocks: Blocks
    unit: Unit


def feature_names(usd: bool = True) -> list[str]:
    """Column names of `features`: the node columns without the id, then the amounts in dollars (`…_usd`)."""
    return _names(NODE_FEATURES, usd)


def features(
    graph: AddressGraph,
    usd: bool | None = None,
    *,
    clip: bool = False,
    percentiles: tuple[float, float] = (5.0, 95.0),
    blocks: Blocks = "absolute",
    unit: Unit = "bitcoin",
) -> FloatArray:
    """Scaled node features, shape (N, 20), or (N, 14) without dollars; float32, always finite.

    usd: add the six amounts in US dollars, at the price in `graph.meta["price_usd"]`. None: if that price is known;
        True: a missing price is an error.
    clip: cut scaled values off to [0, 1]. The paper does not say; not clipping keeps the hubs apart: the default.
    percentiles: the two percentiles, over the nodes that have a value, that become 0 and 1. Where they coincide (most
        addresses have one and the same value) the column's own minimum and maximum stand in; a constant column is 0.
    blocks: block indices go through the logarithm as they are (`"absolute"`, the paper's words: all features are
        log-transformed; over a short interval that is as good as linear), or counted from the graph's first block
        (`"relative"`, which spreads the first blocks out).
    unit: what amounts are counted in before the logarithm: `"bitcoin"`, the paper's words, or `"satoshi"`. Dollars are
        dollars either way.
    """
    return _scaled(graph, graph.nodes, NODE_FEATURES, usd, Scaling(clip, percentiles, blocks, unit))


def edge_features(
    graph: AddressGraph,
    usd: bool | None = None,
    *,
    clip: bool = False,
    percentiles: tuple[float, float] = (5.0, 95.0),
    blocks: Blocks = "absolute",
    unit: Unit = "bitcoin",
) -> FloatArray:
    """Scaled edge features in the row order of `graph.edges`, shape (E, 9), (E, 6) without dollars; as `features`."""
    return _scaled(graph, graph.edges, EDGE_FEATURES, usd, Scaling(clip, percentiles, blocks, unit))


def scale_column(
    values: npt.NDArray[np.float64], percentiles: tuple[float, float] = (5.0, 95.0), clip: bool = False
) -> npt.NDArray[np.float64]:
    """x ↦ (log(1+x) − p_low) / (p_high − p_low), percentiles of log(1+x) where x is known; 0 where x is NaN."""
    logs = np.log1p(values.astype(np.float64))
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
    graph: AddressGraph, table: pd.DataFrame, names: Sequence[str], usd: bool | None, how: Scaling
) -> FloatArray:
    price = graph.meta.get("price_usd")
    usd = price is not None if usd is None else usd
    if usd and price is None:
        raise ParameterError(
            "the graph does not know the price of a bitcoin on its first day; put it into its meta as price_usd, or "
            "give usd=False to leave the dollar columns out."
        )
    out = np.empty((len(table), len(_names(names, usd))), dtype=np.float32)
    first_block = _first_block(graph) if how.blocks == "relative" else 0
    columns = _columns(table, names, price if usd else None, first_block, how)
    for position, values in enumerate(columns):  # one float64 column at a time
        out[:, position] = scale_column(values, how.percentiles, how.clip)
    return out


def _columns(
    table: pd.DataFrame, names: Sequence[str], price: float | None, first_block: int, how: Scaling
) -> Iterator[npt.NDArray[np.float64]]:
    amounts = [name for name in names if name in AMOUNT_COLUMNS]
    for name in names:
        values = table[name].to_numpy(dtype=np.float64, na_value=np.nan)
        if first_block and name in BLOCK_COLUMNS:
            values = np.maximum(values - first_block, 0.0)
        yield values / SATOSHI_PER[how.unit] if name in amounts else values
    if price is not None:
        for name in amounts:
            yield table[name].to_numpy(dtype=np.float64, na_value=np.nan) * (price / SATOSHI_PER_BITCOIN)


def _names(names: Sequence[str], usd: bool) -> list[str]:
    return [*names, *(f"{name}_usd" for name in names if usd and name in AMOUNT_COLUMNS)]


def _first_block(graph: AddressGraph) -> int:
    """The start of the graph's interval; where that is unknown, the block of its first edge."""
    start = graph.meta.get("start_block")
    if start is None:
        start = graph.edges["reveal"].min() if graph.num_edges else 0
    return int(start)


# --- what scaling does ---


def feature_shift(graphs: Mapping[str, AddressGraph]) -> pd.DataFrame:
    """Per column of `features`: how far two graphs lie apart `before` and `after` scaling, and the column's `kind`.

    The distance is Wasserstein's, after the logarithm, in units of a graph's own 5–95 % range, over the nodes that have
    a value; the median over pairs of graphs. NaN where no two graphs have values. `kind`: block numbers, amounts (in
    bitcoins), counts, and, where every graph knows its price, dollars.
    """
    usd = all(graph.meta.get("price_usd") is not None for graph in graphs.values())
    columns = feature_names(usd=usd)
    scaled = {name: pd.DataFrame(features(graph, usd=usd), columns=columns) for name, graph in graphs.items()}
    table = pd.DataFrame([_shift(graphs, scaled, column) for column in columns], columns, ["before", "after"])
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
    for unit in units:
        scaled = pd.DataFrame(features(graph, usd=True, unit=unit), columns=feature_names(), dtype=np.float64)
        for amount in AMOUNT_COLUMNS:
            twins = scaled.loc[graph.nodes[amount].notna().to_numpy(), [amount, f"{amount}_usd"]].to_numpy().T
            if twins.size and np.ptp(twins, axis=1).all():
                table.loc[amount, unit] = np.corrcoef(twins)[0, 1]
    return table


def _shift(graphs: Mapping[str, AddressGraph], scaled: Mapping[str, pd.DataFrame], column: str) -> tuple[float, float]:
    before, after = {}, {}
    for name, graph in graphs.items():
        raw = graph.nodes[column.removesuffix("_usd")].to_numpy(dtype=float)
        known = ~np.isnan(raw)
        if known.any():
            before[name] = np.log1p(raw[known] * _per_satoshi(graph, column))
            after[name] = scaled[name][column].to_numpy()[known].astype(np.float64)
    ranges = [np.ptp(np.percentile(values, [5, 95])) or np.ptp(values) for values in before.values()]
    spread = float(np.median(ranges)) if ranges else 0.0
    pairs = list(combinations(before, 2))
    if not pairs or not spread:
        return np.nan, np.nan
    return (
        float(np.median([wasserstein_distance(before[i], before[j]) / spread for i, j in pairs])),
        float(np.median([wasserstein_distance(after[i], after[j]) for i, j in pairs])),
    )


def _per_satoshi(graph: AddressGraph, column: str) -> float:
    """What the values of a column are multiplied by before the logarithm."""
    if column.endswith("_usd"):
        return float(graph.meta["price_usd"]) / SATOSHI_PER["bitcoin"]
    return 1 / SATOSHI_PER["bitcoin"] if column in AMOUNT_COLUMNS else 1.0


def _kind(column: str) -> str:
    if column.startswith(("first", "last")):
        return "block numbers"
    if column.endswith("_usd"):
        return "dollars"
    return "amounts" if column in AMOUNT_COLUMNS else "counts"
