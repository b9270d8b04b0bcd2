"""Every target that the simulated world is held against, in one table: met or missed, fitted or come out by itself.

    values = measures(data)                  # split, quantity, value: all that is measured, for the five roles
    table = fits(values)                     # one row per target
    summary(table)                           # how many of each group are met

`benchmarks/calibration.py` records the same values at larger sizes. Met is: a share of real blocks within 2 points, an
entity count within 8; a share of votes, of freshness or of services within a tenth of it or 2 points, whichever is more
(wrong votes, which are few: half a point); a range inside it, any other value within a tenth.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from btcnb import paper
from btcnb.data.address_graph import AddressGraph
from btcnb.data.chain_measures import chain_measures, real_chain
from btcnb.data.change_votes import PUBLISHED_SERVICES, PUBLISHED_SWALLOWED, published_votes
from btcnb.data.entity_pairs import COUNTS, entity_counts
from btcnb.data.intervals import SPLITS
from btcnb.data.realism import PUBLISHED_REVEALED, realism
from btcnb.data.simulate.eras import era_of
from btcnb.data.sources import ROLES, Source, load_graph, load_transactions
from btcnb.data.structure import ERA_SHARES, POINTS, TENTH, graph_structure, graph_targets
from btcnb.data.targets import met
from btcnb.data.transactions import Transactions
from btcnb.store import kept

ENTITY = "entity pairs of the transaction: "
WRONG_POINTS = 0.5
"""Wrong votes are met within so many points, or a tenth."""
ENTITY_POINTS = 8.0
"""The heuristics' four counts are met within so many points."""
MEDIAN = "median"
"""Stands for the median over the five roles, where a target is no interval's own."""
TAILS = tuple(f"{side} a transaction, {what}" for side in ("inputs", "outputs") for what in ("mean", "99th percentile"))
FRESH = {(1, 0): "change only", (1, 1): "both", (0, 1): "payment only", (0, 0): "none"}


class Group(NamedTuple):
    """Targets of one kind."""

    name: str
    source: str
    """Where the targets come from."""
    how: str
    """What was done to meet them."""


GROUPS = {
    group.name: group
    for group in (
        Group("shares of transactions, by year", "real blocks", "fitted: habits and rates of each year"),
        Group("tails, by year", "real blocks", "not set one by one; follow from sweeps and batches"),
        Group("sizes of the graphs", "the paper's dataset table", "fitted by hand"),
        Group("cut ratios", "the paper's validation graph", "fitted by hand, reading chosen after looking at both"),
        Group("change votes", "Möser and Narayanan", "a few mechanisms' rates were; the rest came out by itself"),
        Group("freshness and revealed change", "Möser and Narayanan", "fitted by one mechanism; the rest by itself"),
        Group("supercluster", "Möser and Narayanan", "fitted by one mechanism"),
        Group("entity pairs", "the heuristics' row of the paper's table", "fitted, last of all"),
    )
}


def measured(
    chain: Transactions, graph: AddressGraph, *, everything: bool = True, transactions: int = 500
) -> dict[str, float]:
    """Quantities of one role: sizes, structure of the graph, shape of the chain, and how heuristics fail on it.

    everything:   also what has no target: labelled pairs of whole graphs, wrong merges by rule and mechanism
    transactions: how many the entity test draws
    """
    counts: dict[str, float] = {
        "transactions": float(graph.meta.get("transactions", np.nan)),
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "clusters": int(graph.labels().max()) + 1,
    }
    table = realism(chain, None if everything else ("votes", "supercluster"), transactions=transactions)
    failures = dict(zip(table["quantity"].astype(str), table["ours"].astype(float), strict=True))
    if not everything:
        pairs = entity_counts(chain, transactions=transactions).mean
        failures |= {ENTITY + name: float(pairs[name]) for name in COUNTS}
    return {**counts, **graph_structure(graph), **chain_measures(chain), **failures}


@kept
def measures_of(source: Source, role: str, transactions: int = 500) -> pd.DataFrame:
    """What has a target, for one role of simulated data, as columns split, quantity, value."""
    chain, graph = load_transactions(source, role, sampled=False), load_graph(source, role)
    values = measured(chain, graph, everything=False, transactions=transactions)
    return pd.DataFrame({"split": role, "quantity": list(values), "value": list(values.values())})


def measures(source: Source) -> pd.DataFrame:
    """`measures_of` all five roles, one below the other."""
    return pd.concat([measures_of(source, role) for role in ROLES], ignore_index=True)


def fits(values: pd.DataFrame) -> pd.DataFrame:
    """One row per target: group, split, quantity, low, high, slack, ours (NaN: not measured), inside.

    values: columns split, quantity, value. `split` is a role, or `median` over the roles.
    """
    table = targets()
    wide = values.pivot_table("value", index="quantity", columns="split")
    wide[MEDIAN] = wide.median(axis=1)
    found = {(quantity, split): value for split in wide for quantity, value in wide[split].items()}
    ours = [found.get(place, np.nan) for place in zip(table["quantity"], table["split"], strict=True)]
    table = table.assign(ours=ours)
    return table.assign(inside=met(table, table["ours"]))


def current(record: pd.DataFrame | None) -> pd.DataFrame | None:
    """A record of `benchmarks/calibration.py`, or None where it is missing or older than the targets of today."""
    wanted = set(targets()["quantity"])
    return record if record is not None and wanted <= set(record["quantity"]) else None


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Per group of `fits`: targets, met, and the target that is missed most, in multiples of what would be allowed."""
    away = pd.concat([table["low"] - table["ours"], table["ours"] - table["high"]], axis=1).max(axis=1).clip(lower=0)
    table = table.assign(miss=(away / table["slack"].where(table["slack"] > 0, TENTH * table["high"].abs())))
    rows = []
    for name in GROUPS:
        own = table[table["group"] == name]
        worst = own.sort_values("miss", ascending=False).iloc[0]  # NaN, not measured, stands last
        rows.append({"group": name, "targets": len(own), "met": int(own["inside"].sum()), **_missed(worst)})
    return pd.DataFrame(rows).set_index("group")


def targets() -> pd.DataFrame:
    """All targets: group, split, quantity, low, high, slack."""
    columns = ["group", "split", "quantity", "low", "high"]
    table = pd.DataFrame(_targets(), columns=columns)
    slack = (TENTH * table["low"].abs()).where(table["low"] == table["high"], 0.0)
    percent = ~table["group"].isin(["tails, by year", "sizes of the graphs", "cut ratios"])
    points = pd.Series(POINTS, index=table.index).where(~table["quantity"].str.endswith(": FPR"), WRONG_POINTS)
    slack = slack.where(~percent | (table["low"] != table["high"]), np.maximum(slack, points))
    slack = slack.where(table["group"] != "shares of transactions, by year", POINTS)
    return table.assign(slack=slack.where(table["group"] != "entity pairs", ENTITY_POINTS))


def _targets() -> Iterator[tuple[str, str, str, float, float]]:
    for role, interval in SPLITS.items():
        real = real_chain(era_of(interval.start_block).year)
        for group, quantities in (("shares of transactions, by year", ERA_SHARES), ("tails, by year", TAILS)):
            yield from ((group, role, quantity, real[quantity], real[quantity]) for quantity in quantities)
    for quantity, (low, high) in graph_targets().items():
        if quantity.startswith("cut"):
            yield "cut ratios", "valid", quantity, low, high
        else:
            yield "sizes of the graphs", MEDIAN, quantity, low, high
    votes = published_votes()
    for row in votes[votes["reading"] != "unknown"].itertuples():
        for rate in ("TPR", "FPR", "remaining"):
            value = 100 * float(getattr(row, rate))
            yield "change votes", MEDIAN, f"{row.Index}: {rate}", value, value
    fresh = paper.table("moser_freshness")
    for row in fresh.itertuples():
        value = 100 * float(row.millions) / float(fresh["millions"].sum())  # type: ignore[arg-type]
        kind = FRESH[int(row.change_fresh), int(row.spend_fresh)]  # type: ignore[arg-type]
        yield "freshness and revealed change", MEDIAN, f"fresh: {kind}", value, value
    value = 100 * PUBLISHED_REVEALED
    yield "freshness and revealed change", MEDIAN, "change revealed by common inputs", value, value
    swallowed = [100 * number / PUBLISHED_SERVICES for number in PUBLISHED_SWALLOWED.values()]
    yield "supercluster", MEDIAN, "supercluster (local): services", min(swallowed), max(swallowed)
    for name in COUNTS:
        value = paper.value("entity_labels", name, model="Heuristics")
        yield "entity pairs", MEDIAN, ENTITY + name, value, value


def _missed(worst: pd.Series) -> dict[str, Any]:
    """The words for the worst miss; empty where nothing is missed."""
    if bool(worst["inside"]) or np.isnan(worst["ours"]):
        return {"missed most": ""}
    where = "" if worst["split"] == MEDIAN else f" ({worst['split']})"
    wanted = f"{worst['low']:.3g}" if worst["low"] == worst["high"] else f"{worst['low']:.3g} – {worst['high']:.3g}"
    return {"missed most": f"{worst['quantity']}{where}: {worst['ours']:.3g} for {wanted}"}
