"""Guesses of change beside their published kin."""

from __future__ import annotations

import pandas as pd
import pytest
from builders import chain

from btcnb.data.change_votes import published_votes, rule_precision
from btcnb.data.judging.owners import ONLY_FRESH, guesses_of_change


def test_one_right_guess_one_wrong_and_what_is_published() -> None:
    story = chain().pay([("a", 1_234_567)], {"shop": 999_999, "a2": 234_568})  # the shop is paid again: a2 is change
    story = story.pay([("b", 1_234_567)], {"shop": 999_999, "x": 234_568}).pay([("c", 500)], {"shop": 500})
    txs = story.owners(anna="a a2", bob="b", carl="x c", shop="shop").build()
    table = guesses_of_change(txs)
    pd.testing.assert_frame_equal(table[["votes", "owner", "change"]], rule_precision(txs))
    assert table.loc["change", "votes"] == 2
    assert table.loc["change", "owner"] == pytest.approx(0.5)
    assert table.loc["change", ["published_low", "published_high"]].tolist() == sorted(ONLY_FRESH.values())
    votes = published_votes()["precision"]
    assert table.loc["round_value", "published_low"] == votes["power_of_ten_2"]
    assert table.loc["round_value", "published_high"] == votes["power_of_ten_7"]
    assert (table["published_low"] <= table["published_high"]).all()
