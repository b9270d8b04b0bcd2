"""What can be recomputed from the paper's own tables, and where the printed numbers disagree with each other."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from btcnb import gates
from btcnb.errors import ParameterError
from btcnb.paper.tables import table

Disagreement = tuple[str, str, str, float, float]
COUNTS = ("TP", "FP", "FN", "TN")
ROUNDING = 0.05
"""Printed percentages have one decimal: each lies within this of the number that was averaged."""


def balanced_accuracy(tp: float, fp: float, fn: float, tn: float) -> float:
    """Mean of positive and negative recall, in percent; a class without members does not count."""
    tp, fp, fn, tn = _counts(tp, fp, fn, tn)
    recalls = [hit / total for hit, total in ((tp, tp + fn), (tn, tn + fp)) if total > 0]
    return 100 * sum(recalls) / len(recalls)


def macro_f1(tp: float, fp: float, fn: float, tn: float) -> float:
    """Mean of the F1 scores of the positive and the negative class, in percent."""

    tp, fp, fn, tn = _counts(tp, fp, fn, tn)

    def f1(hit: float, wrong: float) -> float:
        return 2 * hit / (2 * hit + wrong) if hit + wrong > 0 else 0.0

    return 100 * (f1(tp, fp + fn) + f1(tn, fp + fn)) / 2


def _counts(*counts: float) -> list[float]:
    """Counts or shares of true and false positives and negatives, not all of them 0."""
    found = [gates.real(name, value, "[0, 1e300]") for name, value in zip(COUNTS, counts, strict=True)]
    if not any(found):
        raise ParameterError("TP, FP, FN and TN are all 0: there is nothing to score.")
    return found


def _rounding_range(counts: np.ndarray, score: str) -> tuple[float, float]:
    """Smallest and largest score that counts within printing precision can give (both scores are monotone in each)."""
    function = balanced_accuracy if score == "bACC" else macro_f1
    values = [
        function(*np.maximum(counts + np.array(shift) * ROUNDING, 0.0))
        for shift in itertools.product((-1, 1), repeat=4)
    ]
    return min(values), max(values)


def disagreements() -> pd.DataFrame:
    """Where the paper's tables disagree with themselves or with each other, beyond rounding.

    Columns: table, row, what, printed, recomputed. Means over seeds of a ratio are not ratios of means, so a score is
    listed only if it differs by more than rounding and by more than its printed standard deviation.
    """
    rows = [*_entity_rows(), *_positive_share_rows(), *_default_model_rows(), *_text_rows()]
    return pd.DataFrame(rows, columns=["table", "row", "what", "printed", "recomputed"])


def _entity_rows() -> list[Disagreement]:
    found: list[Disagreement] = []
    for entry in table("entity_labels").to_dict("records"):
        name = " / ".join(str(entry[key]) for key in ("model", "linkage", "cut") if isinstance(entry[key], str))
        counts = np.array([entry[key] for key in COUNTS], dtype=float)
        if abs(counts.sum() - 100) > 4 * ROUNDING + 1e-9:
            found.append(("entity_labels", name, "TP+FP+FN+TN", 100.0, float(counts.sum())))
        for score in ("bACC", "F1"):
            low, high = _rounding_range(counts, score)
            slack = ROUNDING + entry[f"{score}_sd"]
            if not low - slack <= entry[score] <= high + slack:
                recomputed = (balanced_accuracy if score == "bACC" else macro_f1)(*counts)
                found.append(("entity_labels", name, score, entry[score], round(recomputed, 1)))
    return found


def _default_model_rows() -> list[Disagreement]:
    """The default model stands in three tables; list scores over two standard errors from the ablation's."""
    default = _gat(symmetrised="yes", edge_features="no", landmarks=0).iloc[0]
    found: list[Disagreement] = []
    for name, key, setting in (("embedding_dim", "dimension", 128), ("negatives", "p", 4)):
        frame = table(name)
        other = frame[frame[key] == setting].iloc[0]
        for score in ("DP", "NMI", "ARI"):
            spread = float(np.hypot(default[f"{score}_sd"], other[f"{score}_sd"]) / np.sqrt(5))
            if abs(other[score] - default[score]) > 2 * spread:
                found.append(
                    (name, f"default model ({key} = {setting})", score, float(other[score]), float(default[score]))
                )
    return found


def _positive_share_rows() -> list[Disagreement]:
    """TP + FN is the share of positive pairs, so methods scored on the same pairs must agree on it.

    The two summands and the reference are each rounded, hence three roundings of slack on either side.
    """
    frame = table("entity_labels")
    share = frame["TP"] + frame["FN"]
    usual = float(share.median())
    odd = frame[(share - usual).abs() > 4 * ROUNDING + 1e-9]
    return [
        (
            "entity_labels",
            str(entry["model"]),
            "TP+FN (share of positive pairs)",
            round(entry["TP"] + entry["FN"], 1),
            usual,
        )
        for entry in odd.to_dict("records")
    ]


def _text_rows() -> list[Disagreement]:
    """Sentences about the ablation table that the table itself does not bear out, to the printed digits."""
    frame = table("ablation").set_index("model")
    found: list[Disagreement] = []
    untrained = frame.loc["Random GAT", ["DP", "NMI", "ARI"]].astype(float).to_dict()
    plain = _gat(symmetrised="no", landmarks=0)
    for score in ("DP", "NMI", "ARI"):
        if (plain[score] > untrained[score]).all():
            what = f"{score}: 'deteriorates across all metrics compared to the untrained GAT'"
            found.append(
                (
                    "ablation",
                    "GAT, not symmetrised, no landmarks",
                    what,
                    float(plain[score].min()),
                    untrained[score],
                )
            )
    best_baseline = frame.loc[["Louvain", "Leiden", "Random GAT", "GAE", "DGI"], ["DP", "NMI", "ARI"]].max()
    for entry in _gat(symmetrised="yes").to_dict("records"):
        for score in ("DP", "NMI", "ARI"):
            if entry[score] <= best_baseline[score]:
                name = f"GAT, symmetrised, edge features {entry['edge_features']}, {entry['landmarks']:.0f} landmarks"
                what = f"{score}: 'all symmetrized GAT variants outperform the baselines across metrics'"
                found.append(("ablation", name, what, float(entry[score]), float(best_baseline[score])))
    return found


def _gat(**settings: object) -> pd.DataFrame:
    """The GAT rows of the ablation table with the given settings."""
    frame = table("ablation")
    frame = frame[frame["model"] == "GAT"]
    for key, wanted in settings.items():
        frame = frame[frame[key] == wanted]
    return frame
