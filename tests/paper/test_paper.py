"""The transcription is checked by recomputation: a mistyped digit breaks a sum, a score or a mark."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from btcnb import paper
from btcnb.data.graph import CLUSTER_COLUMNS, EDGE_COLUMNS, NODE_COLUMNS
from btcnb.errors import ParameterError

SCORED = {
    "ablation": ["DP", "NMI", "ARI"],
    "embedding_dim": ["DP", "NMI", "ARI"],
    "alpha": ["DP", "NMI", "ARI"],
    "negatives": ["DP", "NMI", "ARI"],
    "entity_labels": ["bACC", "F1"],
}
SHAPES = {
    "ablation": 23,
    "alpha": 6,
    "coinjoin": 7,
    "coinjoin_hyperparameters": 4,
    "complexity": 8,
    "dataset": 5,
    "dataset_columns": 25,
    "embedding_dim": 6,
    "entity_labels": 16,
    "hyperparameters": 18,
    "moser_freshness": 4,
    "moser_headline": 31,
    "moser_points": 8,
    "moser_votes": 26,
    "negatives": 5,
}


@pytest.mark.parametrize(("name", "rows"), SHAPES.items())
def test_every_row_of_the_printed_table_is_there(name: str, rows: int) -> None:
    assert len(paper.table(name)) == rows


@pytest.mark.parametrize(("name", "score"), [(name, score) for name, scores in SCORED.items() for score in scores])
def test_the_marks_for_best_and_second_best_stand_where_the_numbers_put_them(name: str, score: str) -> None:
    frame = paper.table(name)
    ranked = frame[score].dropna().sort_values(ascending=False).unique()
    assert set(frame.loc[frame[f"{score}_mark"] == "**", score]) == {ranked[0]}
    assert set(frame.loc[frame[f"{score}_mark"] == "*", score]) == {ranked[1]}


def test_pair_counts_sum_to_one_hundred_and_give_the_printed_scores() -> None:
    frame = paper.table("entity_labels")
    assert np.allclose(frame[["TP", "FP", "FN", "TN"]].sum(axis=1), 100, atol=0.11)
    for row in frame.to_dict("records"):
        counts = [row[key] for key in ("TP", "FP", "FN", "TN")]
        assert paper.balanced_accuracy(*counts) == pytest.approx(row["bACC"], abs=0.1)
        assert paper.macro_f1(*counts) == pytest.approx(row["F1"], abs=0.1)


def test_scores_by_hand() -> None:
    # 30 of 40 positives and 45 of 60 negatives are right
    assert paper.balanced_accuracy(30, 15, 10, 45) == pytest.approx(75.0)
    # F1 of the positives 60/85, of the negatives 90/115
    assert paper.macro_f1(30, 15, 10, 45) == pytest.approx(100 * (60 / 85 + 90 / 115) / 2)
    assert paper.balanced_accuracy(5, 0, 5, 0) == pytest.approx(50.0)  # no negatives: only one recall counts


def test_the_original_studys_figures_hang_together() -> None:
    """Figures of Möser and Narayanan: rates rise together, counts are parts of one another."""
    points = paper.table("moser_points")
    for _, curve in points.groupby("model"):
        assert curve["FPR"].is_monotonic_increasing and curve["TPR"].is_monotonic_increasing
        assert (curve["TPR"] > curve["FPR"]).all()
        assert curve["threshold"].is_monotonic_decreasing
    told = paper.table("moser_headline").set_index("quantity")["value"]
    assert told.index.is_unique
    truth = ["two outputs", "ground truth candidates", "ground truth", "ground truth with a vote"]
    targets = ["targets", "targets decided", "merged constrained"]
    clusters = ["clusters by common inputs", "clusters constrained", "clusters naive"]
    for names in (truth, targets, clusters):
        assert told[names].is_monotonic_decreasing
    # freshness in millions is the ground truth; half of the targets are decided; tags fall into fewer clusters
    assert paper.table("moser_freshness")["millions"].sum() == pytest.approx(told["ground truth"] / 1e6, abs=0.01)
    assert told["targets decided"] / told["targets"] == pytest.approx(0.5022, abs=5e-5)
    assert told["named services"] - told["services swallowed naive"] + 1 == told["clusters of named services naive"]
    # seven pairs of tags share a cluster: 273 in 266, two at most in one
    pairs = told["named services"] - told["clusters of named services constrained"]
    assert (pairs, told["most services in one cluster constrained"]) == (7, 2)
    # what was decided and not merged: blocked, or joined already (some of those were merged with their cluster pair)
    assert told["targets decided"] - told["merged constrained"] > told["blocked merges"]


def test_dataset_columns_are_the_columns_of_our_graph() -> None:
    columns = paper.table("dataset_columns").groupby("table")["column"].apply(tuple)
    assert columns["nodes"] == NODE_COLUMNS
    assert columns["edges"] == EDGE_COLUMNS
    assert columns["clusters"] == CLUSTER_COLUMNS


def test_where_the_paper_disagrees_with_itself() -> None:
    found = paper.disagreements()
    rows = set(zip(found["table"], found["row"], found["printed"], found["recomputed"], strict=True))
    assert ("entity_labels", "Moser-Narayanan", 59.0, 58.3) in rows  # scored on other pairs than the rest
    assert ("embedding_dim", "default model (dimension = 128)", 0.779, 0.771) in rows
    assert ("ablation", "GAT, not symmetrised, no landmarks", 0.707, 0.692) in rows  # NMI rises, the text says it falls
    assert ("ablation", "GAT, symmetrised, edge features yes, 64 landmarks", 0.609, 0.609) in rows  # a tie with GAE
    assert not found.duplicated().any()


def test_a_single_value_is_found_by_its_row() -> None:
    assert paper.value("theory_checks", quantity="cut ratio overall") == 87.0
    assert paper.value("entity_labels", "F1", model="Hybrid", linkage="average", cut="silhouette") == 65.7


def test_wrong_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(ParameterError, match="ablation, alpha"):
        paper.table("ablatoin")
    with pytest.raises(ParameterError, match="no column 'colour'"):
        paper.value("alpha", "colour", alpha=0.2)
    with pytest.raises(ParameterError, match="4 rows"):
        paper.value("ablation", "DP", model="GAT", symmetrised="yes", edge_features="no")


def test_numbers_are_numbers() -> None:
    for name in paper.tables():
        frame = paper.table(name)
        for column in frame.columns:
            if column.endswith("_sd"):
                assert pd.api.types.is_numeric_dtype(frame[column])
                assert (frame[column].dropna() >= 0).all()


HEADINGS = {
    "Section": "1 2 3 3.1 3.2 3.3 3.4 4 4.1 4.2 5 5.1 5.2 6 6.1 6.2 6.3 6.3.1 6.3.2",
    "Appendix": "A A.1 A.1.1 A.1.2 A.2 A.3 B B.1 B.2 B.3 B.4 B.5 C C.1 C.1.1 C.1.2 C.2 D D.1 D.2 D.3 D.4 E F F.1 F.2 G",
    "Table": " ".join(map(str, range(1, 12))),
}
"""The numbered headings and tables of the paper, in the order of its source."""


@pytest.mark.parametrize("name", ["text", "theory_checks"])
def test_every_number_is_quoted_from_a_place_that_exists(name: str) -> None:
    for where in paper.table(name)["where"]:
        kind, _, number = where.partition(" ")
        assert number in HEADINGS[kind].split(), where


def test_chapters_refer_to_places_that_exist() -> None:
    chapters = sorted(Path(__file__).parents[2].glob("notebooks/*.md"))
    found = [
        (path.name, kind, number)
        for path in chapters
        for kind, number in re.findall(r"\b(Section|Appendix|Table) ([0-9A-H](?:\.[0-9]+)*)\b", path.read_text("utf-8"))
    ]
    assert found
    assert [place for place in found if place[2] not in HEADINGS[place[1]].split()] == []
