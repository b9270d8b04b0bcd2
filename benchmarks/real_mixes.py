"""Recorded CoinJoins judged by encoders trained on simulation, before and after repulsion; kept for chapter 16.

    python benchmarks/real_mixes.py                        # encoders of worlds 2 to 6, size quick
    python benchmarks/real_mixes.py --size tiny --worlds 1 --out trial.csv

Below BTCNB_REAL_DATA (or --data) what is there is read: lists of mixes in dumplings/ (real mainnet), blocks of a test
network in bitcoin-core-regtest/, emulated rounds in regtest-wallets/; of the last two every wallet is known. Lists are
split by time. The encoders are those of the grid `coinjoin`: what its runs left in the store is not trained again.
Writes results/real_mixes.csv: one line for each list, half, clustering, encoder and world, with the day it was made.
"""

from __future__ import annotations

import argparse
import datetime
import warnings
from pathlib import Path

import pandas as pd
from _measure import RESULTS

from btcnb import book
from btcnb.data import Source
from btcnb.experiments.mix_training import repelled
from btcnb.experiments.real_mixes import judged, real_chains
from btcnb.experiments.recipe import recipe
from btcnb.experiments.stages import trained


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of real data (default: BTCNB_REAL_DATA)")
    parser.add_argument("--size", default="quick", help="size of the economies that encoders learn from")
    parser.add_argument("--worlds", type=int, nargs="+", default=[2, 3, 4, 5, 6])
    parser.add_argument("--most", type=int, default=40, help="CoinJoins judged of each half of a list")
    parser.add_argument("--out", type=Path, default=RESULTS.parent / "real_mixes.csv")
    given = parser.parse_args()
    folder = given.data or book.real_data()
    if folder is None:
        raise SystemExit("No real CoinJoins are at hand: give --data, or set BTCNB_REAL_DATA.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # many previous outputs are missing: that is known
        chains = list(real_chains(folder))
        tables = []
        for world in given.worlds:
            mine = recipe(Source(size=given.size, seed=world), world)
            for encoder, run in (("standard", trained(mine)), ("repelled", repelled(mine))):
                found = [judged(run.model, chain, given.most) for chain in chains]
                tables.append(pd.concat(found, ignore_index=True).assign(encoder=encoder, world=world, size=given.size))
                print(f"world {world}, {encoder}: done", flush=True)
    table = pd.concat(tables, ignore_index=True).assign(made=datetime.datetime.now(datetime.UTC).date().isoformat())
    partial = given.out.with_suffix(".partial")
    table.to_csv(partial, index=False, float_format="%.4g")
    partial.replace(given.out)
    shown = table[table["clustering"].isin(["heuristics", "gnn.average", "hybrid.average"])]
    print(
        shown.groupby(["kind", "archive", "protocol", "half", "clustering", "encoder"])[["TN", "own"]].mean().round(1)
    )
    print(f"written to {given.out.name}")


if __name__ == "__main__":
    main()
