"""What each way to fail does to the clusters: its merges, its wrong ones, and the addresses that they draw in.

A rule that knew the owners would keep the right part of every merge. On top of that right part, the wrong merges of one
mechanism and rule can be put back alone (what they would do by themselves) or left out alone (what would be spared).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.data.against_owners import components, owners_in
from btcnb.data.false_merges import ORDINARY, mechanisms, wrong_merges
from btcnb.data.simulator.parameters import MECHANISMS
from btcnb.data.transactions import IntArray, Transactions

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
