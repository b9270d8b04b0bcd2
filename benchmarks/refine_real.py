"""What `btcnb refine` says of real blocks, as a small record for the book: the files themselves are not part of it.

btcnb refine BLOCKS --out FOLDER --price-usd 20000
python benchmarks/refine_real.py FOLDER
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

RESULT = Path(__file__).resolve().parent.parent / "results" / "refine_real_blocks.json"


def record(folder: Path) -> dict[str, str | int | float]:
    """The facts of a result folder that chapter 13 shows, by the words it shows them with."""
    told = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="what `btcnb refine` wrote")
    found = record(parser.parse_args().folder)
    RESULT.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"written: {RESULT}")


if __name__ == "__main__":
    main()
