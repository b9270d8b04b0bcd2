"""What real blocks of the paper's years look like, for the simulator's eras and for chapter 03.

    python benchmarks/real_blocks.py                # the raw blocks below BTCNB_REAL_DATA/mainnet-blocks
    python benchmarks/real_blocks.py path/to/blocks

Blocks are read with `read_blocks`, taken year by year, and measured with `chain_measures`; the fee rate is what the
coinbases of blocks near each interval of the paper claim beyond the subsidy, a million virtual bytes to a block.
Writes src/btcnb/data/real_chain.csv (columns period, quantity, value).
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from btcnb.data import Transactions
from btcnb.data.chain_measures import FEE_RATE, TABLE, YEARS, chain_measures
from btcnb.data.intervals import SPLITS, subsidy
from btcnb.data.readers.blocks import read_blocks

NEAR = 10_000
"""Blocks from the start of an interval within which fees count for it."""
FULL = 1_000_000
"""Virtual bytes of a full block; emptier ones understate the rate a little."""
LEAST_TRANSACTIONS = 500
"""Blocks with fewer are not full enough to tell a rate."""


def fee_rates(txs: Transactions) -> pd.Series:
    """Mean fee rate per block (satoshi per virtual byte), indexed by height."""
    table = txs.transactions
    size = table.groupby("block_number").size()
    coinbase = np.flatnonzero(table["is_coinbase"].to_numpy())
    claimed = pd.Series(txs.outputs["value"].to_numpy()).groupby(txs.outputs["tx"].to_numpy()).sum()
    height = table["block_number"].to_numpy()[coinbase]
    fees = claimed.reindex(coinbase).to_numpy() - subsidy(height)
    rate = pd.Series(fees / FULL, index=height)
    return rate[size.reindex(height).to_numpy() >= LEAST_TRANSACTIONS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("blocks", nargs="?", help="folder of raw blocks")
    options = parser.parse_args()
    folder = options.blocks or Path(os.environ.get("BTCNB_REAL_DATA", "real_data")) / "mainnet-blocks"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # previous outputs are missing: that is known
        txs = read_blocks(folder)
    year = pd.to_datetime(txs.transactions["block_timestamp"], unit="s").dt.year.to_numpy()
    rows = [
        {"period": name, "quantity": quantity, "value": value}
        for name in YEARS
        for quantity, value in chain_measures(txs.select(year == int(name))).items()
    ]
    rates = fee_rates(txs)
    for name, split in SPLITS.items():
        near = rates[np.abs(rates.index.to_numpy() - split.start_block) <= NEAR]
        rows.append({"period": name, "quantity": FEE_RATE, "value": float(near.median())})
    partial = TABLE.with_suffix(".partial")
    pd.DataFrame(rows).to_csv(partial, index=False, float_format="%.6g")
    partial.replace(TABLE)
    print(f"{len(txs):,} transactions; {len(rows)} rows written to {TABLE.name}")


if __name__ == "__main__":
    main()
