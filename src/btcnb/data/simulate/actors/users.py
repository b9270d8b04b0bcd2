"""Users: they pay shops, each other and their exchange, and withdraw coins when their wallet runs low."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from btcnb.data.simulate import rates
from btcnb.data.simulate.actors.merchants import Merchants
from btcnb.data.simulate.config import SimulationConfig
from btcnb.data.simulate.orders import NO_ADDRESS, OP_RETURN, SWEEP
from btcnb.data.simulate.programs import NUMBER, draw_user_programs
from btcnb.data.simulate.world import Registry, World

Array = npt.NDArray[np.int64]

# What a user with enough coins does, in this order, with these probabilities.
DEPOSIT, SHOP, FRIEND, MANY, NOTE, MOVE, CASH_OUT = range(7)
HABITS = np.array([0.40, 0.24, 0.25, 0.05, 0.005, 0.02, 0.035])

PRIVACY_PROGRAMS = ("wasabi", "samourai", "joinmarket-wrapped", "joinmarket")
PRIVACY_MIX = (0.5, 0.3, 0.2, 0.2)
"""Programs of users with a CoinJoin wallet, and their shares among them (one of the last two, by date)."""
JOINMARKET_NATIVE = 655_000
"""Height from which JoinMarket wallets hold native SegWit coins (November 2020)."""
RESERVE = 60_000
"""Satoshi that a user keeps in mind for the fee when deciding whether a payment is possible."""


class Users:
    """All private persons; user u has wallet u and entity u."""

    def __init__(self, config: SimulationConfig, rng: np.random.Generator, registry: Registry) -> None:
        number = config.users
        self.programs = draw_user_programs(rng, number)
        private = rng.random(number) < config.privacy_share
        mix = np.array(PRIVACY_MIX)
        mix[2 if config.start_block >= JOINMARKET_NATIVE else 3] = 0.0
        chosen = rng.choice([NUMBER[name] for name in PRIVACY_PROGRAMS], size=number, p=mix)
        self.programs[private] = chosen[private]
        for user in range(number):
            registry.wallet(registry.entity("user", f"user {user}"), int(self.programs[user]))
        activity = rng.pareto(1.6, number) + 0.3  # a few users make most of the payments
        self._cumulative = np.cumsum(activity) / activity.sum()
        self.number = number

    def members(self, program: str) -> Array:
        """Users who run a program (or a variant of it), shape (k,)."""
        return np.flatnonzero(np.isin(self.programs, [NUMBER[name] for name in NUMBER if name.startswith(program)]))

    def settle(self, world: World) -> None:
        rng = world.rng
        coins = np.where(rng.random(self.number) < 0.5, rng.integers(1, 4, self.number), 0)
        owners = np.repeat(np.arange(self.number), coins)
        world.endow(owners, world.money.payments(len(owners), scale=3.0))

    def draw(self, world: World, number: int) -> Array:
        """Users by activity, with repetition, shape (number,)."""
        return np.searchsorted(self._cumulative, world.rng.random(number)).astype(np.int64)

    def plan(self, world: World, merchants: Merchants) -> None:
        rng, size = world.rng, world.config.transactions_per_block
        active = np.unique(self.draw(world, rng.poisson(rates.ACTIVE_USERS * size)))
        value = world.money.payments(len(active))
        rich = world.ledger.balance[active] >= value + RESERVE
        self._pay(world, merchants, active[rich], value[rich])
        self._run_low(world, active[~rich], value[~rich])
        holders = rng.integers(self.number, size=rng.poisson(rates.HOLDERS * size))
        self._withdraw(world, holders, world.money.payments(len(holders), scale=0.6))
        self._transfer(world, self.draw(world, rng.poisson(rates.EXCHANGE_TRANSFERS * size)))

    def _pay(self, world: World, merchants: Merchants, payer: Array, value: Array) -> None:
        habit = np.searchsorted(np.cumsum(HABITS) / HABITS.sum(), world.rng.random(len(payer)))
        orders = world.orders

        chosen = habit == DEPOSIT
        orders.pay(payer[chosen], address=world.customer_address[payer[chosen]], value=value[chosen])
        chosen = habit == SHOP
        shops, addresses = merchants.checkout(world, int(chosen.sum()))
        orders.pay(payer[chosen], wallet=shops, address=addresses, value=value[chosen])
        chosen = habit == FRIEND
        friends = self.draw(world, int(chosen.sum()))
        other = friends != payer[chosen]
        orders.pay(payer[chosen][other], wallet=friends[other], value=value[chosen][other])
        chosen = habit == MOVE
        orders.pay(payer[chosen], wallet=payer[chosen], value=0, mode=SWEEP, most_inputs=30)
        chosen = habit == CASH_OUT
        orders.pay(payer[chosen], address=world.customer_address[payer[chosen]], mode=SWEEP, most_inputs=30)
        self._pay_many(world, payer[habit == MANY], value[habit == MANY])
        for user, amount in zip(payer[habit == NOTE], value[habit == NOTE], strict=True):
            friend = self.draw(world, 1)
            both = np.array([NO_ADDRESS, OP_RETURN])
            orders.batch(int(user), np.append(friend, -1), both, np.array([amount, 0]))

    def _pay_many(self, world: World, payer: Array, value: Array) -> None:
        """One payment to a few people at once: `value` is shared between them."""
        for user, amount in zip(payer, value, strict=True):
            number = int(world.rng.integers(2, 6))
            share = np.maximum(amount // number, rates.LEAST_PAYMENT)
            payees = self.draw(world, number)
            if world.ledger.balance[user] > number * share + RESERVE and (payees != user).all():
                world.orders.batch(int(user), payees, np.full(number, NO_ADDRESS), np.full(number, share))

    def _run_low(self, world: World, user: Array, value: Array) -> None:
        """Not enough coins: send what is left to the exchange, or ask the exchange for more."""
        few = (world.ledger.balance[user] > 2 * RESERVE) & (world.rng.random(len(user)) < 0.08)
        world.orders.pay(user[few], address=world.customer_address[user[few]], mode=SWEEP, most_inputs=30)
        self._withdraw(
            world, user[~few], (value[~few] * world.rng.uniform(0.4, 1.6, int((~few).sum()))).astype(np.int64)
        )

    def _withdraw(self, world: World, user: Array, value: Array) -> None:
        """A request to the user's exchange."""
        none = np.full(len(user), NO_ADDRESS)
        world.withdrawals.request(world.customer_exchange[user], user, none, value)

    def _transfer(self, world: World, sender: Array) -> None:
        """From one customer's exchange to the deposit address of another customer elsewhere."""
        receiver = self.draw(world, len(sender))
        apart = world.customer_exchange[sender] != world.customer_exchange[receiver]
        sender, receiver = sender[apart], receiver[apart]
        value = world.money.payments(len(sender), scale=2.0)
        none = np.full(len(sender), -1)
        world.withdrawals.request(world.customer_exchange[sender], none, world.customer_address[receiver], value)
