"""Users: they pay shops, each other and their exchange, and withdraw coins when their wallet runs low."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from btcnb.data.simulator.actors.services import Merchants
from btcnb.data.simulator.config import SimulationConfig
from btcnb.data.simulator.parameters import CHANGE_FRESH, MECHANISM_NUMBER, PROGRAM_NUMBER, PROGRAMS, Dial, numbers
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
        number = config.users
        self.number = number
        self.programs = draw_user_programs(rng, number)
        private = rng.random(number) < config.privacy_share
        shares = dict(USERS.privacy_programs)
        native = config.start_block >= USERS.joinmarket_native
        shares["joinmarket-wrapped" if native else "joinmarket"] = 0.0
        chosen = rng.choice([PROGRAM_NUMBER[name] for name in shares], size=number, p=list(shares.values()))
        self.programs[private] = chosen[private]
        activity = rng.pareto(1.6, number) + 0.3  # a few users make most of the payments
        self._cumulative = np.cumsum(activity) / activity.sum()
        total = activity.sum()
        careless = _careless(rng, self.programs, dial)
        for user in range(number):
            program, weight = PROGRAMS[self.programs[user]].name, USERS.payments * float(activity[user] / total)
            registry.newcomer("user", f"user {user}", program, weight=weight, mechanism=careless[user])
        self.second = np.full(number, -1, dtype=np.int64)
        self._more = np.flatnonzero(rng.random(number) < dial("second-wallet"))
        self._more_programs = draw_user_programs(rng, len(self._more))
        self._activity = USERS.payments * activity / total

    def register_second(self, registry: Registry) -> None:
        """Second wallets come after everybody's first, so that wallet u stays user u's."""
        for user, program in zip(self._more.tolist(), self._more_programs.tolist(), strict=True):
            self.second[user] = registry.wallet(
                user, PROGRAMS[program].name, weight=USERS.second_used * float(self._activity[user])
            )

    def members(self, program: str) -> Array:
        """Users who run a program (or a variant of it), shape (k,)."""
        return np.flatnonzero(
            np.isin(self.programs, [PROGRAM_NUMBER[name] for name in PROGRAM_NUMBER if name.startswith(program)])
        )

    def settle(self, world: World) -> None:
        rng = world.rng
        wallets = np.append(np.arange(self.number), self.second[self._more])
        coins = np.where(rng.random(len(wallets)) < 0.5, rng.integers(1, 4, len(wallets)), 0)
        owners = np.repeat(wallets, coins)
        world.endow(owners, world.money.payments(len(owners), scale=3.0))

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
        self._withdraw(world, holders, self.wallets(world, holders), world.money.payments(len(holders), scale=1.2))
        self._transfer(world, self.draw(world, rng.poisson(USERS.exchange_transfers * size)))
        self._move_coins(world, rng.poisson(world.era.moves * size))
        self._import_keys(world, merchants, rng.poisson(world.dial("key-import") * size))

    def _pay(self, world: World, merchants: Merchants, user: Array, payer: Array, value: Array) -> None:
        factor = {"several": world.era.batches}
        weights = np.array([weight * factor.get(name, 1.0) for name, weight in USERS.habits.items()])
        drawn = np.searchsorted(np.cumsum(weights) / weights.sum(), world.rng.random(len(payer)))
        habit = np.array(list(USERS.habits))[drawn]
        orders = world.orders

        chosen = habit == "deposit"
        wallet, address = world.deposits(user[chosen])
        orders.pay(payer[chosen], wallet=wallet, address=address, value=value[chosen])
        chosen = habit == "shop"
        shops, addresses = merchants.checkout(world, int(chosen.sum()))
        self._pay_or_join(world, payer[chosen], shops, addresses, value[chosen])
        chosen = habit == "friend"
        friends = self.draw(world, int(chosen.sum()))
        other = friends != user[chosen]
        payee = self.wallets(world, friends[other])
        self._pay_or_join(world, payer[chosen][other], payee, np.full(len(payee), NO_ADDRESS), value[chosen][other])
        chosen = habit == "move"
        orders.pay(payer[chosen], wallet=payer[chosen], value=0, mode=SWEEP, most_inputs=30)
        chosen = habit == "cash_out"
        wallet, address = world.deposits(user[chosen])
        orders.pay(payer[chosen], wallet=wallet, address=address, mode=SWEEP, most_inputs=30)
        self._pay_several(world, payer[habit == "several"], value[habit == "several"])
        for one, amount in zip(payer[habit == "note"], value[habit == "note"], strict=True):
            friend = self.draw(world, 1)
            both = np.array([NO_ADDRESS, OP_RETURN])
            orders.batch(int(one), np.append(friend, -1), both, np.array([amount, 0]))

    def _pay_or_join(self, world: World, payer: Array, payee: Array, address: Array, value: Array) -> None:
        """Payments to wallets; in a few, the payee adds a coin (PayJoin, BIP 78)."""
        willing = USERS.payjoin_payments * world.dial("payjoin")
        join = (world.rng.random(len(payer)) < willing) & (world.ledger.book.wallet_keeper[payee] == payee)
        alone = ~join
        world.orders.pay(payer[alone], wallet=payee[alone], address=address[alone], value=value[alone])
        world.orders.pay(
            payer[join],
            wallet=payee[join],
            address=address[join],
            value=value[join],
            mode=PAYJOIN,
            companion=payee[join],
            mechanism=MECHANISM_NUMBER["payjoin"],
        )

    def _pay_several(self, world: World, payer: Array, value: Array) -> None:
        """One payment to a few people at once: `value` is shared between them."""
        for wallet, amount in zip(payer, value, strict=True):
            number = int(world.rng.integers(2, 6))
            share = np.maximum(amount // number, AMOUNTS.least)
            payees = self.draw(world, number)
            if world.ledger.balance[wallet] > number * share + USERS.reserve and (payees != wallet).all():
                world.orders.batch(int(wallet), payees, np.full(number, NO_ADDRESS), np.full(number, share))

    def _run_low(self, world: World, user: Array, payer: Array, value: Array) -> None:
        """Not enough coins: send what is left to the exchange, or ask the exchange for more."""
        few = (world.ledger.balance[payer] > 2 * USERS.reserve) & (world.rng.random(len(user)) < 0.04)
        wallet, address = world.deposits(user[few])
        world.orders.pay(payer[few], wallet=wallet, address=address, mode=SWEEP, most_inputs=30)
        more = (value[~few] * world.rng.uniform(1.2, 3.6, int((~few).sum()))).astype(np.int64)
        self._withdraw(world, user[~few], payer[~few], more)

    def _withdraw(self, world: World, user: Array, wallet: Array, value: Array) -> None:
        """A request to the user's exchange."""
        none = np.full(len(user), NO_ADDRESS)
        world.withdrawals.append((world.customer_exchange[user], wallet, none, value))

    def _transfer(self, world: World, sender: Array) -> None:
        """From one customer's exchange to the deposit address of another customer elsewhere."""
        receiver = self.draw(world, len(sender))
        apart = world.customer_exchange[sender] != world.customer_exchange[receiver]
        sender, receiver = sender[apart], receiver[apart]
        value = world.money.payments(len(sender), scale=2.0)
        wallet, address = world.deposits(receiver)
        world.withdrawals.append((world.customer_exchange[sender], wallet, address, value))

    def _move_coins(self, world: World, number: int) -> None:
        """Single coins sent whole: to a new address of one's own, or to the account at the exchange."""
        user = self.draw(world, int(number))
        payer = self.wallets(world, user)
        home = world.rng.random(len(user)) < 0.5
        world.orders.pay(payer[home], wallet=payer[home], mode=SWEEP, most_inputs=1)
        wallet, address = world.deposits(user[~home])
        world.orders.pay(payer[~home], wallet=wallet, address=address, mode=SWEEP, most_inputs=1)

    def _import_keys(self, world: World, merchants: Merchants, number: int) -> None:
        """Somebody else's newest coin, whose key was bought, found or stolen, is swept together with one's own."""
        taker = self.draw(world, int(number))
        giver = self.draw(world, int(number))
        shop = merchants.wallet[world.rng.integers(len(merchants.wallet), size=int(number))]
        giver = np.where(world.rng.random(int(number)) < 0.2, shop, giver)
        other = giver != taker
        world.orders.pay(
            taker[other],
            wallet=taker[other],
            mode=SWEEP,
            most_inputs=2,
            companion=giver[other],
            mechanism=MECHANISM_NUMBER["key-import"],
        )


def _careless(rng: np.random.Generator, programs: Array, dial: Dial) -> list[str]:
    """Per wallet: one of `CARELESS` or ""; only where change is fresh and marks are the wallet's own."""
    shares = np.array([dial(name) for name in CARELESS])
    edges = np.cumsum(shares / max(1.0, shares.sum()))
    fits = (of_program("change", programs) == CHANGE_FRESH) & ~of_program("marked", programs)
    draw = np.searchsorted(edges, rng.random(len(programs)), side="right")
    return [(*CARELESS, "")[place] if fit else "" for place, fit in zip(draw.tolist(), fits.tolist(), strict=True)]
