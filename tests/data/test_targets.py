"""Which targets are met, by the same rule as the calibration table itself."""

import pandas as pd

from btcnb.data import calibration, load_splits
from btcnb.data.targets import met, target_words

TARGETS = pd.DataFrame(
    {"low": [10.0, 50.0], "high": [20.0, 50.0], "slack": [0.0, 5.0]},
    index=["range", "value"],
)


def test_a_range_is_met_inside_it_and_a_value_within_its_slack():
    for values, expected in (([10, 55], [True, True]), ([9.9, 55.1], [False, False]), ([20.1, 45], [False, True])):
        assert met(TARGETS, pd.Series(values, index=TARGETS.index)).tolist() == expected
    assert met(TARGETS, pd.Series({"value": 50.0})).tolist() == [False, True]  # nothing measured, nothing met


def test_published_values_in_words():
    assert target_words(TARGETS) == ["10 – 20", "50"]


def test_the_calibration_table_marks_by_the_same_rule():
    table = calibration(load_splits("tiny", names=["valid", "train1"])).set_index("quantity")
    assert met(table, table["ours"]).tolist() == table["inside"].tolist()
