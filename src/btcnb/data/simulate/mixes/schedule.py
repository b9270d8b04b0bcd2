"""When CoinJoins happen, who may take part, and what the coordinators do with their income."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from btcnb.data.coinjoin import REGISTRY
from btcnb.data.simulate.actors.users import Users
from btcnb.data.simulate.config import SimulationConfig
from btcnb.data.simulate.mixes import joinmarket, wasabi1, wasabi2
from btcnb.data.simulate.mixes.whirlpool import Whirlpool
from btcnb.data.simulate.orders import SWEEP
from btcnb.data.simulate.programs import NUMBER
from btcnb.data.simulate.world import Registry, World

Array = npt.NDArray[np.int64]

FRESH_COORDINATOR = 610_000
"""Height from which Wasabi's coordinator takes a fresh address each round."""
RATES = {protocol.name: protocol.rate for protocol in REGISTRY if protocol.rate is not None}
"""Field of `CoinJoinRates` by protocol."""
COORDINATOR_PATIENCE = 12
"""Coins a coordinator collects before selling them."""


class CoinJoins:
    """All protocols and their coordinators."""

    def __init__(self, config: SimulationConfig, registry: Registry) -> None:
        static = NUMBER["coordinator-static"]
        fresh = NUMBER["coordinator"]
        wasabi_program = fresh if config.start_block >= FRESH_COORDINATOR else static
        self.wasabi_coordinator = registry.wallet(registry.entity("coordinator", "wasabi coordinator"), wasabi_program)
        self.whirlpool_coordinator = registry.wallet(registry.entity("coordinator", "whirlpool coordinator"), fresh)
        self.whirlpool = Whirlpool()
        self._wasabi = self._samourai = self._joinmarket = np.empty(0, dtype=np.int64)
        self._account = np.empty(0, dtype=np.int64)

    def settle(self, world: World, users: Users, exchange_wallets: Array) -> None:
        """People who mix own more, and more coins, than the average user."""
        self._wasabi, self._samourai = users.members("wasabi"), users.members("samourai")
        self._joinmarket = users.members("joinmarket")
        for members, median in ((self._wasabi, 1.2e7), (self._samourai, 2.0e7), (self._joinmarket, 6.0e7)):
            owner = np.repeat(members, world.rng.integers(2, 7, len(members)))
            value = (median * np.exp(world.rng.normal(0.0, 1.1, len(owner)))).astype(np.int64) + 50_000
            world.endow(owner, value)
        self.whirlpool.settle(world, self._samourai)
        self._account = world.ledger.new_addresses(exchange_wallets[:2])

    def run(self, world: World) -> None:
        """The mixes of one block, protocol by protocol."""
        rounds: dict[str, Callable[[], bool]] = {
            "joinmarket": lambda: joinmarket.mix(world, self._joinmarket),
            "wasabi1.0": lambda: wasabi1.mix(world, self._wasabi, self.wasabi_coordinator, levels=False),
            "wasabi1.1": lambda: wasabi1.mix(world, self._wasabi, self.wasabi_coordinator, levels=True),
            "wasabi2": lambda: wasabi2.mix(world, self._wasabi, self.wasabi_coordinator),
            "whirlpool-tx0": lambda: self.whirlpool.tx0(world, self._samourai, self.whirlpool_coordinator),
            "whirlpool": lambda: self.whirlpool.mix(world),
        }
        for name, mix in rounds.items():
            for _ in range(world.rng.poisson(world.config.mixing * getattr(world.config.coinjoins, RATES[name]))):
                mix()

    def plan(self, world: World) -> None:
        """Coordinators sell what they have earned."""
        for wallet, account in zip((self.wasabi_coordinator, self.whirlpool_coordinator), self._account, strict=True):
            if world.ledger.coins[wallet] >= COORDINATOR_PATIENCE:
                world.orders.pay(wallet, address=account, mode=SWEEP, most_inputs=50)
