"""Records of Möser and Narayanan's method as the tables of chapter 15: published, simulated, real side by side.

`simulated` is the frame of results/sweeps/moser.jsonl, `real` that of moser_real.jsonl. Either may be None or lack
rows: what was not recorded is NaN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from btcnb import gates
from btcnb.data.change_votes import HEURISTICS, UNIVERSAL, published_votes
from btcnb.experiments.records import by_seed, newest
from btcnb.paper import table as paper_table
from btcnb.paper import value as paper_value

Frame = pd.DataFrame | None

FOREST = "forest"
RATES = {"coverage": "remaining", "TPR": "TPR", "FPR": "FPR"}
"""What is compared of each vote, and the published column."""
STEPS = {
    "eligible": ("two outputs, none to an address of the inputs", ""),
    "one output with the senders": ("exactly one output with the senders", ""),
    "candidates": ("and both outputs spent", "ground truth candidates"),
    "not yet known": ("after all filters: the ground truth", "ground truth"),
}
"""Filters of the ground truth in words, and what the original study counts, where it does."""
SCORES = {"auc": "AUC", "accuracy": "accuracy", "choice": "right output", "tpr": "TPR at 0.99", "fpr": "FPR at 0.99"}
CLUSTERINGS = {
    "common": "common inputs",
    "heuristics": "the paper's heuristics",
    "permissive": "every only fresh output",
    "naive": "forest, naive",
    "moser": "forest, constrained",
}


def mean_of(frame: Frame, row: str, metric: str) -> float:
    """The mean of a metric over the seeds of a row; NaN where nothing was recorded."""
    values = by_seed(newest(frame), gates.text("row", row), gates.text("metric", metric))
    return float(values.mean()) if len(values) else float("nan")


def votes_beside(simulated: Frame, real: Frame) -> pd.DataFrame:
    """Per heuristic (index) and rate: `TPR published`, `TPR simulated`, `TPR real`, …, and `group`.

    coverage: share of the transactions without known change that get a vote; of fingerprints, of those with both
        outputs spent. On real blocks, rates of fingerprints against revealed change are NaN: hardly any payment has
        both outputs spent there.
    """
    theirs = published_votes()
    found = pd.DataFrame({"group": theirs["group"]}, index=theirs.index)
    for rate, column in RATES.items():
        found[f"{rate} published"] = theirs[column]
        for name, frame, row in (("simulated", simulated, FOREST), ("real", real, "all")):
            values = [mean_of(frame, row, f"votes.{each}.{_recorded(rate, each)}") for each in HEURISTICS]
            hidden = (name == "real") & (rate != "coverage") & ~theirs.index.isin(UNIVERSAL)
            found[f"{rate} {name}"] = np.where(hidden, np.nan, values)
    return found


def votes_compact(beside: pd.DataFrame) -> pd.DataFrame:
    """`votes_beside` with one column a rate: `0.133 / 0.034 / 0.003`, published, simulated and real."""
    found = pd.DataFrame({"heuristic": beside.index})
    for rate in RATES:
        cells = [beside[f"{rate} {kind}"].map("{:.3f}".format) for kind in ("published", "simulated", "real")]
        joined = cells[0] + " / " + cells[1] + " / " + cells[2]
        found[rate] = joined.str.replace("nan", "–").to_numpy()
    return found


def _recorded(rate: str, heuristic: str) -> str:
    if rate != "coverage":
        return rate
    return "remaining" if heuristic in UNIVERSAL else "remaining_spent"


def truth_beside(simulated: Frame, real: Frame, steps: Mapping[str, int]) -> pd.DataFrame:
    """How many payments each filter of the ground truth leaves; `steps` are those of one chain (`revealed_change`)."""
    lines = []
    for name, (words, published) in STEPS.items():
        lines.append(
            {
                "payments": words,
                "original study": paper_value("moser_headline", quantity=published) if published else np.nan,
                "simulated, this page": float(steps[name]),
                "simulated, a world": mean_of(simulated, FOREST, f"truth.{name}"),
                "real blocks": mean_of(real, "all", f"strict.{name}"),
            }
        )
    return pd.DataFrame(lines)


def scores_beside(simulated: Frame, real: Frame) -> pd.DataFrame:
    """Held-out scores: one line a way to find change, columns of `SCORES`; the original study's come first."""
    points = paper_table("moser_points")
    top = points[(points["model"] == FOREST) & (points["threshold"] == 0.99)].iloc[0]
    head = {
        "original study, forest": {
            "auc": paper_value("moser_headline", quantity="AUC held out"),
            "tpr": float(top["TPR"]),
            "fpr": float(top["FPR"]),
        },
        "original study, majority": {"auc": paper_value("moser_headline", quantity="AUC majority held out")},
        "the paper": {"accuracy": paper_value("text", quantity="moser accuracy") / 100},
    }
    ours: dict[str, tuple[Frame, str, str]] = {
        "simulated, forest, split by cluster": (simulated, FOREST, "forest."),
        "simulated, the same split by transaction": (simulated, FOREST, "ungrouped."),
        "simulated, universal forest": (simulated, FOREST, "universal."),
        "simulated, majority vote": (simulated, FOREST, "majority."),
        "simulated, 30,000 transactions, true change": (simulated, FOREST, "true."),
        "simulated, another economy": (simulated, FOREST, "transfer."),
        "real, forest, split by cluster": (real, FOREST, "forest."),
        "real, majority vote": (real, FOREST, "majority."),
        "real, forest taught by simulation": (real, "simulated forest", ""),
    }
    lines = {name: [values.get(score, np.nan) for score in SCORES] for name, values in head.items()}
    for name, (frame, row, prefix) in ours.items():
        lines[name] = [mean_of(frame, row, f"{prefix}{score}") for score in SCORES]
    return pd.DataFrame.from_dict(lines, orient="index", columns=list(SCORES.values())).rename_axis("").reset_index()


def clusters_beside(simulated: Frame) -> pd.DataFrame:
    """Ways to cluster the test economy: largest cluster, collapse, owners, pairs, and services in one cluster."""
    names = {
        "largest": "largest cluster",
        "in_collapsed": "in collapsed clusters",
        "most_owners": "most owners in one",
        "precision": "precision",
        "recall": "recall",
        "swallowed": "services in one cluster",
    }
    lines = [
        {"clusters by": words} | {shown: mean_of(simulated, FOREST, f"{name}.{key}") for key, shown in names.items()}
        for name, words in CLUSTERINGS.items()
    ]
    return pd.DataFrame(lines)


def merging_beside(simulated: Frame, real: Frame) -> pd.DataFrame:
    """What the constraints had to do: the original study, a simulated world, our real blocks."""
    lines = []
    for words, quantity, metric in (
        ("payments with change that the forest is sure of", "targets decided", "decided"),
        ("cannot-links", "cannot-links", "cannot_links"),
        ("merges blocked", "blocked merges", "blocked"),
        ("both ends in one cluster already", "joined already", "joined"),
    ):
        lines.append(
            {
                "count": words,
                "original study": paper_value("moser_headline", quantity=quantity),
                "simulated, test economy": mean_of(simulated, FOREST, f"merging.{metric}"),
                "real blocks": mean_of(real, "clusters", f"constrained.{metric}"),
            }
        )
    services = {"naive": "services swallowed naive", "constrained": "most services in one cluster constrained"}
    for how, key in (("naive", "naive"), ("constrained", "moser")):
        lines.append(
            {
                "count": f"named services in one cluster, {how}",
                "original study": paper_value("moser_headline", quantity=services[how]),
                "simulated, test economy": mean_of(simulated, FOREST, f"{key}.swallowed"),
                "real blocks": mean_of(real, "clusters", f"{how}.swallowed"),
            }
        )
    return pd.DataFrame(lines)


def labels_beside(simulated: Frame) -> pd.DataFrame:
    """The test with entity labels: the paper's rows, then ours, in %; TP, FP, FN, TN, bACC, F1."""
    columns = ["TP", "FP", "FN", "TN", "bACC", "F1"]
    printed = paper_table("entity_labels").set_index("model")
    lines = [
        {"clusters by": f"{words}, paper"} | {name: float(printed.loc[[model], name].iloc[0]) for name in columns}
        for model, words in {"Heuristics": "heuristics", "Moser-Narayanan": "Möser–Narayanan"}.items()
    ]
    ours = {
        "heuristics": "heuristics, ours",
        "common": "common inputs, ours",
        "moser": "Möser–Narayanan, ours",
        "moser_local": "the same, local transactions only",
    }
    for name, words in ours.items():
        lines.append(
            {"clusters by": words} | {key: 100 * mean_of(simulated, FOREST, f"{name}.{key}") for key in columns}
        )
    return pd.DataFrame(lines)


def doses(frame: Frame, metric: str, shares: Sequence[float]) -> pd.DataFrame:
    """What wrong decisions do: per share turned round, `naive` and `moser` (means over worlds) of a metric."""
    found: Mapping[str, list[float]] = {
        how: [mean_of(frame, FOREST, f"confused.{share:g}.{how}.{metric}") for share in shares]
        for how in ("naive", "moser")
    }
    return pd.DataFrame(found, index=pd.Index(list(shares), name="share"))
