"""JoinMarket: a taker pays makers for mixing one amount of the taker's choice."""

from __future__ import annotations

import numpy as np

from btcnb.data.coinjoin.constants import JOINMARKET_FEE_SHARE, JOINMARKET_LEAST_CHANGE
from btcnb.data.coinjoin.fitted import Fitted
from btcnb.data.coinjoin.protocol import Conditions, Improved, Protocol, Published
from btcnb.data.coinjoin.shape import P2PKH, P2SH, P2WPKH, BoolArray, Shape

LEAST_PARTICIPANTS = 3
"""A taker and two makers; the software's default is more."""
TYPES = (P2PKH, P2SH, P2WPKH)
"""One script type at a time is in use among makers: P2PKH, then P2SH-wrapped, since 2020 native SegWit."""


def published(s: Shape) -> BoolArray:
    """At least three equal outputs, which make up half of the outputs."""
    return s.outputs_distinct & (s.k >= 3) & (2 * s.k >= s.outputs) & (s.k <= s.input_addresses)


def one_change_each(s: Shape) -> BoolArray:
    """n equal outputs and a change for every maker; the taker has one unless it empties its coins."""
    return (s.outputs == 2 * s.k) | (s.outputs == 2 * s.k - 1)


def _one_type(s: Shape) -> BoolArray:
    """All but one participant spend from and are paid to one type; that one's inputs and two outputs may differ."""
    most = (s.main_inputs >= s.k - 1) & (s.main_outputs >= s.outputs - 2) & np.isin(s.main_type, TYPES)
    return most & (s.input_types <= 2)


def improved(s: Shape, fitted: Fitted) -> Conditions:
    """n equal outputs, n or n − 1 changes, in no order; one script type, no address twice; everybody can pay."""
    return {
        "an address is paid twice": s.outputs_distinct,
        "fewer than three participants": (s.k >= LEAST_PARTICIPANTS) & (s.inputs >= s.k),
        "changes do not match participants": one_change_each(s),
        "fewer input addresses than participants": s.input_addresses >= s.k,
        "an OP_RETURN output": s.nulldata == 0,
        "amount below the dust threshold": s.value >= JOINMARKET_LEAST_CHANGE,
        # Makers refuse dust as change; the taker's is dropped only below a tenth of that.
        "makers' change below the dust threshold": s.small_others <= 1,
        # Fresh addresses, but for the one that the taker names.
        "pays addresses that it spends from": s.shared <= 1,
        "participants of several script types": _one_type(s),
        # n groups of inputs, each worth the amount, need sum of min(input, amount) >= n × amount.
        "not everybody can pay the amount": s.coverage >= (1 - JOINMARKET_FEE_SHARE) * s.k * s.value,
        "inputs do not divide among the changes": s.placed,
        "outputs are sorted, JoinMarket shuffles": ~(s.outputs_ascend | s.outputs_descend),
    }


JOINMARKET = Protocol("joinmarket", Published(6, published), Improved(6, improved), rate="joinmarket")
