"""Both rule sets on a folder of real CoinJoin lists; `benchmarks/coinjoin_detectors.py` keeps the counts."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from btcnb.data.coinjoin.detect import RULE_SETS, detect_coinjoins
from btcnb.data.readers import read_dumplings
from btcnb.errors import DataError

COLUMNS = ["archive", "file", "rules", "name", "transactions"]


def score_lists(folder: str | Path) -> pd.DataFrame:
    """What both rule sets call the transactions of every Dumplings archive (zip) in `folder`.

    One row per archive, file, rule set and name ("" for none), with the number of transactions; one that stands in
    several files counts in each.
    """
    archives = sorted(Path(folder).glob("*.zip"))
    if not archives:
        raise DataError(folder, "archives", "there is no zip of Dumplings files", "check the path")
    tables = []
    for archive in archives:
        txs = read_dumplings(archive)
        for rules in RULE_SETS:
            found = pd.DataFrame(
                {"file": txs.transactions["file"].str.split("+"), "name": detect_coinjoins(txs, rules)}
            )
            tables.append(found.explode("file").assign(archive=archive.stem, rules=rules))
    counts = pd.concat(tables).groupby(COLUMNS[:-1], sort=True).size()
    return counts.rename("transactions").reset_index()
