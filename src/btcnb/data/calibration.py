"""How like the real chain and the paper's graphs is a simulated world? Every target in one table, met or missed.

    values = measures(source)          # split, quantity, value: all that is measured, for the five roles
    table = fits(values)               # one row per target: what was measured, and whether it is met
    summary(table)                     # how many targets of each group are met

The targets stand in `targets.csv`: group, split (a role, or the median over the roles), quantity, low, high, slack,
source. A value between low and high, give or take the slack, is met. The slack is 2 points for a share of real blocks,
8 points for an entity count, and 0 for a range. For a single published value it is a tenth of it; shares of votes, of
freshness and of services have a slack of at least 2 points (wrong votes, which are few: half a point).

The simulator is calibrated on structure and, last, on how often heuristics fail; never on the score of a learned model.
`benchmarks/calibration.py` records the same values at larger sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from btcnb.data.chain_measures import MARKS, PAID_BACK, SHAPES, SHOWN_TYPES, chain_measures, real_chain, type_name
from btcnb.data.graph import AddressGraph
from btcnb.data.heuristic_measures import ENTITY, entity_shares, heuristic_measures
from btcnb.data.judging.entity_pairs import COUNTS
from btcnb.data.simulator.parameters import era_of
from btcnb.data.sources import ROLES, Source, load_graph, load_transactions
from btcnb.data.transactions import Transactions
from btcnb.errors import DataError
from btcnb.store import kept
from btcnb.store.reads import note_read
from btcnb.theory.homophily import PAPER_BANDS, Endpoints, band_subgraph, cut_ratio

Reading = Literal["incident", "induced"]

TARGETS = Path(__file__).with_name("targets.csv")
POINTS = 2.0
"""Slack of a share of real blocks, in percentage points."""
ENTITY_POINTS = 8.0
"""Slack of the heuristics' four counts, in percentage points."""
MEDIAN = "median"
"""In place of a split: the median over the five roles."""
SIZES, CUTS = "sizes of the graphs", "cut ratios"
ENDPOINTS: dict[str, Endpoints] = {"incident": "either", "induced": "both"}
"""Two readings of the paper's "restricted to subgraphs of size 10–100", by which ends of an edge must lie in one."""
ERA_SHARES = (
    *SHAPES,
    *MARKS,
    PAID_BACK,
    *(type_name(side, kind) for side in ("outputs", "inputs") for kind in SHOWN_TYPES),
)
"""Shares (in %) by which a chain is compared with real blocks of its year."""


class Group(NamedTuple):
    """Targets of one kind."""

    source: str
    """Where the targets come from."""
    how: str
    """What was done to meet them."""


GROUPS = {
    "shares of transactions, by year": Group("real blocks", "fitted: habits and rates of each year"),
    "tails, by year": Group("real blocks", "not set one by one; follow from sweeps and batches"),
    SIZES: Group("the paper's dataset table", "fitted by hand"),
    CUTS: Group("the paper's validation graph", "fitted by hand, reading chosen after looking at both"),
    "change votes": Group("Möser and Narayanan", "a few mechanisms' rates were; the rest came out by itself"),
    "freshness and revealed change": Group("Möser and Narayanan", "fitted by one mechanism; the rest by itself"),
    "supercluster": Group("Möser and Narayanan", "fitted by one mechanism"),
    "entity pairs": Group("the heuristics' row of the paper's table", "fitted, last of all"),
}


# --- what is measured ---


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
    if everything:
        failures = heuristic_measures(chain, transactions=transactions)
    else:
        failures = heuristic_measures(chain, ("votes", "supercluster"))
        pairs = entity_shares(chain, "transaction", transactions)
        failures |= {ENTITY + name: pairs[ENTITY + name] for name in COUNTS}
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


def graph_structure(graph: AddressGraph, reading: Reading = "induced") -> dict[str, float]:
    """Ratios of the dataset table and the four cut ratios (in %), for one graph; NaN where there is no edge to count.

    reading: the paper says "restricted to subgraphs of size 10–100". `"induced"`: edges with both ends in (possibly
        different) clusters of such a size; `"incident"`: edges with at least one end in such a cluster.
    """
    labels, edges = graph.labels(), graph.edge_index()
    clusters = int(labels.max()) + 1
    number = float(graph.meta.get("transactions", np.nan))
    parts = {band: band_subgraph(edges, labels, band, endpoints=ENDPOINTS[reading]) for band in PAPER_BANDS}
    return {
        "nodes a transaction": graph.num_nodes / number,
        "edges a transaction": graph.num_edges / number,
        "clusters a node": clusters / graph.num_nodes,
        "merged nodes a transaction": (graph.num_nodes - clusters) / number,
        "cut ratio overall, %": 100 * cut_ratio(edges, labels),
        **{f"cut ratio clusters {low}-{high}, %": 100 * cut_ratio(*part) for (low, high), part in parts.items()},
    }


# --- targets ---


def targets() -> pd.DataFrame:
    """All targets: group, split, quantity, low, high, slack, source, and `target`, the value or range to be printed."""
    table = pd.read_csv(note_read(TARGETS))
    value, top = table["low"].map("{:.3g}".format), table["high"].map("{:.3g}".format)
    return table.assign(target=value.where(table["low"] == table["high"], value + " – " + top))


def graph_targets() -> dict[str, tuple[float, float]]:
    """Low and high of each quantity of `graph_structure`."""
    table = targets()
    rows = table[table["group"].isin([SIZES, CUTS])]
    return {str(row.quantity): (float(row.low), float(row.high)) for row in rows.itertuples()}  # type: ignore[arg-type]


def fits(values: pd.DataFrame) -> pd.DataFrame:
    """The targets with `ours` (NaN: not measured) and `inside`.

    values: columns split, quantity, value, one row per role and quantity
    """
    median = values.groupby("quantity", as_index=False)["value"].median().assign(split=MEDIAN)
    ours = pd.concat([values, median])[["split", "quantity", "value"]].rename(columns={"value": "ours"})
    table = targets().merge(ours, how="left", on=["split", "quantity"])
    return table.assign(inside=met(table))


def structure_fits(graphs: AddressGraph | Mapping[str, AddressGraph], reading: Reading = "induced") -> pd.DataFrame:
    """The targets of `graph_structure` with `ours` (the median over the graphs), `ours_low`, `ours_high`, `inside`.

    graphs: one graph, or several by name
    """
    if not isinstance(graphs, Mapping):
        graphs = {"graph": graphs}
    ours = pd.DataFrame({name: graph_structure(graph, reading) for name, graph in graphs.items()})
    spread = {"ours": ours.median(axis=1), "ours_low": ours.min(axis=1), "ours_high": ours.max(axis=1)}
    table = targets().merge(pd.DataFrame(spread).rename_axis("quantity").reset_index(), on="quantity")
    return table.assign(inside=met(table))


def met(table: pd.DataFrame) -> pd.Series:
    """Whether `ours` lies between `low` and `high`, give or take `slack`. What was not measured is not met."""
    return (table["ours"] >= table["low"] - table["slack"]) & (table["ours"] <= table["high"] + table["slack"])


def current(record: pd.DataFrame | None) -> pd.DataFrame | None:
    """A record of `benchmarks/calibration.py`, or None where it is missing or older than the targets of today."""
    wanted = set(targets()["quantity"])
    return record if record is not None and wanted <= set(record["quantity"]) else None


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Per group of `fits`: targets, met, and of the target that is missed most: missed, split, ours, target.

    Missed most is by multiples of what would be allowed; the last four are missing where all targets are met.
    """
    away = pd.concat([table["low"] - table["ours"], table["ours"] - table["high"]], axis=1).max(axis=1).clip(lower=0)
    table = table.assign(miss=away / table["slack"].where(table["slack"] > 0, 0.1 * table["high"].abs()))
    groups = table.groupby("group")
    counts = pd.DataFrame({"targets": groups.size(), "met": groups["inside"].sum().astype(np.int64)})
    missed = table[~table["inside"] & table["ours"].notna()].sort_values("miss", ascending=False)
    worst = missed.drop_duplicates("group").set_index("group").rename(columns={"quantity": "missed"})
    return counts.join(worst[["missed", "split", "ours", "target"]]).reindex(list(GROUPS))


# --- one chain beside real blocks of its year ---


def year_of(chain: Transactions) -> str:
    """The year (2019 to 2021) whose real blocks a chain is compared with, by its first block."""
    blocks = chain.transactions["block_number"]
    if not len(blocks):
        raise DataError(chain.source, "transactions", "there are none", "give a chain with at least one block")
    return era_of(int(blocks.iloc[0])).year


def era_marginals(chain: Transactions) -> pd.DataFrame:
    """One row per share of `ERA_SHARES`: quantity, real (blocks of the chain's year), ours, gap, inside.

    gap: ours minus real, in percentage points; `inside`: at most `POINTS` away.
    """
    real, ours = real_chain(year_of(chain)), chain_measures(chain)
    rows = [(quantity, real[quantity], ours[quantity]) for quantity in ERA_SHARES]
    table = pd.DataFrame(rows, columns=["quantity", "real", "ours"])
    gap = table["ours"] - table["real"]
    return table.assign(gap=gap, inside=gap.abs() <= POINTS)
