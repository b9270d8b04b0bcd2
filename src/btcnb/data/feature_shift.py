"""What scaling does to features: how far apart two graphs are before and after it, and what dollars add."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import wasserstein_distance

from btcnb.data.address_graph import AddressGraph
from btcnb.data.features import AMOUNT_COLUMNS, SATOSHI_PER, Unit, feature_names, features

FloatArray = npt.NDArray[np.float32]


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
