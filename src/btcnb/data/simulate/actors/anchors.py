"""Writers of data: timestamps in OP_RETURN outputs, and tokens that change hands by notes in them."""

from __future__ import annotations

import numpy as np

from btcnb.data.simulate.config import SimulationConfig
from btcnb.data.simulate.eras import Era
from btcnb.data.simulate.orders import NO_ADDRESS, OP_RETURN
from btcnb.data.simulate.programs import NUMBER
from btcnb.data.simulate.world import Registry, World

SERVICES = 12
HOLDERS_PER_USER = 0.06
"""Wallets with tokens, as a share of the number of users."""
TOKEN_OUTPUT = 2_730
"""Satoshi that a token transfer sends along, so that the receiver can be found."""


class Anchors:
    """A few services that anchor other chains in this one: OP_RETURN, and the rest back to themselves."""

    def __init__(self, registry: Registry, era: Era) -> None:
        program, weight = NUMBER["static"], era.anchors / SERVICES
        entities = [registry.entity("service", f"anchor {i}") for i in range(SERVICES)]
        self.wallet = np.array([registry.wallet(entity, program, weight=weight) for entity in entities])

    def settle(self, world: World) -> None:
        world.endow(np.repeat(self.wallet, 10), np.full(10 * SERVICES, 10**9))

    def plan(self, world: World) -> None:
        number = world.rng.poisson(world.era.anchors * world.busy)
        wallet = self.wallet[world.rng.integers(SERVICES, size=number)]
        world.orders.pay(wallet, address=OP_RETURN, value=0, hurry=50)


class Tokens:
    """People who send tokens (as Omni did) from one standing address to another."""

    def __init__(self, config: SimulationConfig, rng: np.random.Generator, registry: Registry, era: Era) -> None:
        number = max(10, int(HOLDERS_PER_USER * config.users))
        activity = rng.pareto(1.2, number) + 0.2
        self._cumulative = np.cumsum(activity) / activity.sum()
        weights = (era.tokens * activity / activity.sum()).tolist()
        self.wallet = np.array(
            [
                registry.wallet(registry.entity("user", f"holder {i}"), NUMBER["token"], weight=weight)
                for i, weight in enumerate(weights)
            ]
        )

    def settle(self, world: World) -> None:
        world.endow(np.repeat(self.wallet, 3), np.full(3 * len(self.wallet), 2 * 10**7))

    def plan(self, world: World) -> None:
        number = int(world.rng.poisson(world.era.tokens * world.busy))
        sender, receiver = (np.searchsorted(self._cumulative, world.rng.random(number)) for _ in range(2))
        for one, other in zip(self.wallet[sender], self.wallet[receiver], strict=True):
            if one != other:
                payees, places = np.array([other, -1]), np.array([NO_ADDRESS, OP_RETURN])
                world.orders.batch(int(one), payees, places, np.array([TOKEN_OUTPUT, 0]))
