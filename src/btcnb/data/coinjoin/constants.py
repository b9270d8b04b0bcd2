"""Amounts and limits of the wallets' own software, in satoshi: what the measured shapes, the rules and the simulator
share. Limits that belong to one rule stand beside it."""

from __future__ import annotations

import numpy as np

from btcnb.data.transactions import IntArray

WASABI1_DENOMINATION = 10_000_000
"""Wasabi 1 mixes 0.1 BTC; the denomination drifts, being the least that any peer has left after fees."""
WASABI1_LEVELS = 12
"""Wasabi 1.1 adds outputs of twice the denomination, four times, … up to 2^11 times."""
WASABI1_INPUTS_PER_PEER = 7
"""Wasabi 1 lets a peer register at most 7 inputs."""
WASABI1_DRIFT = 0.2
"""Relative distance of the denomination from 0.1 BTC that the Dumplings project allows (0.1 ± 0.02 BTC)."""

WASABI2_LEAST = 5_000
WASABI2_MOST = 137_438_953_472


def wasabi2_denominations() -> IntArray:
    """The standard amounts of Wasabi 2: 2^i, 3^i, 2·3^i, 10^i, 2·10^i, 5·10^i from 5,000 to 2^37 satoshi, ascending."""
    series = ((1, 2), (1, 3), (2, 3), (1, 10), (2, 10), (5, 10))
    values = {factor * base**power for factor, base in series for power in range(38)}
    return np.array(sorted(value for value in values if WASABI2_LEAST <= value <= WASABI2_MOST), dtype=np.int64)


WHIRLPOOL_POOL_FEES = {100_000: 5_000, 1_000_000: 50_000, 5_000_000: 175_000, 50_000_000: 1_750_000}
"""Whirlpool's pools of 0.001, 0.01, 0.05 and 0.5 BTC with the fee that entry by a Tx0 costs."""
WHIRLPOOL_LATER_POOL_FEES = {2_500_000: 125_000, 25_000_000: 1_250_000}
"""Pools of a later operator (2025), 0.025 and 0.25 BTC; their fee is taken as 5 %, as in the two smallest pools."""

WHIRLPOOL_SURPLUS = 110_000
"""Satoshi that a premix brings for the miner at most, as the Dumplings project has it (0.0011 BTC)."""

JOINMARKET_LEAST_CHANGE = 27_300
"""JoinMarket's dust threshold: nobody mixes a smaller amount, and a maker leaves no smaller change."""
JOINMARKET_FEE_SHARE = 0.01
"""Share of the amount that fees can take from or add to what a participant brings; takers allow 0.4 % a maker."""
JOINMARKET_FEE_LIMIT = 40_000
"""Absolute fee to a maker that takers allow at most."""
