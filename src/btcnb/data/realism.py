"""Do heuristics fail in our economies as they fail on the real chain? All measures in one table, published ones beside.

Structure (`btcnb.data.structure`) says whether a simulated chain looks right; this says whether what the rules conclude
from it is right and wrong as often as published. Everything is in percent.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from btcnb import paper
from btcnb.data.change_votes import (
    PUBLISHED_COVERAGE,
    PUBLISHED_SERVICES,
    PUBLISHED_SWALLOWED,
    change_votes,
    freshness,
    published_votes,
    revealed_change,
    rule_precision,
    supercluster,
    true_change,
    vote_scores,
)
from btcnb.data.entity_pairs import COUNTS, entity_counts, interval_config
from btcnb.data.false_merges import where_false_merges_come_from
from btcnb.data.heuristics import DEFAULT_RULES, heuristic_merges
from btcnb.data.transactions import Transactions
from btcnb.gates import choice, instance

Row = tuple[str, float, float]
NONE = float("nan")
"""Stands where nothing is published."""

PUBLISHED_REVEALED = 53.4 / 494.6
"""Of two-output transactions: share whose change common inputs reveal (millions, Möser and Narayanan's notebooks)."""


def realism(txs: Transactions, parts: tuple[str, ...] | None = None, *, transactions: int = 500) -> pd.DataFrame:
    """One row per measure of a whole chain with truth: part, quantity, ours, published (NaN where nothing is).

    parts:        names out of `PARTS`; default: all
    transactions: how many transactions the entity test draws
    """
    instance("txs", txs, Transactions)
    rows = []
    for part in tuple(PARTS) if parts is None else parts:
        measure = PARTS[choice("an entry of parts", part, PARTS)]
        rows += [(part, *row) for row in measure(txs, transactions)]
    return pd.DataFrame(rows, columns=["part", "quantity", "ours", "published"])


def _entity(txs: Transactions, transactions: int) -> Iterator[Row]:
    for pairs in ("transaction", "graph"):
        counts = entity_counts(txs, transactions=transactions, pairs=pairs)  # type: ignore[arg-type]
        for name in (*COUNTS, "bACC", "F1"):
            yield (
                f"entity pairs of the {pairs}: {name}",
                float(counts.mean[name]),
                paper.value("entity_labels", name, model="Heuristics"),
            )
        yield f"entity pairs of the {pairs}: transactions, number", counts.transactions, transactions


def _supercluster(txs: Transactions, _: int) -> Iterator[Row]:
    swallowed = {"local": 100 * PUBLISHED_SWALLOWED["local"] / PUBLISHED_SERVICES, "global": NONE}
    for variant in ("local", "global"):
        found = supercluster(txs, variant)  # type: ignore[arg-type]
        yield f"supercluster ({variant}): services", 100 * found.share, swallowed[variant]
        yield f"supercluster ({variant}): votes", 100 * found.coverage, 100 * PUBLISHED_COVERAGE[variant]
        yield f"supercluster ({variant}): addresses", 100 * found.addresses, NONE
        yield f"supercluster ({variant}): services, number", found.services, PUBLISHED_SERVICES


def _votes(txs: Transactions, _: int) -> Iterator[Row]:
    votes, revealed = change_votes(txs), revealed_change(txs)
    scores = vote_scores(votes, revealed.known, revealed.remaining)
    truly, published = vote_scores(votes, true_change(txs)), published_votes()
    for name in scores.index:
        ours, theirs = scores.loc[name], published.loc[name]
        yield f"{name}: TPR", 100 * ours["TPR"], 100 * theirs["TPR"]
        yield f"{name}: FPR", 100 * ours["FPR"], 100 * theirs["FPR"]
        yield f"{name}: remaining", 100 * ours["remaining"], 100 * theirs["remaining"]
        yield f"{name}: remaining, both spent", 100 * ours["remaining_spent"], NONE
        yield f"{name}: true precision", 100 * truly.loc[name, "precision"], 100 * theirs["precision"]
    kinds = {(True, False): "change only", (True, True): "both", (False, True): "payment only", (False, False): "none"}
    for row in freshness(revealed).itertuples():
        kind = kinds[bool(row.change_fresh), bool(row.spend_fresh)]
        yield f"fresh: {kind}", 100 * float(row.ours), 100 * float(row.published)  # type: ignore[arg-type]
    two = int((np.diff(txs.output_offsets()) == 2)[~txs.transactions["is_coinbase"].to_numpy()].sum())
    yield "change revealed by common inputs", 100 * revealed.steps["candidates"] / max(two, 1), 100 * PUBLISHED_REVEALED
    yield "ground truth: transactions, number", len(revealed.tx), NONE


def _rules(txs: Transactions, _: int) -> Iterator[Row]:
    config = interval_config(txs)
    for rule, row in rule_precision(txs, config).iterrows():
        yield f"{rule}: right owner", 100 * row["owner"], NONE
        yield f"{rule}: right change", 100 * row["change"], NONE
    merges = heuristic_merges(txs, config=config)
    wrong = where_false_merges_come_from(txs, merges)
    total = wrong["wrong"].sum()
    yield "wrong merges", 100 * total / max(len(merges), 1), NONE
    for rule in DEFAULT_RULES:
        own = wrong[wrong["rule"] == rule]
        yield f"wrong merges by {rule}, of all wrong", 100 * own["of_wrong"].sum(), NONE
        yield f"wrong merges by {rule}, of its own", 100 * own["of_rule"].sum(), NONE
    for mechanism, own in wrong.groupby("mechanism"):
        yield f"wrong merges in {mechanism}, of all wrong", 100 * own["of_wrong"].sum(), NONE


PARTS = {"entity": _entity, "supercluster": _supercluster, "votes": _votes, "rules": _rules}
"""The parts of the table by name."""
