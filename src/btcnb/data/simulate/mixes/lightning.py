"""Lightning: two people lock coins in a shared output, and a later transaction pays both what is theirs by then."""

from __future__ import annotations

import numpy as np

from btcnb.data.simulate.actors.users import Users
from btcnb.data.simulate.coins import Fields
from btcnb.data.simulate.disorder import NUMBER as MECHANISM
from btcnb.data.simulate.disorder import Dial
from btcnb.data.simulate.mixes.draft import INPUT_SIZE, OUTPUT_SIZE, gather
from btcnb.data.simulate.programs import NUMBER
from btcnb.data.simulate.spending import LEAST_OUTPUT
from btcnb.data.simulate.world import Registry, World

SIZES = (500_000, 16_000_000)
"""Satoshi in a channel; the upper end was the protocol's limit for years."""
CLOSES = 0.005
"""Probability that an open channel is closed in a block."""
ONE_SIDED = 0.4
"""Share of channels that are closed with everything still on the opener's side."""
NODES = 40
"""Users who run channels, as one in so many."""


class Lightning:
    """All channels. The shared output counts as the opener's: the coins are, until a payment runs through it."""

    def __init__(self, users: Users, rng: np.random.Generator, registry: Registry, dial: Dial) -> None:
        nodes = max(4, users.number // NODES) if dial("lightning") > 0 else 0
        self.nodes = rng.choice(users.number, size=nodes, replace=False).astype(np.int64)
        self._lock = np.array([registry.wallet(int(user), NUMBER["channel"]) for user in self.nodes], dtype=np.int64)
        self._open: list[tuple[int, int, int]] = []  # coin, wallets of the opener and of the peer

    def run(self, world: World) -> None:
        """Opens and closes of one block."""
        rate = world.dial("lightning") * world.busy / 2  # every open is followed by a close
        for _ in range(world.rng.poisson(rate)):
            self._open_one(world)
        for channel in [channel for channel in self._open if world.rng.random() < CLOSES]:
            self._close(world, *channel)

    def _open_one(self, world: World) -> None:
        place, other = world.rng.choice(len(self.nodes), size=2, replace=False)
        value = int(np.exp(world.rng.uniform(*np.log(SIZES))))
        fee = int(world.rate * (11 + 8 * INPUT_SIZE + 2 * OUTPUT_SIZE))
        peer = gather(world, int(self.nodes[place]), value + fee, 8)
        if peer is None:
            return
        addresses = [int(world.ledger.new_addresses(self._lock[[place]])[0])]
        values = [value]
        change = peer.total - value - fee
        if change >= LEAST_OUTPUT:
            addresses.append(int(world.ledger.receive_addresses(self.nodes[[place]])[0]))
            values.append(change)
        fields = Fields(2, change=len(values) - 1 if len(values) > 1 else -1, mechanism=MECHANISM["lightning"])
        coins, places, amounts = (np.array(column, dtype=np.int64) for column in (peer.coins, addresses, values))
        tx = world.ledger.write(coins, places, amounts, fields, credit=False)
        made = world.ledger.outputs_of(tx)
        for coin in made[1:]:
            world.ledger.credit(int(coin))
        self._open.append((int(made[0]), int(self.nodes[place]), int(self.nodes[other])))

    def _close(self, world: World, coin: int, opener: int, peer: int) -> None:
        book = world.ledger.book
        left = int(book.coin_value[coin]) - int(world.rate * (150 + 2 * OUTPUT_SIZE))
        if book.coin_block[coin] >= world.height or left < 4 * LEAST_OUTPUT:
            return
        theirs = 0 if world.rng.random() < ONE_SIDED else int(left * world.rng.uniform(0.1, 0.9))
        shares = [(opener, left - theirs), (peer, theirs)]
        paid = [(wallet, value) for wallet, value in shares if value >= LEAST_OUTPUT]
        addresses = world.ledger.receive_addresses(np.array([wallet for wallet, _ in paid], dtype=np.int64))
        values = np.array([value for _, value in paid], dtype=np.int64)
        world.ledger.write(np.array([coin]), addresses, values, Fields(2, mechanism=MECHANISM["lightning"]))
        self._open.remove((coin, opener, peer))
