"""Findings from hand-made records: numbers, sides and words; and nothing made up where runs are missing."""

from __future__ import annotations

import numpy as np
import pandas as pd

from btcnb.experiments.headlines import chosen, dial, gap, headlines, level, order, orders, where
from btcnb.experiments.tables_of_sweeps import newest, printed

SHIFT = {1: -0.01, 2: 0.0, 3: 0.01}


def ablation(**levels: float) -> pd.DataFrame:
    """Every score of a row is its level, a little lower in world 1 and higher in world 3."""
    lines = [
        {"row": row, "seed": seed, "state": "done", "DP": mean + by, "NMI": mean + by, "ARI": mean + by}
        for row, mean in levels.items()
        for seed, by in SHIFT.items()
    ]
    return newest(pd.DataFrame(lines))


def refinement(gains: dict[float, tuple[float, float, float]]) -> pd.DataFrame:
    """The paper's way gains so much over an ARI of 0.5, in three worlds; the disorder is the key."""
    lines = [
        {"row": f"paper {disorder:g}", "seed": seed, "state": "done", "heuristics.ari": 0.5, "lambda.ari": 0.5 + gain}
        | {"heuristics.clusters": 10, "lambda.clusters": 12}
        for disorder, each in gains.items()
        for seed, gain in enumerate(each)
    ]
    return pd.DataFrame(lines)


def test_without_records_every_finding_says_so() -> None:
    found = headlines(lambda grid: None)
    assert len(found) == 5 and all("not yet run" in each.finding for each in found)
    assert "0.771" in found[0].finding, "the paper's number stands there anyway"


def test_the_paper_s_level_lies_on_a_side_of_our_interval() -> None:
    # mean 0.5, sd 0.01: the interval is 0.5 ± 4.303 · 0.01 / √3
    assert level(ablation(gat=0.5)) == (
        "DP 0.500 (0.475 to 0.525) over 3 simulated worlds; the paper's 0.771 lies above that interval."
    )
    assert "lies inside" in level(ablation(gat=0.77)) and "lies below" in level(ablation(gat=0.9))


def test_a_gap_is_paired_by_world() -> None:
    told = gap(ablation(gat=0.6, untrained=0.5), "gat", "untrained", "Trained minus untrained")
    assert told.startswith(
        "Trained minus untrained, over 3 simulated worlds: DP +0.100 (+0.100 to +0.100), clearly higher"
    )
    assert told.endswith("the paper's: DP +0.072, NMI +0.068, ARI +0.080.")
    assert "clearly lower" in gap(ablation(gat=0.5, untrained=0.6), "gat", "untrained", "")
    assert "not yet run" in gap(ablation(gat=0.5), "gat", "untrained", "")


def test_the_dial_tells_gains_from_losses() -> None:
    told = dial(refinement({0: (-0.2, -0.21, -0.19), 1: (-0.1, 0.03, 0.1), 2: (0.1, 0.11, 0.09)}))
    assert told.startswith("Of the disorders 0, 1 and 2 it clearly pays at 2 and clearly harms at 0; ")
    assert "changes by +0.010 (" in told
    assert told.endswith("not clearly different, over 3 worlds.")
    assert dial(refinement({2: (0.1, 0.11, 0.09)})).endswith("at the calibrated disorder it is not yet run.")
    assert "not yet run" in dial(refinement({1: (0.1, 0.1, 0.1)}).iloc[:2])


def test_where_nothing_is_clear_nothing_is_said_to_be() -> None:
    gains = pd.DataFrame({"disorder": [0.0, 1.0], "low": [-1.0, np.nan], "high": [1.0, np.nan]})
    assert where(gains) == "Of the disorders 0 and 1 it clearly pays at none and clearly harms at none"


def test_what_validation_chooses_is_reported_on_test_worlds() -> None:
    good, bad = (refinement({1: (by, by + 0.001, by - 0.001)}) for by in (0.1, -0.1))
    told = chosen(good, bad)
    assert "*paper, leaves: addresses, cut lambda*" in told
    assert "of the disorders 1 it clearly pays at none and clearly harms at 1" in told
    assert chosen(bad, good).endswith("leave the heuristics as they are.")
    assert "not yet run" in chosen(None, good) and "not yet run" in chosen(good, None)


def test_the_order_of_rows_is_compared_in_every_world() -> None:
    theirs = printed("ablation")
    theirs = theirs[theirs["metric"] == "NMI"].set_index("row")["mean"]
    rows = ["louvain", "untrained", "gae", "gat"]
    assert list(theirs[rows].rank()) == [1, 2, 3, 4]
    same = ablation(louvain=0.1, untrained=0.2, gae=0.3, gat=0.4)
    assert orders(same, "NMI") == ([1.0, 1.0, 1.0], 4)
    assert orders(ablation(louvain=0.4, untrained=0.3, gae=0.2, gat=0.1), "NMI")[0] == [-1.0, -1.0, -1.0]
    assert "1.000 (1.000 to 1.000) in NMI (4 rows)" in order(same)
    assert orders(ablation(gat=0.5, gae=0.4), "NMI") == ([], 0)


def test_an_interval_of_correlations_stays_within_one() -> None:
    runs = ablation(louvain=0.1, untrained=0.2, gae=0.3, gat=0.4)
    runs.loc[(runs["row"] == "gat") & (runs["seed"] == 1), "NMI"] = 0.0  # one world with another order
    assert " to 1.000) in NMI" in order(runs)
