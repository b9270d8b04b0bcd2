"""Whose data: the simulator's, or anybody's files, in the paper's five roles.

    data = Source.of("simulated", size="quick", seed=7)
    data = Source.of("transactions.parquet")             # one's own chain, cut into five intervals of blocks
    data = real_source()                                  # raw blocks below BTCNB_REAL_DATA, cut by height
    graph = load_graph(data, "test")                     # the address graph of a role, kept in the store

The paper trains on three graphs, steers by a fourth and reports on a fifth. A simulated source makes an economy for
each; a chain is cut into five intervals; five paths, or a release with five folders, give one role each.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from btcnb import sizes
from btcnb.configuration import Flag, Real, Whole, configuration
from btcnb.data.graph import AddressGraph
from btcnb.data.graph_construction import build_graph, rules_at
from btcnb.data.heuristics import DEFAULT_RULES, RULES, heuristic_clusters, linked_twice
from btcnb.data.intervals import SPLITS, price_near
from btcnb.data.readers import READERS, MissingOutputsWarning, read_blocks, sniff
from btcnb.data.readers.etl_write import sidecar_of
from btcnb.data.readers.release import read_release, release_splits
from btcnb.data.sampling import TooFewReachedError, sample_from_coinbase
from btcnb.data.simulator import SimulationConfig, simulate
from btcnb.data.transactions import IntArray, Transactions
from btcnb.errors import DataError, ParameterError
from btcnb.store import kept, note_read

Scope = Literal["sample", "interval"]

SIMULATED = "simulated"
ROLES = ("train1", "train2", "train3", "valid", "test")
"""The five roles, in the order in which settings name them."""
IN_TIME = tuple(sorted(ROLES, key=lambda role: SPLITS[role].start_block))
"""The five roles in the order of the paper's dates, by which a chain is cut: the fourth in time is train3."""
SAMPLE_ABOVE = 75_001
"""Transactions above which an interval of a chain is sampled from a coinbase: the most the paper's sampling gives."""
CUTS = (612_000, 640_000, 662_000, 685_000)
"""Heights at which the real chain is cut: each of the five parts holds one of the paper's five intervals."""
BLOCKS, REAL_DATA = "mainnet-blocks", "BTCNB_REAL_DATA"


@configuration
class Source:
    """Whose data, and how it becomes the five roles. `Source.of` makes one from what a chapter's reader types."""

    kind: str = SIMULATED
    """`simulated`, `release`, or the name of a reader of transactions"""
    paths: tuple[str, ...] = ()
    """one path, or one for each of the five roles"""
    size: str = "quick"
    """size of the simulated economies"""
    seed: Annotated[Whole, Field(ge=0)] = 7
    """seed of the simulated economies, and of sampling"""
    intervals: tuple[tuple[int, int], ...] = ()
    """first and last block of each role, in the order of `ROLES`; empty: five equal parts of the chain"""
    price_usd: Annotated[Real, Field(ge=0, le=1e9)] | None = None
    """USD for one bitcoin in somebody's data; None: the paper's where the blocks are the paper's, else unknown"""
    scope: Scope = "sample"
    """what the heuristics see: the sampled transactions only, or all of the interval (the paper does not say)"""
    simulation: tuple[tuple[str, Any], ...] = ()
    """fields of `SimulationConfig`; empty: what the size says, taken when the source is made"""
    disorder: Annotated[Real, Field(ge=0, le=10)] = 1.0
    """how badly heuristics fail in the simulated economies: 0 tidy, 1 calibrated, 2 twice as bad"""
    sample: Annotated[Whole, Field(ge=0)] = 0
    """transactions that a sample should have; 0: what the size says (of somebody's chain, what the paper's had)"""
    whole: Flag = False
    """use every transaction of an interval, sample none: blocks that lie far apart have no paths between them"""
    prices: tuple[float, ...] = ()
    """USD for one bitcoin in each role, in the order of `ROLES`; empty: `price_usd` in all of them"""
    impute: Flag = False
    """of raw blocks: an input of unknown value gets an equal share of what the outputs need beyond the known inputs"""

    def __post_init__(self) -> None:
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


def real_source(path: str = "", cuts: tuple[int, int, int, int] = CUTS) -> Source:
    """A real chain in the five roles: blocks cut by height, every transaction used, unknown input values imputed.

    Each role has the price of the paper's interval that lies in its heights, or of the nearest one, so that encoders
    trained elsewhere find the dollar columns they know.

    path: files that btcnb reads as transactions; empty: the raw blocks below `BTCNB_REAL_DATA`
    cuts: heights at which one role ends and the next begins, in the order of `IN_TIME`
    """
    if not path:
        folder = Path(os.environ.get(REAL_DATA) or os.devnull) / BLOCKS
        if not folder.exists():
            raise DataError(BLOCKS, "folder", "is not at hand", f"set {REAL_DATA} to the folder that holds {BLOCKS}")
        path = str(folder)
    kind = sniff(path)
    spans = {role: (low, high - 1) for role, low, high in zip(IN_TIME, (0, *cuts), (*cuts, 2**31), strict=True)}
    prices = tuple(
        min(SPLITS.values(), key=lambda split: max(low - split.start_block, split.start_block - high, 0)).price_usd
        for low, high in (spans[role] for role in ROLES)
    )
    intervals = tuple(spans[role] for role in ROLES)
    return Source(kind, (path,), intervals=intervals, whole=True, prices=prices, impute=kind == "blocks")


def load_transactions(source: Source, role: str, sampled: bool = True) -> Transactions:
    """The transactions of a role: those its graph is built of (address ids are node ids), or all of its interval."""
    if source.simulated:
        config = source.economy(role)
        return _simulated_sample(config, source.sample) if sampled else _simulated(config)
    _require_transactions(source)
    return _own_sample(source, role) if sampled else _own_interval(source, role)


def load_graph(source: Source, role: str) -> AddressGraph:
    """The address graph of a role with its heuristic clusters."""
    return _released_graph(source, role) if source.kind == "release" else _graph(source, role)


def load_graphs(source: Source, roles: Sequence[str] = ROLES) -> dict[str, AddressGraph]:
    """Graphs by role."""
    return {role: load_graph(source, role) for role in roles}


def load_clusters(source: Source, role: str, rules: Sequence[str] = DEFAULT_RULES) -> IntArray:
    """Clusters of a role's nodes by other rules than the graph's, one label per node: say, common inputs alone."""
    _require_transactions(source)
    unknown = sorted(set(rules) - set(RULES))
    if unknown:
        raise ParameterError(f"rules hold {unknown[0]!r:.80}, but must be among {', '.join(RULES)}.")
    return _clusters(source, role, tuple(name for name in RULES if name in rules))


def load_linked_twice(source: Source, role: str) -> IntArray:
    """Of a role's nodes, those that two independent transactions hold together share a label; see `linked_twice`."""
    _require_transactions(source)
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


def price_of(source: Source, role: str) -> float | None:
    """USD for one bitcoin in a role; None: unknown.

    Where nobody tells it, it is the paper's, if every role lies in an interval of the paper: features must be alike in
    all five.
    """
    if source.simulated:
        return SPLITS[role].price_usd
    if source.prices:
        return source.prices[ROLES.index(role)]
    if source.price_usd:
        return source.price_usd
    first = {name: int(_own_interval(source, name).transactions["block_number"].iloc[0]) for name in ROLES}
    prices = {name: price_near(block) for name, block in first.items()}
    return prices[role] if None not in prices.values() else None


def role_facts(source: Source, role: str) -> dict[str, float | int | str | None]:
    """What a role is made of: heights, counts, share of imputed input values, price, and the graph's fingerprint."""
    txs, graph = load_transactions(source, role), load_graph(source, role)
    blocks = txs.transactions["block_number"].to_numpy()
    return {
        "first_block": int(blocks[0]),
        "last_block": int(blocks[-1]),
        "blocks": len(np.unique(blocks)),
        "transactions": len(txs),
        "imputed": float(txs.inputs["imputed"].mean()) if "imputed" in txs.inputs else 0.0,
        "price_usd": price_of(source, role),
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "clusters": int(graph.labels().max()) + 1,
        "data": graph.fingerprint(),
    }


# --- kept in the store; a simulated chain by its configuration, so that a new preset elsewhere leaves it alone ---


@kept
def _simulated(config: SimulationConfig) -> Transactions:
    return simulate(config)


@kept
def _simulated_sample(config: SimulationConfig, at_least: int) -> Transactions:
    return _sample(_simulated(config), config.seed, at_least)


@kept
def _graph(source: Source, role: str) -> AddressGraph:
    txs, first, last = load_transactions(source, role), None, None
    if source.simulated:
        config = source.economy(role)
        first, last = config.start_block, config.start_block + config.blocks - 1
    labels = _labels(source, role, DEFAULT_RULES)
    return build_graph(txs, labels, price_of(source, role), start_block=first, end_block=last)


@kept
def _clusters(source: Source, role: str, rules: tuple[str, ...]) -> IntArray:
    return _labels(source, role, rules)


@kept
def _linked_twice(source: Source, role: str) -> IntArray:
    return linked_twice(load_transactions(source, role), config=rules_at(price_of(source, role)))


@kept
def _read(kind: str, path: str, impute: bool) -> Transactions:
    note_read(path)
    note_read(sidecar_of(path))  # truth that `write_etl` left beside the file
    if not impute:
        return READERS[kind].read(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingOutputsWarning)  # the column `imputed` tells which they are
        return read_blocks(path, impute=True)


@kept
def _own_interval(source: Source, role: str) -> Transactions:
    if len(source.paths) == len(ROLES):
        part = _read(source.kind, source.paths[ROLES.index(role)], source.impute)
    else:
        chain = _read(source.kind, source.paths[0], source.impute)
        part = chain.select(_positions(chain, source, role))
    if not len(part):
        raise DataError(", ".join(source.paths), "intervals", f"{role} holds no transaction", "choose other intervals")
    return part


@kept
def _own_sample(source: Source, role: str) -> Transactions:
    part = _own_interval(source, role)
    if source.whole or len(part) <= SAMPLE_ABOVE or not part.transactions["is_coinbase"].any():
        return part
    return _sample(part, source.seed, source.sample)


@kept
def _released_graph(source: Source, role: str) -> AddressGraph:
    if len(source.paths) == len(ROLES):
        return read_release(note_read(source.paths[ROLES.index(role)]))
    path = note_read(source.paths[0])
    return read_release(path) if len(_release_roles(source.paths[0])) == 1 else read_release(path, split=role)


def _labels(source: Source, role: str, rules: Sequence[str]) -> IntArray:
    txs = load_transactions(source, role)
    context = load_transactions(source, role, sampled=False) if source.scope == "interval" else None
    return heuristic_clusters(txs, rules, rules_at(price_of(source, role)), context=context)


def _sample(chain: Transactions, seed: int, wanted: int) -> Transactions:
    """In an economy where no coinbase leads so far, half is asked for, and so on; the sample's source says so."""
    at_least = wanted
    while True:
        try:
            sample = sample_from_coinbase(chain, seed=seed, at_least=at_least)
            break
        except TooFewReachedError:
            if at_least <= 1:
                raise
            at_least //= 2
    if len(sample) < wanted:
        told = f"a sample of {len(sample):,} transactions, where {wanted:,} were asked for"
        sample = replace(sample, source=f"{sample.source}, {told}")
    return sample


def _require_transactions(source: Source) -> None:
    if source.kind == "release":
        problem = "a release holds graphs only, with one clustering"
        raise DataError(source.paths[0], "transactions", problem, "name a file of transactions")


def _release_roles(path: str) -> list[str]:
    return list(release_splits(note_read(path)))


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
