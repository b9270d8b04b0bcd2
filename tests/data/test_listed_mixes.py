"""Counts of detectors on lists of real mixes and on ordinary blocks, read into tables and shares."""

import pandas as pd

from btcnb.data.coinjoin.scoring import COLUMNS, LEFT_OUT
from btcnb.data.listed_mixes import alarm_table, called, in_short, recognised_table, share_recognised, tidy

WASABI, OTHER = ("wasabi1-2021", "WasabiCoinJoins", "wasabi1", 2021), ("jm", "OtherCoinJoins", "joinmarket", 2024)
BLOCKS = ("blocks", "blocks", "ordinary")
ROWS = [
    (*WASABI, "published", "wasabi1.1", 52),
    (*WASABI, "published", "wasabi1.0", 45),
    (*WASABI, "published", "joinmarket", 1),
    (*WASABI, "improved", "wasabi1.1", 93),
    (*WASABI, "improved", "joinmarket", 5),
    (*WASABI, LEFT_OUT, "wasabi1.1", 90),
    (*WASABI, LEFT_OUT, None, 8),
    ("wasabi1-2021", "WasabiPostMixTxs", None, 2021, "published", None, 7),
    (*OTHER, "published", "joinmarket", 9),
    (*OTHER, "improved", None, 9),
    (*BLOCKS, 2019, "published", None, 49_996),
    (*BLOCKS, 2019, "published", "whirlpool-tx0", 4),
    (*BLOCKS, 2020, "published", None, 50_000),
    (*BLOCKS, 2019, "improved", None, 50_000),
    (*BLOCKS, 2020, "improved", None, 49_999),
    (*BLOCKS, 2020, "improved", "whirlpool", 1),
]
COUNTS = tidy(pd.DataFrame(ROWS, columns=COLUMNS))


def test_lists_of_a_protocol_by_year_recognised_at_all_and_under_the_right_name():
    table = recognised_table(COUNTS)
    assert table[["protocol", "year", "listed"]].to_numpy().tolist() == [["joinmarket", 2024, 9], ["wasabi1", 2021, 98]]
    wasabi = table.iloc[1]
    assert wasabi[["recognised, published", "right name, published"]].tolist() == [98, 97]
    assert wasabi[["recognised, improved", "right name, improved"]].tolist() == [98, 93]
    assert wasabi[["recognised, left out", "right name, left out"]].tolist() == [90, 90]
    short = ["wasabi1", "2021", "wasabi1-2021", 98, "98 (97)", "98 (93)", "90 (90)"]
    assert in_short(table).iloc[1].tolist() == short


def test_alarms_on_ordinary_blocks_are_counted_by_detector_over_all_years():
    table = alarm_table(COUNTS).set_index("detector")
    assert table.loc["whirlpool-tx0"].tolist() == [4, 4.0, 0, 0.0]
    assert table.loc["whirlpool"].tolist() == [0, 0.0, 1, 1.0]
    assert table.loc["joinmarket"].tolist() == [0, 0.0, 0, 0.0]
    assert len(alarm_table(COUNTS[COUNTS["protocol"] != "ordinary"])) == len(table)


def test_shares_leave_out_lists_whose_truth_nobody_knows():
    assert share_recognised(COUNTS, "published", right=True) == (97, 98)
    assert share_recognised(COUNTS, "improved", right=False) == (98, 98)
    assert share_recognised(COUNTS, LEFT_OUT, right=False) == (90, 98)
    assert share_recognised(COUNTS[:0], "published", right=True) == (0, 0)


def test_what_a_rule_set_calls_a_file():
    assert called(COUNTS, "wasabi1-2021", "WasabiCoinJoins", "published", "joinmarket") == (1, 98)
    assert called(COUNTS, "wasabi1-2021", "WasabiCoinJoins", LEFT_OUT, "") == (8, 98)
    assert called(COUNTS, "absent", "WasabiCoinJoins", "improved", "") == (0, 0)
