"""What `btcnb refine` says of real blocks, as a small record for the book: the files themselves are not part of it.

python benchmarks/refine_real.py BLOCKS --price-usd 20000        # BLOCKS: raw blocks, or anything that the tool reads

The record holds counts, times, and the trees of a few suspicious clusters without their addresses.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from btcnb.cluster import cut
from btcnb.experiments.tool.run import Outcome, Request, refine_source
from btcnb.experiments.tool.write import summary, write

RESULT = Path(__file__).resolve().parent.parent / "results" / "refine_real_blocks.json"
EXAMPLES, SMALLEST, BIGGEST = 3, 8, 40
"""Clusters that are drawn, and the leaves that one may have."""


def facts(outcome: Outcome) -> dict[str, str | int | float]:
    """What chapter 13 shows, by the words it shows it with."""
    told = summary(outcome)
    source, counts = told["source"], told["counts"]
    first, last = source["blocks"]
    return {
        "heights of the blocks": f"{first:,} to {last:,}",
        "transactions": counts["transactions"],
        "addresses": counts["addresses"],
        "heuristic clusters of two and more": counts["clusters_of_several"],
        "addresses of the largest": counts["largest_cluster"],
        "threshold λ": round(told["threshold"], 4),
        "merges": counts["merges"],
        "flagged merges": counts["flagged"],
        "clusters with a flagged merge": counts["clusters_flagged"],
        "clusters after the cut": counts["refined_clusters"],
        "dollars for one bitcoin, taken for all blocks": source["price_usd"],
        "seconds in all": round(told["total"]["seconds"], 1),
        "peak memory (MB)": round(told["total"]["peak_mb"]),
        "fingerprint of the data": source["data"],
        "made": told["made"][:10],
    }


def examples(outcome: Outcome) -> list[dict[str, Any]]:
    """Trees of the clusters of a drawable size whose flagged merges are most suspicious, without any address."""
    found, forest = outcome.found, outcome.found.forest
    place = {int(name): tree for tree, name in enumerate(forest.clusters)}
    fitting = [int(c) for c in dict.fromkeys(found.flagged["cluster"]) if _fits(forest.sizes[place[int(c)]])]
    lines = []
    for number in fitting[:EXAMPLES]:
        tree, threshold = forest.tree(place[number]), float(found.thresholds[place[number]])
        parts = int(cut(tree, threshold).max()) + 1
        rounded = [[int(a), int(b), round(float(h), 4), int(size)] for a, b, h, size in tree]
        addresses = int(found.leaf_sizes[forest.leaves(place[number])].sum())
        told = {"addresses": addresses, "leaves": len(tree) + 1, "parts": parts}
        lines.append({**told, "threshold": round(threshold, 4), "tree": rounded})
    return lines


def _fits(size: np.integer[Any]) -> bool:
    return SMALLEST <= int(size) <= BIGGEST


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="real transactions")
    parser.add_argument("--price-usd", type=float, help="dollars for one bitcoin")
    options = parser.parse_args()
    outcome = refine_source(Request(options.source, price_usd=options.price_usd), tell=print)
    with tempfile.TemporaryDirectory() as place:
        write(outcome, Path(place) / "refined")  # its time counts
    record = {"facts": facts(outcome), "examples": examples(outcome)}
    RESULT.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"written: {RESULT}")


if __name__ == "__main__":
    main()
