"""Tables and words made of records: numbers that one can work out by hand, and pages while a sweep still runs."""

from __future__ import annotations

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from btcnb import paper
from btcnb.book.figures import draw_curves, draw_rows, legend_below
from btcnb.experiments import records as tables
from btcnb.experiments.findings import along_disorder, findings, gap, level, order, orders

mpl.use("agg")


def frame(**rows: list[float | None]) -> pd.DataFrame:
    """DP of worlds 2, 3, … for each row; ARI is half of it."""
    lines = [
        {
            "row": row.replace("_", " "),
            "seed": seed,
            "state": "done",
            "DP": value,
            "ARI": None if value is None else value / 2,
        }
        for row, values in rows.items()
        for seed, value in enumerate(values, 2)
    ]
    return pd.DataFrame(lines)


RUNS = tables.newest(frame(gat=[0.5, 0.6, 0.7], directed=[0.4, 0.5, 0.6], gcn=[0.5, 0.6], sage=[0.4, 0.8, 0.6]))


def test_the_newest_finished_run_of_a_row_and_seed_counts() -> None:
    first, again = frame(gat=[0.1]), frame(gat=[0.3])
    failed = frame(gat=[0.9]).assign(state="failed")
    runs = tables.newest(pd.concat([first, again, failed], ignore_index=True))
    assert runs["DP"].tolist() == [0.3]


def test_nothing_recorded_is_an_empty_table() -> None:
    assert tables.newest(None).empty and tables.newest(pd.DataFrame()).empty


def test_estimates_by_hand() -> None:
    line = tables.estimates(RUNS, ["gat"], ("DP",)).iloc[0]
    assert line["mean"] == pytest.approx(0.6)
    assert line["sd"] == pytest.approx(0.1)
    half = 4.302653 * 0.1 / np.sqrt(3)  # Student's t, two degrees of freedom
    assert (line["low"], line["high"]) == (pytest.approx(0.6 - half), pytest.approx(0.6 + half))
    few = tables.estimates(RUNS, ["gcn", "nobody"], ("DP", "unknown"))
    assert few["mean"].isna().all()
    assert few["n"].tolist() == [2, 0, 0, 0]


def test_differences_are_taken_seed_by_seed() -> None:
    line = tables.differences(RUNS, [("directed", "gat")], ("DP",)).iloc[0]
    assert line["mean"] == pytest.approx(-0.1)
    assert line["sd"] == pytest.approx(0.0, abs=1e-12)
    both = tables.by_seed(RUNS, "gat", "DP - ARI")
    assert both.tolist() == pytest.approx([0.25, 0.3, 0.35])


def test_every_printed_row_has_a_name_in_the_grid() -> None:
    printed = tables.printed("ablation")
    rows = list(dict.fromkeys(printed["row"]))
    assert len(rows) == 23
    assert {"louvain", "untrained", "gat", "gat edges 64", "directed edges 256", "sage"} <= set(rows)
    gat = printed[(printed["row"] == "gat") & (printed["metric"] == "DP")].iloc[0]
    where = {"model": "GAT", "symmetrised": "yes", "edge_features": "no", "landmarks": 0}
    assert gat["mean"] == paper.value("ablation", "DP", **where)
    assert list(dict.fromkeys(tables.printed("alpha")["row"])) == ["0", "0.2", "0.4", "0.6", "0.8", "1"]
    assert list(dict.fromkeys(tables.printed("embedding_dim")["row"]))[-1] == "512"


@pytest.mark.parametrize(
    ("row", "label"),
    [
        ("gat", "GAT"),
        ("directed edges 64", "GAT, directed, edges, 64 landmarks"),
        ("untrained", "GAT, untrained"),
        ("leiden", "Leiden"),
        ("gcn wide", "GCN, wide"),
        ("features", "features"),
    ],
)
def test_rows_in_words(row: str, label: str) -> None:
    assert tables.label(row) == label


def test_cells_say_what_is_missing() -> None:
    ours = tables.estimates(RUNS, ["gat", "gcn"], ("DP", "NMI"))
    assert tables.spread(ours, "gat", "DP") == "0.600 ± 0.100"
    assert tables.spread(ours, "gat", "NMI") == "–"  # it has other scores
    assert tables.spread(ours, "gcn", "DP") == "not yet run"
    assert tables.spread(ours, "nobody", "DP") == "not yet run"
    table = tables.beside_the_paper(tables.estimates(RUNS, ["gat"]), tables.printed("ablation"), {"gat": "GAT"})
    assert table.iloc[0].tolist()[:3] == ["GAT", "0.771 ± 0.004", "0.600 ± 0.100"]


def test_progress_counts_rows_that_can_be_judged() -> None:
    line = tables.progress({"ablation": (RUNS, ["gat", "gcn", "dgi"]), "none": (None, ["a"])}, 5)
    assert line["rows with enough worlds"].tolist() == ["1 of 3", "0 of 1"]
    assert line["runs"].tolist() == ["5 of 15", "0 of 5"]
    assert line[tables.HOURS].isna().all(), "these records tell no seconds"
    timed = tables.progress({"ablation": (RUNS.assign(seconds=720.0), ["gat"])}, 5)
    assert timed[tables.HOURS].tolist() == [3 * 720 / 3600], "rows that are not asked for do not count"


def test_a_caption_says_how_many_worlds_there_are() -> None:
    assert tables.worlds(RUNS, ["gat"]) == "3"
    assert tables.worlds(RUNS, ["gat", "gcn"]) == "2 to 3"
    assert tables.worlds(RUNS, ["gat", "dgi"]) == "0 to 3", "a row that has not been run"
    assert tables.worlds(RUNS, []) == "0" == tables.worlds(tables.newest(None), ["gat"])


def test_differences_become_cells_with_their_intervals() -> None:
    lines = tables.differences(RUNS, [("sage", "gat"), ("directed", "gat"), ("gcn", "gat")], ("DP", "ARI"))
    found = tables.with_intervals(lines)
    assert found.columns.tolist() == ["row", "against", "DP", "ARI"]
    assert found["row"].tolist() == ["sage", "directed", "gcn"]
    assert found["DP"].tolist() == ["0.000 (−0.430 to +0.430)", "−0.100 (−0.100 to −0.100)", "not yet run"]
    levels = tables.with_intervals(tables.estimates(RUNS, ["gat"], ("DP",)), signed=False)
    assert levels.to_dict("records") == [{"row": "gat", "DP": "0.600 (0.352 to 0.848)"}]


def test_two_metrics_rank_rows_alike_or_not() -> None:
    runs = tables.newest(frame(gat=[0.5, 0.6, 0.7], directed=[0.3, 0.4, 0.5], sage=[0.4, 0.5, 0.6]))
    runs = runs.assign(owner=1 - runs["DP"])
    found = tables.rank_agreement(runs, ["gat", "directed", "sage"], "DP", "owner")
    assert found["Kendall's τ"].startswith("−1.00 (")  # an exact reversal
    assert (found["best by DP"], found["best by owner"]) == ("gat", "directed")
    assert tables.rank_agreement(runs, ["gat"], "DP", "owner")["Kendall's τ"] == "not yet run"


def test_a_cell_has_half_the_interval() -> None:
    assert tables.cell(RUNS, "gat", "DP", "{:.3f}") == "0.600 ± 0.248"
    assert tables.cell(RUNS, "gcn", "DP") == "not yet run" and tables.cell(RUNS, "gat", "NMI") == "–"


@pytest.mark.parametrize("runs", [RUNS, tables.newest(None)], ids=["some records", "no records"])
def test_figures_stand_whatever_is_recorded(runs: pd.DataFrame) -> None:
    fig, axes = plt.subplots(1, 2)
    lines = tables.differences(runs, [("directed", "gat"), ("dgi", "gat")], ("DP", "ARI"))
    draw_rows(axes, lines, {"directed": "directed", "dgi": "DGI"}, tables.printed("ablation"), differences=True)
    legend_below(fig)
    texts = {text.get_text() for text in axes[0].texts}
    assert texts == ({"–"} if len(runs) else {"not yet run"})
    assert [tick.get_text() for tick in axes[0].get_yticklabels()] == ["directed", "DGI"]
    draw_curves(axes, tables.estimates(runs, ["gat"], ("DP", "ARI")), {"gat": 1.0})
    plt.close(fig)


SHIFT = {1: -0.01, 2: 0.0, 3: 0.01}


def ablation(**levels: float) -> pd.DataFrame:
    """Every score of a row is its level, a little lower in world 1 and higher in world 3."""
    lines = [
        {"row": row, "seed": seed, "state": "done", "DP": mean + by, "NMI": mean + by, "ARI": mean + by}
        for row, mean in levels.items()
        for seed, by in SHIFT.items()
    ]
    return tables.newest(pd.DataFrame(lines))


def test_findings_without_records_are_not_yet_run() -> None:
    assert [answer for _, answer in findings(lambda grid: None)] == [tables.NOT_RUN] * 5


def test_a_level_and_a_gap_stand_beside_the_paper_s() -> None:
    # mean 0.5, sd 0.01: the interval is 0.5 ± 4.303 · 0.01 / √3
    assert level(ablation(gat=0.5)) == "DP 0.500 (0.475 to 0.525) over 3 simulated worlds; paper: 0.771"
    told = gap(ablation(gat=0.6, untrained=0.5), "gat", "untrained")
    assert told.startswith("DP +0.100 (+0.100 to +0.100), NMI ") and told.endswith("paper: +0.072, +0.068, +0.080")


def test_what_refinement_changes_is_told_by_disorder() -> None:
    gains = {0: (-0.2, -0.21, -0.19), 1: (-0.1, 0.03, 0.1), 2: (0.1, 0.11, 0.09)}
    lines = [
        {"row": f"paper {disorder}", "seed": seed, "state": "done", "heuristics.ari": 0.5, "lambda.ari": 0.5 + gain}
        for disorder, each in gains.items()
        for seed, gain in enumerate(each)
    ]
    told = along_disorder(pd.DataFrame(lines))
    assert told.startswith("disorder 0: −0.200 (−0.225 to −0.175); disorder 1: +0.010 (")
    assert "not yet run" in along_disorder(pd.DataFrame(lines).iloc[:2])


def test_the_order_of_rows_is_compared_in_every_world() -> None:
    theirs = tables.printed("ablation")
    theirs = theirs[theirs["metric"] == "NMI"].set_index("row")["mean"]
    assert list(theirs[["louvain", "untrained", "gae", "gat"]].rank()) == [1, 2, 3, 4]
    same = ablation(louvain=0.1, untrained=0.2, gae=0.3, gat=0.4)
    assert orders(same, "NMI") == (pytest.approx([1.0, 1.0, 1.0]), 4)
    assert orders(ablation(louvain=0.4, untrained=0.3, gae=0.2, gat=0.1), "NMI")[0] == pytest.approx([-1.0] * 3)
    assert "NMI 1.000 (1.000 to 1.000), 4 rows" in order(same)
    assert orders(ablation(gat=0.5, gae=0.4), "NMI") == ([], 0)
    same.loc[(same["row"] == "gat") & (same["seed"] == 1), "NMI"] = 0.0  # one world with another order
    assert " to 1.000), 4 rows" in order(same), "no correlation is beyond 1"
