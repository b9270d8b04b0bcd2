"""Amounts of payments: thought in US dollars, rounded the way people round, paid in satoshi."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from btcnb.data.intervals import SATOSHI_PER_BITCOIN
from btcnb.data.simulate import rates

Array = npt.NDArray[np.int64]


ROUNDED_UP = 8
"""A payment is made round only where that does not raise it more than so many times: nobody sends 0.1 for 0.01."""
DAILY_VOLATILITY = 0.035
"""Standard deviation of the logarithm of the price over a day (144 blocks), about that of 2019 to 2021."""


class Money:
    """Draws amounts at a price that moves from block to block.

    roundness: share of payments that end in at least 2, 3, … zeros
    """

    def __init__(self, rng: np.random.Generator, price_usd: float, roundness: npt.NDArray[np.float64]) -> None:
        self._rng = rng
        self._roundness = roundness
        self.satoshi_per_usd = SATOSHI_PER_BITCOIN / price_usd

    def next_block(self) -> None:
        """The price moves."""
        self.satoshi_per_usd *= float(np.exp(self._rng.normal(0.0, DAILY_VOLATILITY / 12.0)))  # the root of 144 is 12

    def arbitrary(self, number: int, scale: float = 1.0) -> Array:
        """Log-normal amounts in satoshi, `scale` times the typical payment, shape (number,)."""
        median, spread = rates.PAYMENT_USD
        usd = scale * median * np.exp(self._rng.normal(0.0, spread, number))
        value = np.rint(usd * self.satoshi_per_usd).astype(np.int64)
        return np.clip(value, rates.LEAST_PAYMENT, rates.MOST_PAYMENT)

    def payments(self, number: int, scale: float = 1.0) -> Array:
        """Amounts as people pay them: some round in bitcoin, some round in dollars, the others neither; shape
        (number,)."""
        value = self.arbitrary(number, scale)
        draw = self._rng.random(number)
        digits = np.concatenate([[0], rates.ROUND_DIGITS])[np.searchsorted(-self._roundness, -draw, side="left")]
        digits = np.minimum(digits, np.floor(np.log10(ROUNDED_UP * value)).astype(np.int64))
        return np.where(digits > 0, _round_to(value, 10**digits), self._dollars(value))

    def _dollars(self, value: Array) -> Array:
        """Some of the values, moved to a round number of dollars."""
        usd = value / self.satoshi_per_usd
        step = 10.0 ** np.floor(np.log10(np.maximum(usd, 1.0))) / 2  # 27 -> 25, 340 -> 350
        rounded = np.rint(np.maximum(np.rint(usd / step), 1) * step * self.satoshi_per_usd).astype(np.int64)
        chosen = self._rng.random(len(value)) < rates.USD_ROUND
        return np.where(chosen, np.maximum(rounded, rates.LEAST_PAYMENT), value)


def _round_to(value: Array, unit: Array) -> Array:
    return np.maximum((value + unit // 2) // unit, 1) * unit


def subsidy(height: int) -> int:
    """Satoshi that a block creates: 50 bitcoins, halved every 210,000 blocks."""
    return (50 * SATOSHI_PER_BITCOIN) >> (height // 210_000)
