"""Timestamping services: they write data into OP_RETURN outputs and send the rest back to themselves."""

from __future__ import annotations

import numpy as np

from btcnb.data.simulate import rates
from btcnb.data.simulate.orders import OP_RETURN
from btcnb.data.simulate.programs import NUMBER
from btcnb.data.simulate.world import Registry, World

SERVICES = 3


class Anchors:
    """A few services that anchor other chains in this one."""

    def __init__(self, registry: Registry) -> None:
        self.wallet = np.array(
            [registry.wallet(registry.entity("service", f"anchor {i}"), NUMBER["static"]) for i in range(SERVICES)]
        )

    def settle(self, world: World) -> None:
        world.endow(np.repeat(self.wallet, 10), np.full(10 * SERVICES, 10**9))

    def plan(self, world: World) -> None:
        number = world.rng.poisson(rates.ANCHORS * world.config.transactions_per_block)
        wallet = self.wallet[world.rng.integers(SERVICES, size=number)]
        world.orders.pay(wallet, address=OP_RETURN, value=0, hurry=50)
