"""Exchanges: deposit addresses per customer, sweeps, hot and cold wallets, withdrawals one by one or in batches."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from btcnb.data.simulate.config import SimulationConfig
from btcnb.data.simulate.orders import NO_ADDRESS, SWEEP
from btcnb.data.simulate.programs import NUMBER
from btcnb.data.simulate.world import Registry, World

Array = npt.NDArray[np.int64]

FIXED, ROLLING, DIRECT, FORWARD, PEEL = "fixed", "rolling", "direct", "forward", "peel"
STYLES = (DIRECT, FIXED, ROLLING, PEEL, FORWARD, DIRECT, ROLLING, FIXED, PEEL, FORWARD)
"""How an exchange handles coins; styles are dealt out in turn, largest exchange first.

fixed:   sweeps deposits to one public hot address, pays batches from it, change returns to it
rolling: sweeps deposits to a fresh hot address each time; deposits top up the hot wallet, so both are spent together
direct:  never sweeps, spends deposits straight into withdrawals: many inputs and many outputs
forward: forwards each deposit on its own, pays small batches
peel:    sweeps now and then, pays withdrawals one by one from the last change: a peel chain
"""
HOT_PROGRAMS = {
    FIXED: ("hot-fixed",),
    ROLLING: ("hot-rolling", "hot-multisig"),
    DIRECT: ("hot-legacy", "hot-segwit", "hot-multisig"),
    FORWARD: ("hot-fixed", "hot-legacy"),
    PEEL: ("peeler", "peeler-segwit"),
}


@dataclass
class Exchange:
    """One exchange: wallets, habits, and the withdrawals it still has to pay."""

    style: str
    hot: int
    deposits: int  # the wallet customers pay into; the hot wallet itself for `direct` and `rolling`
    cold: int
    batch_period: int  # blocks between batches
    batch_most: int  # most recipients of a batch
    sweep_period: int  # blocks between sweeps
    sweep_most: int  # most inputs of a sweep
    queue: list[tuple[Array, Array, Array]] = field(default_factory=list)

    def take_queue(self) -> tuple[Array, Array, Array]:
        wallet, address, value = (np.concatenate([part[i] for part in self.queue]) for i in range(3))
        self.queue.clear()
        return wallet, address, value


class Exchanges:
    """All exchanges; numbers of customers fall like 1/rank."""

    def __init__(self, config: SimulationConfig, rng: np.random.Generator, registry: Registry) -> None:
        self.all = [_found(rank, config, rng, registry) for rank in range(config.exchanges)]
        size = 1.0 / np.arange(1, config.exchanges + 1) ** 0.8
        self.share = size / size.sum()
        self.deposit_wallets = np.array([exchange.deposits for exchange in self.all])

    def settle(self, world: World) -> None:
        """Cold reserves, hot coins and unswept deposits from before the first block."""
        users = world.config.users
        for exchange, share in zip(self.all, self.share, strict=True):
            hot = int(20 + 0.02 * users * share)
            world.endow(np.full(hot, exchange.hot), world.money.payments(hot, scale=200.0))
            world.endow(np.full(40, exchange.cold), np.full(40, 2 * 10**11))
            open_deposits = int(5 + 0.1 * users * share)
            world.endow(np.full(open_deposits, exchange.deposits), world.money.payments(open_deposits, scale=3.0))

    def plan(self, world: World) -> None:
        at, wallet, address, value = world.withdrawals.drain()
        order = np.argsort(at, kind="stable")
        first = np.searchsorted(at[order], np.arange(len(self.all) + 1))
        for rank, exchange in enumerate(self.all):
            rows = order[first[rank] : first[rank + 1]]
            if len(rows):
                exchange.queue.append((wallet[rows], address[rows], value[rows]))
            if (world.height + rank) % exchange.sweep_period == 0:
                _sweep(world, exchange)
            if exchange.queue and (world.height + rank) % exchange.batch_period == 0:
                _pay_queue(world, exchange)


def _found(rank: int, config: SimulationConfig, rng: np.random.Generator, registry: Registry) -> Exchange:
    style = STYLES[rank % len(STYLES)]
    entity = registry.entity("exchange", f"exchange {rank}")
    programs = HOT_PROGRAMS[style]
    program = NUMBER[programs[int(rng.integers(len(programs)))]]
    hot = registry.wallet(entity, program)
    apart = style in (FIXED, FORWARD, PEEL)
    deposits = registry.wallet(entity, NUMBER[str(rng.choice(["shop", "shop-wrapped"]))]) if apart else hot
    cold = registry.wallet(entity, NUMBER["hot-multisig"])
    small = style in (FORWARD,)
    return Exchange(
        style=style,
        hot=hot,
        deposits=deposits,
        cold=cold,
        batch_period=1 if style in (PEEL, FORWARD) else int(rng.integers(1, 9)),
        batch_most=int(rng.integers(3, 9)) if small else config.largest_batch,
        sweep_period=1 if style == FORWARD else int(rng.integers(2, 30)),
        sweep_most=1 if style == FORWARD else config.largest_consolidation,
    )


def _sweep(world: World, exchange: Exchange) -> None:
    """Gather deposits; what the exchange gathers into depends on its style."""
    if exchange.style == DIRECT:
        return
    waiting = int(world.ledger.coins[exchange.deposits])
    if exchange.style == ROLLING:  # tidy up part of the common wallet into one fresh coin
        number = min(waiting // 2, exchange.sweep_most)
        if number >= 5:
            world.orders.pay(exchange.hot, wallet=exchange.hot, mode=SWEEP, least_inputs=number, most_inputs=number)
        return
    number = -(-waiting // exchange.sweep_most)
    if number:
        most = min(waiting, exchange.sweep_most)
        payer = np.full(number, exchange.deposits)
        world.orders.pay(payer, wallet=exchange.hot, mode=SWEEP, most_inputs=most, hurry=0.6)


def _pay_queue(world: World, exchange: Exchange) -> None:
    wallet, address, value = exchange.take_queue()
    _refill(world, exchange, int(value.sum()))
    if exchange.style == PEEL:
        world.orders.pay(np.full(len(value), exchange.hot), wallet=wallet, address=address, value=value)
        return
    for start in range(0, len(value), exchange.batch_most):
        part = slice(start, start + exchange.batch_most)
        least = 1
        if exchange.style == DIRECT:  # deposits come in about as fast as withdrawals go out, and leave with them
            least = max(1, min(int(world.ledger.coins[exchange.hot]) // 3, world.config.largest_consolidation))
        world.orders.batch(exchange.hot, wallet[part], address[part], value[part], least_inputs=least)


def _refill(world: World, exchange: Exchange, wanted: int) -> None:
    """Fetch coins from cold storage when the hot wallet runs low, and bring back what is too much."""
    have = int(world.ledger.balance[exchange.hot])
    if have < 2 * wanted:
        world.orders.pay(exchange.cold, wallet=exchange.hot, address=NO_ADDRESS, value=4 * wanted + 10**7)
    elif have > 60 * wanted + 10**10:
        world.orders.pay(exchange.hot, wallet=exchange.cold, address=NO_ADDRESS, value=have // 2)
