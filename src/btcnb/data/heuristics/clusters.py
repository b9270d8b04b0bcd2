"""From rules to clusters: the connected components of all merges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.data.checks import choices, whole
from btcnb.data.coinjoin import detect_coinjoins
from btcnb.data.components import UnionFind, by_first
from btcnb.data.heuristics.config import HeuristicConfig
from btcnb.data.heuristics.rules import RULES
from btcnb.data.heuristics.view import Merges, View
from btcnb.data.transactions import IntArray, Transactions
from btcnb.errors import DataError
from btcnb.gates import instance

DEFAULT_RULES = ("common_input", "change", "round_value", "forced_merge")
"""The rules of the pipeline's example configuration: all but `deposit`."""


def heuristic_clusters(
    txs: Transactions,
    rules: Sequence[str] = DEFAULT_RULES,
    config: HeuristicConfig | None = None,
    *,
    context: Transactions | None = None,
    chunk: int | None = None,
) -> IntArray:
    """One int64 label per address of `txs`: 0..k-1, numbered by the lowest address id; untouched addresses stand alone.

    rules:   names out of `RULES`; their order does not matter.
    context: the transactions that the rules see, `txs` itself by default. Give the whole interval to cluster a sample
             with everything known about its addresses (matched by address string; every one must occur there).
    chunk:   evaluate the rules on so many transactions at a time, to bound memory; the result is the same.
    """
    instance("txs", txs, Transactions)
    seen = txs if context is None else context
    instance("context", seen, Transactions)
    forest = UnionFind(seen.num_addresses)
    for _, merges in _merges(seen, rules, config, chunk):
        forest.union(merges.a, merges.b)
    labels = forest.labels()
    return labels if context is None else by_first(labels[_positions(txs, context)])


def heuristic_merges(
    txs: Transactions, rules: Sequence[str] = DEFAULT_RULES, config: HeuristicConfig | None = None
) -> pd.DataFrame:
    """Every merge, one row per pair, in chain order: columns tx, rule, address_a, address_b (ids of `txs`).

    A rule that merges n addresses gives n − 1 rows, all with one address_a (the sender, or the lowest id). The
    components of the pairs are the clusters of `heuristic_clusters` with the same arguments.
    """
    instance("txs", txs, Transactions)
    tables = [
        pd.DataFrame({"tx": merges.tx, "rule": name, "address_a": merges.a, "address_b": merges.b})
        for name, merges in _merges(txs, rules, config)
    ]
    if not tables:
        return pd.DataFrame({"tx": [], "rule": [], "address_a": [], "address_b": []})
    table = pd.concat(tables, ignore_index=True)
    return table.sort_values("tx", kind="stable", ignore_index=True)


def _merges(
    txs: Transactions, rules: Sequence[str], config: HeuristicConfig | None, chunk: int | None = None
) -> Iterator[tuple[str, Merges]]:
    """Rule by rule, and by so many transactions at a time."""
    choices("rules", rules, RULES)
    config = HeuristicConfig() if config is None else config
    instance("config", config, HeuristicConfig)
    if chunk is not None:
        whole("chunk", chunk, 1)
    skip = _skipped(txs, config)
    view = View.of(txs, config.end_block)
    step = chunk or max(len(txs), 1)
    names = [name for name in RULES if name in rules]
    for start in range(0, len(txs), step):
        candidates = np.arange(start, min(start + step, len(txs)))
        candidates = candidates[~skip[candidates]]
        for name in names:
            yield name, RULES[name](view, candidates, config)


def _skipped(txs: Transactions, config: HeuristicConfig) -> npt.NDArray[np.bool_]:
    if not config.exclude_coinjoins:
        return np.zeros(len(txs), dtype=bool)
    found = detect_coinjoins(txs, rules=config.coinjoin_rules)
    return np.isin(found.astype(str), list(config.excluded_protocols))


def _positions(txs: Transactions, context: Transactions) -> IntArray:
    place: npt.NDArray[Any] = pd.Index(context.addresses).get_indexer(pd.Index(txs.addresses))
    if (place < 0).any():
        missing = txs.addresses[int((place < 0).argmax())]
        raise DataError(
            context.source,
            "addresses",
            f"the context lacks {missing}, which the transactions use",
            "sample from the context itself",
        )
    return place.astype(np.int64)
