"""From rules to clusters: links, their connected components, and the addresses that two transactions hold together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import igraph
import numpy as np
import pandas as pd

from btcnb.data.coinjoin import detect_coinjoins
from btcnb.data.components import by_first, components
from btcnb.data.heuristics.rules import RULES, HeuristicConfig, Links, View
from btcnb.data.transactions import IntArray, Transactions
from btcnb.errors import DataError

DEFAULT_RULES = ("common_input", "change", "round_value", "forced_merge")
"""The rules of the pipeline's example configuration: all but `deposit`."""


def heuristic_merges(
    txs: Transactions, rules: Sequence[str] = DEFAULT_RULES, config: HeuristicConfig | None = None
) -> pd.DataFrame:
    """Every link, one row per pair, in chain order: columns tx, rule, address_a, address_b (ids of `txs`).

    A rule that joins n addresses gives n − 1 rows, all with one address_a (the sender, or the lowest id). The
    components of the pairs are the clusters of `heuristic_clusters` with the same arguments.
    """
    none = np.empty(0, dtype=np.int64)
    links = {"": Links(none, none, none)} | _links(txs, rules, config)
    tables = [
        pd.DataFrame({"tx": each.tx, "rule": name, "address_a": each.a, "address_b": each.b})
        for name, each in links.items()
    ]
    return pd.concat(tables).sort_values("tx", kind="stable", ignore_index=True)


def heuristic_clusters(
    txs: Transactions,
    rules: Sequence[str] = DEFAULT_RULES,
    config: HeuristicConfig | None = None,
    *,
    context: Transactions | None = None,
) -> IntArray:
    """One int64 label per address of `txs`: 0..k-1, numbered by the lowest address id; untouched addresses stand alone.

    rules:   names out of `RULES`; their order does not matter.
    context: the transactions that the rules see, `txs` itself by default. Give the whole interval to cluster a sample
             with everything known about its addresses (matched by address string; every one must occur there).
    """
    seen = txs if context is None else context
    links = _links(seen, rules, config).values()
    none = np.empty(0, dtype=np.int64)
    a, b = (np.concatenate([none, *(getattr(each, end) for each in links)]) for end in ("a", "b"))
    labels = components(seen.num_addresses, a, b)
    return labels if context is None else by_first(labels[_positions(txs, context)])


def linked_twice(
    txs: Transactions, rules: Sequence[str] = DEFAULT_RULES, config: HeuristicConfig | None = None
) -> IntArray:
    """One int64 label per address of `txs`, 0..k-1 in order of first appearance: a refinement of `heuristic_clusters`.

    A heuristic cluster is as strong as its weakest link: one wrong transaction joins two users. Here two addresses
    share a label when no single transaction's links hold them together: they lie on a common cycle of addresses and
    linking transactions (a block of that graph), or are joined by addresses that do. Time and memory are linear in the
    number of links.
    """
    merges = heuristic_merges(txs, rules, config)
    tx, used = pd.factorize(merges["tx"])
    ends = [np.stack([merges[end].to_numpy(), tx + txs.num_addresses]) for end in ("address_a", "address_b")]
    graph = igraph.Graph(n=txs.num_addresses + len(used), edges=np.unique(np.concatenate(ends, axis=1), axis=1).T)
    blocks = [block for block in graph.biconnected_components() if len(block) > 2]  # a bridge is a block of two
    member = np.fromiter(chain.from_iterable(blocks), dtype=np.int64)
    block = np.repeat(np.arange(len(blocks)), [len(one) for one in blocks])
    address = member < txs.num_addresses
    joined = components(txs.num_addresses + len(blocks), member[address], block[address] + txs.num_addresses)
    return joined[: txs.num_addresses]


def _links(txs: Transactions, rules: Sequence[str], config: HeuristicConfig | None) -> dict[str, Links]:
    """What each rule links."""
    config = HeuristicConfig() if config is None else config
    tx = np.arange(len(txs))
    if config.exclude_coinjoins:
        found = detect_coinjoins(txs, rules=config.coinjoin_rules)
        tx = tx[~np.isin(found.astype(str), config.excluded_protocols)]
    view = View.of(txs)
    return {name: RULES[name](view, tx, config) for name in sorted(set(rules), key=list(RULES).index)}


def _positions(txs: Transactions, context: Transactions) -> IntArray:
    """Where the addresses of `txs` stand among those of its context."""
    place = pd.Index(context.addresses).get_indexer(pd.Index(txs.addresses))
    if (place < 0).any():
        missing = txs.addresses[int((place < 0).argmax())]
        problem = f"the context lacks {missing}, which the transactions use"
        raise DataError(context.source, "addresses", problem, "sample from the context itself")
    return place.astype(np.int64)
