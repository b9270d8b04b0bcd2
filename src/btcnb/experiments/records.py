"""Records of sweeps as tables: means with intervals, differences seed by seed, the paper's numbers beside ours.

A frame is what `results/sweeps/GRID.jsonl` holds, one record a line; `newest` takes the finished runs of it. Tables
come in long form: row, metric, mean, sd, low, high, n. What has not been run, or in fewer than three worlds, is NaN
there and "not yet run" in a cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from btcnb.paper import table as paper_table
from btcnb.paper.stats import FEWEST_SEEDS, Estimate, by_seed, estimate, newest
from btcnb.paper.words import shown

__all__ = [
    "NONE",
    "NOT_RUN",
    "SCORES",
    "beside_the_paper",
    "by_seed",
    "cell",
    "differences",
    "estimates",
    "label",
    "newest",
    "printed",
    "progress",
    "rank_agreement",
    "spread",
    "with_intervals",
    "worlds",
]

SCORES = ("DP", "NMI", "ARI")
NOT_RUN = "not yet run"
NONE = "–"
WHOLE = 20
"""Numbers from here on are shown without decimals."""
COLUMNS = ["row", "metric", "mean", "sd", "low", "high", "n"]
_MODELS = {
    "Louvain": "louvain",
    "Leiden": "leiden",
    "Random GAT": "untrained",
    "GAE": "gae",
    "DGI": "dgi",
    "GCN": "gcn",
    "GraphSAGE": "sage",
}
"""Rows of the paper's Table 1 that are no variation of the GAT, and their names in the grid `ablation`."""
_KEYS = {"embedding_dim": "dimension", "alpha": "alpha", "negatives": "p"}


def estimates(frame: pd.DataFrame, rows: Iterable[str], metrics: Sequence[str] = SCORES) -> pd.DataFrame:
    """A line for each row and metric: mean, sd over seeds, 95 % interval, n; NaN below three seeds."""
    lines = [(row, metric, *_estimated(by_seed(frame, row, metric))) for row in rows for metric in metrics]
    return pd.DataFrame(lines, columns=COLUMNS)


def differences(frame: pd.DataFrame, pairs: Iterable[tuple[str, str]], metrics: Sequence[str] = SCORES) -> pd.DataFrame:
    """A line for each pair (row, against) and metric: the difference, seed by seed; `against` is a column too."""
    lines = [
        (row, metric, *_estimated((by_seed(frame, row, metric) - by_seed(frame, against, metric)).dropna()), against)
        for row, against in pairs
        for metric in metrics
    ]
    return pd.DataFrame(lines, columns=[*COLUMNS, "against"])


def _estimated(values: pd.Series[float]) -> tuple[float, float, float, float, int]:
    """(mean, sd, low, high, n)."""
    if len(values) < FEWEST_SEEDS:
        return (np.nan, np.nan, np.nan, np.nan, len(values))
    found = estimate(values.to_numpy(dtype=float))
    return (found.mean, float(values.std(ddof=1)), found.low, found.high, found.count)


def with_intervals(lines: pd.DataFrame, signed: bool = True) -> pd.DataFrame:
    """Lines of `estimates` or `differences` as cells `−0.101 (−0.150 to −0.052)`: a line for each row (and `against`),
    a column for each metric, both in the order of the lines."""
    cells = [
        shown(Estimate(line["mean"], line["low"], line["high"], int(line["n"])), signed)
        if np.isfinite(line["mean"])
        else NOT_RUN
        for line in lines.to_dict("records")
    ]
    keys = [name for name in ("row", "against") if name in lines.columns]
    wide = lines.assign(cell=cells).pivot(index=keys, columns="metric", values="cell")  # noqa: PD010
    wide = wide.reindex(index=pd.Index(lines[keys[0]].unique())) if len(keys) == 1 else wide.reindex(
        pd.MultiIndex.from_frame(lines[keys].drop_duplicates())
    )  # fmt: skip
    return wide.reindex(columns=lines["metric"].unique()).rename_axis(columns=None).reset_index(names=keys)


def spread(estimated: pd.DataFrame, row: str, metric: str) -> str:
    """`0.771 ± 0.004`: mean and sd; "not yet run", or – where the row has other scores and not this one."""
    lines = estimated[estimated["row"] == row]
    line = lines[lines["metric"] == metric]
    if len(line) == 1 and np.isfinite(line["mean"].iloc[0]):
        form = "{:,.0f} ± {:,.0f}" if abs(line["mean"].iloc[0]) >= WHOLE else "{:.3f} ± {:.3f}"
        return form.format(line["mean"].iloc[0], line["sd"].iloc[0])
    others = np.isfinite(lines["mean"].to_numpy(dtype=float)).any()
    return NONE if others and (line.empty or line["n"].iloc[0] == 0) else NOT_RUN


def cell(frame: pd.DataFrame, row: str, metric: str, form: str = "{:.1f}") -> str:
    """`61.2 ± 1.3`: mean over worlds and half the width of its 95 % interval; "not yet run" below three worlds."""
    values = by_seed(frame, row, metric)
    if len(values) < FEWEST_SEEDS:
        ran = len(frame) and (frame["row"] == row).sum() >= FEWEST_SEEDS
        return NONE if ran else NOT_RUN
    found = estimate(values.to_numpy())
    return f"{form.format(found.mean)} ± {form.format(found.high - found.mean)}"


def worlds(frame: pd.DataFrame, rows: Iterable[str]) -> str:
    """In how many worlds the given rows have been run, in words for a caption: "5", or "3 to 5"."""
    counts = frame.groupby("row")["seed"].nunique().reindex(list(rows), fill_value=0)
    low, high = (int(counts.min()), int(counts.max())) if len(counts) else (0, 0)
    return f"{low}" if low == high else f"{low} to {high}"


def rank_agreement(frame: pd.DataFrame, rows: Sequence[str], metric: str, other: str) -> dict[str, str]:
    """Whether two metrics rank rows alike, as cells: Kendall's τ over worlds (mean, least to largest) and the best row
    by either, of the rows that both metrics know."""
    from scipy import stats

    means = estimates(frame, rows, (metric, other)).pivot(index="row", columns="metric", values="mean").dropna()  # noqa: PD010
    kept = [row for row in rows if row in means.index]
    means = means.loc[kept]
    if len(kept) < FEWEST_SEEDS:
        return {
            "rows": str(len(kept)),
            "Kendall's τ": NOT_RUN,
            f"best by {metric}": NOT_RUN,
            f"best by {other}": NOT_RUN,
        }
    sides = [pd.concat({row: by_seed(frame, row, name) for row in kept}, axis=1).dropna() for name in (metric, other)]
    seeds = sides[0].index.intersection(sides[1].index)
    taus = [float(stats.kendalltau(sides[0].loc[seed], sides[1].loc[seed]).statistic) for seed in seeds] or [np.nan]
    tau = f"{np.mean(taus):.2f} ({min(taus):.2f} to {max(taus):.2f})".replace("-", "−")
    best = {f"best by {name}": str(means[name].idxmax()) for name in (metric, other)}
    return {"rows": str(len(kept)), "Kendall's τ": tau, **best}


def grid_row(model: str, symmetrised: str, edge_features: str, landmarks: float) -> str:
    """What the grid `ablation` calls a row of the paper's Table 1."""
    if model in _MODELS:
        return _MODELS[model]
    parts = ["gat" if symmetrised == "yes" else "directed"]
    parts += ["edges"] if edge_features == "yes" else []
    parts += [f"{landmarks:g}"] if landmarks else []
    return " ".join(parts)


def printed(name: str) -> pd.DataFrame:
    """A table of the paper (ablation, embedding_dim, alpha, negatives) in the form of `estimates`.

    A printed score has a mean and an sd; low and high are NaN: over seeds on one graph they say another thing.
    """
    table = paper_table(name)
    if name == "ablation":
        keys = ["model", "symmetrised", "edge_features", "landmarks"]
        rows = [grid_row(*entry) for entry in table[keys].itertuples(index=False)]
    else:
        rows = [f"{value:g}" for value in table[_KEYS[name]]]
    lines = [
        (row, metric, entry[metric], entry[f"{metric}_sd"], np.nan, np.nan, 5 if pd.notna(entry[metric]) else 0)
        for row, (_, entry) in zip(rows, table.iterrows(), strict=True)
        for metric in SCORES
    ]
    return pd.DataFrame(lines, columns=COLUMNS)


def label(row: str) -> str:
    """A row of the grids in words: `directed edges 64` is “GAT, directed, edges, 64 landmarks”."""
    words = row.split()
    if words and words[0] in ("gat", "directed"):
        parts = ["GAT" if words[0] == "gat" else "GAT, directed"]
        parts += ["edges"] if "edges" in words else []
        parts += [f"{word} landmarks" for word in words if word.isdigit()]
        return ", ".join(parts)
    names = {name: model for model, name in _MODELS.items()} | {"untrained": "GAT, untrained"}
    short = {"gcn wide": "GCN, wide", "sage wide": "GraphSAGE, wide", "mlp": "MLP", "untrained mlp": "MLP, untrained"}
    return (names | short | {"untrained directed": "GAT, directed, untrained"}).get(row, row)


def beside_the_paper(ours: pd.DataFrame, theirs: pd.DataFrame, labels: Mapping[str, str]) -> pd.DataFrame:
    """The paper's mean ± sd beside ours, a line for each row in `labels`, which says what the row is called."""
    lines = []
    for row, name in labels.items():
        line = {"": name}
        for metric in SCORES:
            line[f"{metric}, paper"] = spread(theirs, row, metric)
            line[f"{metric}, ours"] = spread(ours, row, metric)
        lines.append(line)
    return pd.DataFrame(lines)


HOURS = "core time (h)"


def progress(grids: Mapping[str, tuple[pd.DataFrame | None, Sequence[str]]], seeds: int) -> pd.DataFrame:
    """How far each grid is: rows with enough seeds to be judged, runs done, their core time, date of the last run.

    Core time: seconds from the start to the end of each run, one thread per run, summed.
    """
    lines = []
    for name, (frame, rows) in grids.items():
        done = newest(frame)
        mine = done[done["row"].isin(list(rows))]
        counts = mine.groupby("row")["seed"].nunique().reindex(list(rows), fill_value=0)
        judged = int((counts >= FEWEST_SEEDS).sum())
        last = str(done["made"].max())[:16].replace("T", " ") if "made" in done.columns and len(done) else NONE
        hours = float(mine["seconds"].sum()) / 3600 if "seconds" in mine.columns else np.nan
        lines.append((name, f"{judged} of {len(counts)}", f"{counts.sum()} of {len(counts) * seeds}", hours, last))
    return pd.DataFrame(lines, columns=["grid", "rows with enough worlds", "runs", HOURS, "last run (UTC)"])
