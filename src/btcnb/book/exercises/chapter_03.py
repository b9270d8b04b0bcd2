"""Chapter 03: the address graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from btcnb.book.exercises import ways
from btcnb.book.exercises.rule import Check
from btcnb.data import build_graph

BTC = 10**8


def _split(answer: Any, graph: Any, sampled: Any) -> str:
    equal = build_graph(sampled, labels=graph.clusters["alias"].to_numpy(), split_value="equal")
    tables = ((graph.nodes, equal.nodes), (graph.edges, equal.edges))
    changed = {name for a, b in tables for name in a if (a[name].fillna(-1) != b[name].fillna(-1)).any()}
    return ways.names(answer, changed)


def _bound(answer: Any, graphs: Any) -> str:
    return ways.numbers(answer, [(np.bincount(graph.labels()) > 1).sum() for graph in graphs.values()])


def _usd(answer: Any, raw: Any, graphs: Any) -> str:
    satoshi = {name: np.log1p(values) for name, values in raw.items()}
    dollars = {name: np.log1p(values * graphs[name].meta["price_usd"] / BTC) for name, values in raw.items()}
    alone = min(np.corrcoef(satoshi[name], dollars[name])[0, 1] for name in raw)
    pooled = np.corrcoef(np.concatenate(list(satoshi.values())), np.concatenate(list(dollars.values())))[0, 1]
    return ways.numbers(answer, [alone, pooled], within=1e-4)


def _hubs(answer: Any, hubs: Any, distance: Any) -> str:
    between = distance[hubs][np.triu_indices(len(hubs), 1)]
    return ways.number(answer, 100 * float((between == 1).mean()), within=0.02)


CHECKS = {
    "ex-03-split": Check("a set of names of columns", _split),
    "ex-03-bound": Check("five numbers: clusters of two or more addresses in train1, …, test", _bound),
    "ex-03-usd": Check("two correlations: the lowest within a graph, and that of all five together", _usd),
    "ex-03-hubs": Check("one number, in per cent", _hubs),
}
