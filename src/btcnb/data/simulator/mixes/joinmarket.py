"""JoinMarket: a taker pays makers for mixing one amount of the taker's choice.

Makers take a relative or an absolute fee and keep their change; the taker pays the miner and may sweep, which leaves no
change. Inputs and outputs are shuffled.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from btcnb.data.coinjoin.shape import JOINMARKET_LEAST_CHANGE
from btcnb.data.simulator.actors.users import USERS
from btcnb.data.simulator.mixes.joint import Draft, Peer, gather, gather_many
from btcnb.data.simulator.parameters import numbers
from btcnb.data.simulator.world import World

Array = npt.NDArray[np.int64]

JOINMARKET = numbers("joinmarket")


def mix(world: World, members: Array) -> bool:
    """One round; False if too few members can take part."""
    rng = world.rng
    number = int(rng.integers(JOINMARKET.participants[0], JOINMARKET.participants[1] + 1))
    if len(members) < number:
        return False
    richest = np.sort(world.ledger.balance[members])[::-1]
    limit = 0.5 * richest[min(len(members), 3 * number) - 1]  # makers who offer less are not asked
    wanted = int(max(JOINMARKET.least_amount, min(limit, 2 * 10**7 * np.exp(rng.normal(0.0, 1.0)))))
    spare = JOINMARKET_LEAST_CHANGE + 10
    makers = gather_many(world, members, wanted + spare, number, JOINMARKET.most_inputs)
    if len(makers) < number:
        return False
    taker = makers.pop()
    amount = _sweep_amount(world, taker, makers, wanted) if rng.random() < JOINMARKET.sweeps else wanted
    fees = [_fee(rng, amount) for _ in makers]
    miner = _miner_fee(world, taker, makers)
    if taker.total < amount + sum(fees) + miner:
        more = gather(world, taker.wallet, amount + sum(fees) + 2 * miner, JOINMARKET.most_inputs)
        if more is None:
            return False
        taker = more
        miner = _miner_fee(world, taker, makers)
    draft = Draft(coins=[coin for peer in [taker, *makers] for coin in peer.coins])
    for peer, fee in zip(makers, fees, strict=True):
        draft.pay(peer.wallet, amount)
        draft.pay(peer.wallet, peer.total - amount + fee)
    draft.pay(taker.wallet, amount)
    change = taker.total - amount - sum(fees) - miner
    if change > JOINMARKET.least_taker_change:
        draft.pay(taker.wallet, change)
    draft.address(world).shuffle(world)
    native = world.height >= USERS.joinmarket_native
    draft.write(world, "joinmarket", version=2 if native else 1, lock_time=world.height - 1 if native else 0)
    return True


def _fee(rng: np.random.Generator, amount: int) -> int:
    return int(max(JOINMARKET.absolute_fee, JOINMARKET.relative_fee * amount) * rng.uniform(0.9, 1.1))


def _miner_fee(world: World, taker: Peer, makers: list[Peer]) -> int:
    inputs = len(taker.coins) + sum(len(peer.coins) for peer in makers)
    return int(world.rate * (11 + JOINMARKET.input_size * inputs + 32 * 2 * (len(makers) + 1)))


def _sweep_amount(world: World, taker: Peer, makers: list[Peer], wanted: int) -> int:
    """The amount that uses up the taker's coins to the last satoshi, if the makers can match it; else the wanted."""
    capacity = min(peer.total for peer in makers) - JOINMARKET_LEAST_CHANGE
    amount = taker.total - _miner_fee(world, taker, makers)
    amount -= int(len(makers) * 1.1 * max(JOINMARKET.absolute_fee, JOINMARKET.relative_fee * amount))
    return amount if JOINMARKET.least_amount <= amount <= capacity else wanted
