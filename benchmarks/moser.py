"""Möser and Narayanan's votes and forest on real blocks, kept for chapter 15: the files are not part of the project.

    btcnb sweep experiments/moser.yaml --jobs 2     # the simulated worlds
    python benchmarks/moser.py                      # then this: mainnet-blocks and labels below BTCNB_REAL_DATA

Scattered blocks hold hardly any payment with both outputs spent, so the ground truth lets in those whose other output
is not spent (`revealed_change(both_spent=False)`); fingerprints are silent on them. Writes
results/sweeps/moser_real.jsonl, one record a row and seed:

    votes            rates of the heuristics; seeds are five spans of blocks of equal length, each a sample by itself
    all              the same over all blocks, with the counts of the ground truth; one record
    forest           forests taught and tested by the real payments, split by cluster; seeds are splits
    simulated forest taught by a simulated world, tested on the real payments; seeds are worlds
    clusters         clusters of the real blocks, naive and constrained, by the real forest; one record
"""

from __future__ import annotations

import datetime
import json
import math
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _measure import PROJECT

from btcnb import book
from btcnb.data import Source, Transactions, attach_labels, load_transactions
from btcnb.data.change_votes import multi_input_clusters, services_together
from btcnb.data.readers.blocks import read_blocks
from btcnb.experiments.change_forest import (
    TEACHERS,
    ForestConfig,
    OutputRows,
    fit_forest,
    labelled_rows,
    row_scores,
    train_forest,
)
from btcnb.experiments.moser import change_decisions, moser_clusters
from btcnb.experiments.moser_measure import chain_votes, forest_numbers, pooled_scores, vote_numbers
from btcnb.store.keys import commit

BLOCKS, LABELS = "mainnet-blocks", "labels/btc_labels.csv.gz"
SPANS, SPLITS, WORLDS = 5, (1, 2, 3, 4, 5), (2, 3, 4, 5, 6)
RESULT = PROJECT / "results" / "sweeps" / "moser_real.jsonl"

Line = tuple[str, int, dict[str, Any]]


def spans(txs: Transactions) -> list[Transactions]:
    """Five parts of the chain, cut between blocks, of nearly equal numbers of transactions."""
    block = txs.transactions["block_number"].to_numpy()
    starts = np.flatnonzero(np.diff(block, prepend=block[0] - 1))
    cuts = [starts[np.abs(starts - len(txs) * i // SPANS).argmin()] for i in range(SPANS)]
    return [txs.select(np.arange(a, b)) for a, b in zip(cuts, [*cuts[1:], len(txs)], strict=True)]


def votes_of(txs: Transactions) -> Iterator[Line]:
    for number, part in enumerate(spans(txs), 1):
        yield "votes", number, vote_numbers(pooled_scores([chain_votes(part, both_spent=False)])) | {"txs": len(part)}


def whole(txs: Transactions) -> tuple[OutputRows, dict[str, Any]]:
    """The payments whose change is revealed, as rows, and counts and rates over all blocks."""
    strict, loose = chain_votes(txs), chain_votes(txs, both_spent=False)
    rows = labelled_rows(txs, loose.revealed.known, loose.revealed.cluster, loose.votes)
    fee = txs.transactions["fee"].to_numpy()[loose.revealed.tx] >= 0
    numbers: dict[str, Any] = vote_numbers(pooled_scores([loose]))
    numbers |= {f"strict.{name}": value for name, value in strict.revealed.steps.items()}
    numbers |= {f"truth.{name}": value for name, value in loose.revealed.steps.items()}
    return rows, numbers | {
        "transactions": len(txs),
        "addresses": txs.num_addresses,
        "blocks": int(txs.transactions["block_number"].nunique()),
        "truth.remaining": len(loose.revealed.remaining),
        "truth.both_spent": float(loose.votes.both_spent.mean()),
        "truth.fee_known": float(fee.mean()) if len(fee) else math.nan,
        "rows.silent": rows.silent,
    }


def clusters(txs: Transactions, labels: Path, rows: OutputRows) -> dict[str, Any]:
    """Naive and constrained clusters by a forest that the real payments taught."""
    table = pd.read_csv(labels, usecols=["address", "actor", "confidence"]).dropna().rename(columns={"actor": "label"})
    named = attach_labels(txs, table)
    forest, base = fit_forest(rows), multi_input_clusters(txs)
    decisions = change_decisions(txs, forest)
    numbers: dict[str, Any] = {f"decisions.{name}": value for name, value in decisions.counts.items()}
    numbers["universal.threshold"] = forest.universal_threshold
    for how in ("naive", "constrained"):
        made = moser_clusters(txs, forest, decisions=decisions, base=base, how=how)
        sizes, home = np.bincount(made.labels), services_together(named, base, made.labels)
        numbers |= {f"{how}.{name}": value for name, value in made.counts.items()}
        numbers |= {f"{how}.largest": int(sizes.max()), f"{how}.clusters": len(sizes)}
        numbers |= {f"{how}.services": home.services, f"{how}.swallowed": home.swallowed, "before": home.before}
    return numbers | {"common.largest": int(np.bincount(base).max()), "common.clusters": int(base.max()) + 1}


def lines(txs: Transactions, labels: Path) -> Iterator[Line]:
    yield from votes_of(txs)
    rows, numbers = whole(txs)
    yield "all", 0, numbers
    for seed in SPLITS:
        yield "forest", seed, forest_numbers(rows, ForestConfig(seed=seed))
    for world in WORLDS:
        source = Source.of("simulated", size="quick", seed=world)
        chains = (load_transactions(source, role, sampled=False) for role in TEACHERS)
        forest = train_forest(chains, ForestConfig(seed=world))
        yield "simulated forest", world, row_scores(rows.y, forest.full.predict_proba(rows.X)[:, 1])._asdict()
    yield "clusters", 0, clusters(txs, labels, rows)


def main() -> None:
    blocks, labels = (book.real_data(name) for name in (BLOCKS, LABELS))
    if blocks is None or labels is None:
        raise SystemExit(f"{BLOCKS} or {LABELS} is not at hand: set BTCNB_REAL_DATA.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # previous outputs are missing: that is known
        txs = read_blocks(blocks)
    head = {"grid": "moser_real", "state": "done", "source": f"raw mainnet blocks, {BLOCKS}", "data": txs.fingerprint()}
    head |= {"commit": commit(), "made": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"}
    written, began = [], time.monotonic()
    for row, seed, numbers in lines(txs, Path(labels)):
        plain = {name: _plain(value) for name, value in numbers.items()}
        written.append(json.dumps({**head, "row": row, "seed": seed, **plain}, ensure_ascii=False, allow_nan=False))
        print(f"{time.monotonic() - began:6.0f} s  {row} {seed}", flush=True)
    partial = RESULT.with_suffix(".partial")
    partial.write_text("\n".join(written) + "\n", encoding="utf-8")
    partial.replace(RESULT)
    print(f"written to results/sweeps/{RESULT.name}")


def _plain(value: Any) -> Any:
    """Seven digits; JSON knows no NaN."""
    number = value.item() if isinstance(value, np.generic) else value
    if isinstance(number, float):
        return float(f"{number:.7g}") if math.isfinite(number) else None
    return number


if __name__ == "__main__":
    main()
