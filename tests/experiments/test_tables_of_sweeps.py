"""Tables and words made of records: numbers that one can work out by hand, and pages while a sweep still runs."""

from __future__ import annotations

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from btcnb import paper
from btcnb.book.figures import draw_curves, draw_rows, legend_below
from btcnb.errors import ParameterError
from btcnb.experiments import tables_of_sweeps as tables
from btcnb.experiments import words_of_sweeps as words

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


def test_nothing_recorded_is_an_empty_table_and_equal_names_are_refused() -> None:
    assert tables.newest(None, pd.DataFrame()).empty
    with pytest.raises(ParameterError, match="two of the grids have a row 'gat'"):
        tables.newest(frame(gat=[0.1]), frame(gat=[0.2]))


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
    ("row", "label", "family"),
    [
        ("gat", "GAT", "GAT"),
        ("directed edges 64", "GAT, directed, edges, 64 landmarks", "GAT, directed"),
        ("untrained", "GAT, untrained", "no labels"),
        ("leiden", "Leiden", "communities"),
        ("sage", "GraphSAGE", "GCN, GraphSAGE"),
        ("gcn wide", "GCN, wide", "controls"),
        ("features", "features", "controls"),
    ],
)
def test_rows_in_words(row: str, label: str, family: str) -> None:
    assert tables.label(row) == label
    assert tables.family(row) == family


def test_cells_say_what_is_missing() -> None:
    ours = tables.estimates(RUNS, ["gat", "gcn"], ("DP", "NMI"))
    assert tables.spread(ours, "gat", "DP") == "0.600 ± 0.100"
    assert tables.spread(ours, "gat", "NMI") == "–"  # it has other scores
    assert tables.spread(ours, "gcn", "DP") == "not yet run"
    assert tables.spread(ours, "nobody", "DP") == "not yet run"
    table = tables.side_by_side(tables.estimates(RUNS, ["gat"]), tables.printed("ablation"), {"gat": "GAT"})
    assert table.iloc[0].tolist()[:3] == ["GAT", "0.771 ± 0.004", "0.600 ± 0.100"]


def test_few_worlds_have_a_level_and_no_spread() -> None:
    assert tables.level(RUNS, "gat", "DP") == "0.600 ± 0.100"
    assert tables.level(RUNS, "gcn", "DP") == "0.550"
    assert tables.level(RUNS, "nobody", "DP") == tables.level(RUNS, "gat", "NMI") == "not yet run"


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


def test_costs_keep_the_order_of_the_stages() -> None:
    runs = RUNS[RUNS["row"] == "gat"].assign(
        **{"seconds.train": [1.0, 2.0, 3.0], "seconds.graphs": 4.0, "peak_mb.train": [5.0, 9.0, 7.0]}
    )
    found = tables.costs(runs)
    assert found["stage"].tolist() == ["graphs", "train"]
    assert found["seconds"].tolist() == [4.0, 2.0]
    assert found["peak MB"].iloc[1] == 9.0
    assert tables.costs(tables.newest(None), "gat").empty


def test_differences_in_words() -> None:
    lines = tables.differences(RUNS, [("directed", "gat")], ("DP", "ARI"))
    assert words.answer(lines) == "clearly lower in DP (−0.100) and ARI (−0.050)"
    assert words.answer(tables.differences(RUNS, [("sage", "gat")], ("DP",))) == "not clearly different in DP (0.000)"
    assert words.answer(tables.differences(RUNS, [("gcn", "gat")])) == "not yet run"


def test_tally_leaves_out_scores_that_do_not_exist() -> None:
    lines = tables.differences(RUNS, [("directed", "gat"), ("sage", "gat"), ("dgi", "gat")], ("DP", "NMI"))
    counted = words.tally(lines).set_index("metric")
    assert counted.loc["DP"].tolist() == [0, 1, 1, 1]
    assert counted.loc["NMI"].tolist() == [0, 0, 0, 1]  # dgi alone, which has no run at all
    assert words.tally(lines.iloc[:0]).empty


def test_agreement_with_the_paper() -> None:
    theirs = pd.DataFrame({"row": ["a", "b", "c"], "metric": "DP", "mean": [0.1, 0.2, 0.3]})
    ours = pd.DataFrame({"row": ["a", "b", "c"], "metric": "DP", "mean": [0.12, 0.4, 0.3]})
    line = words.agreement(ours, theirs).iloc[0]
    assert line.tolist()[:3] == ["DP", 3, 2]
    assert line["mean shift"] == pytest.approx(0.22 / 3)
    assert line.iloc[-1] == pytest.approx(0.5)


def test_two_judges() -> None:
    runs = RUNS.assign(owner=1 - RUNS["DP"])
    ranked = words.two_judges(runs, ["gat", "directed", "gcn"], "DP", "owner")
    assert ranked["row"].tolist() == ["gat", "directed"]
    assert ranked["place by owner"].tolist() == [2, 1]
    three = words.judges_words(runs, ["gat", "directed", "sage"], "DP", "owner")
    assert "Kendall's τ of -1.00" in three  # an exact reversal, ties included
    assert "“GAT, directed” by owner" in three
    assert words.judges_words(runs, ["gat"], "DP", "owner").endswith("not yet run.")


def test_best_shares_and_pairing() -> None:
    assert words.best_words(RUNS, ["gat", "directed"], "DP") == "gat (0.600)"
    assert words.best_words(RUNS, ["gat", "gcn"], "DP") == "not yet run"
    runs = tables.newest(frame(**{"16": [0.1, 0.2, 0.3], "64": [0.4, 0.5, 0.6], "512": [0.5, 0.6, 0.7]}))
    share = words.gained(runs, ["16", "64", "512"], ("DP", "NMI")).set_index("metric")
    assert share.loc["DP"].tolist() == pytest.approx([0.4, 75.0])
    assert np.isnan(share.loc["NMI", "64"])
    line = words.pairing(RUNS, ["directed", "gcn"], "gat", ("DP",)).iloc[0]
    assert line["sd of the scores"] == pytest.approx(0.1)
    assert line["sd of the differences"] == pytest.approx(0.0, abs=1e-12)
    assert words.listed(["a"]) == "a"
    assert words.listed(["a", "b", "c"]) == "a, b and c"


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
