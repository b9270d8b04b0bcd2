"""Five findings of the book, each a sentence with intervals, computed from the records of the sweeps.

A finding whose runs are missing says "not yet run"; none of them is typed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy import stats

from btcnb.errors import DataError
from btcnb.experiments.choosing import NOTHING, PAPER, Candidate, choose, difference, tidy
from btcnb.experiments.tables_of_sweeps import NOT_RUN, SCORES, by_seed, differences, estimates, newest, printed
from btcnb.experiments.words_of_sweeps import direction, listed
from btcnb.paper.records import FEWEST_SEEDS
from btcnb.paper.rules import shown
from btcnb.paper.statistics import Estimate, estimate
from btcnb.paper.words import number

Read = Callable[[str], "pd.DataFrame | None"]
"""Gives the records of a grid by its name, or None."""
DEFAULT = "gat"
CALIBRATED = 1.0
"""The disorder at which the simulated heuristics fail as often as the paper's."""


@dataclass(frozen=True)
class Headline:
    """A question, and what the records answer."""

    question: str
    finding: str


def headlines(read: Read) -> list[Headline]:
    """The five findings, from the grids `ablation` and `refinement`."""
    runs = newest(read("ablation"))
    return [
        Headline("How pure are the trees of the default GAT?", level(runs)),
        Headline("What is training worth?", gap(runs, DEFAULT, "untrained", "Trained minus untrained")),
        Headline("What is symmetrisation worth?", gap(runs, DEFAULT, "directed", "Symmetrised minus directed")),
        Headline("Along the dial of disorder, where does the paper's refinement pay?", dial(read("refinement"))),
        Headline("Do the rows of Table 1 stand in the paper's order?", order(runs)),
    ]


def level(runs: pd.DataFrame, metric: str = "DP") -> str:
    """The default GAT's score with its interval, and on which side of it the paper's lies."""
    ours = estimates(runs, [DEFAULT], (metric,)).iloc[0]
    theirs = _printed(DEFAULT, metric)
    if not np.isfinite(ours["mean"]):
        return f"{metric} of the default GAT: {NOT_RUN}; the paper prints {number(theirs)}."
    side = "above" if theirs > ours["high"] else "below" if theirs < ours["low"] else "inside"
    return (
        f"{metric} {shown(_estimate(ours), signed=False)} over {int(ours['n'])} simulated worlds; the paper's "
        f"{number(theirs)} lies {side} that interval."
    )


def gap(runs: pd.DataFrame, row: str, against: str, words: str) -> str:
    """Two rows of Table 1, world by world: the difference in each score, which way it goes, and the paper's."""
    found = differences(runs, [(row, against)])
    theirs = [f"{metric} {number(_printed(row, metric) - _printed(against, metric), True)}" for metric in SCORES]
    printed_words = f"the paper's: {', '.join(theirs)}"
    if not np.isfinite(found["mean"].to_numpy(dtype=float)).all():
        return f"{words}: {NOT_RUN}; {printed_words}."
    ours = [
        f"{line['metric']} {shown(_estimate(line))}, {direction(line['low'], line['high'])}"
        for _, line in found.iterrows()
    ]
    return (
        f"{words}, over {int(found['n'].min())} simulated worlds: {'; '.join(ours)}. As a yardstick, {printed_words}."
    )


def dial(records: pd.DataFrame | None, way: Candidate = PAPER) -> str:
    """What a way to refine changes in the ARI by owners, at the calibrated disorder, and where it pays."""
    found = _gains(records, way)
    if found.empty:
        return f"Refinement along the dial of disorder: {NOT_RUN}."
    at = found[found["disorder"] == CALIBRATED]
    here = f"at the calibrated disorder it is {NOT_RUN}"
    if len(at):
        side = direction(at["low"].iloc[0], at["high"].iloc[0])
        change = f"the ARI against simulated owners changes by {shown(_estimate(at.iloc[0]))}, {side}"
        here = f"at the calibrated disorder {change}, over {int(at['worlds'].iloc[0])} worlds"
    return f"{where(found)}; {here}."


def where(gains: pd.DataFrame) -> str:
    """At which disorders a gain is clear, and at which a loss: `Of the disorders 0, 1 and 2 it clearly pays at 2 and
    clearly harms at none`."""

    def at(chosen: pd.Series[bool]) -> str:
        return listed([f"{disorder:g}" for disorder in gains.loc[chosen, "disorder"]]) or "none"

    everything = at(gains["disorder"].notna())
    pays, harms = at(gains["low"] > 0), at(gains["high"] < 0)
    return f"Of the disorders {everything} it clearly pays at {pays} and clearly harms at {harms}"


def _gains(records: pd.DataFrame | None, way: Candidate) -> pd.DataFrame:
    """The gain over doing nothing by disorder, where enough worlds have been run."""
    try:
        found = difference(tidy(records), way, Candidate()) if records is not None else pd.DataFrame()
    except DataError:
        found = pd.DataFrame()
    return found[found["worlds"] >= FEWEST_SEEDS] if len(found) else found


def chosen(valid: pd.DataFrame | None, test: pd.DataFrame | None) -> str:
    """The way to refine that validation worlds choose, and what it does in the test worlds."""
    if valid is None or valid.empty:
        return f"A better recipe, chosen on validation worlds: {NOT_RUN}."
    best = choose(tidy(valid))
    if best.cut == NOTHING:
        return "Of all recipes that we tried, validation worlds choose to leave the heuristics as they are."
    return f"The recipe that validation worlds choose is *{best.words}*. In test worlds: {_lower(dial(test, best))}"


def _lower(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


def order(runs: pd.DataFrame) -> str:
    """Spearman's correlation of our rows with the paper's, world by world, for each score."""
    parts = []
    for metric in SCORES:
        found, rows = orders(runs, metric)
        if len(found) >= FEWEST_SEEDS:
            mean = estimate(found)
            within = replace(mean, low=max(mean.low, -1.0), high=min(mean.high, 1.0))  # no correlation is beyond
            parts.append(f"{shown(within, signed=False)} in {metric} ({rows} rows)")
    if not parts:
        return f"The order of rows: {NOT_RUN}."
    return f"Spearman's correlation with the paper, world by world, is {listed(parts)}; 1 would be the paper's order."


def orders(runs: pd.DataFrame, metric: str) -> tuple[list[float], int]:
    """The correlation in every world that has all rows which the paper prints and we have run, and how many rows."""
    lines = printed("ablation")
    lines = lines[(lines["metric"] == metric) & lines["mean"].notna()]
    theirs = {str(row): float(mean) for row, mean in zip(lines["row"], lines["mean"], strict=True)}
    columns = {row: by_seed(runs, row, metric) for row in theirs}
    ours = pd.DataFrame({row: values for row, values in columns.items() if len(values) >= FEWEST_SEEDS}).dropna()
    if ours.shape[1] < FEWEST_SEEDS:
        return [], 0
    beside = [theirs[str(row)] for row in ours.columns]
    return [_spearman(line, beside) for line in ours.to_numpy().tolist()], ours.shape[1]


def _spearman(ours: Sequence[float], theirs: Sequence[float]) -> float:
    return float(stats.spearmanr(ours, theirs).statistic) if len(set(ours)) > 1 else 0.0


def _printed(row: str, metric: str) -> float:
    lines = printed("ablation")
    return float(lines.loc[(lines["row"] == row) & (lines["metric"] == metric), "mean"].iloc[0])


def _estimate(line: pd.Series[float]) -> Estimate:
    count = line["n"] if "n" in line.index else line["worlds"]
    return Estimate(float(line["mean"]), float(line["low"]), float(line["high"]), int(count))
