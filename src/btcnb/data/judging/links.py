"""Where false merges come from, the rule and what really went on in the transaction, and what they do to clusters.

A merge is wrong when its two addresses have different owners. What went on is told by `truth.mechanism`, where the
source has it (the name of a failure mechanism per transaction, "" for an ordinary one), or by `truth.coinjoin`.

A rule that knew the owners would keep the right part of every merge. On top of that right part, the wrong merges of one
mechanism and rule can be put back alone (what they would do by themselves) or left out alone (what would be spared).

Transactions need a truth.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.data.components import components
from btcnb.data.heuristics import heuristic_merges
from btcnb.data.judging.entity_pairs import interval_config
from btcnb.data.judging.owners import owners_in
from btcnb.data.transactions import IntArray, Transactions

ORDINARY = "ordinary"
"""Name of what is neither a CoinJoin nor any told mechanism."""
HOSTED = "hosted-address"
_HOSTS, _GUESTS = ("exchange",), ("merchant", "service")
_ENDS = ["address_a", "address_b"]


def mechanisms(txs: Transactions) -> npt.NDArray[Any]:
    """Per transaction what went on in it: the source's mechanism, else `coinjoin NAME`, else `ordinary`."""
    truth = txs.known_truth()
    names = np.full(len(txs), ORDINARY, dtype=object)
    if truth.coinjoin is not None:
        protocol = np.asarray(truth.coinjoin, dtype=object)
        names = np.where(protocol != "", "coinjoin " + protocol.astype(str).astype(object), names)
    if truth.mechanism is not None:
        told = np.asarray(truth.mechanism, dtype=object)
        names = np.where(told != "", told, names)
    return names


def marked(merges: pd.DataFrame, owner: IntArray) -> pd.DataFrame:
    """The merges with a column `wrong`: whether they tie addresses of two known owners."""
    a, b = owner[merges["address_a"]], owner[merges["address_b"]]
    return merges.assign(wrong=(a != b) & (a >= 0) & (b >= 0))


def where_false_merges_come_from(txs: Transactions, merges: pd.DataFrame | None = None) -> pd.DataFrame:
    """Per rule and mechanism with a wrong merge: wrong (merges), transactions, of_wrong (share), of_rule (error rate).

    merges: as `heuristic_merges` gives them; default: the paper's rules with the price of the chain's first block.
    `of_wrong` is the share of all wrong merges, `of_rule` the wrong ones' share of all merges of that rule.
    """
    if merges is None:
        merges = heuristic_merges(txs, config=interval_config(txs))
    wrong = marked(merges, txs.known_truth().owner).query("wrong")
    wrong = wrong.assign(mechanism=mechanisms(txs)[wrong["tx"].to_numpy(dtype=np.int64)])
    grouped = wrong.groupby(["rule", "mechanism"])
    table = pd.DataFrame({"wrong": grouped.size(), "transactions": grouped["tx"].nunique()}).reset_index()
    table["of_wrong"] = table["wrong"] / max(len(wrong), 1)
    table["of_rule"] = table["wrong"] / table["rule"].map(merges["rule"].value_counts()).astype(np.float64)
    return table.sort_values("wrong", ascending=False, kind="stable", ignore_index=True)


def mechanism_of_merges(txs: Transactions, merges: pd.DataFrame) -> npt.NDArray[Any]:
    """Per merge what went on in its transaction (`mechanisms`).

    An exchange that sweeps its deposits does nothing unusual, so the source calls the transaction ordinary although one
    of the deposit addresses is a shop's public one. Such wrong merges, told by the kinds of their two owners, are named
    `hosted-address` here.
    """
    named = mechanisms(txs)[merges["tx"].to_numpy(dtype=np.int64)]
    truth = txs.known_truth()
    kind = np.append(truth.entities["kind"].to_numpy(dtype=object), "")  # the last one stands for owner -1
    a, b = (kind[truth.owner[merges[end].to_numpy(dtype=np.int64)]] for end in _ENDS)
    swept = (np.isin(a, _HOSTS) & np.isin(b, _GUESTS)) | (np.isin(b, _HOSTS) & np.isin(a, _GUESTS))
    wrong = marked(merges, truth.owner)["wrong"].to_numpy()
    hosted = wrong & swept & (named == ORDINARY) & (merges["rule"] == "common_input").to_numpy()
    return np.where(hosted, HOSTED, named)


def right_part(txs: Transactions, merges: pd.DataFrame) -> pd.DataFrame:
    """The merges (tx, rule, address_a, address_b) that are left when the rules know the owners.

    Right merges stay. Where a firing has a wrong one, its addresses are merged owner by owner: of a payment that two
    people sign, each keeps what it signed. Merges with an address of unknown owner stay.
    """
    owner = txs.known_truth().owner
    wrong = marked(merges, owner)["wrong"].to_numpy()
    columns = ["tx", "rule", *_ENDS]
    mistaken = merges.loc[wrong, ["tx", "rule"]].drop_duplicates()
    of_firing = merges.merge(mistaken, on=["tx", "rule"])
    ends = pd.concat([of_firing[["tx", "rule", end]].set_axis(["tx", "rule", "address"], axis=1) for end in _ENDS])
    ends = ends.drop_duplicates(ignore_index=True)
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
    table = marked(table, txs.known_truth().owner).assign(mechanism=mechanism_of_merges(txs, table))
    table["in"] = table["tx"].where(table["wrong"])  # missing where the merge is right
    grouped = table.groupby(["mechanism", "rule"], as_index=False)
    found = grouped.agg(merges=("wrong", "size"), wrong=("wrong", "sum"), transactions=("in", "nunique"))
    right, wrong = right_part(txs, table), table[table["wrong"]]
    everything = _in_collapsed(txs, right, wrong)
    drawn, spared = [], []
    for row in found.itertuples():
        own = ((wrong["mechanism"] == row.mechanism) & (wrong["rule"] == row.rule)).to_numpy()
        drawn.append(_in_collapsed(txs, right, wrong[own]))
        spared.append(everything - _in_collapsed(txs, right, wrong[~own]))
    found = found.assign(drawn=np.array(drawn, dtype=np.int64), spared=np.array(spared, dtype=np.int64))
    return found.sort_values(["wrong", "merges"], ascending=False, kind="stable", ignore_index=True)


def _in_collapsed(txs: Transactions, right: pd.DataFrame, wrong: pd.DataFrame) -> int:
    """Addresses in clusters of several known owners."""
    a, b = (np.concatenate([part[end].to_numpy(dtype=np.int64) for part in (right, wrong)]) for end in _ENDS)
    held = owners_in(components(txs.num_addresses, a, b), txs.known_truth().owner)
    return int(held.loc[held["owners"] > 1, "addresses"].sum())
