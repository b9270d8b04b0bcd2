"""When CoinJoins happen, who may take part, and what the coordinators do with their income."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from btcnb.data.simulator.actors.users import Users
from btcnb.data.simulator.config import SimulationConfig
from btcnb.data.simulator.mixes import joinmarket, wasabi
from btcnb.data.simulator.mixes.whirlpool import Whirlpool
from btcnb.data.simulator.parameters import numbers
from btcnb.data.simulator.spending import SWEEP
from btcnb.data.simulator.wallets import Registry
from btcnb.data.simulator.world import World

Array = npt.NDArray[np.int64]

COINJOINS = numbers("coinjoins")


class CoinJoins:
    """All protocols and their coordinators."""

    def __init__(self, config: SimulationConfig, registry: Registry) -> None:
        fresh = config.start_block >= COINJOINS.fresh_coordinator
        program = "coordinator" if fresh else "coordinator-static"
        self.wasabi_coordinator = registry.newcomer("coordinator", "wasabi coordinator", program)
        self.whirlpool_coordinator = registry.newcomer("coordinator", "whirlpool coordinator", "coordinator")
        self.whirlpool = Whirlpool()
        self._members: dict[str, Array] = {}  # users by wallet program
        self._account = np.empty(0, dtype=np.int64)

    def settle(self, world: World, users: Users, exchange_wallets: Array) -> None:
        """People who mix own more, and more coins, than the average user."""
        for program, median in COINJOINS.endowment.items():
            members = self._members[program] = users.members(program)
            owner = np.repeat(members, world.rng.integers(2, 7, len(members)))
            value = (median * np.exp(world.rng.normal(0.0, 1.1, len(owner)))).astype(np.int64) + 50_000
            world.endow(owner, value)
        self.whirlpool.settle(world, self._members["samourai"])
        self._account = world.ledger.new_addresses(exchange_wallets[:2])

    def run(self, world: World) -> None:
        """The mixes of one block, protocol by protocol."""
        peers, coordinator = self._members, self.wasabi_coordinator
        rounds: dict[str, Callable[[], bool]] = {
            "joinmarket": lambda: joinmarket.mix(world, peers["joinmarket"]),
            "wasabi1.0": lambda: wasabi.mix1(world, peers["wasabi"], coordinator, levels=False),
            "wasabi1.1": lambda: wasabi.mix1(world, peers["wasabi"], coordinator, levels=True),
            "wasabi2": lambda: wasabi.mix2(world, peers["wasabi"], coordinator),
            "whirlpool-tx0": lambda: self.whirlpool.tx0(world, peers["samourai"], self.whirlpool_coordinator),
            "whirlpool": lambda: self.whirlpool.mix(world),
        }
        for name, mix in rounds.items():
            field = name.replace(".", "").replace("-", "_")
            for _ in range(world.rng.poisson(world.config.mixing * getattr(world.config.coinjoins, field))):
                mix()

    def plan(self, world: World) -> None:
        """Coordinators sell what they have earned."""
        for wallet, account in zip((self.wasabi_coordinator, self.whirlpool_coordinator), self._account, strict=True):
            if world.ledger.coins[wallet] >= COINJOINS.coordinator_coins:
                world.orders.pay(wallet, address=account, mode=SWEEP, most_inputs=50)
