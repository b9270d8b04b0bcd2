"""Both rule sets on lists of real CoinJoins and on ordinary blocks; `benchmarks/coinjoin_detectors.py` keeps the
counts, `listed_mixes` reads them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from btcnb.data.coinjoin.detect import detect_coinjoins
from btcnb.data.coinjoin.fitted import Fitted, fit
from btcnb.data.coinjoin.lists import WASABI1, Listed, read_lists
from btcnb.data.transactions import Transactions

LEFT_OUT = "improved without it"
"""The improved rules, their constants fitted to all lists but the one that is scored."""
COLUMNS = ["archive", "file", "protocol", "year", "rules", "name", "transactions"]
ORDINARY = "ordinary"


def score_lists(folders: Iterable[str | Path]) -> pd.DataFrame:
    """What the rules call the transactions of every list in the folders (see `read_lists`).

    One row per archive, file, year, rules (published, improved, improved with constants fitted without this file) and
    name ("" for none), with the number of transactions; one that stands in several files counts in each. `protocol` is
    what the list claims, "" where it claims nothing.
    """
    lists = read_lists(folders)
    tables = []
    for number, listed in enumerate(lists):
        others = [*lists[:number], *lists[number + 1 :]]
        tables.append(_counted(listed, {**_both(listed.mixes), LEFT_OUT: _named(listed.mixes, fit_lists(others))}))
    return pd.concat(tables, ignore_index=True)


def score_ordinary(txs: Transactions, archive: str) -> pd.DataFrame:
    """The same counts for blocks as they come: nearly all of it payments, and the CoinJoins that happened in them."""
    return _counted(Listed(archive, "blocks", (ORDINARY,), txs), _both(txs))


def fit_lists(lists: Sequence[Listed]) -> Fitted:
    """The constants that these lists give (see `fit`); a list of Wasabi 1 mixes may hold both versions."""
    return fit((listed.protocols[-1], listed.mixes) for listed in lists if listed.protocols)


def _named(txs: Transactions, fitted: Fitted) -> pd.Series:
    return pd.Series(detect_coinjoins(txs, "improved", fitted))


def _both(txs: Transactions) -> dict[str, pd.Series]:
    return {rules: pd.Series(detect_coinjoins(txs, rules)) for rules in ("published", "improved")}


def _counted(listed: Listed, said: dict[str, pd.Series]) -> pd.DataFrame:
    year = pd.to_datetime(listed.mixes.transactions["block_timestamp"], unit="s").dt.year
    protocol = "wasabi1" if listed.protocols == WASABI1 else "".join(listed.protocols)
    fixed = {"archive": listed.archive, "file": listed.file, "protocol": protocol}
    tables = [pd.DataFrame({"year": year, "name": names}).assign(rules=rules, **fixed) for rules, names in said.items()]
    counts = pd.concat(tables).groupby(COLUMNS[:-1], sort=True).size()
    return counts.rename("transactions").reset_index()
