"""How like the paper's graphs are ours? Structure measured on a graph and its chain, published values beside it.

The simulator is calibrated on structure (shapes of real transactions of the same year, sizes, cut ratios) and, last, on
how often heuristics fail (`btcnb.data.realism`); never on the score of a learned model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb import paper
from btcnb.data.address_graph import AddressGraph
from btcnb.data.chain_measures import MARKS, PAID_BACK, SHAPES, SHOWN_TYPES, chain_measures, real_chain, type_name
from btcnb.data.simulate.eras import era_of
from btcnb.data.targets import met
from btcnb.data.transactions import Transactions
from btcnb.errors import DataError
from btcnb.gates import choice, instance
from btcnb.theory.homophily import PAPER_BANDS, Endpoints, cut_ratio, cut_ratio_by_size

Reading = Literal["incident", "induced"]

ENDPOINTS: dict[str, Endpoints] = {"incident": "either", "induced": "both"}
"""Two readings of the paper's "restricted to subgraphs of size 10–100", by which ends of an edge must lie in one."""
ERA_SHARES = (
    *SHAPES,
    *MARKS,
    PAID_BACK,
    *(type_name(side, kind) for side in ("outputs", "inputs") for kind in SHOWN_TYPES),
)
"""Shares (in %) that a chain is compared by with real blocks of its year."""
POINTS = 2.0
"""A share is met within so many percentage points."""
TENTH = 0.1
"""A single published value is met within a tenth of it; a published range is met inside it."""


def calibration(
    graphs: AddressGraph | Mapping[str, AddressGraph],
    chain: Transactions | None = None,
    reading: Reading = "induced",
) -> pd.DataFrame:
    """One row per structural target: `quantity`, `about`, `low`, `high`, `slack`, and what we measure.

    graphs: one graph or several by name. `ours` is their median, `ours_low` and `ours_high` are their range; `low` and
            `high` are the range over the paper's graphs, or a single published value twice.
    chain:  the transactions before sampling; their shares stand beside those of real blocks of the same year.
    `inside` says whether `ours` lies between `low` and `high`, give or take `slack` (`targets.met`).
    """
    if not isinstance(graphs, Mapping):
        graphs = {"graph": graphs}
    for name, graph in graphs.items():
        instance(f"graphs[{name!r}]", graph, AddressGraph)
    measured = pd.DataFrame({name: graph_structure(graph, reading) for name, graph in graphs.items()})
    targets = graph_targets()
    rows = [
        _row(quantity, "graph", targets[quantity], measured.loc[quantity].to_numpy(dtype=np.float64))
        for quantity in measured.index
    ]
    if chain is not None:
        marginals = era_marginals({"chain": chain})
        rows += [
            _row(str(row.quantity), "chain", (row.real, row.real), np.array([row.ours]), POINTS)  # type: ignore[arg-type]
            for row in marginals.itertuples()
        ]
    table = pd.DataFrame(rows)
    return table.assign(inside=met(table, table["ours"]))


def year_of(chain: Transactions) -> str:
    """The year (2019 to 2021) whose real blocks a chain is compared with, by its first block."""
    blocks = instance("chain", chain, Transactions).transactions["block_number"]
    if not len(blocks):
        raise DataError(chain.source, "transactions", "there are none", "give a chain with at least one block")
    return era_of(int(blocks.iloc[0])).year


def era_marginals(chains: Mapping[str, Transactions]) -> pd.DataFrame:
    """One row per chain and share of `ERA_SHARES`: name, year, quantity, real (blocks of that year), ours, gap, inside.

    gap: ours minus real, in percentage points; `inside`: at most `POINTS` away.
    """
    rows = []
    for name, chain in chains.items():
        year, ours = year_of(chain), chain_measures(chain)
        rows += [(name, year, quantity, real_chain(year)[quantity], ours[quantity]) for quantity in ERA_SHARES]
    table = pd.DataFrame(rows, columns=["name", "year", "quantity", "real", "ours"])
    gap = table["ours"] - table["real"]
    return table.assign(gap=gap, inside=gap.abs() <= POINTS)


def graph_structure(graph: AddressGraph, reading: Reading = "induced") -> dict[str, float]:
    """Ratios of the dataset table and the four cut ratios (in %), for one graph; NaN where there is no edge to count.

    reading: the paper says "restricted to subgraphs of size 10–100". `"induced"`: edges with both ends in (possibly
        different) clusters of such a size; `"incident"`: edges with at least one end in such a cluster.
    """
    instance("graph", graph, AddressGraph)
    choice("reading", reading, ENDPOINTS)
    labels = graph.labels()
    clusters = int(labels.max()) + 1
    number = float(graph.meta.get("transactions", np.nan))
    edges = graph.edge_index()
    ratios = {
        "nodes a transaction": graph.num_nodes / number,
        "edges a transaction": graph.num_edges / number,
        "clusters a node": clusters / graph.num_nodes,
        "merged nodes a transaction": (graph.num_nodes - clusters) / number,
        "cut ratio overall, %": 100 * cut_ratio(edges, labels) if edges.size else np.nan,
    }
    for (low, high), ratio in cut_ratio_by_size(edges, labels, PAPER_BANDS, endpoints=ENDPOINTS[reading]).items():
        ratios[_band(low, high)] = 100 * ratio
    return ratios


def _band(low: int, high: int) -> str:
    return f"cut ratio clusters {low}-{high}, %"


def graph_targets() -> dict[str, tuple[float, float]]:
    """Range of each quantity over the paper's five graphs; the cut ratios are those of its validation graph."""
    table = paper.table("dataset")
    per_tx = {
        "nodes a transaction": table["nodes"] / table["transactions"],
        "edges a transaction": table["edges"] / table["transactions"],
        "clusters a node": table["clusters"] / table["nodes"],
        "merged nodes a transaction": (table["nodes"] - table["clusters"]) / table["transactions"],
    }
    targets = {quantity: (float(values.min()), float(values.max())) for quantity, values in per_tx.items()}
    names: Sequence[tuple[str, str]] = [
        ("cut ratio overall, %", "cut ratio overall"),
        *((_band(low, high), f"cut ratio clusters {low}-{high}") for low, high in PAPER_BANDS),
    ]
    for quantity, name in names:
        value = paper.value("theory_checks", quantity=name)
        targets[quantity] = (value, value)
    return targets


def _row(
    quantity: str, about: str, target: tuple[float, float], values: npt.NDArray[np.float64], slack: float | None = None
) -> dict[str, Any]:
    known = values[~np.isnan(values)]
    low, high = target
    return {
        "quantity": quantity,
        "about": about,
        "low": low,
        "high": high,
        "slack": slack if slack is not None else TENTH * abs(low) if low == high else 0.0,
        "ours": float(np.median(known)) if len(known) else float("nan"),
        "ours_low": float(known.min()) if len(known) else float("nan"),
        "ours_high": float(known.max()) if len(known) else float("nan"),
    }
