"""What scaling does to features: how far apart two graphs are before and after it, and what dollars add."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import wasserstein_distance

from btcnb.data.address_graph import AddressGraph
from btcnb.data.features import feature_names, features

FloatArray = npt.NDArray[np.float32]


def feature_shift(graphs: Mapping[str, AddressGraph]) -> pd.DataFrame:
    """Per column of the node table: how far two graphs lie apart `before` and `after` scaling, and the column's `kind`.

    The distance is Wasserstein's, after the logarithm, in units of a graph's own 5–95 % range, over the nodes that have
    a value; the median over pairs of graphs. NaN where no two graphs have values. `kind`: block numbers, amounts,
    counts.
    """
    scaled = {name: features(graph, usd=False) for name, graph in graphs.items()}
    columns = feature_names(usd=False)
    rows = [_shift(graphs, scaled, column, position) for position, column in enumerate(columns)]
    table = pd.DataFrame(rows, index=columns, columns=["before", "after"])
    return table.assign(kind=[_kind(column) for column in columns])


def dollar_correlation(graph: AddressGraph) -> float:
    """The lowest correlation between a scaled column in US dollars and its twin in satoshi; NaN without a price."""
    if graph.meta.get("price_usd") is None:
        return float("nan")
    scaled = dict(zip(feature_names(), features(graph, usd=True).T.astype(np.float64), strict=True))
    twins = [(values, scaled[name[: -len("_usd")]]) for name, values in scaled.items() if name.endswith("_usd")]
    vary = [pair for pair in twins if np.ptp(pair[0]) > 0 and np.ptp(pair[1]) > 0]
    return min((float(np.corrcoef(*pair)[0, 1]) for pair in vary), default=float("nan"))


def _shift(
    graphs: Mapping[str, AddressGraph], scaled: Mapping[str, FloatArray], column: str, position: int
) -> tuple[float, float]:
    known = {name: graph.nodes[column].notna().to_numpy() for name, graph in graphs.items()}
    known = {name: rows for name, rows in known.items() if rows.any()}
    logs = {name: np.log1p(graphs[name].nodes[column].to_numpy(dtype=float)[rows]) for name, rows in known.items()}
    ranges = [np.ptp(np.percentile(values, [5, 95])) or np.ptp(values) for values in logs.values()]
    spread = float(np.median(ranges)) if ranges else 0.0
    pairs = list(combinations(known, 2))
    if not pairs or not spread:
        return float("nan"), float("nan")
    after = {name: scaled[name][rows, position] for name, rows in known.items()}
    return (
        float(np.median([wasserstein_distance(logs[i], logs[j]) / spread for i, j in pairs])),
        float(np.median([wasserstein_distance(after[i], after[j]) for i, j in pairs])),
    )


def _kind(column: str) -> str:
    if column.startswith(("first", "last")):
        return "block numbers"
    return "amounts" if "sent" in column or "received" in column else "counts"
