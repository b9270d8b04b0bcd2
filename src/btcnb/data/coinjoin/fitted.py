"""Constants of the improved rules: what no source fixes is fitted to real mixes here, so that it can be fitted again
without a file, and the rules be judged on that file.

All else that the rules compare with is the protocols' own (`constants.py`, and beside each rule).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from btcnb.data.coinjoin.shape import Shape
from btcnb.data.transactions import Transactions

ORDER_BITS = 10.0
"""Amounts are sorted on purpose, not by accident, where a shuffle would sort them less than once in 2^10 times."""
MARGIN = 10.0
"""Rules allow ten times what the most extreme mix at hand needed: the next file is never as tame as the last."""
LEAST_SHARE = 0.5
"""Whatever is fitted, half of a Wasabi 2 round has standard amounts, as the published rule asks."""


class Fitted(NamedTuple):
    """The defaults are what `fit` finds without a single mix: what the descriptions of the protocols say."""

    level_gap: float = 0.0
    """Wasabi 1.1: relative height of the base denomination above half of the next level, where there is one level.
    The levels are fixed when a round opens, the base when it closes."""
    standard_share: float = 0.8
    """Wasabi 2: least share of outputs that are worth a standard denomination; 0.8 in the Dumplings project."""


FITTED = Fitted(level_gap=0.00128, standard_share=0.5)
"""What `fit` finds on all lists at hand (Wasabi 1 of 2018 and 2021, Wasabi 2 of 2024, two test networks), rounded."""


def fit(lists: Iterable[tuple[str, Transactions]]) -> Fitted:
    """Constants from lists of mixes: (protocol as in `PROTOCOLS`, its mixes). Lists of other protocols say nothing.

    Lists hold strangers, too, so that only mixes count which structure shows to be such: Wasabi 1.1 rounds with two
    levels at least that double exactly; Wasabi 2 rounds whose two sides are sorted, and not by accident.
    """
    gaps, shares = [0.0], []
    for protocol, mixes in lists:
        shape = Shape.of(mixes)
        if protocol == "wasabi1.1":
            gaps += _level_gaps(shape)
        elif protocol == "wasabi2":
            shares += _standard_shares(shape)
    blank = Fitted()
    share = 1 - MARGIN * (1 - min(shares)) if shares else blank.standard_share
    return Fitted(MARGIN * max(gaps), min(blank.standard_share, max(LEAST_SHARE, share)))


def _level_gaps(s: Shape) -> list[float]:
    telling = (s.chain >= 2) & s.segwit_keys
    return [float(gap) for gap in s.level_gap[telling]]


def _standard_shares(s: Shape) -> list[float]:
    telling = s.inputs_descend & s.outputs_descend & (s.input_order + s.output_order >= ORDER_BITS)
    telling &= (s.outputs > 0) & (2 * s.input_addresses >= s.inputs)
    return [float(share) for share in s.standard[telling] / np.maximum(s.outputs[telling], 1)]
