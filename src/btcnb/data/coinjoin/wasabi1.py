"""Wasabi 1: many peers take equal amounts near 0.1 BTC; version 1.1 adds levels that double the amount."""

from __future__ import annotations

import numpy as np

from btcnb.data.coinjoin.constants import WASABI1_DENOMINATION, WASABI1_INPUTS_PER_PEER
from btcnb.data.coinjoin.protocol import Detector, Protocol
from btcnb.data.coinjoin.shape import BoolArray, Shape

LEAST_PEERS = 5
PUBLISHED_DRIFT = 0.1
IMPROVED_DRIFT = 0.2
"""The denomination is the least that any peer has left: relative distance allowed from its nominal value."""
BETA = (1_530_403_200, 1_541_030_400)
"""Unix seconds, July to October 2018: before the release of 1.0 denominations from 0.01 to 0.11 BTC were tried."""
MANY_PEERS = 20
"""From so many equal outputs on, no JoinMarket taker would have found enough makers."""
TELLING_OTHERS = 3
"""Outputs beside the equal ones from which on being sorted is no accident."""


def published10(s: Shape) -> BoolArray:
    """At least five equal outputs near 0.1 BTC, which make up half of the outputs or all but the coordinator's."""
    return _peers(s) & _denomination(s, PUBLISHED_DRIFT) & (2 * s.k >= s.outputs - 1)


def published11(s: Shape) -> BoolArray:
    """As 1.0, with outputs near the doubled denominations instead of the half rule."""
    return _peers(s) & _denomination(s, PUBLISHED_DRIFT) & (s.levels >= s.outputs - s.k - 1)


def improved10(s: Shape) -> BoolArray:
    """Equal outputs written first, then at most one change per peer and the coordinator's fee."""
    denomination = _denomination(s, IMPROVED_DRIFT)
    beta = (s.rows.time >= BETA[0]) & (s.rows.time < BETA[1])
    # JoinMarket shuffles its outputs: k equal ones in front tell the two apart.
    written = s.leading | (denomination & (s.k >= MANY_PEERS))
    return _peers(s) & _keys(s) & (denomination | beta) & written & (s.outputs <= 2 * s.k + 1)


def improved11(s: Shape) -> BoolArray:
    """As 1.0, but with a level of exactly doubled denominations, or sorted by amount."""
    few_others = s.outputs - s.doubled <= 2 * s.k + 1
    sorted_ = (s.outputs_ascend | s.outputs_descend) & (s.outputs - s.k >= TELLING_OTHERS)
    return _peers(s) & _keys(s) & _denomination(s, IMPROVED_DRIFT) & few_others & ((s.doubled > 0) | sorted_)


def _peers(s: Shape) -> BoolArray:
    inputs = (s.k <= s.input_addresses) & (s.inputs <= WASABI1_INPUTS_PER_PEER * s.k)
    return s.outputs_distinct & (s.k >= LEAST_PEERS) & inputs


def _keys(s: Shape) -> BoolArray:
    return s.segwit_keys & (s.nulldata == 0)


def _denomination(s: Shape, drift: float) -> BoolArray:
    return np.abs(s.value_near_tenth - WASABI1_DENOMINATION) <= drift * WASABI1_DENOMINATION


# What satisfies the published rule 1.0 also satisfies 1.1, whose levels count the base denomination too.
WASABI10 = Protocol("wasabi1.0", Detector(4, published10), Detector(5, improved10), rate="wasabi10")
WASABI11 = Protocol("wasabi1.1", Detector(5, published11), Detector(4, improved11), rate="wasabi11")
