"""Users: they pay shops, each other and their exchange, and withdraw coins when their wallet runs low."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from btcnb.data.simulator.config import SimulationConfig
from btcnb.data.simulator.parameters import CHANGE_FRESH, MECHANISM_NUMBER, PROGRAM_NUMBER, PROGRAMS, Dial, numbers
from btcnb.data.simulator.services import Merchants
from btcnb.data.simulator.spending import NO_ADDRESS, OP_RETURN, PAYJOIN, SWEEP
from btcnb.data.simulator.wallets import Registry, draw_user_programs, of_program
from btcnb.data.simulator.world import AMOUNTS, World

Array = npt.NDArray[np.int64]

USERS = numbers("users")
CARELESS = ("fixed-change", "fee-from-payee", "overspending", "other-change-type")
"""Mechanisms that are habits of a wallet; a wallet has at most one of them."""


class Users:
    """All private persons; user u is entity u and has wallet u, some a second one."""

    def __init__(self, config: SimulationConfig, rng: np.random.Generator, registry: Registry, dial: Dial) -> None:
        number = self.number = config.users
        self.programs = draw_user_programs(rng, number)
        private = rng.random(number) < config.privacy_share
        shares = dict(USERS.privacy_programs)
        native = config.start_block >= USERS.joinmarket_native
        shares["joinmarket-wrapped" if native else "joinmarket"] = 0.0
        chosen = rng.choice([PROGRAM_NUMBER[name] for name in shares], size=number, p=list(shares.values()))
        self.programs[private] = chosen[private]
        tail, least = USERS.activity
        activity = rng.pareto(tail, number) + least
        self._cumulative = np.cumsum(activity) / activity.sum()
        self._weight = USERS.payments * (activity / activity.sum())
        careless = _careless(rng, self.programs, dial)
        for user in range(number):
            program, weight = PROGRAMS[self.programs[user]].name, float(self._weight[user])
            registry.newcomer("user", f"user {user}", program, weight=weight, mechanism=careless[user])
        self.second = np.full(number, -1, dtype=np.int64)
        self._more = np.flatnonzero(rng.random(number) < dial("second-wallet"))
        self._more_programs = draw_user_programs(rng, len(self._more))

    def register_second(self, registry: Registry) -> None:
        """Second wallets come after everybody's first, so that wallet u stays user u's."""
        for user, program in zip(self._more.tolist(), self._more_programs.tolist(), strict=True):
            weight = USERS.second_used * float(self._weight[user])
            self.second[user] = registry.wallet(user, PROGRAMS[program].name, weight=weight)

    def members(self, program: str) -> Array:
        """Users who run a program (or a variant of it), shape (k,)."""
        variants = [number for name, number in PROGRAM_NUMBER.items() if name.startswith(program)]
        return np.flatnonzero(np.isin(self.programs, variants))

    def settle(self, world: World) -> None:
        """Coins from before the first block, in some of the wallets."""
        rng = world.rng
        wallets = np.append(np.arange(self.number), self.second[self._more])
        fewest, most = USERS.first_coins
        owning = rng.random(len(wallets)) < USERS.endowed
        owners = np.repeat(wallets, np.where(owning, rng.integers(fewest, most + 1, len(wallets)), 0))
        world.endow(owners, world.money.payments(len(owners), scale=USERS.first_coin))

    def draw(self, world: World, number: int) -> Array:
        """Users by activity, with repetition, shape (number,)."""
        return np.searchsorted(self._cumulative, world.rng.random(number)).astype(np.int64)

    def wallets(self, world: World, users: Array) -> Array:
        """A wallet of each: the first, or now and then the second."""
        other = self.second[users]
        return np.where((other >= 0) & (world.rng.random(len(users)) < USERS.second_used), other, users)

    def plan(self, world: World, merchants: Merchants) -> None:
        rng, size = world.rng, world.busy
        active = np.unique(self.draw(world, rng.poisson(USERS.active * size)))
        payer = self.wallets(world, active)
        value = world.money.payments(len(active))
        rich = world.ledger.balance[payer] >= value + USERS.reserve
        self._pay(world, merchants, active[rich], payer[rich], value[rich])
        self._run_low(world, active[~rich], payer[~rich], value[~rich])
        holders = rng.integers(self.number, size=rng.poisson(USERS.holders * size))
        wallet = self.wallets(world, holders)
        world.withdraw(holders, wallet, NO_ADDRESS, world.money.payments(len(holders), scale=USERS.holding))
        self._transfer(world, self.draw(world, rng.poisson(USERS.exchange_transfers * size)))
        self._move_coins(world, rng.poisson(world.era.moves * size))
        self._import_keys(world, merchants, rng.poisson(world.dial("key-import") * size))

    def _pay(self, world: World, merchants: Merchants, user: Array, payer: Array, value: Array) -> None:
        factor = {"several": world.era.batches}
        weights = np.array([weight * factor.get(name, 1.0) for name, weight in USERS.habits.items()])
        drawn = np.searchsorted(np.cumsum(weights) / weights.sum(), world.rng.random(len(payer)))
        groups = {name: np.flatnonzero(drawn == place) for place, name in enumerate(USERS.habits)}

        chosen = groups["deposit"]
        _deposit(world, user[chosen], payer[chosen], value=value[chosen])
        chosen = groups["shop"]
        shops, addresses = merchants.checkout(world, len(chosen))
        self._pay_or_join(world, payer[chosen], shops, addresses, value[chosen])
        chosen = groups["friend"]
        friends = self.draw(world, len(chosen))
        chosen, friends = chosen[friends != user[chosen]], friends[friends != user[chosen]]
        payee = self.wallets(world, friends)
        self._pay_or_join(world, payer[chosen], payee, np.full(len(payee), NO_ADDRESS), value[chosen])
        chosen = groups["move"]
        world.orders.pay(payer[chosen], wallet=payer[chosen], mode=SWEEP, most_inputs=USERS.swept)
        chosen = groups["cash_out"]
        _deposit(world, user[chosen], payer[chosen], mode=SWEEP, most_inputs=USERS.swept)
        self._pay_several(world, payer[groups["several"]], value[groups["several"]])
        both = np.array([NO_ADDRESS, OP_RETURN])
        for one, amount in zip(payer[groups["note"]], value[groups["note"]], strict=True):
            world.orders.batch(int(one), np.append(self.draw(world, 1), -1), both, np.array([amount, 0]))

    def _pay_or_join(self, world: World, payer: Array, payee: Array, address: Array, value: Array) -> None:
        """Payments to wallets; in a few, the payee adds a coin (PayJoin, BIP 78)."""
        willing = USERS.payjoin_payments * world.dial("payjoin")
        join = (world.rng.random(len(payer)) < willing) & (world.ledger.state.wallet_keeper[payee] == payee)
        joint = {"mode": PAYJOIN, "companion": payee[join], "mechanism": MECHANISM_NUMBER["payjoin"]}
        for some, how in ((~join, {}), (join, joint)):
            world.orders.pay(payer[some], wallet=payee[some], address=address[some], value=value[some], **how)

    def _pay_several(self, world: World, payer: Array, value: Array) -> None:
        """One payment to a few people at once: `value` is shared between them."""
        for wallet, amount in zip(payer, value, strict=True):
            number = world.between(USERS.several_payees)
            share = np.maximum(amount // number, AMOUNTS.least)
            payees = self.draw(world, number)
            if world.ledger.balance[wallet] > number * share + USERS.reserve and (payees != wallet).all():
                world.orders.batch(int(wallet), payees, np.full(number, NO_ADDRESS), np.full(number, share))

    def _run_low(self, world: World, user: Array, payer: Array, value: Array) -> None:
        """Not enough coins: send what is left to the exchange, or ask the exchange for more."""
        few = (world.ledger.balance[payer] > 2 * USERS.reserve) & (world.rng.random(len(user)) < USERS.gives_up)
        _deposit(world, user[few], payer[few], mode=SWEEP, most_inputs=USERS.swept)
        least, most = USERS.withdrawal
        more = (value[~few] * world.rng.uniform(least, most, int((~few).sum()))).astype(np.int64)
        world.withdraw(user[~few], payer[~few], NO_ADDRESS, more)

    def _transfer(self, world: World, sender: Array) -> None:
        """From one customer's exchange to the deposit address of another customer elsewhere."""
        receiver = self.draw(world, len(sender))
        apart = world.customer_exchange[sender] != world.customer_exchange[receiver]
        sender, receiver = sender[apart], receiver[apart]
        value = world.money.payments(len(sender), scale=USERS.transfer)
        world.withdraw(sender, *world.deposits(receiver), value)

    def _move_coins(self, world: World, number: int) -> None:
        """Single coins sent whole: to a new address of one's own, or to the account at the exchange."""
        user = self.draw(world, int(number))
        payer = self.wallets(world, user)
        home = world.rng.random(len(user)) < USERS.moves_home
        world.orders.pay(payer[home], wallet=payer[home], mode=SWEEP, most_inputs=1)
        _deposit(world, user[~home], payer[~home], mode=SWEEP, most_inputs=1)

    def _import_keys(self, world: World, merchants: Merchants, number: int) -> None:
        """Somebody else's newest coin, whose key was bought, found or stolen, is swept together with one's own."""
        taker, giver = self.draw(world, int(number)), self.draw(world, int(number))
        shop = merchants.wallet[world.rng.integers(len(merchants.wallet), size=int(number))]
        giver = np.where(world.rng.random(int(number)) < USERS.keys_of_shops, shop, giver)
        taker, giver = taker[giver != taker], giver[giver != taker]
        mechanism = MECHANISM_NUMBER["key-import"]
        world.orders.pay(taker, wallet=taker, mode=SWEEP, most_inputs=2, companion=giver, mechanism=mechanism)


def _deposit(world: World, user: Array, payer: Array, **how: Any) -> None:
    """Payments from wallets of users to their accounts at the exchange."""
    wallet, address = world.deposits(user)
    world.orders.pay(payer, wallet=wallet, address=address, **how)


def _careless(rng: np.random.Generator, programs: Array, dial: Dial) -> list[str]:
    """Per wallet: one of `CARELESS` or ""; only where change is fresh and marks are the wallet's own."""
    shares = np.array([dial(name) for name in CARELESS])
    edges = np.cumsum(shares / max(1.0, shares.sum()))
    fits = (of_program("change", programs) == CHANGE_FRESH) & ~of_program("marked", programs)
    draw = np.searchsorted(edges, rng.random(len(programs)), side="right")
    return [(*CARELESS, "")[place] if fit else "" for place, fit in zip(draw.tolist(), fits.tolist(), strict=True)]
