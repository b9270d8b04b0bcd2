"""How like the paper's graphs are ours, and do heuristics fail in them as they do on the real chain?

    python benchmarks/calibration.py                # the five graphs at size paper
    python benchmarks/calibration.py --size quick   # or standard

Writes results/calibration_SIZE.csv with columns size, split, quantity, value: structure of the graph
(`btcnb.data.calibration`) and of its chain (`btcnb.data.chain_measures`), and how right the heuristics are
(`btcnb.data.heuristic_measures`: change votes, freshness, supercluster, entity pairs, wrong merges by rule and
mechanism). Chapter 03 shows them beside its own run. Interrupted, it goes on with the next split when called again,
unless code, size or seed have changed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from _measure import RESULTS, in_child

from btcnb import sizes
from btcnb.data import ROLES, HeuristicConfig, Source, build_graph, heuristic_clusters, sample_from_coinbase, simulate
from btcnb.data.calibration import measured
from btcnb.store.keys import cell_modules, code_digest, imported_subpackages

KEY = ["code", "size", "seed"]


def measure(split: str, size: str, seed: int) -> dict[str, float]:
    """Simulate, sample, cluster, build one split; all that chapter 03 compares."""
    source = Source(size=size, seed=seed)
    config = source.economy(split)
    chain = simulate(config)  # not through the store: a chain of this size is not worth its place on the disk
    txs = sample_from_coinbase(chain, seed=config.seed, at_least=source.sample)
    graph = build_graph(txs, heuristic_clusters(txs, config=HeuristicConfig(price_usd=config.price_usd)))
    return measured(chain, graph)


def begun(partial: Path, key: list[str]) -> pd.DataFrame:
    """Rows of the splits that an interrupted run of the same code, size and seed has measured."""
    if not partial.exists():
        return pd.DataFrame(columns=[*KEY, "split", "quantity", "value"])
    rows = pd.read_csv(partial, dtype=dict.fromkeys(KEY, str))
    return rows[(rows[KEY] == key).all(axis=1)]


def replace(path: Path, table: pd.DataFrame) -> None:
    """Write the table in one step."""
    written = path.with_suffix(".new")
    table.to_csv(written, index=False, float_format="%.6g")
    written.replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="paper", choices=sizes.names())
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    path = RESULTS.parent / f"calibration_{arguments.size}.csv"
    partial = path.with_suffix(".partial")
    code = code_digest(imported_subpackages(cell_modules([Path(__file__).read_text(encoding="utf-8")])))
    key = [code, arguments.size, str(arguments.seed)]
    table = begun(partial, key)
    for number, split in enumerate(ROLES, start=1):
        if split in set(table["split"]):
            print(f"{split} ({number} of {len(ROLES)}): measured before", flush=True)
            continue
        print(f"{split} ({number} of {len(ROLES)}) …", flush=True)
        run = in_child(measure, split, arguments.size, arguments.seed)
        if run.error is not None:
            raise SystemExit(f"{split}: {run.error}")
        print(f"  {run['total'].seconds:.0f} s, {run['total'].peak_mb:,.0f} MB, {run.value}", flush=True)
        new = pd.DataFrame({"split": split, "quantity": list(run.value), "value": list(run.value.values())})
        new = new.assign(**dict(zip(KEY, key, strict=True)))
        table = pd.concat([table, new], ignore_index=True) if len(table) else new
        replace(partial, table)
    replace(path, table[["size", "split", "quantity", "value"]])
    partial.unlink()
    print(f"written to results/{path.name}")


if __name__ == "__main__":
    main()
