"""What both sets of CoinJoin rules call the transactions of real lists of mixes, kept for chapter 02.

    python benchmarks/coinjoin_detectors.py                      # every dumplings/*.zip of the real data at hand
    python benchmarks/coinjoin_detectors.py --folder my/archives

Writes results/coinjoin_detectors.csv with columns archive, file, rules, name, transactions; seconds.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from _measure import RESULTS

from btcnb import book
from btcnb.data.coinjoin.scoring import score_lists


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="folder of archives (default: dumplings/ of the real data at hand)")
    folder = parser.parse_args().folder or book.real_data("dumplings")
    if folder is None:
        raise SystemExit("No real CoinJoins are at hand: give --folder, or set BTCNB_REAL_DATA.")
    path = RESULTS.parent / "coinjoin_detectors.csv"
    partial = path.with_suffix(".partial")
    score_lists(folder).to_csv(partial, index=False)
    partial.replace(path)
    print(f"written to results/{path.name}")


if __name__ == "__main__":
    main()
