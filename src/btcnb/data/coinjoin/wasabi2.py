"""Wasabi 2 (WabiSabi): wallets split what they bring into standard denominations."""

from __future__ import annotations

from btcnb.data.coinjoin.constants import WASABI2_LEAST
from btcnb.data.coinjoin.protocol import Detector, Protocol
from btcnb.data.coinjoin.shape import BoolArray, Shape

LEAST_INPUTS = 10
"""The largest coordinator asked for 50 and more; others run with fewer, so that structure must decide."""
LEAST_VALUES = 5
"""Distinct denominations in a round: wallets split what they have into several."""
STANDARD_SHARE = 0.8


def published(s: Shape) -> BoolArray:
    """At least 50 inputs, and enough outputs with standard denominations."""
    enough = (2 * s.standard >= s.outputs - 1) & (10 * s.standard >= s.inputs)
    return s.outputs_distinct & (s.inputs >= 50) & (s.least_input >= WASABI2_LEAST) & enough


def improved(s: Shape) -> BoolArray:
    """Both sides sorted from large to small, P2WPKH or Taproot only, nearly all outputs standard and of many values."""
    sides = s.inputs_descend & s.outputs_descend & s.segwit_keys_or_taproot
    crowd = (s.inputs >= LEAST_INPUTS) & (s.outputs >= LEAST_INPUTS) & (2 * s.input_addresses >= s.inputs)
    standard = (s.standard >= STANDARD_SHARE * s.outputs) & (s.standard_values >= LEAST_VALUES)
    return s.outputs_distinct & sides & crowd & standard & (s.least_input >= WASABI2_LEAST)


WASABI2 = Protocol("wasabi2", Detector(3, published), Detector(3, improved), rate="wasabi2")
