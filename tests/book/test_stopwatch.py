"""Live measurements: how often a call runs, what it costs, and how costs grow."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

from btcnb.book import stopwatch
from btcnb.book.stopwatch import exponent, measure
from btcnb.errors import ParameterError


def test_the_fastest_run_counts_and_all_are_run():
    calls = []
    cost = measure(lambda: calls.append(1), repeats=3)
    assert len(calls) == 3 and 0 <= cost.seconds < 1


def test_a_slow_call_runs_once(monkeypatch):
    monkeypatch.setattr(stopwatch, "SLOW", -1.0)
    calls = []
    measure(lambda: calls.append(1), repeats=5)
    assert len(calls) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps a high-water mark that can be reset")
def test_memory_is_seen_although_it_was_given_back():
    size = 60_000_000
    assert 0.8 * size < measure(lambda: np.ones(size, dtype=np.uint8).sum(), repeats=2).extra_bytes < 2 * size


def test_nothing_is_no_measurement():
    with pytest.raises(ParameterError):
        measure(lambda: None, repeats=0)


def test_the_exponent_of_a_power_law():
    n = np.array([800, 100, 200, 400])
    assert exponent(n, 3e-6 * n.astype(float) ** 2) == pytest.approx(2)
    assert exponent(n, [8, 1000, 2, 4]) == pytest.approx(1)  # the three largest sizes only
    assert exponent(n, [8, 0, 0, 4]) == pytest.approx(1)  # a zero was below what can be measured
    assert math.isnan(exponent(n, [1, 0, 0, 0])) and math.isnan(exponent([], []))
