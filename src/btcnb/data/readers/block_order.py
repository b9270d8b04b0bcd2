"""An order for blocks and positions that a source does not number: by time, and never before what is spent."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import count
from typing import Any, Protocol

from btcnb.errors import DataError


class Placed(Protocol):
    """A transaction that knows its block, its position there (0 where unknown) and what it spends."""

    txid: str
    block: str
    index: int

    @property
    def inputs(self) -> Sequence[tuple[Any, ...]]: ...  # the first entry of each is the spent transaction's id


def block_ranks(placed: Sequence[Placed], times: Mapping[str, int], source: str) -> dict[str, int]:
    """Block -> 0, 1, 2, …: by (time, block), but after every block it spends from.

    Block times may run backwards by up to two hours, so time alone could put a spender before what it spends.
    """
    block_of = {line.txid: line.block for line in placed}
    graph: dict[str, set[str]] = {block: set() for block in times}
    for line in placed:
        graph[line.block].update(block_of[spent[0]] for spent in line.inputs if spent[0] in block_of)
    for block, parents in graph.items():
        parents.discard(block)
    sorter = TopologicalSorter(graph)
    try:
        sorter.prepare()
    except CycleError as error:
        raise DataError(source, "block hash", "two blocks spend from each other", "check the lines") from error
    ready = [(times[block], block) for block in sorter.get_ready()]
    heapq.heapify(ready)
    ranks: dict[str, int] = {}
    while ready:
        _, block = heapq.heappop(ready)
        ranks[block] = len(ranks)
        sorter.done(block)
        for follower in sorter.get_ready():
            heapq.heappush(ready, (times[follower], follower))
    return ranks


def fill_positions(placed: Sequence[Placed]) -> None:
    """Give each transaction with an unknown position the first free one behind what it spends in its own block.

    A position claimed twice counts as unknown for the second claimant.
    """
    blocks: defaultdict[str, list[Placed]] = defaultdict(list)
    for line in placed:
        blocks[line.block].append(line)
    for lines in blocks.values():
        position: dict[str, int] = {}
        taken: set[int] = {0}  # the coinbase's
        for line in lines:
            if line.index not in taken:
                position[line.txid] = line.index
                taken.add(line.index)
        if len(position) == len(lines):
            continue
        here = {line.txid: line for line in lines}
        graph = {txid: [spent[0] for spent in line.inputs if spent[0] in here] for txid, line in here.items()}
        reached: dict[int, int] = {}  # position -> the last one given out behind it: all up to there are taken
        for txid in _parents_first(graph):
            if txid not in position:
                behind = max((position.get(parent, 0) for parent in graph[txid]), default=0)
                free = next(free for free in count(reached.get(behind, behind) + 1) if free not in taken)
                position[txid] = reached[behind] = free
                taken.add(position[txid])
        for line in lines:
            line.index = position[line.txid]


def _parents_first(graph: dict[str, list[str]]) -> list[str]:
    try:
        return list(TopologicalSorter(graph).static_order())
    except CycleError:
        return list(graph)  # transactions that spend from each other: the container's own check names them
