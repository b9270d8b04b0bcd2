"""JoinMarket: a taker pays makers for mixing one amount of the taker's choice."""

from __future__ import annotations

import numpy as np

from btcnb.data.coinjoin.constants import JOINMARKET_LEAST_CHANGE
from btcnb.data.coinjoin.protocol import Detector, Protocol
from btcnb.data.coinjoin.shape import P2PKH, P2SH, P2WPKH, BoolArray, Shape

LEAST_PARTICIPANTS = 4
"""A taker and three makers; the software's default is more."""
LEAST_AMOUNT = JOINMARKET_LEAST_CHANGE
"""Makers do not even leave change below this."""
TYPES = (P2PKH, P2SH, P2WPKH)
"""One script type at a time was in use among makers: P2PKH, then P2SH-wrapped, since 2020 native SegWit."""
FEE_SLACK = 0.01
"""Share of the amount that fees can take from or add to what a participant brings."""


def published(s: Shape) -> BoolArray:
    """At least three equal outputs, which make up half of the outputs."""
    return s.outputs_distinct & (s.k >= 3) & (2 * s.k >= s.outputs) & (s.k <= s.input_addresses)


def improved(s: Shape) -> BoolArray:
    """n equal outputs, n or n − 1 different changes; one script type, no address twice; everybody can pay."""
    participants = (s.k >= LEAST_PARTICIPANTS) & (s.outputs <= 2 * s.k) & (s.outputs >= 2 * s.k - 1)
    outputs = s.outputs_distinct & (s.repeated == 1) & (s.nulldata == 0) & (s.value >= LEAST_AMOUNT)
    inputs = (s.input_addresses == s.inputs) & (s.inputs >= s.k) & (s.shared == 0) & (s.least_input >= 0)
    # The taker may send its two outputs to a wallet of another type.
    one_type = np.isin(s.input_type, TYPES) & (s.same_type >= 2 * s.k - 2)
    # n groups of inputs, each worth the amount, need sum of min(input, amount) >= n × amount.
    solvent = s.coverage >= (1 - FEE_SLACK) * s.k * s.value
    return participants & outputs & inputs & one_type & solvent


JOINMARKET = Protocol("joinmarket", Detector(6, published), Detector(6, improved), rate="joinmarket")
