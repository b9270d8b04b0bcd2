"""The world the actors live in: one ledger, one clock, one price, one source of randomness, everybody's accounts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from btcnb.data.intervals import SATOSHI_PER_BITCOIN
from btcnb.data.simulator.config import SimulationConfig
from btcnb.data.simulator.ledger import Ledger
from btcnb.data.simulator.parameters import Dial, Era, numbers
from btcnb.data.simulator.spending import NO_ADDRESS, PAY
from btcnb.data.simulator.wallets import Registry

Array = npt.NDArray[np.int64]

AMOUNTS, CLOCK = numbers("amounts"), numbers("clock")
NOBODY = np.zeros(0, dtype=np.int64)
MOST_INPUTS = 600
"""Inputs of one transaction, at most: more would not fit the 100 kB that nodes relay."""
OPTIONS: dict[str, int] = {
    "mode": PAY,
    "least_inputs": 1,
    "most_inputs": MOST_INPUTS,
    "companion": -1,
    "hurry": 100,
    "mechanism": 0,
}
"""Options of an order and their defaults."""
GOLDEN = 0.6180339887498949


def spread(position: int, bounds: tuple[float, float], phase: float) -> float:
    """A number between the bounds, evenly spread over positions 0, 1, 2, … from a phase that an economy draws.

    The habits of the few large services are dealt out so: drawn one by one, they would make two economies differ by
    more than the real chain does from year to year.
    """
    low, high = bounds
    return low + (high - low) * ((phase + position * GOLDEN) % 1.0)


class Money:
    """Draws amounts at a price that moves from block to block: thought in US dollars, paid in satoshi.

    roundness: share of payments that end in at least 2, 3, … zeros
    """

    def __init__(self, rng: np.random.Generator, price_usd: float, roundness: npt.NDArray[np.float64]) -> None:
        self._rng = rng
        self._roundness = roundness
        self.satoshi_per_usd = SATOSHI_PER_BITCOIN / price_usd

    def next_block(self) -> None:
        """The price moves."""
        per_block = AMOUNTS.daily_volatility / 12.0  # the root of 144 blocks is 12
        self.satoshi_per_usd *= float(np.exp(self._rng.normal(0.0, per_block)))

    def arbitrary(self, number: int, scale: float = 1.0) -> Array:
        """Amounts in satoshi, `scale` times the typical payment, shape (number,)."""
        median, spread = AMOUNTS.payment_usd
        usd = scale * median * np.exp(self._rng.normal(0.0, spread, number))
        value = np.rint(usd * self.satoshi_per_usd).astype(np.int64)
        return np.clip(value, AMOUNTS.least, AMOUNTS.most)

    def payments(self, number: int, scale: float = 1.0) -> Array:
        """Amounts as people pay them: some round in bitcoin, some round in dollars, the others neither; shape
        (number,)."""
        value = self.arbitrary(number, scale)
        draw = self._rng.random(number)
        digits = np.array([0, *AMOUNTS.round_digits])[np.searchsorted(-self._roundness, -draw, side="left")]
        digits = np.minimum(digits, np.floor(np.log10(AMOUNTS.rounded_up * value)).astype(np.int64))
        unit = 10**digits
        rounded = np.maximum((value + unit // 2) // unit, 1) * unit
        return np.where(digits > 0, rounded, self._dollars(value))

    def _dollars(self, value: Array) -> Array:
        """Some of the values, moved to a round number of dollars."""
        usd = value / self.satoshi_per_usd
        step = 10.0 ** np.floor(np.log10(np.maximum(usd, 1.0))) / 2  # 27 -> 25, 340 -> 350
        rounded = np.rint(np.maximum(np.rint(usd / step), 1) * step * self.satoshi_per_usd).astype(np.int64)
        chosen = self._rng.random(len(value)) < AMOUNTS.usd_round
        return np.where(chosen, np.maximum(rounded, AMOUNTS.least), value)


class OrderTable(NamedTuple):
    """Orders in columns; order o pays rows first[o]:first[o+1] of the out_ columns."""

    payer: Array  # wallet that pays
    mode: Array  # PAY, SWEEP or PAYJOIN
    least_inputs: Array  # spend at least so many coins, if the wallet has them
    most_inputs: Array
    companion: Array  # wallet whose newest coin is spent as well, -1 for none; in a PAYJOIN the payee gets it back
    mechanism: Array  # position in `MECHANISM_NAMES`, 0: what the payer's wallet is known for
    rate: npt.NDArray[np.float64]  # satoshi per virtual byte
    first: Array  # (orders + 1,)
    out_wallet: Array  # payee, asked for an address where out_address is NO_ADDRESS
    out_address: Array  # address, NO_ADDRESS or OP_RETURN
    out_value: Array


class Orders:
    """Collects the orders of one block. Whatever is not an array holds for all orders of a call.

    Options of every call: `mode`, `least_inputs`, `most_inputs`, `companion`, `mechanism` as in `OrderTable`, and
    `hurry`, the per cent of the block's going fee rate that the payer is ready to pay.
    """

    def __init__(self, rng: np.random.Generator, rate: float) -> None:
        self._rng = rng
        self._rate = rate
        self._orders: list[Array] = []  # (orders, 8): payer, payees, and the options in their order
        self._outs: list[Array] = []  # (payees, 3): wallet, address, value

    def __len__(self) -> int:
        return sum(map(len, self._orders))

    def pay(self, payer: Any, wallet: Any = -1, address: Any = NO_ADDRESS, value: Any = 0, **options: Any) -> None:
        """One order per payer, each with one payee."""
        number = len(payer) if isinstance(payer, np.ndarray) else 1
        if number:
            self._append(number, payer, 1, options)
            self._append_outs(number, wallet, address, value)

    def batch(self, payer: int, wallet: Any, address: Any, value: Array, **options: Any) -> None:
        """One order that pays many."""
        if len(value):
            self._append(1, payer, len(value), options)
            self._append_outs(len(value), wallet, address, value)

    def table(self) -> OrderTable:
        """All orders of the block, in random order."""
        orders, outs = np.concatenate(self._orders), np.concatenate(self._outs)
        start = np.concatenate([[0], np.cumsum(orders[:, 1])])
        order = self._rng.permutation(len(orders))
        orders, start = orders[order], start[order]
        payer, payees, mode, least, most, companion, hurry, mechanism = (np.ascontiguousarray(c) for c in orders.T)
        first = np.concatenate([[0], np.cumsum(payees)])
        wallet, address, value = outs[np.repeat(start - first[:-1], payees) + np.arange(first[-1])].T
        noise = np.exp(self._rng.normal(0.0, CLOCK.rate_spread, len(payer)))
        rate = np.maximum(CLOCK.least_rate, np.rint(hurry / 100 * self._rate * noise))
        columns = (np.ascontiguousarray(column) for column in (wallet, address, value))
        return OrderTable(payer, mode, least, most, companion, mechanism, rate, first, *columns)

    def _append(self, number: int, payer: Any, payees: int, options: dict[str, Any]) -> None:
        rows = np.empty((number, 2 + len(OPTIONS)), dtype=np.int64)
        for column, entry in enumerate((payer, payees, *{**OPTIONS, **options}.values())):
            rows[:, column] = entry
        self._orders.append(rows)

    def _append_outs(self, number: int, wallet: Any, address: Any, value: Any) -> None:
        outs = np.empty((number, 3), dtype=np.int64)
        outs[:, 0], outs[:, 1], outs[:, 2] = wallet, address, value
        self._outs.append(outs)


@dataclass
class World:
    """Shared state. Wallets 0..users-1 belong to users 0..users-1."""

    config: SimulationConfig
    rng: np.random.Generator
    registry: Registry
    ledger: Ledger
    money: Money
    orders: Orders
    customer_exchange: Array  # per user: the exchange (position among exchanges) of their account
    customer_address: Array  # per user: their deposit address there
    customer_wallet: Array  # per user: the exchange's wallet that hands out deposit addresses
    rate: float  # going fee rate, satoshi per virtual byte
    era: Era
    dial: Dial
    times: Array  # unix seconds of each block
    withdrawals: list[tuple[Array, Array, Array, Array]] = field(default_factory=list)
    """Requests of customers in this block, in columns: exchange, wallet, address, value."""
    pace: float = CLOCK.first_pace  # multiple of everybody's rates that keeps to the wanted number of transactions

    @property
    def height(self) -> int:
        return self.ledger.height

    @property
    def busy(self) -> float:
        """Payments wanted in this block, on average: people sleep, and blocks that took long are fuller."""
        hour = self.times[self.height - self.config.start_block] / 3600.0
        cycle = 1.0 + CLOCK.daily_swing * np.sin(2 * np.pi * (hour - CLOCK.morning) / 24.0)
        return self.pace * self.config.transactions_per_block * float(cycle)

    @property
    def ahead(self) -> float:
        """Share of the interval that still lies ahead: 1 at the first block, 0 after the last."""
        return 1.0 - (self.height - self.config.start_block) / self.config.blocks

    def keep_pace(self) -> None:
        """After a block: everybody acts a little more, or less, where fewer, or more, transactions came than wanted."""
        blocks = self.height - self.config.start_block + 1
        wanted = blocks * self.config.transactions_per_block
        self.pace = float(np.clip(self.pace * (wanted / self.ledger.num_transactions) ** CLOCK.patience, *CLOCK.pace))

    def next_rate(self) -> None:
        """The going fee rate wanders around the typical one."""
        pull = CLOCK.rate_stays * np.log(self.rate / self.config.fee_rate)
        rate = self.config.fee_rate * np.exp(pull + self.rng.normal(0.0, CLOCK.rate_step))
        self.rate = float(np.clip(rate, CLOCK.least_rate, CLOCK.largest_rate))

    def between(self, bounds: tuple[int, int]) -> int:
        """A whole number from the first bound to the second, both included."""
        return int(self.rng.integers(bounds[0], bounds[1] + 1))

    def deposits(self, customers: Array) -> tuple[Array, Array]:
        """Where customers send coins for their account: (wallet, address), the address their standing one or
        NO_ADDRESS where the exchange hands out a new one."""
        fresh = self.rng.random(len(customers)) < self.dial("fresh-deposits")
        return self.customer_wallet[customers], np.where(fresh, NO_ADDRESS, self.customer_address[customers])

    def withdraw(self, customers: Array, wallet: Array, address: Array | int, value: Array) -> None:
        """Ask the customers' exchanges to pay."""
        exchange = self.customer_exchange[customers]
        self.withdrawals.append((exchange, wallet, np.broadcast_to(address, exchange.shape), value))

    def endow(self, wallets: Array, values: Array) -> None:
        """Coins from before the first block, each on an address the wallet would hand out."""
        self.ledger.endow(self.ledger.receive_addresses(wallets), values)
