"""Exact agglomeration by rounds of reciprocal nearest neighbours, on cluster sums, without a distance matrix.

One round merges every pair of clusters that are each other's nearest neighbour. For reducible distances these are
merges that the one-at-a-time algorithm makes too, in some order, so sorting the merges by height gives the same
dendrogram. Only clusters whose neighbour was merged look again, and most of them find the answer in their list
(`_neighbours`); the few that do not are searched together, in one blocked matrix product (`_search`).

Memory: one float64 and one float32 matrix (n, d), lists of n short rows, one block of products. Never (n, n).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from btcnb.cluster import _rounds
from btcnb.cluster._neighbours import LENGTH, Lists
from btcnb.cluster._rows import Float64, Int64
from btcnb.cluster._search import BLOCK_BYTES, Centres, search, search_each_other
from btcnb.errors import ParameterError

MIN_BLOCK_BYTES = 2**18


def workspace_bytes(n: int, d: int) -> int:
    """Bytes that `agglomerate` takes for n distinct rows of d numbers, apart from blocks of products."""
    return n * (12 * d + 12 * LENGTH + 96)


class Agglomeration:
    """The state of one run. Clusters live in slots 0..n-1; a merge keeps the slot of the larger part."""

    def __init__(self, rows: Float64, size: Float64, kind: int, block_bytes: int) -> None:
        n = len(rows)
        self.kind = kind
        self.size = size.copy()
        self.sums = rows
        if (size != 1.0).any():
            self.sums *= size[:, None]
        self.lists = Lists.empty(n)
        self.forward = np.arange(n, dtype=np.int32)  # slot -> slot that swallowed it
        self.stamp = np.zeros(n, dtype=np.int32)  # round in which a slot last changed
        self.seen = np.zeros(n, dtype=np.int32)  # round in which a slot's list was last measured
        self.partner = np.full(n, -1, dtype=np.int32)  # what a slot swallowed last
        self.active = np.arange(n, dtype=np.int32)
        self.centres = Centres(self.sums, self.size, self.active, kind, block_bytes)

    def run(self, report: Callable[[int], None]) -> tuple[Int64, Float64]:
        """All n-1 merges in the order made: slots (n-1, 2) and heights (n-1,). `report` hears the merges of each
        round.
        """
        n = len(self.active)
        pairs, heights = np.empty((n - 1, 2), dtype=np.int64), np.empty(n - 1)
        lists = self.lists.arrays()
        fresh = self.active
        merges, turn = 0, 0
        search_each_other(self.lists, self.centres)
        while merges < n - 1:
            turn += 1
            joined = _rounds.reciprocal_pairs(fresh, self.kind, *lists)
            if not len(joined):  # only possible if rounding hides a tie; the closest pair of all always qualifies
                joined = _rounds.reciprocal_pairs(self.active, self.kind, *lists)
            done = slice(merges, merges + len(joined))
            heights[done] = self._join(joined, turn)
            pairs[done] = joined
            merges += len(joined)
            report(len(joined))
            self.active = _rounds.survivors(self.active, self.forward)
            fresh = _rounds.affected(self.active, turn, self.forward, self.stamp, self.lists.ids)
            clusters = (self.kind, self.sums, self.size, self.forward, self.stamp, self.seen, self.partner)
            unsure = fresh[_rounds.renew(fresh, turn, *clusters, *lists)]
            if len(unsure) and len(self.active) > 1:
                self.centres.pack_if_sparse(self.active)
                search(self.lists, unsure, unsure, self.sums, self.size, self.centres, len(self.active) - 1)
        return pairs, heights

    def _join(self, pairs: Int64, turn: int) -> Float64:
        clusters = (self.kind, self.sums, self.size, self.forward, self.stamp, self.partner)
        packed = (self.centres.position, self.centres.cols, self.centres.table)
        return _rounds.join(pairs, turn, *clusters, *packed, *self.lists.arrays())


def agglomerate(
    rows: Float64, size: Float64, kind: int, memory_limit: int | None, report: Callable[[int], None]
) -> tuple[Int64, Float64]:
    """Merge distinct unit rows (n, d), n >= 2, each standing for size[i] equal points; `rows` is used up.

    Heights are mean cosine distances (average) or squared Ward distances (ward).
    """
    block = BLOCK_BYTES
    if memory_limit is not None:
        needed = workspace_bytes(*rows.shape)
        block = min(BLOCK_BYTES, (memory_limit - needed) // 3)  # a block, and its float64 version where it is needed
        if block < MIN_BLOCK_BYTES:
            raise ParameterError(
                f"memory_limit is {memory_limit:,} bytes, but {rows.shape[0]:,} rows of {rows.shape[1]} numbers "
                f"need at least {needed + 3 * MIN_BLOCK_BYTES:,}."
            )
    return Agglomeration(rows, size, kind, block).run(report)
