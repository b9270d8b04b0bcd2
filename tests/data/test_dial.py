"""The dial: nothing fails at 0, more fails the further it is turned."""

from __future__ import annotations

import numpy as np
import pytest
from builders import chain

from btcnb.data import Source, load_transactions
from btcnb.data.dial import failures
from btcnb.errors import DataError


def test_a_mistake_in_three_merges() -> None:
    story = chain().pay(["a", "b"], {"x": 1}).pay(["b", "c"], {"y": 1}).pay(["d", "e"], {"z": 1})
    row = failures(story.owners(anna="a b", carl="c", dora="d e").build())
    assert row["wrong"] == pytest.approx(1 / 3)
    assert row["precision"] == pytest.approx(2 / 4)  # a-b and d-e of a-b, a-c, b-c, d-e
    assert row["in_collapsed"] == pytest.approx(3 / 5)  # of five addresses with a known owner
    assert row["most_owners"] == 2
    assert np.isnan(row["TP"]) and np.isnan(row["services"])  # nobody has a public name


def test_owners_are_needed() -> None:
    with pytest.raises(DataError, match="truth"):
        failures(chain().pay("a", {"b": 1}).build())


def test_turning_the_dial_makes_it_worse() -> None:
    tidy, bad = (
        failures(load_transactions(Source.of(size="tiny", seed=3, disorder=setting), "train1", sampled=False))
        for setting in (0.0, 2.0)
    )
    assert tidy["wrong"] == tidy["in_collapsed"] == tidy["FP"] == 0
    assert tidy["precision"] == 1
    assert bad["wrong"] > 0
    assert bad["precision"] < 1
    assert bad["FP"] > 0
    assert sum(bad[name] for name in ("TP", "FP", "FN", "TN")) == pytest.approx(100)
