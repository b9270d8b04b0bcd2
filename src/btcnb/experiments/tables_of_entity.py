"""Records of the grid `entity` as the tables of chapter 14: the paper's Table 2 beside ours, the dial, the controls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple

import numpy as np
import pandas as pd

from btcnb.experiments.local import PAPER_CUTS, PAPER_LINKAGES
from btcnb.experiments.records import NONE, NOT_RUN, by_seed
from btcnb.paper import table as paper_table
from btcnb.paper.stats import FEWEST_SEEDS, estimate

SCORES = ("TP", "FP", "FN", "TN", "bACC", "F1")
TABLE_ROW = "trained 1"
"""The row of the grid that has the whole table."""
DISORDERS = (0.0, 0.5, 1.0, 2.0)
MODELS = {"heuristics": "Heuristics", "moser": "Moser-Narayanan", "gnn": "GNN-HAC", "hybrid": "Hybrid"}
READINGS = {"inconsistency": "inconsistency (coefficients)", "inconsistency-height": "inconsistency (heights)"}


def clusterings() -> tuple[str, ...]:
    """Every row of our table, in the paper's order: `heuristics`, `moser`, `gnn.average.silhouette`, …"""
    ways = [f"{kind}.{linkage}.{cut}" for kind in ("gnn", "hybrid") for linkage in PAPER_LINKAGES for cut in PAPER_CUTS]
    return ("heuristics", "moser", *ways)


def in_words(name: str) -> str:
    """`hybrid.average.gap` is “Hybrid, average, gap”."""
    model, *way = name.split(".")
    return ", ".join([MODELS[model].replace("Moser-", "Möser–"), *(READINGS.get(part, part) for part in way)])


def printed(name: str, score: str) -> float:
    """What the paper's Table 2 has for a row of ours, NaN where it has none; both readings of a cut are its one row."""
    model, *way = name.split(".")
    frame = paper_table("entity_labels")
    frame = frame[frame["model"] == MODELS[model]]
    if way:
        cut = "inconsistency" if way[1] in READINGS else way[1]
        frame = frame[(frame["linkage"] == way[0]) & (frame["cut"] == cut)]
    return float(frame[score].iloc[0]) if len(frame) == 1 else float("nan")


def table_two(frame: pd.DataFrame, scores: Sequence[str] = SCORES) -> pd.DataFrame:
    """The paper's Table 2 and ours, two lines a clustering: what the paper prints, and below it our mean over worlds ±
    half its 95 % interval.

    What has not been run is …; a clustering that the paper does not have has one line.
    """
    lines = []
    for name in clusterings():
        theirs = {score: printed(name, score) for score in scores}
        head = in_words(name)
        if not np.isnan(list(theirs.values())).all():
            cells = {score: NONE if np.isnan(value) else f"{value:.1f}" for score, value in theirs.items()}
            lines.append({"": head, "of": "paper"} | cells)
            head = ""
        mine = {score: ours(frame, name, score).replace(NOT_RUN, "…") for score in scores}
        lines.append({"": head, "of": "ours"} | mine)
    return pd.DataFrame(lines)


def ours(frame: pd.DataFrame, name: str, score: str, row: str = TABLE_ROW) -> str:
    """`61.2 ± 1.3`: mean over worlds and half the width of its 95 % interval; "not yet run" below three worlds."""
    values = by_seed(frame, row, f"{name}.{score}")
    if len(values) < FEWEST_SEEDS:
        return NOT_RUN
    found = estimate(values.to_numpy())
    return f"{found.mean:.1f} ± {found.high - found.mean:.1f}"


def dial(frame: pd.DataFrame, first: str, second: str, encoder: str = "trained") -> pd.DataFrame:
    """The difference of two metrics of a run along the dial, paired by world: disorder, mean, low, high, worlds."""
    lines = []
    for disorder in DISORDERS:
        row = f"{encoder} {disorder:g}"
        gap = (by_seed(frame, row, first) - by_seed(frame, row, second)).dropna()
        lines.append((disorder, *astuple(estimate(gap.to_numpy()))))
    return pd.DataFrame(lines, columns=["disorder", "mean", "low", "high", "worlds"])


def levels(frame: pd.DataFrame, metric: str, encoder: str = "trained") -> pd.DataFrame:
    """A metric along the dial: disorder, mean, low, high, worlds."""
    lines = []
    for disorder in DISORDERS:
        values = by_seed(frame, f"{encoder} {disorder:g}", metric)
        lines.append((disorder, *astuple(estimate(values.to_numpy()))))
    return pd.DataFrame(lines, columns=["disorder", "mean", "low", "high", "worlds"])


def gain_words(table: pd.DataFrame) -> str:
    """What `dial` says in words; nothing of a disorder with fewer than three worlds."""
    known = table[table["worlds"] >= FEWEST_SEEDS]
    if known.empty:
        return f"is {NOT_RUN}"
    up = known.loc[known["low"] > 0, "disorder"]
    down = known.loc[known["high"] < 0, "disorder"]
    parts = [f"clearly gains at disorder {_listed(up)}"] if len(up) else []
    parts += [f"clearly loses at disorder {_listed(down)}"] if len(down) else []
    return " and ".join(parts) or "neither clearly gains nor clearly loses anywhere on the dial"


def _listed(values: pd.Series[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)
