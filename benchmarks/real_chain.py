"""Facts of the real graphs of chapter 17 as a small record: the files themselves are not part of the book.

    python benchmarks/real_chain.py                 # mainnet-blocks and labels below BTCNB_REAL_DATA
    python benchmarks/real_chain.py --only roles    # makes one part again, and keeps the others

The blocks are cut by height into five roles (`btcnb.data.sources`); structure, cut ratios, permutation test and
Rayleigh quotients are those of the test role. What refinement does to named services, and which merges it suspects, is
told of all blocks in one graph, as `btcnb refine --price-usd 20000` sees them. Of merges the record holds heights and
transaction ids, of labels the counts; no address. Writes results/real_chain_graph.json; five minutes of one core.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import real_graph
from _measure import RESULTS
from real_graph import look_up, service_pairs, services_of

from btcnb import book
from btcnb.data import (
    ROLES,
    HeuristicConfig,
    Source,
    load_graph,
    load_transactions,
    read_blocks,
    read_labels,
    real_source,
)
from btcnb.data.sources import role_facts
from btcnb.experiments import recipe
from btcnb.experiments.encoder import read_encoder
from btcnb.experiments.recipe import baseline
from btcnb.experiments.tool.run import Outcome, Request, refine_source
from btcnb.experiments.transfer import encoder_of

SEED = 1
"""Of the two networks that real blocks initialise and teach: no seed of the grid `transfer`."""
WORLD = 7
"""Seed of the simulated graph beside the real one: the world of the other chapters, and of the shipped encoder."""
PRICE_USD = 20_000.0
"""For all blocks at once, about the middle of what a bitcoin cost in those years."""
LEAST = 5
"""Addresses of the smaller side of a merge that is listed: in pairs of two addresses there is little to see."""
LABELS = "labels"
SOURCE = (
    "raw mainnet blocks that lost a fork, bitcoin-data/stale-blocks (CC0); labels of graphsense-tagpacks (MIT), "
    "DefiLlama adapters (ISC), OFAC list and mining pools (MIT)"
)
DIGITS = 6


def roles(chain: Source) -> dict[str, Any]:
    """What the five graphs are made of, and what two of them share."""
    return {
        "roles": {role: role_facts(chain, role) for role in ROLES},
        "shared": shared_between(chain),
    }


def shared_between(chain: Source) -> list[dict[str, Any]]:
    """For each two roles: how many transactions (by hash) and how many addresses stand in both.

    `of_second` is the share of the second role's addresses that the first one has.
    """
    parts = {role: load_transactions(chain, role) for role in ROLES}
    rows = []
    for first, second in combinations(ROLES, 2):
        a, b = parts[first], parts[second]
        transactions = len(np.intersect1d(a.transactions["hash"].to_numpy(str), b.transactions["hash"].to_numpy(str)))
        addresses = len(np.intersect1d(a.addresses.astype(str), b.addresses.astype(str)))
        row = {"first": first, "second": second, "transactions": transactions, "addresses": addresses}
        rows.append(row | {"of_second": addresses / b.num_addresses})
    return rows


def test_graph(chain: Source) -> dict[str, Any]:
    """Structure, homophily and trivial scores of the real test graph, the simulated one beside it."""
    graphs = {"real": load_graph(chain, "test"), "simulated": load_graph(Source(seed=WORLD), "test")}
    measured = {
        "structure": real_graph.structure_facts,
        "cluster sizes": real_graph.cluster_size_shares,
        "homophily": real_graph.homophily_facts,
        "trivial": real_graph.trivial_scores,
    }
    return {"test": {what: {name: facts(each) for name, each in graphs.items()} for what, facts in measured.items()}}


def smoothness(chain: Source) -> dict[str, Any]:
    """Rayleigh quotients on the real test graph of three networks: two initialised alike, and the package's own."""
    mine = recipe(Source(seed=WORLD), SEED)
    models = {
        "untrained": encoder_of(baseline(mine, "untrained"), chain, "real").model,
        "taught by simulation": read_encoder().model,
        "taught by real blocks": encoder_of(mine, chain, "real").model,
    }
    return {"rayleigh": real_graph.rayleigh_facts(load_graph(chain, "test"), models)}


def all_blocks(chain: Source) -> dict[str, Any]:
    """Services that share a cluster before and after refinement, and merges to look up."""
    labels = book.real_data(LABELS)
    if labels is None:
        raise SystemExit(f"The folder {LABELS} is not at hand: set BTCNB_REAL_DATA.")
    outcome = refine_source(Request(chain.paths[0], price_usd=PRICE_USD), tell=print)
    named = read_labels(labels)
    services, absent = services_of(outcome.material.names, named)
    pairs = service_pairs(services, outcome.material.labels, outcome.found.partition)
    told = {
        "refined": {name: value for name, value in outcome.counts().items() if value is not None},
        "threshold": outcome.found.threshold,
        "price_usd": PRICE_USD,
        "least addresses of a listed side": LEAST,
        "services": pairs | {"labelled addresses that are in no block": absent, "labels in the file": len(named)},
        "merges": _merges(chain, outcome).to_dict("records"),
    }
    return {"all blocks": told}


def _merges(chain: Source, outcome: Outcome) -> pd.DataFrame:
    txs = read_blocks(chain.paths[0], impute=True)
    nodes = pd.Index(txs.addresses).get_indexer(pd.Index(outcome.material.names)).astype(np.int64)
    return look_up(txs, outcome.found, nodes, HeuristicConfig(price_usd=PRICE_USD), LEAST)


def rounded(value: Any) -> Any:
    """Numbers with six digits: more says nothing."""
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


PARTS: dict[str, Callable[[Source], dict[str, Any]]] = {
    "roles": roles,
    "test": test_graph,
    "smoothness": smoothness,
    "merges": all_blocks,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS, help="the part that is made again; the others stay as they are")
    parser.add_argument("--out", type=Path, default=RESULTS.parent / "real_chain_graph.json", help="where to write")
    options = parser.parse_args()
    chain, found = real_source(), dict[str, Any]()
    for name, part in PARTS.items():
        if options.only in (None, name):
            found |= part(chain)
    before = json.loads(options.out.read_text("utf-8")) if options.only and options.out.exists() else {}
    head = {
        "made": datetime.now(UTC).date().isoformat(),
        "btcnb": version("btcnb"),
        "source": SOURCE,
        "seed": SEED,
        "world": WORLD,
    }
    text = json.dumps(rounded(before | head | found), indent=1, ensure_ascii=False, allow_nan=False)
    partial = options.out.with_suffix(".partial")
    partial.write_text(text + "\n", "utf-8")
    partial.replace(options.out)
    print(f"written: {options.out.name}")


if __name__ == "__main__":
    main()
