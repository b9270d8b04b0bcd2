"""The detectors of the paper's graph-construction pipeline, rule by rule as published.

All rules ask for distinct output addresses. OP_RETURN outputs, which have no address, are not counted as outputs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from btcnb.data.coinjoin.constants import (
    WASABI1_DENOMINATION,
    WASABI1_INPUTS_PER_PEER,
    WASABI2_LEAST,
    WHIRLPOOL_POOL_FEES,
)
from btcnb.data.coinjoin.shape import Shape
from btcnb.data.coinjoin.whirlpool import entries

BoolArray = npt.NDArray[np.bool_]

WASABI1_DRIFT = 1_000_000
WHIRLPOOL_SURPLUS = 20_000


def whirlpool(s: Shape) -> BoolArray:
    """Five in, five out, one pool value; inputs are worth the pool value (remix) or up to 20,000 more (premix)."""
    five = (s.inputs == 5) & (s.outputs == 5) & (s.input_addresses == 5) & (s.k == 5)
    pool = np.isin(s.value, list(WHIRLPOOL_POOL_FEES))
    surplus = (s.least_input == s.value) & (s.largest_input > s.value)
    return s.outputs_distinct & five & pool & surplus & (s.largest_input <= s.value + WHIRLPOOL_SURPLUS)


def whirlpool_tx0(s: Shape) -> BoolArray:
    """Premix outputs of one value, at most two more outputs, one of them near the pool's fee."""
    found = entries(s.txs, WHIRLPOOL_POOL_FEES, surplus=11_000, most_premix=75, fee_factors=(0.5, 3.0))
    return s.outputs_distinct & found


def wasabi2(s: Shape) -> BoolArray:
    """At least 50 inputs, and enough outputs with standard denominations."""
    enough = (2 * s.standard >= s.outputs - 1) & (10 * s.standard >= s.inputs)
    return s.outputs_distinct & (s.inputs >= 50) & (s.least_input >= WASABI2_LEAST) & enough


def wasabi10(s: Shape) -> BoolArray:
    """At least five equal outputs near 0.1 BTC, which make up half of the outputs or all but the coordinator's."""
    return _wasabi1(s) & (2 * s.k >= s.outputs - 1)


def wasabi11(s: Shape) -> BoolArray:
    """As 1.0, with outputs near the doubled denominations instead of the half rule."""
    return _wasabi1(s) & (s.levels >= s.outputs - s.k - 1)


def joinmarket(s: Shape) -> BoolArray:
    """At least three equal outputs, which make up half of the outputs."""
    return s.outputs_distinct & (s.k >= 3) & (2 * s.k >= s.outputs) & (s.k <= s.input_addresses)


def _wasabi1(s: Shape) -> BoolArray:
    peers = (s.k >= 5) & (s.k <= s.input_addresses) & (s.inputs <= WASABI1_INPUTS_PER_PEER * s.k)
    return s.outputs_distinct & peers & (np.abs(s.value_near_tenth - WASABI1_DENOMINATION) <= WASABI1_DRIFT)


RULES: dict[str, Callable[[Shape], BoolArray]] = {
    "whirlpool": whirlpool,
    "whirlpool-tx0": whirlpool_tx0,
    "wasabi2": wasabi2,
    "wasabi1.0": wasabi10,
    "wasabi1.1": wasabi11,
    "joinmarket": joinmarket,
}
"""In order of evaluation, the narrowest rule first: the JoinMarket rule also fires on most mixes of the others, and
what satisfies rule 1.0 also satisfies 1.1 (whose levels count the base denomination too)."""
