"""Recorded CoinJoins judged by encoders before and after repulsion; kept for chapter 16.

    python benchmarks/real_mixes.py                        # encoders of worlds 2 to 6, size quick
    python benchmarks/real_mixes.py --size tiny --worlds 1 --out trial.csv

Below BTCNB_REAL_DATA (or --data) what is there is read: lists of mixes in dumplings/ (real mainnet), blocks of a test
network in bitcoin-core-regtest/, emulated rounds in regtest-wallets/; of the last two every wallet is known. Lists are
split by time. Of each world there are three encoders: `standard` and `repelled` are those of the grid `coinjoin` (what
its runs left in the store is not trained again); `by lists` is trained here, its repulsion taught by the earlier halves
of the real lists, so that of those it judges the later ones only.
Writes results/real_mixes.csv: one line for each list, half, clustering, encoder and world, with the day it was made;
`seen` is the share of a later half's inputs, in %, that stand in a graph that taught.
"""

from __future__ import annotations

import argparse
import datetime
import warnings
from pathlib import Path

import pandas as pd
from _measure import RESULTS
from real_coinjoins import HALVES, MOST, REAL, Chain, Lesson, judged, lesson, real_chains, repelled_by_lists, seen

from btcnb import book
from btcnb.data import Source
from btcnb.experiments.recipe import Recipe, recipe
from btcnb.experiments.repulsion import repelled
from btcnb.experiments.stages import trained
from btcnb.experiments.tables_of_mixing import BY_LISTS, REPELLED, STANDARD
from btcnb.learn import Encoder


def of_encoder(name: str, model: Encoder, chains: list[Chain], most: int, given: Lesson) -> pd.DataFrame:
    """What one encoder does to all lists; one that lists taught judges none that taught it."""
    tables = []
    for chain in chains:
        taught = name == BY_LISTS and chain.kind == REAL
        table = judged(model, chain, most, halves=("late",) if taught else HALVES)
        tables.append(table.assign(seen=seen(given, chain) if taught else float("nan")))
    return pd.concat(tables, ignore_index=True).assign(encoder=name)


def encoders(mine: Recipe, given: Lesson) -> dict[str, Encoder]:
    """The three encoders of a world; without real lists only two."""
    found = {STANDARD: trained(mine).model, REPELLED: repelled(mine).model}
    return found | ({BY_LISTS: repelled_by_lists(mine, given).model} if given.teaching and given.steering else {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of real data (default: BTCNB_REAL_DATA)")
    parser.add_argument("--size", default="quick", help="size of the economies that encoders learn from")
    parser.add_argument("--worlds", type=int, nargs="+", default=[2, 3, 4, 5, 6])
    parser.add_argument("--most", type=int, default=40, help="CoinJoins judged of each half of a list")
    parser.add_argument("--taught", type=int, default=MOST, help="CoinJoins of each real list that teach, at most")
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
            shown = lesson(chains, mine.train, given.taught, seed=world)
            print(f"world {world}: taught by {shown.taught}, {shown.too_large} too large", flush=True)
            for name, model in encoders(mine, shown).items():
                tables.append(of_encoder(name, model, chains, given.most, shown).assign(world=world, size=given.size))
                print(f"world {world}, {name}: done", flush=True)
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
