"""How like the paper's graphs are ours? Structure measured on a graph and its chain, published values beside it.

The simulator is calibrated on structure only (sizes, shapes of transactions, cut ratios), never on the scores that the
experiments report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb import paper
from btcnb.data.address_graph import AddressGraph
from btcnb.data.transactions import SCRIPT_TYPES, Transactions
from btcnb.gates import choice, instance
from btcnb.theory.homophily import PAPER_BANDS, Endpoints, cut_ratio, cut_ratio_by_size

IntArray = npt.NDArray[np.int64]
Reading = Literal["incident", "induced"]

ENDPOINTS: dict[str, Endpoints] = {"incident": "either", "induced": "both"}
"""Two readings of the paper's "restricted to subgraphs of size 10–100", by which ends of an edge must lie in one."""

FINAL_SEQUENCES = (0xFFFFFFFE, 0xFFFFFFFF)
"""Sequence numbers that do not signal replace-by-fee (BIP 125)."""

TARGET_OUTPUTS = {"1": 0.139, "2": 0.758, "3+": 0.103}
"""Share of transactions with one, two, more outputs (91.1 M, 494.6 M and 67.0 M transactions)."""
TARGET_INPUTS_OF_TWO_OUTPUT = {"1": 0.788, "2": 0.136, "3+": 0.076}
"""Of two-output transactions outside the ground truth: share with one, two, more inputs."""
TARGET_FINGERPRINTS = {"version 1": 0.807, "locktime": 0.246, "rbf": 0.062, "segwit": 0.271}
"""Of the same transactions: share of version 1, with a lock time, signalling RBF, spending a SegWit coin."""
TARGET_DIRECT_REUSE = 103.3 / 494.6
"""Of two-output transactions: share that pays an input address back (change revealed by address reuse)."""

_OF_TWO = "of 2-output transactions: "
_QUANTITIES = (
    *(f"transactions with {number}, %" for number in ("1 output", "2 outputs", "more outputs")),
    *(f"{_OF_TWO}{number}, %" for number in ("1 input", "2 inputs", "more inputs")),
    *(f"{_OF_TWO}{mark}, %" for mark in ("version 1", "locktime set", "replace-by-fee", "SegWit")),
)
CHAIN_TARGETS: dict[str, float] = {
    quantity: round(100 * share, 1)
    for quantity, share in zip(
        _QUANTITIES,
        [*TARGET_OUTPUTS.values(), *TARGET_INPUTS_OF_TWO_OUTPUT.values(), *TARGET_FINGERPRINTS.values()],
        strict=True,
    )
}
"""The same shares in %, named as `chain_shares` names them. Published for the real chain up to block 689,256 (Möser and
Narayanan's public notebooks): output counts over all transactions, the rest over the two-output transactions outside
their ground truth (309.7 of 494.6 million)."""


def calibration(
    graphs: AddressGraph | Mapping[str, AddressGraph],
    chain: Transactions | None = None,
    reading: Reading = "induced",
) -> pd.DataFrame:
    """One row per structural target: `quantity`, `about`, `paper_low`, `paper_high`, and what we measure.

    graphs: one graph or several by name. `ours` is their median, `ours_low` and `ours_high` are their range.
    chain:  the transactions before sampling, for the shares that are published for the whole chain.
    `inside` says whether `ours` lies in the paper's range, widened by a tenth where the paper gives a single value.
    """
    if not isinstance(graphs, Mapping):
        graphs = {"graph": graphs}
    for name, graph in graphs.items():
        instance(f"graphs[{name!r}]", graph, AddressGraph)
    measured = pd.DataFrame({name: graph_structure(graph, reading) for name, graph in graphs.items()})
    targets = _graph_targets()
    rows = [
        _row(quantity, "graph", targets[quantity], measured.loc[quantity].to_numpy(dtype=np.float64))
        for quantity in measured.index
    ]
    if chain is not None:
        instance("chain", chain, Transactions)
        shares = chain_shares(chain)
        rows += [
            _row(quantity, "chain", (value, value), np.array([shares[quantity]]))
            for quantity, value in CHAIN_TARGETS.items()
        ]
    return pd.DataFrame(rows)


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


def chain_shares(txs: Transactions) -> dict[str, float]:
    """The shares of `CHAIN_TARGETS` (in %), over all transactions that are no coinbase."""
    instance("txs", txs, Transactions)
    ordinary = ~txs.transactions["is_coinbase"].to_numpy()
    outputs = np.diff(txs.output_offsets())
    inputs = np.diff(txs.input_offsets())
    two = ordinary & (outputs == 2)
    values: list[npt.NDArray[Any]] = [
        *((outputs == 1, outputs == 2, outputs > 2)),
        *((inputs == 1, inputs == 2, inputs > 2)),
        txs.transactions["version"].to_numpy() == 1,
        txs.transactions["lock_time"].to_numpy() > 0,
        any_input(txs, ~np.isin(txs.inputs["sequence"].to_numpy(), FINAL_SEQUENCES)),
        has_witness(txs),
    ]
    return {
        quantity: 100 * float(flag[ordinary if position < 3 else two].mean()) if two.any() else float("nan")
        for position, (quantity, flag) in enumerate(zip(CHAIN_TARGETS, values, strict=True))
    }


def any_input(txs: Transactions, flag: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Per transaction: whether the flag (one per input row) is set for any of its inputs."""
    found = np.zeros(len(txs), dtype=bool)
    found[txs.inputs["tx"].to_numpy()[flag]] = True
    return found


def has_witness(txs: Transactions) -> npt.NDArray[np.bool_]:
    """A SegWit input shows by its script type; one wrapped in a script hash only by bytes that weigh less."""
    types = [position for position, name in enumerate(SCRIPT_TYPES) if name.startswith("witness")]
    lighter = (txs.transactions["size"] > txs.transactions["virtual_size"]).to_numpy()
    return lighter | any_input(txs, np.isin(txs.inputs["script_type"].to_numpy(), types))


def _band(low: int, high: int) -> str:
    return f"cut ratio clusters {low}-{high}, %"


def _graph_targets() -> dict[str, tuple[float, float]]:
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


def _row(quantity: str, about: str, target: tuple[float, float], values: npt.NDArray[np.float64]) -> dict[str, Any]:
    known = values[~np.isnan(values)]
    ours = float(np.median(known)) if len(known) else float("nan")
    low, high = target
    slack = 0.1 * abs(low) if low == high else 0.0
    return {
        "quantity": quantity,
        "about": about,
        "paper_low": low,
        "paper_high": high,
        "ours": ours,
        "ours_low": float(known.min()) if len(known) else float("nan"),
        "ours_high": float(known.max()) if len(known) else float("nan"),
        "inside": low - slack <= ours <= high + slack,
    }
