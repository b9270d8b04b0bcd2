"""Whirlpool: a Tx0 cuts one user's coins to a pool's size, mixes shuffle equal coins among five users or more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from btcnb.data.coinjoin.constants import WHIRLPOOL_LATER_POOL_FEES, WHIRLPOOL_POOL_FEES, WHIRLPOOL_SURPLUS
from btcnb.data.coinjoin.fitted import Fitted
from btcnb.data.coinjoin.protocol import Conditions, Improved, Protocol, Published
from btcnb.data.coinjoin.shape import NULLDATA, P2WPKH, UNKNOWN_TYPE, BoolArray, Rows, Shape
from btcnb.data.transactions import IntArray

POOL_FEES = WHIRLPOOL_POOL_FEES | WHIRLPOOL_LATER_POOL_FEES
PARTICIPANTS = (5, 10)
"""Surge cycles, from May 2023, let more than five participants into a mix."""


def published_mix(s: Shape) -> BoolArray:
    """Five in, five out, one pool value; inputs are worth the pool value (remix) or up to 20,000 more (premix)."""
    five = (s.inputs == 5) & (s.outputs == 5) & (s.input_addresses == 5) & (s.k == 5)
    paid = (s.least_input == s.value) & (s.largest_input > s.value) & (s.largest_input <= s.value + 20_000)
    pool = np.isin(s.value, list(WHIRLPOOL_POOL_FEES))
    return s.outputs_distinct & five & pool & paid & (s.unknown_inputs == 0)


def improved_mix(s: Shape, fitted: Fitted) -> Conditions:
    """n in, n out (5 to 10), all worth one pool value; at least one remix, at least one premix that pays the miner."""
    low, high = PARTICIPANTS
    n = s.inputs
    return {
        "an address is paid twice": s.outputs_distinct,
        "not 5 to 10 inputs and as many outputs": (n >= low) & (n <= high) & (s.outputs == n) & (s.nulldata == 0),
        "outputs are not one pool's": (s.k == s.outputs) & np.isin(s.value, list(POOL_FEES)),
        "an input address twice": s.input_addresses == n,
        # Outputs may be of any type: some users mix straight into a multisig wallet.
        "inputs not native SegWit": np.isin(s.input_type, (P2WPKH, UNKNOWN_TYPE)),
        "inputs are not one pool's": (s.below_value == 0) & (s.largest_input <= s.value + WHIRLPOOL_SURPLUS),
        "no remix or no premix": (s.at_value + s.unknown_inputs >= 1) & (s.at_value < n),
    }


class Limits(NamedTuple):
    """What a rule asks of a Tx0. Columns with one row per pool, then what holds for all pools."""

    pool: IntArray  # satoshi
    surplus: IntArray  # most that a premix output is worth beyond the pool's value
    fee_low: npt.NDArray[np.float64]
    fee_high: npt.NDArray[np.float64]
    most_premix: int
    premix_type: int  # script type of premix outputs, -1 for any
    change_in_band: bool  # whether another output may be worth as much as premix: change nearly can

    @classmethod
    def of(
        cls,
        fees: Mapping[int, int],
        factors: tuple[float, float],
        surplus: int,
        most: int,
        kind: int,
        band: bool,
    ) -> Limits:
        """Pools with their fees, and the factors between which a paid fee may lie; the rest as the fields."""
        pool = np.array(sorted(fees, reverse=True), dtype=np.int64)
        fee = np.array([fees[int(value)] for value in pool], dtype=np.float64)
        return cls(pool, np.minimum(surplus, pool), fee * factors[0], fee * factors[1], most, kind, band)


PUBLISHED_TX0 = Limits.of(WHIRLPOOL_POOL_FEES, (0.5, 3.0), 11_000, 75, -1, False)
FEE_FACTORS = (0.5, 1.5)
"""Partner rates and rebates lower the pool fee; the fees of the first years were 1.43 times today's."""
MOST_PREMIX = 600
"""Cap of the client of 2020; later ones stop at 70."""


def published_tx0(s: Shape) -> BoolArray:
    """Premix outputs of one value, at most two more outputs, one of them near the pool's fee."""
    return s.outputs_distinct & _entries(s.rows, PUBLISHED_TX0)


def improved_tx0(s: Shape, fitted: Fitted) -> Conditions:
    """One OP_RETURN, equal premix outputs, the pool fee, at most one change; outputs in ascending order (BIP 69)."""
    limits = Limits.of(POOL_FEES, FEE_FACTORS, WHIRLPOOL_SURPLUS, MOST_PREMIX, P2WPKH, True)
    return {
        "an address is paid twice": s.outputs_distinct,
        "not exactly one OP_RETURN output": s.nulldata == 1,
        "outputs not in ascending order": s.outputs_ascend,
        "not premix, pool fee and at most one change": _entries(s.rows, limits),
    }


@njit(cache=True)
def _entries(rows: Rows, limits: Limits) -> BoolArray:
    """Per transaction, whether for some pool its outputs are premix, a fee, and little else.

    Premix: the outputs worth pool value + 1 .. + surplus; they all have one value, there are not too many of them, and
    at most two other outputs that can be spent, of which one is worth about the pool's fee.
    """
    start, value, kind = rows.out_start, rows.out_value, rows.out_type
    found = np.zeros(len(start) - 1, dtype=np.bool_)
    for t in range(len(found)):
        for p in range(len(limits.pool)):
            low, high = limits.pool[p] + 1, limits.pool[p] + limits.surplus[p]
            tried = 0
            for candidate in range(start[t], start[t + 1]):
                if not low <= value[candidate] <= high or found[t]:
                    continue
                tried += 1
                if tried > 3:  # at most two outputs are not premix: one of the first three in the band must be
                    break
                premix, others, fee_paid, fits = 0, 0, False, True
                for i in range(start[t], start[t + 1]):
                    if kind[i] == NULLDATA:
                        continue
                    if value[i] == value[candidate]:
                        premix += 1
                        fits &= limits.premix_type < 0 or kind[i] == limits.premix_type
                    else:
                        others += 1
                        fits &= limits.change_in_band or not low <= value[i] <= high
                        fee_paid |= limits.fee_low[p] <= value[i] <= limits.fee_high[p]
                found[t] = fits and fee_paid and premix <= limits.most_premix and others <= 2
    return found


WHIRLPOOL = Protocol("whirlpool", Published(1, published_mix), Improved(1, improved_mix), rate="whirlpool")
WHIRLPOOL_TX0 = Protocol("whirlpool-tx0", Published(2, published_tx0), Improved(2, improved_tx0), rate="whirlpool_tx0")
