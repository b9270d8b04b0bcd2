"""Where false merges come from: the rule that made them, and what really went on in the transaction.

A merge is wrong when its two addresses have different owners. What went on is told by `truth.mechanism`, where the
source has it (the name of a failure mechanism per transaction, "" for an ordinary one), or by `truth.coinjoin`.
"""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order

from btcnb.data.components import components
from btcnb.data.heuristics import DEFAULT_RULES, HeuristicConfig, heuristic_merges
from btcnb.data.judging.entity_pairs import Drawing, entity_graphs, interval_config
from btcnb.data.judging.owners import owners_in
from btcnb.data.simulator.parameters import MECHANISMS
from btcnb.data.transactions import IntArray, Transactions, Truth
from btcnb.errors import DataError
from btcnb.gates import instance

ORDINARY = "ordinary"
"""Name of what is neither a CoinJoin nor any told mechanism."""


def mechanisms(txs: Transactions) -> npt.NDArray[Any]:
    """Per transaction what went on in it: the source's mechanism, else `coinjoin NAME`, else `ordinary`."""
    truth = _truth(txs)
    names = np.full(len(txs), ORDINARY, dtype=object)
    if truth.coinjoin is not None:
        protocol = np.asarray(truth.coinjoin, dtype=object)
        names = np.where(protocol != "", "coinjoin " + protocol.astype(str).astype(object), names)
    told = getattr(truth, "mechanism", None)
    if told is not None:
        told = np.asarray(told, dtype=object)
        names = np.where(told != "", told, names)
    return names


def wrong_merges(txs: Transactions, merges: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Per row of `heuristic_merges`: whether the two addresses have different owners, both known."""
    owner = _truth(txs).owner
    a, b = (owner[merges[side].to_numpy(dtype=np.int64)] for side in ("address_a", "address_b"))
    return (a >= 0) & (b >= 0) & (a != b)


def where_false_merges_come_from(txs: Transactions, merges: pd.DataFrame | None = None) -> pd.DataFrame:
    """Per rule and mechanism with a wrong merge: wrong (merges), transactions, of_wrong (share), of_rule (error rate).

    merges: as `heuristic_merges` gives them; default: the paper's rules with the price of the chain's first block.
    `of_wrong` is the share of all wrong merges, `of_rule` the wrong ones' share of all merges of that rule.
    """
    if merges is None:
        merges = heuristic_merges(txs, config=interval_config(txs))
    wrong = merges[wrong_merges(txs, merges)]
    wrong = wrong.assign(mechanism=mechanisms(txs)[wrong["tx"].to_numpy(dtype=np.int64)])
    grouped = wrong.groupby(["rule", "mechanism"])
    table = pd.DataFrame({"wrong": grouped.size(), "transactions": grouped["tx"].nunique()}).reset_index()
    table["of_wrong"] = table["wrong"] / max(len(wrong), 1)
    table["of_rule"] = table["wrong"] / table["rule"].map(merges["rule"].value_counts()).astype(np.float64)
    return table.sort_values("wrong", ascending=False, kind="stable", ignore_index=True)


def false_positive_paths(
    txs: Transactions, config: HeuristicConfig | None = None, **drawing: Unpack[Drawing]
) -> pd.DataFrame:
    """The wrong merges that join two names in the entity test: one row per wrongly joined pair and wrong merge.

    Between the two addresses of a pair, a shortest path of merges is followed. Columns: graph (its transaction), draw,
    pair (number within the draw), tx (id in the whole chain), rule, mechanism. A wrongly joined pair whose path has no
    wrong merge (both names belong to one owner) has one row with tx -1.
    """
    config = interval_config(txs) if config is None else config
    what, rows = mechanisms(txs), []
    for graph in entity_graphs(txs, **drawing):
        merges = heuristic_merges(graph.txs, DEFAULT_RULES, config)
        paths = _Paths(graph.txs.num_addresses, merges, wrong_merges(graph.txs, merges))
        for draw, (pairs, same) in enumerate(zip(graph.pairs, graph.same, strict=True)):
            for number in np.flatnonzero(~same):
                path = paths.wrong_between(*pairs[number])
                if path is None:
                    continue
                head = {"graph": graph.transaction, "draw": draw, "pair": int(number)}
                if not len(path):
                    rows.append({**head, "tx": -1, "rule": "", "mechanism": "one owner, two names"})
                for merge in path:
                    tx = int(graph.transactions[merges["tx"].iloc[merge]])
                    rows.append({**head, "tx": tx, "rule": merges["rule"].iloc[merge], "mechanism": what[tx]})
    return pd.DataFrame(rows, columns=["graph", "draw", "pair", "tx", "rule", "mechanism"])


class _Paths:
    """Shortest paths of merges in one local graph."""

    def __init__(self, size: int, merges: pd.DataFrame, wrong: npt.NDArray[np.bool_]) -> None:
        self._a, self._b = (merges[side].to_numpy(dtype=np.int64) for side in ("address_a", "address_b"))
        self._wrong = wrong
        ones = np.ones(2 * len(merges))
        ends = (np.append(self._a, self._b), np.append(self._b, self._a))
        self._graph = coo_array((ones, ends), shape=(size, size)).tocsr()
        self._row = {}
        for row in range(len(merges) - 1, -1, -1):  # the earliest of several merges of a pair stands for it
            self._row[frozenset((int(self._a[row]), int(self._b[row])))] = row

    def wrong_between(self, a: int, b: int) -> IntArray | None:
        """Rows of the wrong merges on a shortest path; None where there is no path."""
        order, before = breadth_first_order(self._graph, a, directed=True)
        if b not in order:
            return None
        rows, place = [], int(b)
        while place != a:
            rows.append(self._row[frozenset((place, int(before[place])))])
            place = int(before[place])
        found = np.array(rows, dtype=np.int64)
        return found[self._wrong[found]]


def _truth(txs: Transactions) -> Truth:
    truth = instance("txs", txs, Transactions).truth
    if truth is None:
        raise DataError(txs.source, "truth", "is missing", "simulate, or attach owners")
    return truth


HOSTED = "hosted-address"
_HOSTS, _GUESTS = ("exchange",), ("merchant", "service")
_ENDS = ["address_a", "address_b"]


def mechanism_of_merges(txs: Transactions, merges: pd.DataFrame) -> npt.NDArray[Any]:
    """Per merge what went on in its transaction (`mechanisms`).

    An exchange that sweeps its deposits does nothing unusual, so the source calls the transaction ordinary although one
    of the deposit addresses is a shop's public one. Such wrong merges, told by the kinds of their two owners, are named
    `hosted-address` here.
    """
    named = mechanisms(txs)[merges["tx"].to_numpy(dtype=np.int64)]
    wrong = wrong_merges(txs, merges)
    truth = txs.truth
    if truth is None or not wrong.any():
        return named
    kind = np.append(truth.entities["kind"].to_numpy(dtype=object), "")
    a, b = (kind[truth.owner[merges[end].to_numpy(dtype=np.int64)]] for end in _ENDS)
    swept = (np.isin(a, _HOSTS) & np.isin(b, _GUESTS)) | (np.isin(b, _HOSTS) & np.isin(a, _GUESTS))
    hosted = wrong & swept & (named == ORDINARY) & (merges["rule"] == "common_input").to_numpy()
    return np.where(hosted, HOSTED, named)


def right_part(txs: Transactions, merges: pd.DataFrame) -> pd.DataFrame:
    """The merges (tx, rule, address_a, address_b) that are left when the rules know the owners.

    Right merges stay. Where a firing has a wrong one, its addresses are merged owner by owner: of a payment that two
    people sign, each keeps what it signed. Merges with an address of unknown owner stay.
    """
    wrong = wrong_merges(txs, merges)
    columns = ["tx", "rule", *_ENDS]
    mistaken = merges.loc[wrong, ["tx", "rule"]].drop_duplicates()
    of_firing = merges.merge(mistaken, on=["tx", "rule"])
    ends = pd.concat([of_firing[["tx", "rule", end]].set_axis(["tx", "rule", "address"], axis=1) for end in _ENDS])
    ends = ends.drop_duplicates(ignore_index=True)
    owner = np.empty(0, dtype=np.int64) if txs.truth is None else txs.truth.owner
    ends["owner"] = owner[ends["address"].to_numpy(dtype=np.int64)]
    ends = ends[ends["owner"] >= 0].sort_values(["tx", "rule", "owner", "address"], ignore_index=True)
    centre = ends.groupby(["tx", "rule", "owner"])["address"].transform("first")
    apart = ends.assign(address_a=centre, address_b=ends["address"])[columns]
    kept = pd.concat([merges.loc[~wrong, columns], apart[apart["address_a"] != apart["address_b"]]])
    return kept.drop_duplicates().sort_values("tx", kind="stable", ignore_index=True)


def merge_sources(txs: Transactions, merges: pd.DataFrame) -> pd.DataFrame:
    """Per mechanism and rule, most wrong merges first: mechanism, rule, merges, wrong, transactions, drawn, spared.

    merges:       as `heuristic_merges` gives them
    wrong:        those that tie two owners; transactions: in how many transactions
    drawn:        addresses in clusters of several owners if these were the only wrong merges
    spared:       addresses that would not be in such clusters if these alone had not been made
    `drawn` may be large and `spared` small: where two mechanisms join the same owners, each alone suffices.
    """
    table = merges.reset_index(drop=True)
    table = table.assign(mechanism=mechanism_of_merges(txs, table), wrong=wrong_merges(txs, table))
    grouped = table.groupby(["mechanism", "rule"], sort=True)
    found = grouped.agg(merges=("wrong", "size"), wrong=("wrong", "sum"))
    found["transactions"] = table[table["wrong"]].groupby(["mechanism", "rule"])["tx"].nunique()
    found = found.fillna({"transactions": 0}).astype(np.int64)
    right, wrong = right_part(txs, table), table[table["wrong"]]
    everything = _in_collapsed(txs, right, wrong)
    for key in found.index:
        own = ((wrong["mechanism"] == key[0]) & (wrong["rule"] == key[1])).to_numpy()
        found.loc[key, "drawn"] = _in_collapsed(txs, right, wrong[own]) if own.any() else 0
        found.loc[key, "spared"] = everything - _in_collapsed(txs, right, wrong[~own]) if own.any() else 0
    found = found.reset_index().astype({"drawn": np.int64, "spared": np.int64}) if len(found) else _NOTHING.copy()
    return found.sort_values(["wrong", "merges"], ascending=False, kind="stable", ignore_index=True)


def words_of(mechanism: str) -> str:
    """What a mechanism does, in words; elsewhere a CoinJoin that the detectors missed, or nothing unusual."""
    for known in MECHANISMS:
        if known.name == mechanism:
            return known.words
    if mechanism.startswith("coinjoin "):
        return "a CoinJoin that the detectors did not recognise"
    return "nothing unusual: an ordinary payment"


_NOTHING = pd.DataFrame(
    {"mechanism": pd.Series(dtype=object), "rule": pd.Series(dtype=object)}
    | {name: pd.Series(dtype=np.int64) for name in ("merges", "wrong", "transactions", "drawn", "spared")}
)


def _in_collapsed(txs: Transactions, right: pd.DataFrame, wrong: pd.DataFrame) -> int:
    """Addresses in clusters of several known owners."""
    ends: list[IntArray] = [
        np.concatenate([part[end].to_numpy(dtype=np.int64) for part in (right, wrong)]) for end in _ENDS
    ]
    owner = np.empty(0, dtype=np.int64) if txs.truth is None else txs.truth.owner
    held = owners_in(components(txs.num_addresses, *ends), owner)
    return int(held.loc[held["owners"] > 1, "addresses"].sum())
