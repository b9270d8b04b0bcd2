"""What the CoinJoin rules say of lists of real mixes and of ordinary blocks, read from the counts of `scoring`.

The counts have one row per archive, file, year, rules and name, as `results/coinjoin_detectors.csv` keeps them.
"""

from __future__ import annotations

import pandas as pd

from btcnb.data.coinjoin.detect import PROTOCOLS
from btcnb.data.coinjoin.scoring import LEFT_OUT, ORDINARY

GUESSED = ("joinmarket",)
"""Protocols whose lists were themselves made by a rule of thumb: nobody knows the truth about their transactions."""
SHORT = {"published": "published", "improved": "improved", LEFT_OUT: "left out"}
"""Rules as they stand in the counts -> in the heads of tables."""


def tidy(counts: pd.DataFrame) -> pd.DataFrame:
    """The counts with "" for missing texts, as a table read from a file may hold them."""
    return counts.assign(**{name: counts[name].fillna("").astype(str) for name in ("name", "protocol")})


def right_names(protocol: str) -> tuple[str, ...]:
    """The names that are right for a list of this protocol; a list of Wasabi 1 does not tell its two versions apart."""
    return ("wasabi1.0", "wasabi1.1") if protocol == "wasabi1" else (protocol,)


def recognised_table(counts: pd.DataFrame) -> pd.DataFrame:
    """One row per list and year, by protocol: its size; then by rules how many of it are recognised, as a CoinJoin of
    whatever protocol and under the right name."""
    lists = counts[~counts["protocol"].isin(["", ORDINARY])]
    rows = []
    for key, group in lists.groupby(["protocol", "year", "archive", "file"], sort=True):
        protocol, year, archive, file = map(str, key)
        row = {"protocol": protocol, "year": int(year), "archive": archive, "list": file, "listed": _total(group)}
        for rules, short in SHORT.items():
            named = group[(group["rules"] == rules) & (group["name"] != "")]
            right = named[named["name"].isin(right_names(protocol))]
            row[f"recognised, {short}"] = int(named["transactions"].sum())
            row[f"right name, {short}"] = int(right["transactions"].sum())
        rows.append(row)
    return pd.DataFrame(rows)


def in_short(table: pd.DataFrame) -> pd.DataFrame:
    """A `recognised_table` for narrow pages: by rules one column, "recognised (under the right name)"."""
    short = table[["protocol", "year", "archive", "listed"]].astype({"year": str})
    for rules in SHORT.values():
        pairs = zip(table[f"recognised, {rules}"], table[f"right name, {rules}"], strict=True)
        short[rules] = [f"{recognised:,} ({right:,})" for recognised, right in pairs]
    return short


def alarm_table(counts: pd.DataFrame) -> pd.DataFrame:
    """One row per detector: how many transactions of ordinary blocks it names, and how many of 100,000, by rules."""
    blocks = counts[counts["protocol"] == ORDINARY]
    total = _total(blocks)
    rows = []
    for name in PROTOCOLS:
        row: dict[str, object] = {"detector": name}
        for rules in ("published", "improved"):
            chosen = blocks[(blocks["rules"] == rules) & (blocks["name"] == name)]
            number = int(chosen["transactions"].sum())
            row[rules] = number
            row[f"{rules}, of 100,000"] = round(1e5 * number / total, 1) if total else float("nan")
        rows.append(row)
    return pd.DataFrame(rows)


def share_recognised(counts: pd.DataFrame, rules: str, *, right: bool) -> tuple[int, int]:
    """(mixes recognised, with `right` under their right name; all) over all lists of known protocol."""
    table = recognised_table(counts)
    table = table[~table["protocol"].isin(GUESSED)] if len(table) else table
    column = f"{'right name' if right else 'recognised'}, {SHORT[rules]}"
    return (int(table[column].sum()), int(table["listed"].sum())) if len(table) else (0, 0)


def called(counts: pd.DataFrame, archive: str, file: str, rules: str, *names: str) -> tuple[int, int]:
    """(transactions of a file to which the rules give one of the names, all of the file); (0, 0): not at hand."""
    group = counts[(counts["archive"] == archive) & (counts["file"] == file)]
    found = group[(group["rules"] == rules) & group["name"].isin(names)]
    return int(found["transactions"].sum()), _total(group)


def _total(group: pd.DataFrame) -> int:
    """All rules see the same transactions, so any gives the size."""
    return int(group.loc[group["rules"] == "published", "transactions"].sum())
