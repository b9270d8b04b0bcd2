"""Address clustering by rules: who moves coins together is taken for one user.

The five rules of the graph-construction pipeline that the paper uses. Each rule looks at one transaction (and at
whether an address receives again later) and merges some of its addresses; clusters are the connected components of all
merges.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.data.coinjoin import PROTOCOLS, detect_coinjoins
from btcnb.data.heuristic_rules import RULES, Merges, View
from btcnb.data.transactions import IntArray, Transactions
from btcnb.data.union_find import UnionFind, canonical
from btcnb.errors import DataError, ParameterError

DEFAULT_RULES = ("common_input", "change", "round_value", "forced_merge")
"""The rules of the pipeline's example configuration: all but `deposit`."""

SATOSHI_PER_BITCOIN = 100_000_000


@dataclass(frozen=True)
class HeuristicConfig:
    """Thresholds of the rules; defaults are those of the pipeline's example configuration."""

    price_usd: float = 8_587.92
    """USD per bitcoin near the start of the interval (default: 10 October 2019, the paper's first training graph)."""
    round_usd: float = 1.0
    """x of the round-value rule: a round amount ends with floor(log10(x USD in satoshi)) zeros."""
    round_slack: int = 1
    """j of the round-value rule: the change must not even end with j zeros fewer."""
    deposit_min_inputs: int = 25
    """Distinct input addresses from which on a sweep to one address counts as a service's deposits."""
    exclude_coinjoins: bool = True
    """Whether detected CoinJoins are left out by every rule."""
    coinjoin_rules: str = "published"
    """Which detectors say what a CoinJoin is: `published` (the paper's pipeline) or `improved`."""
    excluded_protocols: tuple[str, ...] = PROTOCOLS
    """Which detected protocols are left out. A Whirlpool Tx0 has one owner: drop it here to let the rules see it."""
    end_block: int | None = None
    """Last block in which receiving again counts as reuse; None: the last block at hand."""

    def __post_init__(self) -> None:
        for name in ("price_usd", "round_usd"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ParameterError(f"{name} must be a positive number of USD, not {value}.")
        if self.round_slack < 0 or self.deposit_min_inputs < 1:
            raise ParameterError("round_slack must be at least 0 and deposit_min_inputs at least 1.")
        unknown = sorted(set(self.excluded_protocols) - set(PROTOCOLS))
        if unknown:
            raise ParameterError(f"unknown CoinJoin protocol {unknown[0]!r}; known are {', '.join(PROTOCOLS)}.")

    @property
    def round_zeros(self) -> int:
        """i = floor(log10(x / price of one satoshi)): the trailing zeros, in satoshi, that make an amount round."""
        return max(math.floor(math.log10(self.round_usd * SATOSHI_PER_BITCOIN / self.price_usd)), 0)


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
    seen = txs if context is None else context
    forest = UnionFind(seen.num_addresses)
    for _, merges in _merges(seen, rules, config or HeuristicConfig(), chunk):
        forest.union(merges.a, merges.b)
    labels = forest.labels()
    return labels if context is None else canonical(labels[_positions(txs, context)])


def heuristic_merges(
    txs: Transactions, rules: Sequence[str] = DEFAULT_RULES, config: HeuristicConfig | None = None
) -> pd.DataFrame:
    """Every merge, one row per pair, in chain order: columns tx, rule, address_a, address_b (ids of `txs`).

    A rule that merges n addresses gives n − 1 rows, all with one address_a (the sender, or the lowest id). The
    components of the pairs are the clusters of `heuristic_clusters` with the same arguments.
    """
    tables = [
        pd.DataFrame({"tx": merges.tx, "rule": name, "address_a": merges.a, "address_b": merges.b})
        for name, merges in _merges(txs, rules, config or HeuristicConfig(), None)
    ]
    if not tables:
        return pd.DataFrame({"tx": [], "rule": [], "address_a": [], "address_b": []})
    table = pd.concat(tables, ignore_index=True)
    return table.sort_values("tx", kind="stable", ignore_index=True)


def _merges(
    txs: Transactions, rules: Sequence[str], config: HeuristicConfig, chunk: int | None
) -> Iterator[tuple[str, Merges]]:
    names = _known(rules)
    if chunk is not None and chunk < 1:
        raise ParameterError(f"chunk must be at least 1 transaction, not {chunk}.")
    skip = _skipped(txs, config)
    view = View.of(txs, config.end_block)
    step = chunk or max(len(txs), 1)
    for start in range(0, len(txs), step):
        candidates = np.arange(start, min(start + step, len(txs)))
        candidates = candidates[~skip[candidates]]
        for name in names:
            yield name, RULES[name](view, candidates, config)


def _known(rules: Sequence[str]) -> list[str]:
    if isinstance(rules, str):
        raise ParameterError(f'rules must be a sequence of names, such as ("{rules}",), not one string.')
    unknown = [name for name in rules if name not in RULES]
    if unknown:
        raise ParameterError(f"unknown rule {unknown[0]!r}; known are {', '.join(RULES)}.")
    return [name for name in RULES if name in rules]


def _skipped(txs: Transactions, config: HeuristicConfig) -> npt.NDArray[np.bool_]:
    if not config.exclude_coinjoins:
        return np.zeros(len(txs), dtype=bool)
    found = detect_coinjoins(txs, rules=config.coinjoin_rules)
    return np.isin(found.astype(str), config.excluded_protocols)


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
