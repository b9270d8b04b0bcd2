"""How often the merging rules fire on real transactions, year by year, kept for chapter 02.

    python benchmarks/real_heuristics.py            # mainnet-blocks, mainnet-mempool, labels below BTCNB_REAL_DATA

Blocks are read with `read_blocks` and taken year by year; the price, on which `round_value` depends, is that of the
paper's interval nearest to each block. The mempool of March 2024 tells every input's value, which raw blocks do not.
Names of addresses say how many clusters could be judged on real data. Writes results/heuristics_on_real_blocks.csv
(columns period, quantity, value); a minute.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from _measure import RESULTS

from btcnb import book
from btcnb.data import HeuristicConfig, Transactions, heuristic_clusters, read_etl
from btcnb.data.chain_measures import YEARS
from btcnb.data.heuristic_measures import rule_firing
from btcnb.data.intervals import SPLITS
from btcnb.data.readers.blocks import read_blocks

BLOCKS, WAITING = "mainnet-blocks", "mainnet-mempool/mempool-2024-03-etl.jsonl.gz"
LABELS = "labels/btc_labels.csv.gz"


def by_price(txs: Transactions) -> dict[str, float]:
    """`rule_firing` with the rate of `round_value` averaged over blocks of different price."""
    block = txs.transactions["block_number"].to_numpy()
    starts = np.array([split.start_block for split in SPLITS.values()])
    price = np.array([split.price_usd for split in SPLITS.values()])[np.abs(block[:, None] - starts).argmin(axis=1)]
    zeros = np.array([HeuristicConfig(price_usd=value).round_zeros for value in price])
    common = HeuristicConfig(price_usd=float(price[zeros == np.bincount(zeros).argmax()][0]))
    found = rule_firing(txs, common)
    parts = [(zeros == z, HeuristicConfig(price_usd=float(price[zeros == z][0]))) for z in np.unique(zeros)]
    rates = [(rows.sum(), rule_firing(txs.select(rows), config)["round_value fires"]) for rows, config in parts]
    found["round_value fires"] = sum(n * rate for n, rate in rates) / sum(n for n, _ in rates)
    return found


def named(txs: Transactions, labels: Path) -> dict[str, float]:
    """How many clusters public names could judge: labelled addresses, clusters with two and more, with two actors."""
    table = pd.read_csv(labels, usecols=["address", "actor"]).dropna().drop_duplicates("address")
    actor = table.set_index("address")["actor"].reindex(txs.addresses)
    known = actor.notna().to_numpy()
    held = actor[known].groupby(heuristic_clusters(txs)[known]).agg(["size", "nunique"])
    return {
        "labelled addresses": int(known.sum()),
        "clusters with two labelled addresses": int((held["size"] > 1).sum()),
        "clusters with two names": int((held["nunique"] > 1).sum()),
    }


def main() -> None:
    places = [book.real_data(name) for name in (BLOCKS, WAITING, LABELS)]
    if None in places:
        raise SystemExit(f"Not all of {BLOCKS}, {WAITING} and {LABELS} are at hand: set BTCNB_REAL_DATA.")
    blocks, waiting, labels = places
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # previous outputs are missing: that is known
        txs = read_blocks(blocks)
        mempool = read_etl(waiting)
    year = pd.to_datetime(txs.transactions["block_timestamp"], unit="s").dt.year.to_numpy()
    periods = {name: txs.select(year == int(name)) for name in YEARS}
    rows = []
    for period, part in periods.items():
        size = {"blocks": part.transactions["block_number"].nunique(), "transactions": len(part)}
        rows += [(period, *item) for item in (size | by_price(part)).items()]
    # a bitcoin at 49,000 USD and at 73,000, as in March 2024, asks for the same number of zeros
    firing = rule_firing(mempool, HeuristicConfig(price_usd=SPLITS["test"].price_usd))
    rows += [("mempool 2024", *item) for item in ({"transactions": len(mempool)} | firing).items()]
    rows += [("all blocks", *item) for item in named(txs, Path(str(labels))).items()]
    path = RESULTS.parent / "heuristics_on_real_blocks.csv"
    partial = path.with_suffix(".partial")
    pd.DataFrame(rows, columns=["period", "quantity", "value"]).to_csv(partial, index=False, float_format="%.6g")
    partial.replace(path)
    print(f"written to results/{path.name}")


if __name__ == "__main__":
    main()
