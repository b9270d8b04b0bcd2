"""Records of sweeps as the tables of the chapters: the paper's rows beside ours, differences seed by seed, costs.

A frame is what `results/sweeps/GRID.jsonl` holds, one record a line. Whatever has not been run yet is NaN here and
"not yet run" in a cell: a page can be made at any time while a sweep runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from btcnb import gates
from btcnb.errors import ParameterError
from btcnb.paper import table as paper_table
from btcnb.paper.records import FEWEST_SEEDS
from btcnb.paper.statistics import estimate

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


def newest(*frames: pd.DataFrame | None) -> pd.DataFrame:
    """The finished runs of some grids, the newest of each row and seed; without any, an empty table.

    Grids that have a row of the same name are refused: their runs could not be told apart.
    """
    kept = []
    for frame in frames:
        if frame is None or gates.instance("frame", frame, pd.DataFrame).empty:
            continue
        done = frame[frame["state"] == "done"] if "state" in frame.columns else frame
        done = done.assign(row=done["row"].astype(str))
        kept.append(done.drop_duplicates(["row", "seed"], keep="last"))
    names = [row for frame in kept for row in frame["row"].unique()]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ParameterError(f"two of the grids have a row {twice[0]!r:.80}; take them one at a time.")
    return pd.concat(kept, ignore_index=True) if kept else pd.DataFrame({"row": [], "seed": []})


def by_seed(frame: pd.DataFrame, row: str, metric: str) -> pd.Series[float]:
    """The metric of a row for each seed that has a number; `A - B` is the difference of two metrics of a run."""
    first, _, less = metric.partition(" - ")
    found = _column(frame, row, first)
    return (found - _column(frame, row, less) if less else found).dropna()


def _column(frame: pd.DataFrame, row: str, metric: str) -> pd.Series[float]:
    if metric not in frame.columns:
        return pd.Series(dtype=float)
    runs = frame.loc[frame["row"] == row, ["seed", metric]].set_index("seed")
    values = pd.to_numeric(runs[metric], errors="coerce").astype(float)
    return values.replace([np.inf, -np.inf], np.nan)


def estimates(frame: pd.DataFrame, rows: Iterable[str], metrics: Sequence[str] = SCORES) -> pd.DataFrame:
    """A line for each row and metric: mean, sd over seeds, 95 % interval, n; NaN below three seeds."""
    lines = [(row, metric, by_seed(frame, row, metric)) for row in rows for metric in metrics]
    return pd.DataFrame([(row, metric, *_estimated(values)) for row, metric, values in lines], columns=COLUMNS)


def differences(frame: pd.DataFrame, pairs: Iterable[tuple[str, str]], metrics: Sequence[str] = SCORES) -> pd.DataFrame:
    """A line for each pair (row, against) and metric: the difference, seed by seed; `against` is a column too."""
    lines = []
    for row, against in pairs:
        for metric in metrics:
            values = (by_seed(frame, row, metric) - by_seed(frame, against, metric)).dropna()
            lines.append((row, metric, *_estimated(values), against))
    return pd.DataFrame(lines, columns=[*COLUMNS, "against"])


def _estimated(values: pd.Series[float]) -> tuple[float, float, float, float, int]:
    """(mean, sd, low, high, n)."""
    n = len(values)
    if n < FEWEST_SEEDS:
        return (np.nan, np.nan, np.nan, np.nan, n)
    found = estimate(values.to_numpy(dtype=float))
    return (found.mean, float(values.std(ddof=1)), found.low, found.high, n)


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
    table = paper_table(gates.choice("name", name, ("ablation", *_KEYS)))
    if name == "ablation":
        keys = ("model", "symmetrised", "edge_features", "landmarks")
        rows = [grid_row(*entry) for entry in table[list(keys)].itertuples(index=False)]
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


FAMILIES = ("communities", "no labels", "GAT, directed", "GAT", "GCN, GraphSAGE", "controls")


def family(row: str) -> str:
    """The family that a row of the grids `ablation` and `controls` belongs to, one of `FAMILIES`."""
    known = {"louvain": 0, "leiden": 0, "untrained": 1, "gae": 1, "dgi": 1, "gcn": 4, "sage": 4}
    first = row.split(" ")[0]
    return FAMILIES[known.get(row, {"directed": 2, "gat": 3}.get(first, 5))]


def side_by_side(ours: pd.DataFrame, theirs: pd.DataFrame, labels: Mapping[str, str]) -> pd.DataFrame:
    """The paper's mean ± sd beside ours, a line for each row in `labels`, which says what the row is called."""
    lines = []
    for row, name in labels.items():
        line = {"": name}
        for metric in SCORES:
            line[f"{metric}, paper"] = spread(theirs, row, metric)
            line[f"{metric}, ours"] = spread(ours, row, metric)
        lines.append(line)
    return pd.DataFrame(lines)


def spread(estimated: pd.DataFrame, row: str, metric: str) -> str:
    """`0.771 ± 0.004`; "not yet run", or – where the row has other scores and not this one."""
    lines = estimated[estimated["row"] == row]
    line = lines[lines["metric"] == metric]
    if len(line) == 1 and np.isfinite(line["mean"].iloc[0]):
        form = "{:,.0f} ± {:,.0f}" if abs(line["mean"].iloc[0]) >= WHOLE else "{:.3f} ± {:.3f}"
        return form.format(line["mean"].iloc[0], line["sd"].iloc[0])
    others = np.isfinite(lines["mean"].to_numpy(dtype=float)).any()
    return NONE if others and (line.empty or line["n"].iloc[0] == 0) else NOT_RUN


def level(frame: pd.DataFrame, row: str, metric: str) -> str:
    """As `spread`; where there are too few worlds for one, their mean alone: it has no interval and judges nothing."""
    values = by_seed(frame, row, metric)
    if 0 < len(values) < FEWEST_SEEDS:
        return f"{values.mean():.3f}"
    return spread(estimates(frame, [row], (metric,)), row, metric)


def worlds(frame: pd.DataFrame, rows: Iterable[str]) -> str:
    """In how many worlds the given rows have been run, in words for a caption: "5", or "3 to 5"."""
    wanted = list(rows)
    counts = frame[frame["row"].isin(wanted)].groupby("row")["seed"].nunique().reindex(wanted, fill_value=0)
    low, high = (int(counts.min()), int(counts.max())) if len(counts) else (0, 0)
    return f"{low}" if low == high else f"{low} to {high}"


HOURS = "core time (h)"


def progress(grids: Mapping[str, tuple[pd.DataFrame | None, Sequence[str]]], seeds: int) -> pd.DataFrame:
    """How far each grid is: rows with enough seeds to be judged, runs done, their core time, date of the last run.

    Core time: seconds from the start to the end of each run, one thread per run, summed.
    """
    lines = []
    for name, (frame, rows) in grids.items():
        done = newest(frame)
        counts = done.groupby("row")["seed"].nunique().reindex(list(rows), fill_value=0)
        judged = int((counts >= FEWEST_SEEDS).sum())
        last = str(done["made"].max())[:16].replace("T", " ") if "made" in done.columns and len(done) else NONE
        runs = f"{int(counts.sum())} of {len(counts) * seeds}"
        mine = done[done["row"].isin(list(rows))]
        hours = float(mine["seconds"].sum()) / 3600 if "seconds" in mine.columns else np.nan
        lines.append((name, f"{judged} of {len(counts)}", runs, hours, last))
    return pd.DataFrame(lines, columns=["grid", "rows with enough worlds", "runs", HOURS, "last run (UTC)"])


def costs(frame: pd.DataFrame, row: str = "") -> pd.DataFrame:
    """Stages of a row's runs: mean seconds, and the highest peak of memory (resident, of the whole process) in MB.

    row: all rows if left out
    """
    runs = (frame[frame["row"] == row] if row else frame).dropna(axis=1, how="all")
    stages = [name.removeprefix("seconds.") for name in runs.columns if name.startswith("seconds.")]
    lines = [
        (
            stage,
            float(runs[f"seconds.{stage}"].mean()),
            float(runs[f"peak_mb.{stage}"].max()) if f"peak_mb.{stage}" in runs.columns else np.nan,
        )
        for stage in STAGES
        if stage in stages
    ]
    return pd.DataFrame(lines, columns=["stage", "seconds", "peak MB"])


STAGES = ("graphs", "train", "embed", "coarse", "linkage", "cut", "scores", "refine", "thorough")
"""In the order in which they run; `evaluate` is the sum of linkage, cut and scores, so it is left out."""
