"""A real chain in the paper's five roles: scattered blocks, cut by height, every transaction of them used.

    chain = chain_at_hand()                    # raw blocks below BTCNB_REAL_DATA
    graph = chain_graph(chain, "test")         # the address graph of a role, kept in the store

`Source` serves chains too, with one price for all roles and input values left unknown. Here each role has the price of
the paper's interval that lies in its heights, so that encoders trained elsewhere find the dollar columns they know, and
unknown input values are imputed: an input gets an equal share of what the outputs need beyond the known inputs. Nothing
is sampled from a coinbase: blocks that lie far apart have no paths between them.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.data.address_graph import AddressGraph
from btcnb.data.graph_construction import build_graph
from btcnb.data.heuristics import HeuristicConfig, heuristic_clusters
from btcnb.data.intervals import SPLITS
from btcnb.data.readers import READERS, RELEASE, MissingOutputsWarning, read_blocks, sniff
from btcnb.data.sources import ROLES
from btcnb.data.transactions import Transactions
from btcnb.errors import DataError, ParameterError
from btcnb.gates import choice, instance, text
from btcnb.store import kept, note_read

IntArray = npt.NDArray[np.int64]
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
    whole = _read(instance("chain", chain, Chain))
    return whole if role is None else _part(chain, choice("role", role, ROLES))


def chain_graph(chain: Chain, role: str) -> AddressGraph:
    """The address graph of all transactions of a role, with heuristic clusters that see the role only."""
    return _graph(instance("chain", chain, Chain), choice("role", role, ROLES))


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
def _read(chain: Chain) -> Transactions:
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
def _part(chain: Chain, role: str) -> Transactions:
    txs = _read(chain)
    place = chain.role_of(txs.transactions["block_number"].to_numpy())
    return txs.select(place == ROLES.index(role))


@kept
def _graph(chain: Chain, role: str) -> AddressGraph:
    txs, price = _part(chain, role), chain.price(role)
    labels = heuristic_clusters(txs, config=HeuristicConfig(price_usd=price))
    return build_graph(txs, labels=labels, price_usd=price)
