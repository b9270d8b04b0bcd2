"""Records of entity labels as tables, beside the paper's numbers, by hand; and with no records at all."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from btcnb import paper
from btcnb.experiments.records import newest
from btcnb.experiments.tables_of_entity import (
    clusterings,
    dial,
    gain_words,
    in_words,
    levels,
    ours,
    printed,
    table_two,
)

NOTHING = newest(None)


def records(**metrics: list[float]) -> pd.DataFrame:
    """Rows trained 0 to trained 2 with one value a seed each; a row's values lie its disorder above the given ones."""
    lines = [
        {"row": f"trained {at:g}", "seed": seed + 2, "state": "done", **{n: v[seed] + at for n, v in metrics.items()}}
        for at in (0.0, 0.5, 1.0, 2.0)
        for seed in range(len(next(iter(metrics.values()))))
    ]
    return newest(pd.DataFrame(lines))


def test_every_row_of_the_paper_is_one_of_ours() -> None:
    found = {tuple(printed(name, score) for score in ("TP", "FP", "bACC")) for name in clusterings()}
    table = paper.table("entity_labels")
    assert {tuple(row) for row in table[["TP", "FP", "bACC"]].to_numpy().tolist()} <= found
    assert printed("gnn.average.inconsistency", "F1") == printed("gnn.average.inconsistency-height", "F1") == 36.8
    assert np.isnan(printed("hybrid.ward.gap", "F1")), "the paper has no such row"


def test_names_in_words() -> None:
    assert in_words("heuristics") == "Heuristics"
    assert in_words("moser") == "Möser–Narayanan"
    assert in_words("hybrid.average.inconsistency-height") == "Hybrid, average, inconsistency (heights)"


def test_means_with_half_their_interval() -> None:
    """1, 2, 3 with disorder 1 on top: mean 3, half-width 4.3027 / √3."""
    frame = records(**{"heuristics.bACC": [1.0, 2.0, 3.0]})
    assert ours(frame, "heuristics", "bACC") == "3.0 ± 2.5"
    assert ours(frame, "heuristics", "F1") == ours(NOTHING, "heuristics", "bACC") == "not yet run"
    assert ours(records(**{"heuristics.bACC": [1.0, 2.0]}), "heuristics", "bACC") == "not yet run", "too few worlds"


def test_the_table_has_the_papers_number_before_ours() -> None:
    lines = table_two(records(**{"heuristics.bACC": [59.0, 59.0, 59.0]}), ("bACC",)).to_numpy().tolist()
    assert lines[:2] == [["Heuristics", "paper", "59.2"], ["", "ours", "60.0 ± 0.0"]]
    place = lines.index(["Hybrid, average, silhouette", "paper", "67.6"])
    assert lines[place + 1] == ["", "ours", "…"], "not yet run"
    assert ["Hybrid, ward, gap", "ours", "…"] in lines, "the paper has no such row"
    assert len(clusterings()) == 26 and sum(of == "ours" for _, of, _ in lines) == 26


def test_the_dial_is_paired_by_world() -> None:
    frame = records(**{"a": [3.0, 5.0, 7.0], "b": [1.0, 3.0, 5.0]})
    gap = dial(frame, "a", "b")
    assert gap["disorder"].tolist() == [0.0, 0.5, 1.0, 2.0]
    assert gap["mean"].tolist() == gap["low"].tolist() == gap["high"].tolist() == [2.0] * 4
    assert gap["worlds"].tolist() == [3] * 4
    assert levels(frame, "a")["mean"].tolist() == [5.0, 5.5, 6.0, 7.0]
    assert dial(NOTHING, "a", "b")["mean"].isna().all()


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        ([-1, -1, 1, 2], [1, 1, 2, 3], "clearly gains at disorder 1, 2"),
        ([-2, -1, -1, 2], [-1, 1, 1, 3], "clearly gains at disorder 2 and clearly loses at disorder 0"),
        ([-1] * 4, [1] * 4, "neither clearly gains nor clearly loses anywhere on the dial"),
    ],
)
def test_gains_in_words(low: list[float], high: list[float], words: str) -> None:
    table = pd.DataFrame({"disorder": [0.0, 0.5, 1.0, 2.0], "low": low, "high": high, "worlds": 5})
    assert gain_words(table) == words
    assert gain_words(table.assign(worlds=2)) == "is not yet run"
