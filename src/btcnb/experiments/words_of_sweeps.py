"""What the tables of the sweeps say, in words that code chooses: no chapter types an outcome."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

from btcnb.digits import number
from btcnb.experiments.tables_of_sweeps import NOT_RUN, by_seed, estimates, label
from btcnb.paper.records import FEWEST_SEEDS

HIGHER, LOWER, UNCLEAR = "clearly higher", "clearly lower", "not clearly different"
NEAR = 0.05
"""Our number is the paper's within this, as in `claims.yml`."""


def direction(low: float, high: float) -> str:
    """Which side of 0 a whole interval lies on, in words."""
    if not np.isfinite([low, high]).all():
        return NOT_RUN
    return HIGHER if low > 0 else LOWER if high < 0 else UNCLEAR


def answer(lines: pd.DataFrame) -> str:
    """Differences of one pair in words: `clearly lower in DP (−0.101) and ARI (−0.311); not clearly different in NMI
    (+0.002)`; lines of `differences`, metrics without a number left out."""
    numbers = [number(mean, "{:+.3f}").replace("-", "−") for mean in lines["mean"]]
    told = [f"{metric} ({mean})" for metric, mean in zip(lines["metric"], numbers, strict=True)]
    found = list(zip(_ways(lines), told, strict=True))
    groups = {way: [text for its, text in found if its == way] for way in (HIGHER, LOWER, UNCLEAR)}
    return "; ".join(f"{way} in {listed(texts)}" for way, texts in groups.items() if texts) or NOT_RUN


def _ways(lines: pd.DataFrame) -> list[str]:
    return [direction(low, high) for low, high in lines[["low", "high"]].to_numpy(dtype=float)]


def tally(lines: pd.DataFrame) -> pd.DataFrame:
    """For each metric, in how many rows the difference is clear, and which way; rows that have other scores and not
    this one do not count."""
    other_scores = lines.groupby("row")["n"].transform("max") > 0
    lines = lines[(lines["n"] > 0) | ~other_scores]
    counted = pd.crosstab(lines["metric"], pd.Series(_ways(lines), index=lines.index, name="way", dtype=str))
    ways = [HIGHER, UNCLEAR, LOWER, NOT_RUN]
    metrics = list(dict.fromkeys(lines["metric"]))
    counted = counted.reindex(index=metrics, columns=ways, fill_value=0)
    return counted.rename_axis(index="metric", columns=None).reset_index()


def agreement(ours: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    """Our rows against the paper's, a line a metric: rows that both have, how many of ours are near, the mean shift
    (ours minus theirs), and Spearman's correlation of the order of rows; NaN below three rows."""
    both = ours.merge(theirs, on=["row", "metric"], suffixes=("", "_paper")).dropna(subset=["mean", "mean_paper"])
    lines = []
    for metric in dict.fromkeys(ours["metric"]):
        here = both[both["metric"] == metric]
        shift = here["mean"] - here["mean_paper"]
        lines.append((metric, len(here), int((shift.abs() <= NEAR).sum()), shift.mean(), _spearman(here)))
    return pd.DataFrame(lines, columns=["metric", "rows", "within 0.05", "mean shift", "order (Spearman's ρ)"])


def _spearman(both: pd.DataFrame) -> float:
    if len(both) < FEWEST_SEEDS or both["mean"].nunique() < 2 or both["mean_paper"].nunique() < 2:
        return float("nan")
    return float(stats.spearmanr(both["mean"], both["mean_paper"]).statistic)


def two_judges(frame: pd.DataFrame, rows: Sequence[str], metric: str, other: str) -> pd.DataFrame:
    """Means of the rows that both metrics know, and their places by either (1 is best), best by `metric` first."""
    means = estimates(frame, rows, (metric, other)).set_index(["row", "metric"])["mean"]
    wide = pd.DataFrame({name: means.xs(name, level="metric") for name in (metric, other)}).dropna()
    for name in (metric, other):
        wide[f"place by {name}"] = wide[name].rank(ascending=False, method="min").astype(int)
    return wide.sort_values(metric, ascending=False).reset_index()


def judges_words(frame: pd.DataFrame, rows: Sequence[str], metric: str, other: str) -> str:
    """Whether two metrics rank the rows alike: Kendall's τ in every world, and the best row by either."""
    ranked = two_judges(frame, rows, metric, other)
    if len(ranked) < FEWEST_SEEDS:
        return f"The ranking by {metric} and by {other} is {NOT_RUN}."
    taus = _taus(frame, list(ranked["row"]), metric, other)
    first, second = ranked["row"].iloc[0], ranked.sort_values(other, ascending=False)["row"].iloc[0]
    best = (
        f"“{label(first)}” is best by both"
        if first == second
        else f"“{label(first)}” is best by {metric}, “{label(second)}” by {other}"
    )
    return (
        f"Over {len(ranked)} methods the two rankings agree with Kendall's τ of {np.mean(taus):.2f} on average over "
        f"worlds ({min(taus):.2f} to {max(taus):.2f}); by means over worlds {best}."
    )


def _taus(frame: pd.DataFrame, rows: Sequence[str], metric: str, other: str) -> list[float]:
    """Kendall's τ over the rows, one a seed that every row has."""
    sides = [pd.concat({row: by_seed(frame, row, name) for row in rows}, axis=1).dropna() for name in (metric, other)]
    seeds = sides[0].index.intersection(sides[1].index)
    return [float(stats.kendalltau(sides[0].loc[seed], sides[1].loc[seed]).statistic) for seed in seeds] or [np.nan]


def best_words(frame: pd.DataFrame, rows: Sequence[str], metric: str, name: str = "") -> str:
    """`0.2 (0.781)`: the row with the highest mean; `name` goes before it."""
    found = estimates(frame, rows, (metric,)).dropna(subset=["mean"])
    if len(found) < len(rows):
        return NOT_RUN
    best = found.sort_values("mean", ascending=False, kind="stable").iloc[0]
    return f"{name}{best['row']} ({best['mean']:.3f})"


def gained(frame: pd.DataFrame, rows: Sequence[str], metrics: Sequence[str]) -> pd.DataFrame:
    """The share of the gain from the first row to the last that each row has, in %, a line a metric.

    A share of a gain that is not clear says nothing: NaN.
    """
    lines = []
    for metric in metrics:
        means = estimates(frame, rows, (metric,))["mean"].to_numpy()
        span = means[-1] - means[0]
        change = (by_seed(frame, rows[-1], metric) - by_seed(frame, rows[0], metric)).dropna()
        shares = 100 * (means - means[0]) / span if _clear(change) else np.full(len(rows), np.nan)
        lines.append((metric, span, *shares[1:-1]))
    return pd.DataFrame(lines, columns=["metric", f"gain {rows[0]} → {rows[-1]}", *rows[1:-1]])


def _clear(change: pd.Series[float]) -> bool:
    if len(change) < FEWEST_SEEDS:
        return False
    half = stats.t.ppf(0.975, len(change) - 1) * change.std(ddof=1) / np.sqrt(len(change))
    return bool(change.mean() - half > 0)


def pairing(frame: pd.DataFrame, rows: Sequence[str], against: str, metrics: Sequence[str]) -> pd.DataFrame:
    """What pairing by world buys: the sd of `against` over worlds, and the median sd of other rows' differences."""
    lines = []
    for metric in metrics:
        own = estimates(frame, [against], (metric,))["sd"].iloc[0]
        changes = [(by_seed(frame, row, metric) - by_seed(frame, against, metric)).dropna() for row in rows]
        spreads = [float(change.std(ddof=1)) for change in changes if len(change) >= FEWEST_SEEDS]
        lines.append((metric, own, float(np.median(spreads)) if spreads else np.nan))
    return pd.DataFrame(lines, columns=["metric", "sd of the scores", "sd of the differences"])


def listed(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else list(words))
