"""Which addresses do two independent transactions hold together?

A heuristic cluster is as strong as its weakest link: one wrong transaction joins two users. Addresses and the
transactions that merge them form a graph; where taking a single transaction away would separate two addresses, the
heuristics rest on that transaction alone. What no single transaction can separate is linked twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import igraph
import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from btcnb.data.components import by_first
from btcnb.data.heuristics.clusters import DEFAULT_RULES, heuristic_merges
from btcnb.data.heuristics.config import HeuristicConfig
from btcnb.data.transactions import IntArray, Transactions


def linked_twice(
    txs: Transactions, rules: Sequence[str] = DEFAULT_RULES, config: HeuristicConfig | None = None
) -> IntArray:
    """One int64 label per address of `txs`, 0..k-1 in order of first appearance: a refinement of `heuristic_clusters`.

    Two addresses share a label when no single transaction's merges hold them together: they lie on a common cycle of
    addresses and merging transactions (a block of that graph), or are joined by addresses that do. Time and memory are
    linear in the number of merges.
    """
    merges = heuristic_merges(txs, rules, config)
    tx, used = pd.factorize(merges["tx"])
    edges = np.concatenate(
        [np.stack([merges[end].to_numpy(np.int64), tx + txs.num_addresses]) for end in ("address_a", "address_b")],
        axis=1,
    )
    edges = np.unique(edges, axis=1)
    graph = igraph.Graph(n=txs.num_addresses + len(used), edges=edges.T)
    blocks = [block for block in graph.biconnected_components() if len(block) > 2]  # a bridge is a block of two
    member = np.fromiter(chain.from_iterable(blocks), dtype=np.int64)
    block = np.repeat(np.arange(len(blocks)), [len(one) for one in blocks])
    address = member < txs.num_addresses
    ends = (member[address], block[address] + txs.num_addresses)
    size = txs.num_addresses + len(blocks)
    joined = coo_array((np.ones(address.sum(), dtype=bool), ends), shape=(size, size))
    return by_first(connected_components(joined, directed=False)[1][: txs.num_addresses].astype(np.int64))
