"""Counts of detectors on lists of real mixes, read into a table and into shares."""

import pandas as pd

from btcnb.data.listed_mixes import SEEN, called, listed_table, right_names, tidy

ROWS = [
    (SEEN[1], "WasabiCoinJoins", "published", "wasabi1.0", 80),
    (SEEN[1], "WasabiCoinJoins", "published", "joinmarket", 72),
    (SEEN[1], "WasabiCoinJoins", "improved", "wasabi1.0", 152),
    (SEEN[1], "WasabiPostMixTxs", "published", None, 5),
    (SEEN[1], "WasabiPostMixTxs", "improved", None, 5),
    ("wasabi1-2021", "WasabiCoinJoins", "published", "wasabi1.1", 52),
    ("wasabi1-2021", "WasabiCoinJoins", "published", "wasabi1.0", 46),
    ("wasabi1-2021", "WasabiCoinJoins", "improved", None, 57),
    ("wasabi1-2021", "WasabiCoinJoins", "improved", "wasabi1.1", 41),
    ("other", "OtherCoinJoins", "published", "joinmarket", 9),
]
COUNTS = tidy(pd.DataFrame(ROWS, columns=["archive", "file", "rules", "name", "transactions"]))


def test_lists_of_mixes_come_first_and_archives_are_kept_apart():
    table = listed_table(COUNTS)
    assert table["file"].tolist() == ["OtherCoinJoins", "WasabiCoinJoins", "WasabiCoinJoins", "WasabiPostMixTxs"]
    assert table["transactions"].tolist() == [9, 152, 98, 5]
    assert table["improved rules say"].tolist() == ["", "wasabi1.0 152", "none 57, wasabi1.1 41", "none 5"]
    assert table["it lists"].tolist()[1:] == ["wasabi1.0 or wasabi1.1", "wasabi1.0 or wasabi1.1", "mostly ordinary"]


def test_what_a_rule_set_calls_a_file():
    assert called(COUNTS, SEEN[1], "WasabiCoinJoins", "published", "joinmarket") == (72, 152)
    assert called(COUNTS, "wasabi1-2021", "WasabiCoinJoins", "improved", "") == (57, 98)
    assert called(COUNTS, "absent", "WasabiCoinJoins", "improved", "") == (0, 0)


def test_archives_that_the_rules_have_seen_are_counted_apart():
    assert right_names(COUNTS, "published", seen=True) == (80, 152)
    assert right_names(COUNTS, "improved", seen=True) == (152, 152)
    assert right_names(COUNTS, "published", seen=False) == (98, 98)
    assert right_names(COUNTS, "improved", seen=False) == (41, 98)
