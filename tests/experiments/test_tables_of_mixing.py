"""Tables of chapter 16: the paper's numbers beside ours, and what is said where nothing has been run."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from btcnb.experiments import tables_of_mixing as tables
from btcnb.experiments.records import newest

EMPTY = newest(None)


def records(**metrics: list[float]) -> pd.DataFrame:
    """Three worlds of both encoders; the repelled one has 10 more of everything."""
    frames = []
    for row, more in (("standard", 0.0), ("repelled", 10.0)):
        values = {name.replace("__", "."): np.array(given) + more for name, given in metrics.items()}
        frames.append(pd.DataFrame({"row": row, "seed": [2, 3, 4], "state": "done", **values}))
    return newest(pd.concat(frames, ignore_index=True))


def test_the_papers_numbers_stand_where_they_belong() -> None:
    assert tables.printed("gnn.complete") == (45.8, 1.8)
    assert tables.printed("hybrid.ward", "repelled") == (30.2, 0.5)
    assert tables.printed("heuristics")[0] == 0.0 and np.isnan(tables.printed("heuristics")[1])
    assert np.isnan(tables.printed("safeguarded")[0]), "the paper has no such row"


def test_table_three_by_hand() -> None:
    """Mean 21 and sd 1 over three worlds: half the interval is 4.303 / √3."""
    frame = records(gnn__average__TN=[20, 21, 22], gnn__average__TN_sd=[1, 2, 3])
    line = tables.table_three(frame).set_index("").loc["GNN-HAC, average"]
    assert line["TN, paper"] == "25.1 ± 1.4" and line["TN, ours"] == "21.0 ± 2.5"
    assert line["TN, repelled, paper"] == "58.0 ± 2.3" and line["TN, repelled, ours"] == "31.0 ± 2.5"
    assert line["sd over sets, ours"] == "2.0"


def test_without_records_every_table_says_so() -> None:
    three = tables.table_three(EMPTY)
    assert len(three) == 7 and set(three["TN, ours"]) == {"not yet run"}
    assert set(tables.by_protocol(EMPTY, ["gnn.average"], {"standard": "s"}).iloc[0, 2:]) == {"not yet run"}
    assert set(tables.controls(EMPTY, ["gnn.average"], {"standard": "s"}).iloc[0, 2:]) == {"not yet run"}
    assert len(tables.distribution(EMPTY, "standard", "coinjoin")[0]) == 0
    assert np.isnan(tables.mean(EMPTY, "standard", "gnn.average.TN")).all()
    assert tables.real_table(None, ["gnn.average"]).empty


def test_what_a_row_does_not_measure_is_a_dash() -> None:
    frame = records(gnn__average__TN=[20, 21, 22])
    assert tables.cell(frame, "standard", "price.DP") == "–"
    assert tables.cell(frame, "untrained", "price.DP") == "not yet run"


def test_controls_subtract_inside_a_run() -> None:
    paid = [16, 27, 38]  # true negatives of the local graphs that have a payment
    frame = records(gnn__average__TN=[20, 30, 40], gnn__average__parted=[15, 25, 35], gnn__average__TN_paid=paid)
    line = tables.controls(frame, ["gnn.average"], {"standard": "standard"}).iloc[0]
    assert line["TN"].startswith("30.0 ±") and line["TN − parted"] == "2.0 ± 2.5", "1, 2 and 3"


def test_a_distribution_is_the_mean_of_percentiles() -> None:
    frame = records(**{f"distance__own__p{level}": [level, level, level + 3] for level in range(0, 101, 10)})
    distance, share = tables.distribution(frame, "standard", "own")
    assert share[[0, -1]].tolist() == [0.0, 1.0] and distance[5] == pytest.approx(51.0)


def recorded() -> pd.DataFrame:
    """A real list and a test network, three encoders; the one that real lists taught does not judge the early half."""
    days = {"archive": "x", "protocol": "wasabi2", "from": "2021-01-01", "to": "2021-02-01"}
    rates = {"standard": (40.0, 80.0), "repelled": (90.0, 20.0), "by lists": (95.0, 10.0)}
    rows = []
    for kind, half in (("real", "early"), ("real", "late"), ("regtest", "late")):
        for encoder, (apart, own) in rates.items():
            if (half, encoder) == ("early", "by lists"):
                continue
            wallets = kind == "regtest"
            each = {"kind": kind, "half": half, "coinjoins": 7, "clustering": "gnn.average", "encoder": encoder}
            each |= {"TN": apart, "strangers": apart + 1 if wallets else np.nan, "own": own if wallets else np.nan}
            each |= {"wallets_apart": 50.0 if wallets else np.nan, "wallets_together": 30.0 if wallets else np.nan}
            each |= {"pairs": 40, "own_pairs": 4 if wallets else 0}
            each["seen"] = 3.0 if (kind, encoder) == ("real", "by lists") else np.nan
            rows.append(days | each)
    return pd.DataFrame(rows)


def test_real_ones_are_told_before_and_after_and_by_whom_they_were_taught() -> None:
    found = tables.real_table(recorded(), ["gnn.average"])
    assert found["GNN-HAC, average"].tolist() == ["40 → 90 → –", "40 → 90 → 95", "40 → 90 → 95"]
    assert found["when"].iloc[0] == "Jan to Feb 2021"


@pytest.mark.parametrize(
    ("first", "last", "words"),
    [
        ("2021-08-20", "2021-08-24", "Aug 2021"),
        ("2018-07-19", "2018-11-01", "Jul to Nov 2018"),
        ("2018-12-31", "2019-01-01", "Dec 2018 to Jan 2019"),
    ],
)
def test_days_are_told_by_their_months(first: str, last: str, words: str) -> None:
    assert tables.months(first, last) == words


def test_wallets_are_told_where_they_are_known() -> None:
    (line,) = tables.wallet_table(recorded(), ["gnn.average"]).to_dict("records")
    assert (line["kind"], line["clusters"]) == ("regtest", "GNN-HAC, average")
    assert [line[head] for head in tables.WALLETS.values()] == [
        "41 → 91 → 96",
        "80 → 20 → 10",
        "50 → 50 → 50",
        "30 → 30 → 30",
    ]
    assert tables.wallet_table(None, ["gnn.average"]).empty


def test_shares_of_recorded_pairs_in_words() -> None:
    """Four of forty pairs have one wallet, counted once whoever saw them; of two lists 3 % and 20 % were seen."""
    record = recorded()
    assert tables.own_in_words(record) == "10 % (regtest)"
    more = record[record["kind"] == "real"].assign(archive="y", seen=lambda frame: frame["seen"] + 17)
    assert tables.seen_in_words(pd.concat([record, more])) == "3 to 20 %"
    assert tables.own_in_words(None) == tables.seen_in_words(None) == "(not yet recorded)"
    assert tables.own_in_words(record[record["kind"] == "real"]) == "(not yet recorded)"
