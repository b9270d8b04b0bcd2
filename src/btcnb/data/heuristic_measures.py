"""How often the heuristics fire and how often they fail, as numbers that can be compared between chains."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.data.change_votes import (
    change_votes,
    freshness,
    revealed_change,
    rule_precision,
    supercluster,
    true_change,
    vote_scores,
)
from btcnb.data.heuristics import DEFAULT_RULES, HeuristicConfig, heuristic_clusters, heuristic_merges
from btcnb.data.judging.entity_pairs import COUNTS, entity_counts, interval_config
from btcnb.data.judging.links import marked, where_false_merges_come_from
from btcnb.data.judging.owners import against_owners
from btcnb.data.transactions import Transactions
from btcnb.errors import DataError

BoolArray = npt.NDArray[np.bool_]

ENTITY = "entity pairs of the transaction: "
FRESH = {(True, False): "change only", (True, True): "both", (False, True): "payment only", (False, False): "none"}
"""Names of (change is fresh, payment is fresh)."""
PER_THOUSAND = (
    "common_input fires",
    "shape of change",
    "change fires",
    "round_value fires",
    "shape of forced_merge",
    "forced_merge fires",
)
"""Quantities per 1,000 transactions, coinbases left out."""
CLUSTERS = ("clusters of two or more", "addresses in them, %", "largest cluster")
"""Clusters per 1,000 transactions, share of addresses, and addresses."""
COMPARABLE = tuple(name for name in PER_THOUSAND if name != "change fires")
"""Those that do not depend on how far apart the blocks lie."""
KNOWN = 0.5
"""Share of the transactions with the shape whose input values must be known for `forced_merge` to be counted."""


# --- beside published figures: everything in percent, except what is called a number ---


def heuristic_measures(
    txs: Transactions, parts: Sequence[str] | None = None, *, transactions: int = 500
) -> dict[str, float]:
    """How often heuristics fail on a whole chain with truth, by name.

    parts:        names out of `PARTS`; default: all
    transactions: how many transactions the entity test draws
    """
    values: dict[str, float] = {}
    for part in PARTS if parts is None else parts:
        values |= PARTS[part](txs, transactions)
    return values


def entity_shares(txs: Transactions, pairs: Literal["transaction", "graph"], transactions: int) -> dict[str, float]:
    """The paper's test with entity labels: four counts, bACC and F1 of the heuristics."""
    counts = entity_counts(txs, transactions=transactions, pairs=pairs)
    prefix = f"entity pairs of the {pairs}: "
    shares = {prefix + name: float(counts.mean[name]) for name in (*COUNTS, "bACC", "F1")}
    return shares | {prefix + "transactions, number": counts.transactions}


def _entity(txs: Transactions, transactions: int) -> dict[str, float]:
    return entity_shares(txs, "transaction", transactions) | entity_shares(txs, "graph", transactions)


def _supercluster(txs: Transactions, _: int) -> dict[str, float]:
    """How many named services a permissive rule throws together."""
    values: dict[str, float] = {}
    for variant, largest in (("local", supercluster(txs, "local")), ("global", supercluster(txs, "global"))):
        values[f"supercluster ({variant}): services"] = 100 * largest.share
        values[f"supercluster ({variant}): votes"] = 100 * largest.coverage
        values[f"supercluster ({variant}): addresses"] = 100 * largest.addresses
        values[f"supercluster ({variant}): services, number"] = largest.services
    return values


def _votes(txs: Transactions, _: int) -> dict[str, float]:
    """Change votes against change that common inputs reveal and against true change; freshness of both outputs."""
    votes, revealed = change_votes(txs), revealed_change(txs)
    scores = vote_scores(votes, revealed.known, revealed.remaining)
    precision = vote_scores(votes, true_change(txs))["precision"]
    values: dict[str, float] = {}
    for name in scores.index:
        for rate in ("TPR", "FPR", "remaining"):
            values[f"{name}: {rate}"] = 100 * scores.loc[name, rate]
        values[f"{name}: remaining, both spent"] = 100 * scores.loc[name, "remaining_spent"]
        values[f"{name}: true precision"] = 100 * precision.loc[name]
    for row in freshness(revealed).itertuples():
        values[f"fresh: {FRESH[bool(row.change_fresh), bool(row.spend_fresh)]}"] = 100 * float(row.ours)  # type: ignore[arg-type]
    two = int((np.diff(txs.output_offsets()) == 2)[~txs.transactions["is_coinbase"].to_numpy()].sum())
    values["change revealed by common inputs"] = 100 * revealed.steps["candidates"] / max(two, 1)
    values["ground truth: transactions, number"] = len(revealed.tx)
    return values


def _rules(txs: Transactions, _: int) -> dict[str, float]:
    """Right guesses of each rule, and wrong merges by rule and by mechanism."""
    config = interval_config(txs)
    values: dict[str, float] = {}
    for rule, row in rule_precision(txs, config).iterrows():
        values[f"{rule}: right owner"] = 100 * row["owner"]
        values[f"{rule}: right change"] = 100 * row["change"]
    merges = heuristic_merges(txs, config=config)
    wrong = where_false_merges_come_from(txs, merges)
    values["wrong merges"] = 100 * wrong["wrong"].sum() / max(len(merges), 1)
    for rule in DEFAULT_RULES:
        own = wrong[wrong["rule"] == rule]
        values[f"wrong merges by {rule}, of all wrong"] = 100 * own["of_wrong"].sum()
        values[f"wrong merges by {rule}, of its own"] = 100 * own["of_rule"].sum()
    for mechanism, own in wrong.groupby("mechanism"):
        values[f"wrong merges in {mechanism}, of all wrong"] = 100 * own["of_wrong"].sum()
    return values


PARTS: dict[str, Callable[[Transactions, int], dict[str, float]]] = {
    "entity": _entity,
    "supercluster": _supercluster,
    "votes": _votes,
    "rules": _rules,
}


# --- along the dial `disorder` ---


def failures(txs: Transactions) -> dict[str, float]:
    """The heuristics' failures on a whole chain with truth, with the thresholds of the paper's interval.

    precision, recall (pairs of addresses, against owners), in_collapsed (share of addresses that share a cluster with a
    stranger's), largest (share of addresses in the largest cluster), most_owners (in one cluster), wrong (share of all
    merges), services (share of the named services that the permissive rule throws together), and TP, FP, FN, TN: the
    four counts of the paper's entity test (250 transactions) in % of its pairs. NaN where there is nothing to count.
    """
    owner, config = txs.known_truth().owner, interval_config(txs)
    merges = marked(heuristic_merges(txs, config=config), owner)
    row = against_owners(heuristic_clusters(txs, config=config), owner)
    row["wrong"] = float(merges["wrong"].mean()) if len(merges) else np.nan
    row |= dict.fromkeys(("services", *COUNTS), np.nan)
    with _where_names_suffice():
        row["services"] = supercluster(txs).share
    with _where_names_suffice():
        counts = entity_counts(txs, transactions=250, config=config).mean
        row |= {name: float(counts[name]) for name in COUNTS}
    return row


@contextmanager
def _where_names_suffice() -> Iterator[None]:
    """Leave the block where public names are missing or too few; every other error passes."""
    try:
        yield
    except DataError as error:
        if error.field != "truth.label":
            raise


# --- on any chain, also without truth ---


def at_once(txs: Transactions) -> Transactions:
    """The same transactions in one block: no address is paid in a later one."""
    table = txs.transactions
    block = table["block_number"].iloc[0] if len(table) else 0
    return replace(txs, transactions=table.assign(block_number=block, index=np.arange(len(table))))


def rule_firing(txs: Transactions, config: HeuristicConfig | None = None) -> dict[str, float]:
    """The quantities of `PER_THOUSAND` and `CLUSTERS` by name; NaN where the data does not tell.

    Rules that ask whether an address is paid *later* see little in scattered blocks. So `round_value fires` and
    `forced_merge fires` are counted `at_once`, as if nothing came after, and the shapes that a rule looks for are
    counted too: these can be compared. `change fires` and the clusters are counted on the chain as it is.
    `forced_merge` compares input values: its firings are those among transactions whose values are known, scaled to all
    of that shape; NaN where fewer than half are.
    """
    number = max(int((~txs.transactions["is_coinbase"].to_numpy()).sum()), 1)
    alone = heuristic_merges(at_once(txs), ["common_input", "round_value", "forced_merge"], config)
    fires = alone.groupby("rule")["tx"].nunique()
    one_by_one, several, valued = _shapes(txs)
    known = several & valued
    scaled = np.nan
    if several.any() and known.sum() >= KNOWN * several.sum():
        scaled = float(fires.get("forced_merge", 0)) * several.sum() / known.sum()
    counted = {
        "common_input fires": fires.get("common_input", 0),
        "shape of change": one_by_one.sum(),
        "change fires": heuristic_merges(txs, ["change"], config)["tx"].nunique(),
        "round_value fires": fires.get("round_value", 0),
        "shape of forced_merge": several.sum(),
        "forced_merge fires": scaled,
    }
    sizes = np.bincount(heuristic_clusters(txs, config=config), minlength=1)
    joined = sizes[sizes > 1]
    share = 100 * float(joined.sum()) / max(txs.num_addresses, 1)
    clusters = (1000 * len(joined) / number, share, float(sizes.max()))
    rates = {name: 1000 * float(counted[name]) / number for name in PER_THOUSAND}
    return rates | dict(zip(CLUSTERS, clusters, strict=True))


def _shapes(txs: Transactions) -> tuple[BoolArray, BoolArray, BoolArray]:
    """Per transaction: the shape of `change` and `round_value`, that of `forced_merge`, all input values known."""
    inputs, outputs = np.diff(txs.input_offsets()), np.diff(txs.output_offsets())
    payers, payees = _distinct(txs.inputs, len(txs)), _distinct(txs.outputs, len(txs))
    both = _distinct(pd.concat([txs.inputs[["tx", "address"]], txs.outputs[["tx", "address"]]]), len(txs))
    two = (outputs == 2) & (payees == 2)
    valued = np.ones(len(txs), dtype=bool)
    valued[txs.inputs.loc[txs.inputs["value"] < 0, "tx"].to_numpy()] = False
    return (inputs == 1) & two & (both == 3), (inputs >= 2) & (payers == inputs) & two, valued


def _distinct(table: pd.DataFrame, number: int) -> npt.NDArray[np.int64]:
    """Distinct known addresses per transaction."""
    known = table.loc[table["address"] >= 0, ["tx", "address"]].drop_duplicates()
    return np.bincount(known["tx"], minlength=number).astype(np.int64)
