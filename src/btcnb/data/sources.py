"""Whose data: the simulator's, or anybody's files, in the paper's five roles.

    data = Source.of("simulated", size="quick", seed=7)
    data = Source.of("transactions.parquet")             # one's own chain, cut into five intervals of blocks
    graph = load_graph(data, "test")                     # the address graph of a role, kept in the store

The paper trains on three graphs, steers by a fourth and reports on a fifth. A simulated source makes an economy for
each; a chain is cut into five intervals; five paths, or a release with five folders, give one role each.
"""

from __future__ import annotations

import os
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from btcnb import sizes
from btcnb.data.checks import choices, real, whole
from btcnb.data.graph import AddressGraph
from btcnb.data.graph_construction import build_graph
from btcnb.data.heuristics import DEFAULT_RULES, RULES, HeuristicConfig, heuristic_clusters, linked_twice
from btcnb.data.intervals import SPLITS, price_near
from btcnb.data.readers import READERS, RELEASE, MissingOutputsWarning, read_blocks, sniff
from btcnb.data.readers.etl_write import sidecar_of
from btcnb.data.readers.release import read_release, release_splits
from btcnb.data.sampling import sample_from_coinbase
from btcnb.data.simulator import SimulationConfig, simulate
from btcnb.data.transactions import IntArray, Transactions
from btcnb.errors import DataError, ParameterError
from btcnb.gates import choice, flag, instance, text
from btcnb.store import kept, note_read

Scope = Literal["sample", "interval"]

SIMULATED = "simulated"
ROLES = ("train1", "train2", "train3", "valid", "test")
IN_TIME = ("train1", "train2", "valid", "train3", "test")
"""The paper's five intervals in the order of their dates: a chain of one's own is cut in this order."""
SAMPLE_ABOVE = 75_001
"""Transactions above which an interval of a chain is sampled from a coinbase: the most the paper's sampling gives."""


@dataclass(frozen=True)
class Source:
    """Whose data, and how it becomes the five roles. `Source.of` makes one from what a chapter's reader types."""

    kind: str = SIMULATED
    """`simulated`, `release`, or the name of a reader of transactions"""
    paths: tuple[str, ...] = ()
    """one path, or one for each of the five roles"""
    size: str = "quick"
    """size of the simulated economies"""
    seed: int = 7
    """seed of the simulated economies, and of sampling"""
    intervals: tuple[tuple[int, int], ...] = ()
    """first and last block of each role, in the order of `ROLES`; empty: five equal parts of the chain"""
    price_usd: float | None = None
    """USD for one bitcoin in somebody's data; None: the paper's where the blocks are the paper's, else unknown"""
    scope: Scope = "sample"
    """what the heuristics see: the sampled transactions only, or all of the interval (the paper does not say)"""
    simulation: tuple[tuple[str, Any], ...] = ()
    """fields of `SimulationConfig`; empty: what the size says, taken when the source is made"""
    disorder: float = 1.0
    """how badly heuristics fail in the simulated economies: 0 tidy, 1 calibrated, 2 twice as bad"""
    sample: int = 0
    """transactions that a sample should have; 0: what the size says (of somebody's chain, what the paper's had)"""

    def __post_init__(self) -> None:
        for name in ("kind", "size", "scope"):
            instance(name, getattr(self, name), str)
        for name in ("paths", "intervals", "simulation"):
            instance(name, getattr(self, name), tuple)
        if self.price_usd is not None:
            real("price_usd", self.price_usd, 0.0, 1e9)
        whole("sample", self.sample)
        if self.scope not in get_args(Scope):
            raise ParameterError(
                f"scope is {self.scope!r:.80}; it must be one of {', '.join(map(repr, get_args(Scope)))}."
            )
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise ParameterError(f"seed is {self.seed!r:.80}, but must be a whole number of at least 0.")
        real("disorder", self.disorder, 0.0, 10.0)
        named = sizes.size(self.size)
        if self.simulated and not self.simulation:
            object.__setattr__(self, "simulation", tuple(sorted(named.simulation.items())))
        if not self.sample:
            object.__setattr__(self, "sample", (named if self.simulated else sizes.size("paper")).sample)

    @classmethod
    def of(
        cls,
        source: str = SIMULATED,
        *,
        size: str = "quick",
        seed: int = 7,
        intervals: str = "",
        price_usd: float = 0.0,
        scope: Scope = "sample",
        disorder: float = 1.0,
    ) -> Source:
        """The source that a reader names: `simulated`, one path, or five paths separated by commas.

        intervals: "first-last" blocks of train1, train2, train3, valid and test, separated by commas; empty: the chain
            is cut into five equal parts, in the order of the paper's dates
        price_usd: USD for one bitcoin; 0: the paper's where the blocks are the paper's, else unknown
        """
        if source == SIMULATED:
            return cls(size=size, seed=seed, scope=scope, disorder=disorder)
        paths = tuple(part.strip() for part in source.split(",") if part.strip())
        if len(paths) not in (1, len(ROLES)):
            raise ParameterError(
                f"source names {len(paths)} paths; give one, or five with commas between them: {', '.join(ROLES)}."
            )
        kinds = {sniff(path) for path in paths}
        if len(kinds) > 1:
            raise DataError(source, "source", f"mixes {' and '.join(sorted(kinds))}", "give five paths of one kind")
        if not (np.isfinite(price_usd) and price_usd >= 0):
            raise ParameterError(f"price_usd is {price_usd!r}, but must be a number of USD, or 0 where it is unknown.")
        return cls(kinds.pop(), paths, size, seed, _intervals(intervals), price_usd or None, scope)

    @property
    def simulated(self) -> bool:
        return self.kind == SIMULATED

    @property
    def words(self) -> str:
        """Whose data this is, in words."""
        if self.simulated:
            dial = "" if self.disorder == 1.0 else f", disorder {self.disorder:g}"
            return f"simulated economies of size {self.size}, seed {self.seed}{dial}"
        where = ", ".join(self.paths)
        if self.kind == "release" and len(self.paths) == 1 and len(_release_roles(self.paths[0])) == 1:
            return f"one graph read from {where}, in all five roles: what is trained here is tested on itself"
        return f"read from {where} ({self.kind})"

    def has(self, what: str) -> bool:
        """Whether the data tells `truth` (owners), `labels` (public names), `transactions`, or is `simulated`."""
        return what in facts(self)

    def economy(self, role: str) -> SimulationConfig:
        """The simulation behind a role. Each gets randomness of its own, so that no two share an economy."""
        _require_role(role)
        interval = SPLITS[role]
        own = np.random.SeedSequence([self.seed, interval.start_block]).generate_state(1)[0]
        return SimulationConfig(
            **dict(self.simulation),
            seed=int(own),
            split=role,
            start_block=interval.start_block,
            start_time=interval.start_time,
            price_usd=interval.price_usd,
            fee_rate=interval.fee_rate,
            disorder=self.disorder,
        )


def split_config(split: str, size: str = "quick", seed: int = 7) -> SimulationConfig:
    """The simulation behind a role of the book's own data."""
    return Source(size=size, seed=seed).economy(split)


def load_transactions(source: Source, role: str, sampled: bool = True) -> Transactions:
    """The transactions of a role: those its graph is built of (address ids are node ids), or all of its interval."""
    _require_role(role)
    instance("source", source, Source)
    flag("sampled", sampled)
    if source.simulated:
        config = source.economy(role)
        return _simulated_sample(config, source.sample) if sampled else _simulated(config)
    if source.kind == "release":
        raise DataError(source.paths[0], "transactions", "a release holds graphs only", "name a file of transactions")
    return _own_sample(source, role) if sampled else _own_interval(source, role)


def load_graph(source: Source, role: str) -> AddressGraph:
    """The address graph of a role with its heuristic clusters."""
    _require_role(role)
    instance("source", source, Source)
    if source.simulated:
        return _simulated_graph(source.economy(role), source.sample, source.scope)
    return _released_graph(source, role) if source.kind == "release" else _own_graph(source, role)


def load_graphs(source: Source, roles: Sequence[str] = ROLES) -> dict[str, AddressGraph]:
    """Graphs by role."""
    instance("roles", roles, (tuple, list))
    return {role: load_graph(source, role) for role in roles}


def load_clusters(source: Source, role: str, rules: Sequence[str] = DEFAULT_RULES) -> IntArray:
    """Clusters of a role's nodes by other rules than the graph's, one label per node: say, common inputs alone."""
    _require_role(role)
    instance("source", source, Source)
    if source.kind == "release":
        raise DataError(source.paths[0], "clusters", "a release holds one clustering", "name a file of transactions")
    choices("rules", rules, RULES)
    return _clusters(source, role, tuple(name for name in RULES if name in rules))


def load_linked_twice(source: Source, role: str) -> IntArray:
    """Of a role's nodes, those that two independent transactions hold together share a label; see `linked_twice`."""
    _require_role(role)
    instance("source", source, Source)
    if source.kind == "release":
        raise DataError(source.paths[0], "transactions", "a release holds graphs only", "name a file of transactions")
    return _linked_twice(source, role)


def facts(source: Source) -> frozenset[str]:
    """What the data tells: out of `truth`, `labels`, `transactions`, `simulated`."""
    if source.simulated:
        return frozenset({"truth", "labels", "transactions", "simulated"})
    if source.kind == "release":
        return frozenset({"truth"} if load_graph(source, "test").truth is not None else ())
    truth = load_transactions(source, "test").truth
    known = {"transactions"} | ({"truth"} if truth is not None else set())
    return frozenset(known | ({"labels"} if truth is not None and truth.label is not None else set()))


def load_split(split: str = "train1", size: str = "quick", seed: int = 7, scope: Scope = "sample") -> AddressGraph:
    """One simulated graph of the book: `load_graph` of a simulated source."""
    return load_graph(Source(size=size, seed=seed, scope=scope), split)


def load_splits(
    size: str = "quick", seed: int = 7, names: Sequence[str] = ROLES, scope: Scope = "sample"
) -> dict[str, AddressGraph]:
    """Simulated graphs by role; other seeds give other economies of the same kind."""
    return load_graphs(Source(size=size, seed=seed, scope=scope), names)


def load_split_transactions(
    split: str = "train1", size: str = "quick", seed: int = 7, sampled: bool = False
) -> Transactions:
    """The simulated transactions behind a role, with their truth."""
    return load_transactions(Source(size=size, seed=seed), split, sampled)


# --- simulated: what decides them is the configuration, so that a new preset elsewhere leaves them alone ---


@kept
def _simulated(config: SimulationConfig) -> Transactions:
    return simulate(config)


@kept
def _simulated_sample(config: SimulationConfig, at_least: int) -> Transactions:
    return _sample(_simulated(config), config.seed, at_least)


@kept
def _simulated_graph(config: SimulationConfig, at_least: int, scope: Scope) -> AddressGraph:
    txs = _simulated_sample(config, at_least)
    rules = HeuristicConfig(price_usd=config.price_usd)
    return build_graph(
        txs,
        labels=heuristic_clusters(txs, config=rules, context=_simulated(config) if scope == "interval" else None),
        price_usd=config.price_usd,
        start_block=config.start_block,
        end_block=config.start_block + config.blocks - 1,
    )


@kept
def _linked_twice(source: Source, role: str) -> IntArray:
    return linked_twice(load_transactions(source, role), config=_rules_of(source, role))


def _rules_of(source: Source, role: str) -> HeuristicConfig:
    price = source.economy(role).price_usd if source.simulated else source.price_usd or _own_price(source, role)
    return HeuristicConfig() if price is None else HeuristicConfig(price_usd=price)


@kept
def _clusters(source: Source, role: str, rules: tuple[str, ...]) -> IntArray:
    config = _rules_of(source, role)
    context = load_transactions(source, role, sampled=False) if source.scope == "interval" else None
    return heuristic_clusters(load_transactions(source, role), rules, config, context=context)


def _sample(chain: Transactions, seed: int, wanted: int) -> Transactions:
    """In an economy where no coinbase leads so far, half of that is asked for, and so on."""
    try:
        return sample_from_coinbase(chain, seed=seed, at_least=wanted)
    except DataError:
        if wanted == 1:
            raise
        return _sample(chain, seed, wanted // 2)


# --- somebody's files ---


@kept
def _read(kind: str, path: str) -> Transactions:
    note_read(path)
    note_read(sidecar_of(path))  # truth that `write_etl` left beside the file
    return READERS[kind].read(path)


@kept
def _own_interval(source: Source, role: str) -> Transactions:
    if len(source.paths) == len(ROLES):
        part = _read(source.kind, source.paths[ROLES.index(role)])
    else:
        chain = _read(source.kind, source.paths[0])
        part = chain.select(_positions(chain, source, role))
    if not len(part):
        raise DataError(", ".join(source.paths), "intervals", f"{role} holds no transaction", "choose other intervals")
    return part


@kept
def _own_sample(source: Source, role: str) -> Transactions:
    part = _own_interval(source, role)
    if len(part) <= SAMPLE_ABOVE or not part.transactions["is_coinbase"].any():
        return part
    return _sample(part, source.seed, source.sample)


@kept
def _own_graph(source: Source, role: str) -> AddressGraph:
    txs = _own_sample(source, role)
    price = source.price_usd or _own_price(source, role)
    rules = HeuristicConfig() if price is None else HeuristicConfig(price_usd=price)
    context = _own_interval(source, role) if source.scope == "interval" else None
    labels = heuristic_clusters(txs, config=rules, context=context)
    return build_graph(txs, labels=labels, price_usd=price)


@kept
def _released_graph(source: Source, role: str) -> AddressGraph:
    if len(source.paths) == len(ROLES):
        return read_release(note_read(source.paths[ROLES.index(role)]))
    path = note_read(source.paths[0])
    return read_release(path) if len(_release_roles(source.paths[0])) == 1 else read_release(path, split=role)


def _release_roles(path: str) -> list[str]:
    return list(release_splits(note_read(path)))


def _own_price(source: Source, role: str) -> float | None:
    """The paper's price, where every role lies in an interval of the paper: features must be alike in all five."""
    first = {name: int(_own_interval(source, name).transactions["block_number"].iloc[0]) for name in ROLES}
    prices = {name: price_near(block) for name, block in first.items()}
    return prices[role] if None not in prices.values() else None


def _positions(chain: Transactions, source: Source, role: str) -> IntArray:
    """Transactions of a role: those in its blocks, or its fifth of the chain, cut between blocks if there are five."""
    blocks = chain.transactions["block_number"].to_numpy()
    if source.intervals:
        first, last = source.intervals[ROLES.index(role)]
        return np.flatnonzero((blocks >= first) & (blocks <= last))
    parts = len(IN_TIME)
    cuts = np.array([len(blocks) * i // parts for i in range(parts + 1)])
    if len(np.unique(blocks)) >= parts:
        starts = np.flatnonzero(np.diff(blocks, prepend=blocks[0] - 1))  # a cut moves to the nearest start of a block
        inner = [starts[1:][np.argmin(np.abs(starts[1:] - cut))] for cut in cuts[1:-1]]
        cuts = np.array([0, *inner, len(blocks)])
    place = IN_TIME.index(role)
    return np.arange(cuts[place], cuts[place + 1])


def _intervals(text: str) -> tuple[tuple[int, int], ...]:
    if not text.strip():
        return ()
    found = [re.fullmatch(r"\s*(\d+)\s*-\s*(\d+)\s*", part) for part in text.split(",")]
    pairs = tuple((int(match[1]), int(match[2])) for match in found if match)
    if len(found) != len(ROLES) or len(pairs) != len(ROLES) or any(first > last for first, last in pairs):
        raise ParameterError(
            f"intervals is {text!r}; write the first and last block of {', '.join(ROLES)} as "
            '"100-199,200-299,300-399,400-499,500-599".'
        )
    return pairs


def _require_role(role: str) -> None:
    if not isinstance(role, str) or role not in ROLES:
        raise ParameterError(f"split is {role!r:.80}, but must be one of {', '.join(ROLES)}.")


Facts = dict[str, float | int | str | None]

CUTS = (612_000, 640_000, 662_000, 685_000)
"""First heights of train2, train3, valid and test. Each of the five parts holds one of the paper's five intervals."""
BLOCKS = "mainnet-blocks"
REAL_DATA = "BTCNB_REAL_DATA"


@dataclass(frozen=True)
class Chain:
    """Somebody's transactions, and the heights at which one role ends and the next begins, in order of time."""

    path: str
    """files of any kind that `btcnb.data` reads as transactions"""
    cuts: tuple[int, ...] = CUTS
    """first height of train2, train3, valid and test; train1 begins with the first block"""

    def __post_init__(self) -> None:
        text("path", instance("path", self.path, str))
        cuts = instance("cuts", self.cuts, tuple)
        right = len(cuts) == len(ROLES) - 1 and all(type(cut) is int and cut > 0 for cut in cuts)
        if not right or any(a >= b for a, b in pairwise(cuts)):
            raise ParameterError(f"cuts are {cuts!r:.80}, but must be four rising heights: of {', '.join(ROLES[1:])}.")

    def role_of(self, heights: IntArray) -> IntArray:
        """Position in `ROLES` of blocks at these heights: a block at a cut belongs to the later role."""
        return np.searchsorted(np.array(self.cuts), heights, side="right")

    def price(self, role: str) -> float:
        """USD for one bitcoin: that of the paper's interval in the role's heights, else of the nearest one."""
        place = ROLES.index(choice("role", role, ROLES))
        return min(SPLITS.values(), key=lambda split: self._outside(place, split.start_block)).price_usd

    def _outside(self, place: int, height: int) -> int:
        """Blocks between a height and the role at that place; 0 inside."""
        low, high = (0, *self.cuts)[place], (*self.cuts, 2**31)[place] - 1
        return max(low - height, height - high, 0)


def chain_at_hand(name: str = BLOCKS) -> Chain:
    """The real blocks below `BTCNB_REAL_DATA`, cut at `CUTS`."""
    chosen = os.environ.get(REAL_DATA)
    if not chosen or not (Path(chosen) / text("name", name)).exists():
        raise DataError(name, "folder", "is not at hand", f"set {REAL_DATA} to the folder that holds {name}")
    return Chain(str(Path(chosen) / name))


def chain_transactions(chain: Chain, role: str | None = None) -> Transactions:
    """The transactions of a role, values imputed; None: of all blocks. Every role must have a block."""
    whole = _read_chain(instance("chain", chain, Chain))
    return whole if role is None else _chain_part(chain, choice("role", role, ROLES))


def chain_graph(chain: Chain, role: str) -> AddressGraph:
    """The address graph of all transactions of a role, with heuristic clusters that see the role only."""
    return _chain_graph(instance("chain", chain, Chain), choice("role", role, ROLES))


def chain_facts(chain: Chain, role: str) -> Facts:
    """What a role is made of: heights, counts, share of imputed input values, price, and the graph's fingerprint."""
    txs, graph = chain_transactions(chain, role), chain_graph(chain, role)
    blocks = txs.transactions["block_number"].to_numpy()
    imputed = float(txs.inputs["imputed"].mean()) if "imputed" in txs.inputs else 0.0
    return {
        "first_block": int(blocks[0]),
        "last_block": int(blocks[-1]),
        "blocks": len(np.unique(blocks)),
        "transactions": len(txs),
        "imputed": imputed,
        "price_usd": chain.price(role),
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "clusters": int(graph.labels().max()) + 1,
        "data": graph.fingerprint(),
    }


def shared_between(chain: Chain) -> pd.DataFrame:
    """A row for each two roles: how many transactions (by hash) and how many addresses stand in both.

    `of_second` is the share of the later role's addresses that the earlier one has.
    """
    parts = {role: chain_transactions(chain, role) for role in ROLES}
    rows = []
    for first, second in combinations(ROLES, 2):
        a, b = parts[first], parts[second]
        same = len(np.intersect1d(a.transactions["hash"].to_numpy(str), b.transactions["hash"].to_numpy(str)))
        addresses = len(np.intersect1d(a.addresses.astype(str), b.addresses.astype(str)))
        rows.append((first, second, same, addresses, addresses / b.num_addresses))
    return pd.DataFrame(rows, columns=["first", "second", "transactions", "addresses", "of_second"])


@kept
def _read_chain(chain: Chain) -> Transactions:
    kind = sniff(note_read(chain.path))
    if kind == RELEASE:
        raise DataError(chain.path, "transactions", "a release holds graphs only", "name files of transactions")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingOutputsWarning)  # counted: `chain_facts` tells the imputed share
        txs = read_blocks(chain.path, impute=True) if kind == "blocks" else READERS[kind].read(chain.path)
    heights = np.unique(txs.transactions["block_number"].to_numpy())
    if len(heights) < len(ROLES):
        problem = f"holds {len(heights)} block{'s' * (len(heights) != 1)}, too few for five roles"
        raise DataError(chain.path, "blocks", problem, "give more blocks")
    found = Counter(chain.role_of(heights).tolist())
    empty = next((role for place, role in enumerate(ROLES) if not found[place]), None)
    if empty is not None:
        problem = f"none for the role {empty} (blocks {heights[0]:,} to {heights[-1]:,}, cut at {chain.cuts})"
        raise DataError(chain.path, "blocks", problem, "choose other cuts, or add blocks")
    return txs


@kept
def _chain_part(chain: Chain, role: str) -> Transactions:
    txs = _read_chain(chain)
    place = chain.role_of(txs.transactions["block_number"].to_numpy())
    return txs.select(place == ROLES.index(role))


@kept
def _chain_graph(chain: Chain, role: str) -> AddressGraph:
    txs, price = _chain_part(chain, role), chain.price(role)
    labels = heuristic_clusters(txs, config=HeuristicConfig(price_usd=price))
    return build_graph(txs, labels=labels, price_usd=price)
