"""Small CoinJoins: two or three people put a payment together, with amounts that no published rule looks for."""

from __future__ import annotations

import numpy as np

from btcnb.data.simulate.actors.users import Users
from btcnb.data.simulate.mixes.draft import INPUT_SIZE, OUTPUT_SIZE, Draft, Peer, gather_many
from btcnb.data.simulate.world import World

LEAST_SIZE = 100_000
"""Satoshi."""
ASKED = 30
"""People asked before a round is given up."""


def run(world: World, users: Users) -> None:
    """The small mixes of one block."""
    for _ in range(world.rng.poisson(world.dial("small-coinjoin") * world.busy)):
        mix(world, users.draw(world, ASKED))


def mix(world: World, asked: np.ndarray) -> bool:
    """One round among two or three of the people asked; False if too few can take part."""
    number = int(world.rng.integers(2, 4))
    amount = int(world.money.payments(1, scale=1.5)[0]) + LEAST_SIZE
    fee = int(world.rate * (6 + 4 * INPUT_SIZE + 2 * OUTPUT_SIZE))
    peers = gather_many(world, np.unique(asked), amount + fee + LEAST_SIZE, number, 4)
    if len(peers) < number:
        return False
    draft = Draft(coins=[coin for peer in peers for coin in peer.coins])
    for peer in peers:  # three equal outputs would look like JoinMarket
        part = amount if number == 2 else int(amount * world.rng.uniform(0.4, 1.0))
        _share(draft, peer, part, fee)
    draft.address(world).shuffle(world)
    draft.write(world, "", mechanism="small-coinjoin")
    return True


def _share(draft: Draft, peer: Peer, part: int, fee: int) -> None:
    """Two outputs to each: one of the size agreed on, and the rest."""
    draft.pay(peer.wallet, part)
    draft.pay(peer.wallet, peer.total - part - fee)
