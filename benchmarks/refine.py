"""The tool `btcnb refine` on a chain of a million addresses: seconds and peak memory of every stage.

    python benchmarks/refine.py                      # the first million addresses of a chain of the paper's size
    python benchmarks/refine.py --size standard      # a look
    python benchmarks/refine.py --dry -- --units inputs --threshold 0.2      # what follows -- goes to the tool

The chain is simulated and written as Parquet first, which is not part of the time; the tool then runs as a user would
run it, in a process of its own, and says itself what each stage took. To reach: 15 minutes and 6 GB on two idle cores.
Writes results/benchmarks/refine.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from _measure import Run, Stage, in_child, rows, show, write

import btcnb_command
from btcnb.data import Source, Transactions, load_transactions, write_etl
from btcnb.experiments.tool import run
from btcnb.experiments.tool import write as tool_write

MINUTES, GIGABYTES = 15.0, 6.0
MOST = 1_000_000
TOOL = (run.refine_source, tool_write.write)
"""What the command calls: named here so that the record knows which code it measured."""


def first_addresses(txs: Transactions, most: int) -> Transactions:
    """The chain from its beginning until so many addresses have occurred."""
    first = np.full(txs.num_addresses + 1, len(txs))  # the last slot catches unknown addresses
    for table in (txs.inputs, txs.outputs):
        np.minimum.at(first, table["address"].to_numpy(), table["tx"].to_numpy())
    seen = np.cumsum(np.bincount(first[:-1], minlength=len(txs) + 1))[: len(txs)]
    return txs.select(seen <= most)


def made(size: str, most: int, path: str) -> dict[str, Any]:
    """Write the chain, without its truth."""
    chain = first_addresses(load_transactions(Source(size=size), "test", sampled=False), most)
    write_etl(chain, path, sidecar=False)
    return {"transactions": len(chain), "addresses": chain.num_addresses}


def refined(path: str, out: str, options: list[str]) -> Run:
    """Run the tool; its stages, and the whole process as the stage "total"."""
    command = [sys.executable, btcnb_command.__file__, "refine", path, "--out", out, *options]
    begin = time.perf_counter()
    status = subprocess.run(command, check=False).returncode
    seconds = time.perf_counter() - begin
    if status:
        return Run(error=f"the tool ended with status {status}")
    told = json.loads((Path(out) / tool_write.SUMMARY).read_text(encoding="utf-8"))
    stages = [Stage(name, told["seconds"][name], 0.0, told["peak_mb"][name], 0.0) for name in told["seconds"]]
    stages.append(Stage("total", seconds, 0.0, max(stage.peak_mb for stage in stages), 0.0))
    recipe = {name: value for name, value in told["recipe"].items() if name != "threshold"}
    return Run({**told["counts"], **recipe, "threshold": told["threshold"]}, stages)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="paper", help="size of the simulated economy: tiny, quick, standard, paper")
    parser.add_argument(
        "--addresses", type=int, default=MOST, help="addresses at which the chain is cut off (1,000,000)"
    )
    parser.add_argument("--dry", action="store_true", help="do not write the record")
    parser.add_argument("tool", nargs="*", help="options for the tool, after --")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        path = f"{place}/chain.parquet"
        ready = in_child(made, options.size, options.addresses, path)
        run = ready if ready.error else refined(path, f"{place}/refined", options.tool)
    if run.error:
        raise SystemExit(run.error)
    whole, value = run["total"], run.value
    value["wanted_minutes"], value["wanted_gb"] = MINUTES, GIGABYTES
    value["reached"] = whole.seconds <= 60 * MINUTES and whole.peak_mb <= 1024 * GIGABYTES
    records = rows("refine", run, size=options.size, **value)
    for record in records:
        del record["start_mb"], record["cpu_seconds"]  # the tool tells seconds and peaks of its stages only
    show(records, ["stage", "seconds", "peak_mb"])
    print(
        f"{value['addresses']:,} addresses, {value['clusters']:,} clusters (largest {value['largest_cluster']:,}): "
        f"{whole.seconds / 60:.1f} minutes and {whole.peak_mb / 1024:.1f} GB, wanted {MINUTES:.0f} minutes and "
        f"{GIGABYTES:.0f} GB: {'reached' if value['reached'] else 'not reached'}"
    )
    if not options.dry:
        write("refine", records)


if __name__ == "__main__":
    main()
