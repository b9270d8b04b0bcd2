"""Wasabi 2 (WabiSabi): wallets split what they bring into standard denominations."""

from __future__ import annotations

import numpy as np

from btcnb.data.coinjoin.constants import WASABI2_LEAST
from btcnb.data.coinjoin.fitted import ORDER_BITS, Fitted
from btcnb.data.coinjoin.protocol import Conditions, Improved, Protocol, Published
from btcnb.data.coinjoin.shape import BoolArray, Shape

LEAST_INPUTS = 3
"""The largest coordinator asked for 50 and more, its successors for 20, test networks for a handful."""

ODD_BITS = 10.0
"""Evidence, in bits, of an amount like 2 · 3^12 satoshi, which nobody pays by accident."""
HABIT_BITS = 7.0
"""Most that sorted inputs can say: many a wallet spends its largest coins first."""


def published(s: Shape) -> BoolArray:
    """At least 50 inputs, and enough outputs with standard denominations."""
    enough = (2 * s.standard >= s.outputs - 1) & (10 * s.standard >= s.inputs)
    known = (s.unknown_inputs == 0) & (s.least_input >= WASABI2_LEAST)
    return s.outputs_distinct & (s.inputs >= 50) & known & enough


def improved(s: Shape, fitted: Fitted) -> Conditions:
    """Both sides sorted from large to small, and no accident; P2WPKH or Taproot; most outputs standard."""
    known = s.unknown_inputs < s.inputs
    outputs = s.output_order + ODD_BITS * s.odd_values
    return {
        "an address is paid twice": s.outputs_distinct,
        "fewer than three inputs": s.inputs >= LEAST_INPUTS,
        "one sender": 2 * s.input_addresses >= s.inputs,
        "an OP_RETURN output": s.nulldata == 0,
        # Some coordinators let a wallet pay a stranger, of any type, out of the round.
        "not P2WPKH or Taproot": s.input_keys & (s.key_outputs >= fitted.standard_share * s.outputs),
        "an input below 5,000 satoshi": ~known | (s.least_input >= WASABI2_LEAST),
        "not sorted from large to small": s.inputs_descend & s.outputs_descend,
        "sorted perhaps by accident": np.minimum(s.input_order, HABIT_BITS) + outputs >= ORDER_BITS,
        "too few standard denominations": s.standard >= fitted.standard_share * s.outputs,
    }


WASABI2 = Protocol("wasabi2", Published(3, published), Improved(3, improved), rate="wasabi2")
