"""The world the actors live in: one ledger, one clock, one source of randomness, and everybody's address book."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from btcnb.data.simulate.amounts import Money
from btcnb.data.simulate.config import SimulationConfig
from btcnb.data.simulate.disorder import NUMBER as MECHANISM_NUMBER
from btcnb.data.simulate.disorder import Dial
from btcnb.data.simulate.eras import Era
from btcnb.data.simulate.ledger import Ledger
from btcnb.data.simulate.orders import NO_ADDRESS, Orders

Array = npt.NDArray[np.int64]

NOBODY = np.zeros(0, dtype=np.int64)
DAILY_SWING = 0.2
"""How much more is paid at two in the afternoon (UTC) than on average, as a share."""
PATIENCE = 0.1
"""How fast the pace follows what came: an exponent, so that a surplus of 10 % slows everybody by 1 % a block."""
COINBASE_MATURITY = 100
"""Blocks before a coinbase may be spent (consensus rule)."""


@dataclass
class Registry:
    """Who exists: entities with a kind and a name, and the wallets each of them runs."""

    kinds: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    wallet_entity: list[int] = field(default_factory=list)
    wallet_program: list[int] = field(default_factory=list)
    wallet_weight: list[float] = field(default_factory=list)
    wallet_keeper: list[int] = field(default_factory=list)
    wallet_mechanism: list[int] = field(default_factory=list)

    def entity(self, kind: str, name: str) -> int:
        self.kinds.append(kind)
        self.names.append(name)
        return len(self.kinds) - 1

    def wallet(self, entity: int, program: int, *, weight: float = 0.0, keeper: int = -1, mechanism: str = "") -> int:
        """A new wallet.

        weight:    how much it transacts among wallets of its class, for dealing out habits; 0: hardly
        keeper:    the wallet that holds and spends its coins, -1 for itself
        mechanism: what its ordinary transactions are known for
        """
        number = len(self.wallet_entity)
        self.wallet_entity.append(entity)
        self.wallet_program.append(program)
        self.wallet_weight.append(weight)
        self.wallet_keeper.append(number if keeper < 0 else keeper)
        self.wallet_mechanism.append(MECHANISM_NUMBER[mechanism])
        return number


class Withdrawals:
    """Requests of customers to their exchanges, made in this block: exchange, wallet, address, value."""

    def __init__(self) -> None:
        self._requests = [(NOBODY, NOBODY, NOBODY, NOBODY)]

    def request(self, exchange: Array, wallet: Array, address: Array, value: Array) -> None:
        self._requests.append((exchange, wallet, address, value))

    def drain(self) -> list[Array]:
        """The four columns of all requests, which are then forgotten."""
        columns = [np.concatenate(column) for column in zip(*self._requests, strict=True)]
        del self._requests[1:]
        return columns


@dataclass
class World:
    """Shared state. Wallets 0..users-1 belong to users 0..users-1."""

    config: SimulationConfig
    rng: np.random.Generator
    registry: Registry
    ledger: Ledger
    money: Money
    withdrawals: Withdrawals
    orders: Orders
    customer_exchange: Array  # per user: the exchange (position among exchanges) of their account
    customer_address: Array  # per user: their deposit address there
    customer_wallet: Array  # per user: the exchange's wallet that hands out deposit addresses
    rate: float  # going fee rate, satoshi per virtual byte
    era: Era
    dial: Dial
    times: Array  # unix seconds of each block
    pace: float = 0.8  # multiple of everybody's rates that keeps to the wanted number of transactions

    @property
    def height(self) -> int:
        return self.ledger.height

    @property
    def busy(self) -> float:
        """Payments wanted in this block, on average: people sleep, and blocks that took long are fuller."""
        hour = self.times[self.height - self.config.start_block] / 3600.0
        cycle = 1.0 + DAILY_SWING * np.sin(2 * np.pi * (hour - 8.0) / 24.0)
        return self.pace * self.config.transactions_per_block * float(cycle)

    def keep_pace(self) -> None:
        """After a block: everybody acts a little more, or less, where fewer, or more, transactions came than wanted."""
        blocks = self.height - self.config.start_block + 1
        wanted = blocks * self.config.transactions_per_block
        self.pace = float(np.clip(self.pace * (wanted / self.ledger.num_transactions) ** PATIENCE, 0.2, 3.0))

    def deposits(self, customers: Array) -> tuple[Array, Array]:
        """Where customers send coins for their account: (wallet, address), the address their standing one or
        NO_ADDRESS where the exchange tells a new one."""
        fresh = self.rng.random(len(customers)) < self.dial("fresh-deposits")
        return self.customer_wallet[customers], np.where(fresh, NO_ADDRESS, self.customer_address[customers])

    @property
    def ahead(self) -> float:
        """Share of the interval that still lies ahead: 1 at the first block, 0 after the last."""
        return 1.0 - (self.height - self.config.start_block) / self.config.blocks

    def endow(self, wallets: Array, values: Array) -> None:
        """Coins from before the first block, each on an address the wallet would hand out."""
        self.ledger.endow(self.ledger.receive_addresses(wallets), values)
