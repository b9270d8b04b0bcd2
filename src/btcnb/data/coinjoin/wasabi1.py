"""Wasabi 1: many peers take equal amounts near 0.1 BTC; version 1.1 adds levels that double the amount.

How a round is written (WalletWasabi, `CoordinatorRound`): equal outputs of the base denomination, which is the least
that any peer has left; then, in 1.1, levels at 2, 4, … times the denomination that was announced, each of two peers at
least; one change a peer, unless it is too small; the coordinator's fee. Versions up to the middle of 2019 leave the
outputs in that order, later ones sort them by amount, smallest first. Native SegWit only.
"""

from __future__ import annotations

import numpy as np

from btcnb.data.coinjoin.constants import (
    JOINMARKET_FEE_SHARE,
    WASABI1_DENOMINATION,
    WASABI1_DRIFT,
    WASABI1_INPUTS_PER_PEER,
)
from btcnb.data.coinjoin.fitted import ORDER_BITS, Fitted
from btcnb.data.coinjoin.joinmarket import one_change_each
from btcnb.data.coinjoin.protocol import Conditions, Improved, Protocol, Published
from btcnb.data.coinjoin.shape import BoolArray, Shape
from btcnb.data.transactions import IntArray

LEAST_PEERS = 5
PUBLISHED_DRIFT = 0.1
"""Relative distance of the denomination from 0.1 BTC that the published rules allow."""
MANY_PEERS = 20
"""From so many equal outputs on, no JoinMarket taker would have found enough makers."""
LEAST_OTHERS = 2
"""A change and the coordinator's fee: with one output beside the equal ones, their order says nothing."""


def published10(s: Shape) -> BoolArray:
    """At least five equal outputs near 0.1 BTC, which make up half of the outputs or all but the coordinator's."""
    return _published_peers(s) & _denomination(s, PUBLISHED_DRIFT) & (2 * s.k >= s.outputs - 1)


def published11(s: Shape) -> BoolArray:
    """As 1.0, with outputs near the doubled denominations instead of the half rule."""
    return _published_peers(s) & _denomination(s, PUBLISHED_DRIFT) & (s.levels >= s.outputs - s.k - 1)


def _published_peers(s: Shape) -> BoolArray:
    inputs = (s.k <= s.input_addresses) & (s.inputs <= WASABI1_INPUTS_PER_PEER * s.k)
    return s.outputs_distinct & (s.k >= LEAST_PEERS) & inputs


def _denomination(s: Shape, drift: float) -> BoolArray:
    return np.abs(s.value_near_tenth - WASABI1_DENOMINATION) <= drift * WASABI1_DENOMINATION


def improved10(s: Shape, fitted: Fitted) -> Conditions:
    """Equal outputs written first, whatever they are worth; or near 0.1 BTC, and then no JoinMarket."""
    # Where nearly all inputs are worth about what is taken out, and none exactly, they come from earlier rounds.
    remix = s.mirrored >= s.k - 1
    first = s.leading & ((s.outputs - s.k >= LEAST_OTHERS) | remix)
    # JoinMarket shuffles, and has exactly one change for all or all but one: what differs from that is told apart.
    no_joinmarket = ~one_change_each(s) | (s.k >= MANY_PEERS)
    return _peers(s, s.outputs - s.k) | {
        "neither equal outputs first nor 0.1 BTC": first | _denomination(s, WASABI1_DRIFT),
        "written in JoinMarket's shape": first | no_joinmarket,
    }


def improved11(s: Shape, fitted: Fitted) -> Conditions:
    """As 1.0, but with levels of doubled denominations, or sorted by amount."""
    # A single level may be an accident unless it is close to twice the base; two that double exactly are none.
    levels = (s.chain >= 2) | ((s.chain == 1) & (s.level_gap <= fitted.level_gap))
    sorted_ = s.outputs_ascend & (s.output_order >= ORDER_BITS)
    others = s.outputs - s.k - np.where(levels, s.doubled, 0)
    return _peers(s, others) | {"neither levels nor sorted outputs": levels | sorted_}


def _peers(s: Shape, others: IntArray) -> Conditions:
    return {
        "an address is paid twice": s.outputs_distinct,
        "fewer than five peers": s.k >= LEAST_PEERS,
        "fewer input addresses than peers": s.k <= s.input_addresses,
        "more than seven inputs a peer": s.inputs <= WASABI1_INPUTS_PER_PEER * s.k,
        "not native SegWit only": s.segwit_keys & (s.nulldata == 0),
        "more changes than peers": others <= s.k + 1,
        "not everybody can pay the amount": s.coverage >= (1 - JOINMARKET_FEE_SHARE) * s.k * s.value,
    }


# What satisfies the published rule 1.0 also satisfies 1.1, whose levels count the base denomination too.
WASABI10 = Protocol("wasabi1.0", Published(4, published10), Improved(5, improved10), rate="wasabi10")
WASABI11 = Protocol("wasabi1.1", Published(5, published11), Improved(4, improved11), rate="wasabi11")
