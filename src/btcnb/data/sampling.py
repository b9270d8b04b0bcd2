"""Cutting a graph-sized piece out of the chain: breadth-first search on the transaction DAG.

Transaction A points to transaction B when B spends an output of A. The paper (appendix "Transaction Sampling Strategy")
follows these edges forward from a random coinbase, and in both directions around a labelled transaction, with a limit
on how many transactions a step expands. Its wording leaves open what becomes of those found beyond the limit. We drop
them (a later step may find them again): then a sample has at most 1 + depth × limit transactions, 75,001 with the
paper's settings, which fits the 44k to 57k it reports. `keep_unexpanded=True` keeps them, but follows them no further.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt
import pandas as pd
from numba import njit

from btcnb.data.intervals import Interval
from btcnb.data.transactions import Cutter, IntArray, Piece, Transactions
from btcnb.errors import DataError, ParameterError


class TooFewReachedError(DataError):
    """No coinbase leads to as many transactions as were asked for. `best` is the most that one reaches."""

    def __init__(self, source: str, wanted: int, best: int) -> None:
        self.best = best
        problem = f"no coinbase reaches {wanted} transactions (the best one {best})"
        super().__init__(
            source, "is_coinbase", problem, "widen the interval, raise depth and max_expanded, or lower at_least"
        )


def sample_from_coinbase(
    txs: Transactions,
    seed: int = 0,
    depth: int = 15,
    max_expanded: int = 5_000,
    coinbase: int | str | None = None,
    *,
    at_least: int = 1,
    keep_unexpanded: bool = False,
    **interval: Unpack[Interval],
) -> Transactions:
    """The transactions reached from a coinbase by following spent outputs, at most `depth` steps.

    The coinbase is drawn uniformly among those in blocks start_block..end_block (inclusive; default: all), or is the
    one given by id or hash. Each step follows at most `max_expanded` transactions, chosen at random; nothing outside
    the interval is entered. A young coinbase leads nowhere: with `at_least` > 1, coinbases are drawn until one reaches
    so many transactions.
    """
    graph = _Graph.of(txs, directed=True, **interval)
    rng = np.random.default_rng(seed)
    best = 0
    for start in _coinbases(txs, graph, rng, coinbase):
        reached = graph.search(start, depth, max_expanded, rng, keep_unexpanded)
        if len(reached) >= at_least:
            return txs.select(reached)
        best = max(best, len(reached))
    raise TooFewReachedError(txs.source, at_least, best)


def sample_around(
    txs: Transactions,
    seeds: int | str | Iterable[int | str],
    depth: int = 3,
    max_expanded: int = 100,
    seed: int = 0,
    *,
    keep_unexpanded: bool = False,
) -> Transactions:
    """The surroundings of the given transactions (ids or hashes): both directions, at most `depth` steps.

    Every seed is searched on its own, `max_expanded` transactions a step, with random choices that depend on `seed` and
    that transaction only; the result is the union. So a seed's surroundings are the same whatever the others are.
    """
    around = Surroundings.of(txs, depth, max_expanded, seed, keep_unexpanded=keep_unexpanded)
    keep = np.zeros(len(txs), dtype=bool)
    for start in np.unique(_ids(txs, seeds)):
        keep[around.ids(int(start))] = True
    return txs.select(keep)


@dataclass(frozen=True)
class Surroundings:
    """What `sample_around` finds around any one transaction, with the work on the whole chain done once.

    `Surroundings.of(txs).piece(17)` holds the transactions around transaction 17 and what their ids were.
    """

    graph: _Graph
    cutter: Cutter
    depth: int
    max_expanded: int
    seed: int
    keep_unexpanded: bool

    @classmethod
    def of(
        cls,
        txs: Transactions,
        depth: int = 3,
        max_expanded: int = 100,
        seed: int = 0,
        *,
        keep_unexpanded: bool = False,
    ) -> Surroundings:
        """Arguments as in `sample_around`."""
        graph = _Graph.of(txs, directed=False)
        return cls(graph, Cutter.of(txs), depth, max_expanded, seed, keep_unexpanded)

    def ids(self, tx: int) -> IntArray:
        """Ids of the transactions around transaction `tx`, which is one of them, ascending."""
        rng = np.random.default_rng([self.seed, tx])
        return self.graph.search(tx, self.depth, self.max_expanded, rng, self.keep_unexpanded)

    def piece(self, tx: int) -> Piece:
        """The transactions around transaction `tx` as a chain of their own; costs what they hold."""
        return self.cutter.cut(self.ids(tx))


@dataclass(frozen=True)
class _Graph:
    """The transaction DAG (or its undirected version) in CSR form, with the transactions that may be entered."""

    start: IntArray  # (T+1,)
    neighbour: IntArray  # (edges,) ascending within a transaction
    inside: npt.NDArray[np.bool_]  # (T,)
    seen: npt.NDArray[np.bool_]  # (T,) scratch space of a search, all False between two

    @classmethod
    def of(
        cls, txs: Transactions, directed: bool, start_block: int | None = None, end_block: int | None = None
    ) -> _Graph:
        spent = txs.inputs["spent_output"].to_numpy()
        rows = spent >= 0
        parent = txs.outputs["tx"].to_numpy()[spent[rows]]
        child = txs.inputs["tx"].to_numpy()[rows]
        if not directed:
            parent, child = np.append(parent, child), np.append(child, parent)
        order = np.lexsort((child, parent))
        block = txs.transactions["block_number"].to_numpy()
        inside = np.ones(len(txs), dtype=bool)
        if start_block is not None:
            inside &= block >= start_block
        if end_block is not None:
            inside &= block <= end_block
        start = np.searchsorted(parent[order], np.arange(len(txs) + 1)).astype(np.int64)
        return cls(start, child[order], inside, np.zeros(len(txs), dtype=bool))

    def search(
        self, first: int, depth: int, max_expanded: int, rng: np.random.Generator, keep_unexpanded: bool
    ) -> IntArray:
        """Ids reached from transaction `first`, which is one of them, ascending."""
        try:
            ids = self._reached(first, depth, max_expanded, rng, keep_unexpanded)
        except BaseException:  # an interrupt too: the next search must find the scratch space clean
            self.seen[:] = False
            raise
        self.seen[ids] = False
        return ids

    def _reached(
        self, first: int, depth: int, max_expanded: int, rng: np.random.Generator, keep_unexpanded: bool
    ) -> IntArray:
        frontier = np.array([first], dtype=np.int64)
        self.seen[first] = True
        reached = [frontier]
        for _ in range(depth):
            found = np.sort(_unseen(self.start, self.neighbour, self.inside, self.seen, frontier))
            if not len(found):
                break
            frontier = found
            if len(found) > max_expanded:
                frontier = np.sort(rng.choice(found, max_expanded, replace=False))
            kept = found if keep_unexpanded else frontier
            self.seen[found] = False
            self.seen[kept] = True
            reached.append(kept)
        return np.sort(np.concatenate(reached))


@njit(cache=True)
def _unseen(
    start: IntArray,
    neighbour: IntArray,
    inside: npt.NDArray[np.bool_],
    seen: npt.NDArray[np.bool_],
    frontier: IntArray,
) -> IntArray:
    """Neighbours of the frontier not seen so far, each once; they are marked as seen."""
    size = 0
    for t in frontier:
        size += start[t + 1] - start[t]
    found = np.empty(size, dtype=np.int64)
    count = 0
    for t in frontier:
        for i in range(start[t], start[t + 1]):
            other = neighbour[i]
            if inside[other] and not seen[other]:
                seen[other] = True
                found[count] = other
                count += 1
    return found[:count]


def _coinbases(txs: Transactions, graph: _Graph, rng: np.random.Generator, given: int | str | None) -> IntArray:
    """Coinbases of the interval in random order, or the given one."""
    is_coinbase = txs.transactions["is_coinbase"].to_numpy()
    if given is not None:
        start = _ids(txs, [given])
        if not (is_coinbase & graph.inside)[start[0]]:
            problem = f"{given} is not a coinbase inside the interval"
            raise DataError(txs.source, "coinbase", problem, "give one, or none to draw it")
        return start
    candidates = np.flatnonzero(is_coinbase & graph.inside)
    if not len(candidates):
        blocks = txs.transactions["block_number"]
        span = f"{blocks.min()} to {blocks.max()}" if len(txs) else "none"
        problem = f"no coinbase lies in the interval (blocks at hand: {span})"
        raise DataError(txs.source, "is_coinbase", problem, "choose other blocks")
    return rng.permutation(candidates)


def _ids(txs: Transactions, seeds: int | str | Iterable[int | str]) -> IntArray:
    """Transaction ids of one or several ids or hashes."""
    alone = isinstance(seeds, str) or not isinstance(seeds, Iterable)
    listed: list[Any] = [seeds] if alone else list(seeds)  # type: ignore[arg-type]
    if not listed:
        raise ParameterError("give at least one seed: a transaction's id or its hash.")
    known = pd.Series(np.arange(len(txs)), index=txs.transactions["hash"].to_numpy(dtype=object))
    hashes = [seed for seed in listed if isinstance(seed, str)]
    place = known[known.index.isin(hashes)].to_dict() if hashes else {}
    found = [place.get(seed, -1) if isinstance(seed, str) else int(seed) for seed in listed]
    for seed, position in zip(listed, found, strict=True):
        if not 0 <= position < len(txs):
            remedy = f"give a hash, or an id below {len(txs)}"
            raise DataError(txs.source, "seeds", f"transaction {seed} is unknown", remedy)
    return np.array(found, dtype=np.int64)
