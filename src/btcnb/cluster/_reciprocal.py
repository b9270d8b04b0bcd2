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
from btcnb.cluster._distance import Table
from btcnb.cluster._gate import Float64, Int64
from btcnb.cluster._neighbours import LENGTH, empty_lists
from btcnb.cluster._search import BLOCK_BYTES, Centres, search, search_each_other
from btcnb.errors import ParameterError

MIN_BLOCK_BYTES = 2**18


def workspace_bytes(n: int, d: int) -> int:
    """Bytes that `linkage` takes for n rows of d numbers, equal or not, apart from blocks of products."""
    return n * (12 * d + 12 * LENGTH + 96)


def block_bytes(n: int, d: int, memory_limit: int | None) -> int:
    """Size of the blocks that keep `agglomerate` within a limit; an error if none does."""
    if memory_limit is None:
        return BLOCK_BYTES
    needed = workspace_bytes(n, d)
    block = min(BLOCK_BYTES, (memory_limit - needed) // 3)  # a block, and its float64 version where it is needed
    if block < MIN_BLOCK_BYTES:
        raise ParameterError(
            f"memory_limit is {memory_limit:,} bytes, but {n:,} rows of {d} numbers "
            f"need at least {needed + 3 * MIN_BLOCK_BYTES:,}."
        )
    return block


def agglomerate(
    table: Table, kind: int, block: int, first: Callable[[int], None], report: Callable[[int], None]
) -> tuple[Int64, Float64]:
    """Merge distinct unit rows (n, d), n >= 2, each standing for as many points as its size says; `table` is used up.

    All n-1 merges in the order made: slots (n-1, 2) and heights (n-1,), mean cosine distances (average) or squared Ward
    distances (ward). `first` hears the rows of the first pass, `report` the merges of each round.
    """
    n = len(table.size)
    lists = empty_lists(n)
    clusters = _rounds.Clusters(
        *table,
        forward=np.arange(n, dtype=np.int32),
        stamp=np.zeros(n, dtype=np.int32),
        seen=np.zeros(n, dtype=np.int32),
        partner=np.full(n, -1, dtype=np.int32),
    )
    fresh = active = np.arange(n, dtype=np.int32)
    centres = Centres(table, active, kind, block)
    pairs, heights = np.empty((n - 1, 2), dtype=np.int64), np.empty(n - 1)
    merges, turn = 0, 0
    search_each_other(lists, centres, first)
    while merges < n - 1:
        turn += 1
        joined = _rounds.reciprocal_pairs(fresh, kind, lists)
        if not len(joined):  # only possible if rounding hides a tie; the closest pair of all always qualifies
            joined = _rounds.reciprocal_pairs(active, kind, lists)
        done = slice(merges, merges + len(joined))
        heights[done] = _rounds.join(joined, turn, kind, clusters, centres.packed, lists)
        pairs[done] = joined
        merges += len(joined)
        report(len(joined))
        active = _rounds.survivors(active, clusters.forward)
        fresh = _rounds.affected(active, turn, clusters, lists)
        unsure = fresh[_rounds.renew(fresh, turn, kind, clusters, lists)]
        if len(unsure) and len(active) > 1:
            centres.pack_if_sparse(active)
            search(lists, unsure, unsure, table, centres, len(active) - 1, lambda: report(0))
    return pairs, heights
