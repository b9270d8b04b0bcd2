"""Our detectors: the same protocols, recognised by how their software builds a transaction.

What is added to the published rules is not finer thresholds but structure that the software cannot avoid: the order in
which outputs are written, the one script type that a protocol's participants share, the number of change outputs that n
participants can have, and that every participant must have brought the amount that it takes out.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from btcnb.data.coinjoin.constants import (
    WASABI1_DENOMINATION,
    WASABI1_INPUTS_PER_PEER,
    WASABI2_LEAST,
    WHIRLPOOL_LATER_POOL_FEES,
    WHIRLPOOL_POOL_FEES,
)
from btcnb.data.coinjoin.shape import P2PKH, P2SH, P2WPKH, Shape
from btcnb.data.coinjoin.whirlpool import entries

BoolArray = npt.NDArray[np.bool_]

POOL_FEES = WHIRLPOOL_POOL_FEES | WHIRLPOOL_LATER_POOL_FEES
WHIRLPOOL_PARTICIPANTS = (5, 10)
"""Surge cycles, from May 2023, let more than five participants into a mix."""
WHIRLPOOL_SURPLUS = 110_000
"""Satoshi that a premix input brings for the miner at most; a premix pays all fees of the mix."""
TX0_FEE_FACTORS = (0.5, 1.5)
"""Partner rates and rebates lower the pool fee; the fees of the first years were 1.43 times today's."""
TX0_MOST_PREMIX = 600

WASABI2_LEAST_INPUTS = 10
"""The largest coordinator asked for 50 and more; others run with fewer, so that structure must decide."""
WASABI2_LEAST_VALUES = 5
"""Distinct denominations in a round: wallets split what they have into several."""
WASABI2_STANDARD_SHARE = 0.8

WASABI1_LEAST_PEERS = 5
WASABI1_DRIFT = 0.2
"""The denomination is the least that any peer has left: relative distance allowed from its nominal value."""
WASABI1_BETA = (1_530_403_200, 1_541_030_400)
"""Unix seconds, July to October 2018: before the release of 1.0 denominations from 0.01 to 0.11 BTC were tried."""
WASABI1_MANY_PEERS = 20
"""From so many equal outputs on, no JoinMarket taker would have found enough makers."""
WASABI1_TELLING_OTHERS = 3
"""Outputs beside the equal ones from which on being sorted is no accident."""

JOINMARKET_LEAST_PARTICIPANTS = 4
"""A taker and three makers; the software's default is more."""
JOINMARKET_LEAST_AMOUNT = 27_300
"""Satoshi; makers do not even leave change below this."""
JOINMARKET_TYPES = (P2PKH, P2SH, P2WPKH)
"""One script type at a time was in use among makers: P2PKH, then P2SH-wrapped, since 2020 native SegWit."""
JOINMARKET_FEE_SLACK = 0.01
"""Share of the amount that fees can take from or add to what a participant brings."""


def whirlpool(s: Shape) -> BoolArray:
    """n in, n out (5 to 10), all worth one pool value; at least one remix, at least one premix that pays the miner."""
    low, high = WHIRLPOOL_PARTICIPANTS
    n = s.inputs
    even = (n >= low) & (n <= high) & (s.outputs == n) & (s.k == n) & (s.input_addresses == n) & (s.nulldata == 0)
    # Outputs may be of any type: some users mix straight into a multisig wallet.
    pool = np.isin(s.value, list(POOL_FEES)) & (s.input_type == P2WPKH)
    surplus = (s.least_input == s.value) & (s.largest_input > s.value)
    return s.outputs_distinct & even & pool & surplus & (s.largest_input <= s.value + WHIRLPOOL_SURPLUS)


def whirlpool_tx0(s: Shape) -> BoolArray:
    """One OP_RETURN, equal premix outputs, the pool fee, at most one change; outputs in ascending order (BIP 69)."""
    found = entries(
        s.txs,
        POOL_FEES,
        surplus=WHIRLPOOL_SURPLUS,
        most_premix=TX0_MOST_PREMIX,
        fee_factors=TX0_FEE_FACTORS,
        premix_type=P2WPKH,
        change_in_band=True,
    )
    return s.outputs_distinct & (s.nulldata == 1) & s.outputs_ascend & found


def wasabi2(s: Shape) -> BoolArray:
    """Both sides sorted from large to small, P2WPKH or Taproot only, nearly all outputs standard and of many values."""
    sides = s.inputs_descend & s.outputs_descend & s.segwit_keys_or_taproot
    crowd = (
        (s.inputs >= WASABI2_LEAST_INPUTS) & (s.outputs >= WASABI2_LEAST_INPUTS) & (2 * s.input_addresses >= s.inputs)
    )
    standard = (s.standard >= WASABI2_STANDARD_SHARE * s.outputs) & (s.standard_values >= WASABI2_LEAST_VALUES)
    return s.outputs_distinct & sides & crowd & standard & (s.least_input >= WASABI2_LEAST)


def wasabi10(s: Shape) -> BoolArray:
    """Equal outputs written first, then at most one change per peer and the coordinator's fee."""
    time = s.txs.transactions["block_timestamp"].to_numpy()
    beta = (time >= WASABI1_BETA[0]) & (time < WASABI1_BETA[1])
    # JoinMarket shuffles its outputs: k equal ones in front tell the two apart.
    written = s.leading | (_wasabi1_denomination(s) & (s.k >= WASABI1_MANY_PEERS))
    return _wasabi1(s) & (_wasabi1_denomination(s) | beta) & written & (s.outputs <= 2 * s.k + 1)


def wasabi11(s: Shape) -> BoolArray:
    """As 1.0, but with a level of exactly doubled denominations, or sorted by amount."""
    few_others = s.outputs - s.doubled <= 2 * s.k + 1
    sorted_ = (s.outputs_ascend | s.outputs_descend) & (s.outputs - s.k >= WASABI1_TELLING_OTHERS)
    return _wasabi1(s) & _wasabi1_denomination(s) & few_others & ((s.doubled > 0) | sorted_)


def joinmarket(s: Shape) -> BoolArray:
    """n equal outputs, n or n − 1 different changes; one script type, no address twice; everybody can pay."""
    participants = (s.k >= JOINMARKET_LEAST_PARTICIPANTS) & (s.outputs <= 2 * s.k) & (s.outputs >= 2 * s.k - 1)
    outputs = s.outputs_distinct & (s.repeated == 1) & (s.nulldata == 0) & (s.value >= JOINMARKET_LEAST_AMOUNT)
    inputs = (s.input_addresses == s.inputs) & (s.inputs >= s.k) & (s.shared == 0) & (s.least_input >= 0)
    # The taker may send its two outputs to a wallet of another type.
    one_type = np.isin(s.input_type, JOINMARKET_TYPES) & (s.same_type >= 2 * s.k - 2)
    # n groups of inputs, each worth the amount, need sum of min(input, amount) >= n × amount.
    solvent = s.coverage >= (1 - JOINMARKET_FEE_SLACK) * s.k * s.value
    return participants & outputs & inputs & one_type & solvent


def _wasabi1(s: Shape) -> BoolArray:
    peers = (s.k >= WASABI1_LEAST_PEERS) & (s.k <= s.input_addresses) & (s.inputs <= WASABI1_INPUTS_PER_PEER * s.k)
    return s.outputs_distinct & s.segwit_keys & (s.nulldata == 0) & peers


def _wasabi1_denomination(s: Shape) -> BoolArray:
    return np.abs(s.value_near_tenth - WASABI1_DENOMINATION) <= WASABI1_DRIFT * WASABI1_DENOMINATION


RULES: dict[str, Callable[[Shape], BoolArray]] = {
    "whirlpool": whirlpool,
    "whirlpool-tx0": whirlpool_tx0,
    "wasabi2": wasabi2,
    "wasabi1.1": wasabi11,
    "wasabi1.0": wasabi10,
    "joinmarket": joinmarket,
}
"""In order of precedence: a transaction belongs to the first protocol whose rule it satisfies."""
