"""The five graphs of the book, in the paper's roles: three to train on, one to validate, one to test.

Each is simulated over the paper's block interval of that name, sampled from a coinbase, clustered by the heuristics and
built into an address graph, once: the results are kept on disk and shared by all chapters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from btcnb.cache import cached
from btcnb.data.address_graph import AddressGraph
from btcnb.data.graph_construction import build_graph
from btcnb.data.heuristics import HeuristicConfig, heuristic_clusters
from btcnb.data.intervals import SPLITS
from btcnb.data.sampling import sample_from_coinbase
from btcnb.data.simulate import SimulationConfig, simulate
from btcnb.data.transactions import IntArray, Transactions
from btcnb.errors import DataError, ParameterError

Scope = Literal["sample", "interval"]

SPLIT_NAMES = ("train1", "train2", "train3", "valid", "test")
AT_LEAST = {"tiny": 100, "quick": 4_000, "standard": 25_000, "paper": 44_000}
"""Transactions a sample should have, per size: coinbases are drawn until one leads so far (the paper's least: 44,000).
In an economy where none does, half of that is asked for, and so on."""


def split_config(split: str, size: str = "quick", seed: int = 7) -> SimulationConfig:
    """The simulation behind a split. Each split gets randomness of its own, so that no two share an economy."""
    if split not in SPLITS:
        raise ParameterError(f"split is {split!r}, but must be one of {', '.join(SPLITS)}.")
    own = np.random.SeedSequence([seed, SPLITS[split].start_block]).generate_state(1)[0]
    return SimulationConfig.preset(size, split=split, seed=int(own))


@cached("data")
def load_split_transactions(
    split: str = "train1", size: str = "quick", seed: int = 7, sampled: bool = False
) -> Transactions:
    """The transactions behind a split, with their truth: all of the simulated interval, or those sampled for its graph.

    The sampled ones are what `load_split` builds its graph of: address ids are node ids.
    """
    config = split_config(split, size, seed)
    if not sampled:
        return simulate(config)
    return _sample(load_split_transactions(split, size, seed), config.seed, AT_LEAST[size])


@cached("data")
def load_split(split: str = "train1", size: str = "quick", seed: int = 7, scope: Scope = "sample") -> AddressGraph:
    """One graph of the book.

    scope: what the heuristics see. The paper does not say; `"sample"`: the sampled transactions only (the authors'
        public pipeline merges addresses by those), `"interval"`: all transactions of the interval.
    """
    config = split_config(split, size, seed)
    txs = load_split_transactions(split, size, seed, sampled=True)
    return build_graph(
        txs,
        labels=_labels(txs, config, scope, size, seed),
        price_usd=config.price_usd,
        start_block=config.start_block,
        end_block=config.start_block + config.blocks - 1,
    )


def load_splits(
    size: str = "quick", seed: int = 7, names: Sequence[str] = SPLIT_NAMES, scope: Scope = "sample"
) -> dict[str, AddressGraph]:
    """Graphs by name: train1, train2, train3, valid, test. Sizes: "tiny" (tests), "quick", "standard", "paper".

    Made at the first call, read from the cache afterwards; other seeds give other economies of the same kind.
    """
    return {name: load_split(name, size, seed, scope) for name in names}


def _sample(chain: Transactions, seed: int, wanted: int) -> Transactions:
    try:
        return sample_from_coinbase(chain, seed=seed, at_least=wanted)
    except DataError:
        if wanted == 1:
            raise
        return _sample(chain, seed, wanted // 2)


def _labels(txs: Transactions, config: SimulationConfig, scope: Scope, size: str, seed: int) -> IntArray:
    rules = HeuristicConfig(price_usd=config.price_usd)
    if scope == "sample":
        return heuristic_clusters(txs, config=rules)
    if scope == "interval":
        return heuristic_clusters(txs, config=rules, context=load_split_transactions(config.split, size, seed))
    raise ParameterError(f"scope is {scope!r}; it must be one of {', '.join(map(repr, get_args(Scope)))}.")
