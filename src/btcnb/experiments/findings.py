"""Five findings of the book: questions, and the numbers that answer them, computed from the records of the sweeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pandas as pd
from scipy import stats

from btcnb.digits import evidence as number
from btcnb.errors import DataError
from btcnb.experiments.records import NOT_RUN, SCORES, by_seed, newest, printed
from btcnb.experiments.selection import PAPER, Candidate, by_factors, difference
from btcnb.paper.stats import FEWEST_SEEDS, Estimate, estimate
from btcnb.paper.words import shown

Read = Callable[[str], "pd.DataFrame | None"]
"""Gives the records of a grid by its name, or None."""
DEFAULT = "gat"
Finding = tuple[str, str]
"""A question, and the numbers that answer it."""


def findings(read: Read) -> list[Finding]:
    """The five findings, from the grids `ablation` and `refinement`."""
    runs = newest(read("ablation"))
    return [
        ("How pure are the trees of the default GAT?", level(runs)),
        ("What is training worth? Trained minus untrained", gap(runs, DEFAULT, "untrained")),
        ("What is symmetrisation worth? Symmetrised minus directed", gap(runs, DEFAULT, "directed")),
        ("What does the paper's refinement change in the ARI by owners?", along_disorder(read("refinement"))),
        ("Do the rows of Table 1 stand in the paper's order? Spearman's correlation", order(runs)),
    ]


def level(runs: pd.DataFrame, metric: str = "DP") -> str:
    """The default GAT's score with its interval, and the paper's."""
    ours = by_seed(runs, DEFAULT, metric)
    if len(ours) < FEWEST_SEEDS:
        return NOT_RUN
    theirs = number(_printed(DEFAULT, metric))
    return (
        f"{metric} {shown(estimate(ours.to_numpy()), signed=False)} over {len(ours)} simulated worlds; paper: {theirs}"
    )


def gap(runs: pd.DataFrame, row: str, against: str) -> str:
    """Two rows of Table 1, world by world: the difference in each score, and the paper's."""
    found = {metric: (by_seed(runs, row, metric) - by_seed(runs, against, metric)).dropna() for metric in SCORES}
    seeds = min(map(len, found.values()))
    if seeds < FEWEST_SEEDS:
        return NOT_RUN
    ours = [f"{metric} {shown(estimate(values.to_numpy()))}" for metric, values in found.items()]
    theirs = [number(_printed(row, metric) - _printed(against, metric), True) for metric in SCORES]
    return f"{', '.join(ours)} over {seeds} simulated worlds; paper: {', '.join(theirs)}"


def along_disorder(records: pd.DataFrame | None, refined: Candidate = PAPER) -> str:
    """What a way to refine changes in the ARI by owners, by disorder (1 is calibrated)."""
    try:
        found = difference(by_factors(records), refined, Candidate())
    except DataError:
        return NOT_RUN
    found = found[found["worlds"] >= FEWEST_SEEDS]
    told = [
        f"disorder {disorder:g}: {shown(Estimate(mean, low, high, int(worlds)))}"
        for disorder, mean, low, high, worlds in found[["disorder", "mean", "low", "high", "worlds"]]
        .to_numpy()
        .tolist()
    ]
    return "; ".join(told) or NOT_RUN


def order(runs: pd.DataFrame) -> str:
    """Spearman's correlation of our rows with the paper's, world by world, for each score."""
    told = []
    for metric in SCORES:
        found, rows = orders(runs, metric)
        if len(found) >= FEWEST_SEEDS:
            mean = estimate(found)
            within = replace(mean, low=max(mean.low, -1.0), high=min(mean.high, 1.0))  # no correlation is beyond
            told.append(f"{metric} {shown(within, signed=False)}, {rows} rows")
    return "; ".join(told) or NOT_RUN


def orders(runs: pd.DataFrame, metric: str) -> tuple[list[float], int]:
    """The correlation in every world that has all rows which the paper prints and we have run, and how many rows."""
    lines = printed("ablation")
    theirs = lines[lines["metric"] == metric].dropna(subset="mean").set_index("row")["mean"]
    columns = {row: by_seed(runs, str(row), metric) for row in theirs.index}
    ours = pd.DataFrame({row: values for row, values in columns.items() if len(values) >= FEWEST_SEEDS}).dropna()
    if ours.shape[1] < FEWEST_SEEDS:
        return [], 0
    beside = theirs[ours.columns].to_numpy()
    found = [float(stats.spearmanr(line, beside).statistic) if line.std() > 0 else 0.0 for line in ours.to_numpy()]
    return found, ours.shape[1]


def _printed(row: str, metric: str) -> float:
    lines = printed("ablation")
    return float(lines.loc[(lines["row"] == row) & (lines["metric"] == metric), "mean"].iloc[0])
