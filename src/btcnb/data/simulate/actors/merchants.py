"""Merchants: shops with a fresh address per invoice, sites with one public address, and betting sites that pay back.

Some shops leave invoices to a payment processor, some sites show an address of their account at an exchange: somebody
else then keeps the coins, and spends them with those of strangers (`disorder.py`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from btcnb.data.simulate.actors import spread
from btcnb.data.simulate.config import SimulationConfig
from btcnb.data.simulate.disorder import Dial
from btcnb.data.simulate.orders import NO_ADDRESS, SWEEP
from btcnb.data.simulate.programs import NUMBER
from btcnb.data.simulate.world import Registry, World

Array = npt.NDArray[np.int64]

INVOICE, STATIC, BETTING = range(3)
STYLES = (INVOICE, INVOICE, STATIC, INVOICE, BETTING)
"""Styles are dealt out in turn."""
PROGRAM_OF_STYLE = {INVOICE: ("shop", "shop-wrapped"), STATIC: ("static",), BETTING: ("peeler", "hot-rolling")}
PATIENCE_TAIL = 1.1
"""Exponent of the long tail of how many coins a merchant collects before spending them."""
BUYS_SUPPLIES = 0.6
"""How often a shop that has collected enough buys supplies instead of selling the coins at its exchange."""
SUPPLIERS, SUPPLIER_REACH = 5, 24
"""Suppliers paid at once, and how many ranks away they are at most."""
LEAST_COINS = 4
"""Coins a shop must have collected before it buys supplies."""
LEAST_SUPPLY = 20_000
"""Satoshi."""
BUSY = 0.03
"""Transactions that the largest merchant makes, per transaction of the economy: about, for dealing out marks."""
CLIENTS = 8
"""Shops that a payment processor works for, about."""
SETTLES = 40
"""Coins that a processor collects before it pays its shops, unless one consolidation may not hold so many."""


class Merchants:
    """All merchants; sizes fall like 1/rank."""

    def __init__(
        self, config: SimulationConfig, rng: np.random.Generator, registry: Registry, dial: Dial, tills: Array
    ) -> None:
        """`tills`: per exchange, the wallet that keeps what its customers pay in."""
        number = config.merchants
        phase = float(rng.random())
        self.style = np.array([STYLES[rank % len(STYLES)] for rank in range(number)])
        self.wallet = np.empty(number, dtype=np.int64)
        shops = int((self.style == INVOICE).sum())
        self.processors = np.array(
            [
                registry.wallet(
                    registry.entity("processor", f"processor {i}"),
                    NUMBER["shop"],
                    weight=BUSY * CLIENTS / number,
                    mechanism="payment-processor",
                )
                for i in range(-(-round(dial("payment-processor") * shops) // CLIENTS))
            ],
            dtype=np.int64,
        )
        self._settles = min(SETTLES, config.largest_consolidation)
        self.clients: list[list[int]] = [[] for _ in self.processors]  # ranks of the shops of each processor
        for rank in range(number):
            programs = PROGRAM_OF_STYLE[int(self.style[rank])]
            program = NUMBER[programs[rank // len(STYLES) % len(programs)]]
            kind = "service" if self.style[rank] == BETTING else "merchant"
            weight = BUSY / (rank + 1)
            keeper = self._keeper(rank, rng, dial, tills)
            self.wallet[rank] = registry.wallet(
                registry.entity(kind, f"{kind} {rank}"), program, weight=0.0 if keeper >= 0 else weight, keeper=keeper
            )
        popularity = 1.0 / np.arange(1, number + 1) ** 0.9
        self._cumulative = np.cumsum(popularity) / popularity.sum()
        # how many coins a merchant collects before forwarding them, long-tailed
        most = config.largest_consolidation
        rarity = np.array([spread(rank, 0.0, 1.0, phase) for rank in range(number)])
        self._patience = np.minimum(most, 4.0 * rarity**-PATIENCE_TAIL - 2.0).astype(np.int64)
        self._account = np.empty(0, dtype=np.int64)
        self._standing_address = np.empty(0, dtype=np.int64)

    def _keeper(self, rank: int, rng: np.random.Generator, dial: Dial, tills: Array) -> int:
        """The wallet that keeps a merchant's coins, -1 for its own."""
        draw = rng.random()
        if self.style[rank] == BETTING:
            return -1
        if draw < dial("hosted-address"):
            return int(tills[rng.integers(len(tills))])
        if self.style[rank] == INVOICE and len(self.processors) and 1 - draw < dial("payment-processor"):
            chosen = int(rng.integers(len(self.processors)))
            self.clients[chosen].append(rank)
            return int(self.processors[chosen])
        return -1

    def settle(self, world: World, exchange_wallets: Array) -> None:
        """Accounts at exchanges, and the first coins."""
        rng = world.rng
        at = rng.integers(len(exchange_wallets), size=len(self.wallet))
        self._account = world.ledger.new_addresses(exchange_wallets[at])
        self._standing_address = world.ledger.new_addresses(self.wallet)
        coins = np.where(self.style == BETTING, 20, np.minimum(self._patience, 5))
        owners = np.repeat(self.wallet, coins)
        world.endow(owners, world.money.payments(len(owners), scale=np.e))  # type: ignore[misc]  # mypy loses numpy.e without its cache

    def checkout(self, world: World, number: int) -> tuple[Array, Array]:
        """Merchants that customers choose and the addresses they are told, shapes (number,)."""
        rank = np.searchsorted(self._cumulative, world.rng.random(number))
        address = np.where(self.style[rank] == BETTING, self._standing_address[rank], NO_ADDRESS)
        return self.wallet[rank], address

    def plan(self, world: World, gamblers: Array) -> None:
        """Forward what has been collected to the exchange; betting sites also pay winners, one by one."""
        rng, coins = world.rng, world.ledger.coins[self.wallet]
        ready = (self.style != BETTING) & (coins >= self._patience)
        buying = ready & (rng.random(len(ready)) < BUYS_SUPPLIES) & (self._patience >= LEAST_COINS)
        selling = ready & ~buying
        world.orders.pay(
            self.wallet[selling],
            address=self._account[selling],
            mode=SWEEP,
            least_inputs=self._patience[selling],
            most_inputs=self._patience[selling],
        )
        for rank in np.flatnonzero(buying):
            self._buy_supplies(world, int(rank))
        for processor, shops in zip(self.processors, self.clients, strict=True):
            self._settle_up(world, int(processor), shops)
        betting = np.flatnonzero((self.style == BETTING) & (coins > 8))
        if len(betting) and len(gamblers):
            site = self.wallet[betting[rng.integers(len(betting), size=len(gamblers))]]
            value = np.minimum(world.money.payments(len(gamblers), scale=0.5), world.ledger.balance[site] // 4)
            fine = value > 10_000
            world.orders.pay(site[fine], wallet=gamblers[fine], value=value[fine])

    def _settle_up(self, world: World, processor: int, shops: list[int]) -> None:
        """A processor pays its shops, at their accounts, from what it has collected for them."""
        coins = int(world.ledger.coins[processor])
        if coins < self._settles or not shops:
            return
        each = int(0.9 * world.ledger.balance[processor] * self._settles / coins / len(shops))
        if each > LEAST_SUPPLY:
            account, value = self._account[shops], np.full(len(shops), each)
            world.orders.batch(processor, np.full(len(shops), -1), account, value, least_inputs=self._settles)

    def _buy_supplies(self, world: World, rank: int) -> None:
        """Spend what has been collected on suppliers: merchants of about the same size, at their standing address."""
        near = np.arange(max(0, rank - SUPPLIER_REACH), min(len(self.wallet), rank + SUPPLIER_REACH + 1))
        near = near[(near != rank) & (self.style[near] == INVOICE)]
        supplier = world.rng.choice(near, min(SUPPLIERS, len(near)), replace=False)
        budget = 0.8 * world.ledger.balance[self.wallet[rank]] * self._patience[rank]
        each = int(budget / world.ledger.coins[self.wallet[rank]] / max(1, len(supplier)))
        if len(supplier) and each > LEAST_SUPPLY:
            world.orders.batch(
                int(self.wallet[rank]),
                self.wallet[supplier],
                self._standing_address[supplier],
                np.full(len(supplier), each),
                least_inputs=self._patience[rank],
            )
