"""Both rule sets on lists of real CoinJoins and on ordinary blocks: counts, and the tables that the book shows.

`benchmarks/coinjoin_detectors.py` keeps the counts in `results/coinjoin_detectors.csv`: one row per archive, file,
year, rules (published, improved, improved with constants fitted without this file) and name ("" for none).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy.typing as npt
import pandas as pd

from btcnb.data.coinjoin.lists import WASABI1, Listed, read_lists
from btcnb.data.coinjoin.rules import ORDER_BITS, PROTOCOLS, RULE_SETS, detect_coinjoins
from btcnb.data.coinjoin.shape import Fitted, Shape
from btcnb.data.transactions import Transactions

LEFT_OUT = "improved without it"
"""The improved rules, their constants fitted to all lists but the one that is scored."""
COLUMNS = ["archive", "file", "protocol", "year", "rules", "name", "transactions"]
ORDINARY = "ordinary"
"""The protocol of blocks as they come."""
GUESSED = ("joinmarket",)
"""Protocols whose lists were themselves made by a rule of thumb: nobody knows the truth about their transactions."""
SHORT = {"published": "published", "improved": "improved", LEFT_OUT: "left out"}
"""Rules as they stand in the counts -> in the heads of tables."""
MARGIN = 10.0
"""Rules allow ten times what the most extreme mix at hand needed: the next file is never as tame as the last."""
LEAST_SHARE = 0.5
"""Whatever is fitted, half of a Wasabi 2 round has standard amounts, as the published rule asks."""


def score_lists(folders: Iterable[str | Path]) -> pd.DataFrame:
    """What the rules call the transactions of every list in the folders (see `read_lists`).

    One row per archive, file, year, rules (published, improved, improved with constants fitted without this file) and
    name ("" for none), with the number of transactions; one that stands in several files counts in each. `protocol` is
    what the list claims, "" where it claims nothing.
    """
    lists = read_lists(folders)
    tables = []
    for number, listed in enumerate(lists):
        constants = fit([*lists[:number], *lists[number + 1 :]])
        said = _both(listed.mixes) | {LEFT_OUT: detect_coinjoins(listed.mixes, "improved", constants)}
        tables.append(_counted(listed, said))
    return pd.concat(tables, ignore_index=True)


def score_ordinary(txs: Transactions, archive: str) -> pd.DataFrame:
    """The same counts for blocks as they come: nearly all of it payments, and the CoinJoins that happened in them."""
    return _counted(Listed(archive, "blocks", (ORDINARY,), txs), _both(txs))


def _both(txs: Transactions) -> dict[str, npt.NDArray[Any]]:
    return {rules: detect_coinjoins(txs, rules) for rules in RULE_SETS}


def _counted(listed: Listed, said: dict[str, npt.NDArray[Any]]) -> pd.DataFrame:
    """How often each name was said, by year and rules."""
    year = pd.to_datetime(listed.mixes.transactions["block_timestamp"], unit="s").dt.year
    names = pd.DataFrame({"year": year, **said}).melt("year", var_name="rules", value_name="name")
    counts = names.groupby(["year", "rules", "name"]).size().rename("transactions").reset_index()
    protocol = "wasabi1" if listed.protocols == WASABI1 else "".join(listed.protocols)
    return counts.assign(archive=listed.archive, file=listed.file, protocol=protocol)[COLUMNS]


# --- constants from lists of real mixes ---


def fit(lists: Iterable[Listed]) -> Fitted:
    """Constants from lists of Wasabi 1 and Wasabi 2 mixes; lists of other protocols say nothing.

    Lists hold strangers, too, so that only mixes count which structure shows to be such: Wasabi 1.1 rounds with two
    levels at least that double exactly; Wasabi 2 rounds whose two sides are sorted, and not by accident.
    """
    gaps, shares = [0.0], [1.0]
    for listed in lists:
        s = Shape.of(listed.mixes)
        if "wasabi1.1" in listed.protocols:
            gaps += s.level_gap[(s.chain >= 2) & s.segwit_keys].tolist()
        elif "wasabi2" in listed.protocols:
            sure = s.inputs_descend & s.outputs_descend & (s.input_order + s.output_order >= ORDER_BITS)
            sure &= (s.outputs > 0) & (2 * s.input_addresses >= s.inputs)
            shares += (s.standard[sure] / s.outputs[sure]).tolist()
    share = 1 - MARGIN * (1 - min(shares))
    return Fitted(MARGIN * max(gaps), min(Fitted().standard_share, max(LEAST_SHARE, share)))


# --- tables of the counts ---


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
