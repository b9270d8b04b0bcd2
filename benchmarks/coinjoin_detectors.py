"""What the CoinJoin rules call real mixes, by protocol and year, and ordinary blocks; kept for chapter 02.

    python benchmarks/coinjoin_detectors.py                      # the real data at hand
    python benchmarks/coinjoin_detectors.py --data my/folder     # one that has dumplings/, mainnet-blocks/, …

Below the folder, what is there is read: lists of mixes in dumplings/, bitcoin-core-regtest/ and regtest-wallets/, raw
blocks in mainnet-blocks/. Each list is scored three times: by the published rules, by the improved ones, and by the
improved ones with their constants fitted to the other lists only. Writes results/coinjoin_detectors.csv with columns
archive, file, protocol, year, rules, name, transactions, and prints the tables that the book makes of it.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import pandas as pd
from _measure import RESULTS

from btcnb import book
from btcnb.data import read_blocks
from btcnb.data.coinjoin.scores import alarm_table, recognised_table, score_lists, score_ordinary

LISTS = ("dumplings", "bitcoin-core-regtest", "regtest-wallets")
BLOCKS = "mainnet-blocks"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of real data (default: BTCNB_REAL_DATA)")
    folder = parser.parse_args().data or book.real_data()
    if folder is None:
        raise SystemExit("No real CoinJoins are at hand: give --data, or set BTCNB_REAL_DATA.")
    counts = score_lists([folder / name for name in LISTS if (folder / name).is_dir()])
    if (folder / BLOCKS).is_dir():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # most values of inputs are unknown: the point of the exercise
            counts = pd.concat([counts, score_ordinary(read_blocks(folder / BLOCKS), BLOCKS)], ignore_index=True)
    path = RESULTS.parent / "coinjoin_detectors.csv"
    partial = path.with_suffix(".partial")
    counts.to_csv(partial, index=False)
    partial.replace(path)
    with pd.option_context("display.width", 200, "display.max_columns", 20):
        print(recognised_table(counts).to_string(index=False), alarm_table(counts).to_string(index=False), sep="\n\n")
    print(f"written to results/{path.name}")


if __name__ == "__main__":
    main()
