"""Exchanges: deposit addresses per customer, sweeps, hot and cold wallets, withdrawals one by one or in batches.

Some leave their coins to a custodian, who keeps those of several brands together; some pay straight from deposits and
return the change to one address. Both mislead heuristics. An exchange has one of six styles:

fixed:   sweeps deposits to one public hot address, pays batches from it, change returns to it
rolling: the same with a fresh hot address each time
direct:  never sweeps, spends deposits straight into withdrawals: many inputs and many outputs
forward: forwards each deposit on its own, pays small batches
peel:    sweeps now and then, pays withdrawals one by one from the last change: a peel chain
home:    never sweeps, pays withdrawals one by one from deposits; change goes to one hot address
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from btcnb.data.simulator.config import SimulationConfig
from btcnb.data.simulator.parameters import Dial, numbers
from btcnb.data.simulator.spending import SWEEP
from btcnb.data.simulator.wallets import Registry
from btcnb.data.simulator.world import NOBODY, World, spread

Array = npt.NDArray[np.int64]

EXCHANGES = numbers("exchanges")
INDEPENDENT = len(EXCHANGES.largest)
"""The largest exchanges neither leave their coins to others nor pay from deposits one by one."""
NEVER_SWEEP = ("direct", "home")
ONE_BY_ONE = ("peel", "home")
EVERY_BLOCK = ("peel", "forward", "home")
"""Styles that pay in every block and keep no accounts elsewhere."""


@dataclass
class Vault:
    """The wallets that keep and pay coins: of one exchange, or of a custodian for several brands."""

    hot: int
    till: int  # holds deposits until they are spent; the hot wallet itself for `direct` and `home`
    cold: int
    old: int = 0  # deposits from before the first block, spent evenly over the interval


@dataclass
class Exchange:
    """One exchange: wallets, habits, and the withdrawals it still has to pay."""

    style: str
    deposits: int  # the wallet customers pay into: the till, or the brand's own where a custodian keeps its coins
    vault: Vault
    batch_period: int  # blocks between batches
    batch_most: int  # most recipients of a batch
    sweep_period: int  # blocks between sweeps
    partner_payments: int  # payments to its accounts elsewhere in a round of withdrawals
    partners: Array = field(default_factory=lambda: np.empty(0, dtype=np.int64))  # its accounts at other exchanges
    queue: list[tuple[Array, Array, Array]] = field(default_factory=list)


class Exchanges:
    """All exchanges; numbers of customers fall like 1/rank."""

    def __init__(self, config: SimulationConfig, rng: np.random.Generator, registry: Registry, dial: Dial) -> None:
        size = 1.0 / np.arange(1, config.exchanges + 1)
        self.share = size / size.sum()
        founder = _Founder(config, rng, registry, dial)
        self.all = [founder.found(rank, float(self.share[rank])) for rank in range(config.exchanges)]
        self.deposit_wallets = np.array([exchange.deposits for exchange in self.all])

    def settle(self, world: World) -> None:
        """Cold reserves, hot coins and unswept deposits from before the first block."""
        users, size = world.config.users, world.config.transactions_per_block
        for rank, (exchange, share) in enumerate(zip(self.all, self.share, strict=True)):
            exchange.partners = self._accounts_near(world, rank)
            hot = int(EXCHANGES.hot_coins[0] + EXCHANGES.hot_coins[1] * users * share)
            world.endow(np.full(hot, exchange.vault.hot), world.money.payments(hot, scale=EXCHANGES.hot_coin))
            cold, value = EXCHANGES.cold_coins
            world.endow(np.full(cold, exchange.vault.cold), np.full(cold, value))
            if exchange.style == "forward":  # nothing waits there
                continue
            old = int(share * EXCHANGES.old_deposits * size * world.config.blocks)
            exchange.vault.old += old
            addresses = world.ledger.new_addresses(np.full(old, exchange.deposits))
            world.ledger.endow(addresses, world.money.payments(old, scale=EXCHANGES.old_deposit))

    def _accounts_near(self, world: World, rank: int) -> Array:
        """Fresh deposit addresses at exchanges of about the same size."""
        near = np.arange(max(0, rank - EXCHANGES.partner_reach), min(len(self.all), rank + EXCHANGES.partner_reach + 1))
        chosen = world.rng.choice(near[near != rank], min(EXCHANGES.partners, len(near) - 1), replace=False)
        return world.ledger.new_addresses(self.deposit_wallets[chosen])

    def plan(self, world: World) -> None:
        requests = [(NOBODY,) * 4, *world.withdrawals]
        world.withdrawals.clear()
        at, wallet, address, value = (np.concatenate(column) for column in zip(*requests, strict=True))
        shape = len(self.all), EXCHANGES.most_partner_payments
        amounts = world.money.payments(shape[0] * shape[1], scale=EXCHANGES.partner_payment).reshape(shape)
        order = np.argsort(at, kind="stable")
        first = np.searchsorted(at[order], np.arange(len(self.all) + 1))
        for rank, exchange in enumerate(self.all):
            rows = order[first[rank] : first[rank + 1]]
            if len(rows):
                exchange.queue.append((wallet[rows], address[rows], value[rows]))
            if (world.height + rank) % exchange.sweep_period == 0:
                _sweep(world, exchange)
            if exchange.queue and (world.height + rank) % exchange.batch_period == 0:
                exchange.queue.append(_balance_books(exchange, amounts[rank], world.rng))
                _pay_queue(world, exchange)
        self._forward_some(world)

    def _forward_some(self, world: World) -> None:
        """Single deposits that go to the hot wallet at once, at any exchange that sweeps."""
        number = world.rng.poisson(EXCHANGES.forwarded * world.era.moves * world.busy)
        for rank in world.rng.choice(len(self.all), size=number, p=self.share):
            exchange = self.all[rank]
            if exchange.style not in NEVER_SWEEP and _waiting(world, exchange):
                world.orders.pay(exchange.vault.till, wallet=exchange.vault.hot, mode=SWEEP, most_inputs=1)


class _Founder:
    """Founds exchanges one after the other, with styles, programs and habits dealt out in turn."""

    def __init__(self, config: SimulationConfig, rng: np.random.Generator, registry: Registry, dial: Dial) -> None:
        self.config, self.rng, self.registry = config, rng, registry
        self.phase = float(rng.random())
        largest, large, self._small = (
            rng.permutation(styles).tolist() for styles in (EXCHANGES.largest, EXCHANGES.large, EXCHANGES.small)
        )
        self._large = largest + large
        self.founded: Counter[str] = Counter()
        brands = max(0, config.exchanges - INDEPENDENT)
        at_home = np.arange(brands) < round(dial("home-change") * brands)
        kept = ~at_home & (np.arange(brands) < round((dial("home-change") + dial("shared-custody")) * brands))
        way = np.where(at_home, "home", np.where(kept, "kept", ""))
        self.way = np.append(np.full(INDEPENDENT, ""), rng.permutation(way))
        self.custodians = [self._custodian(number) for number in range(-(-int(kept.sum()) // EXCHANGES.brands))]
        self.payee_pays = dial("fee-from-payee")

    def found(self, rank: int, share: float) -> Exchange:
        kept = self.way[rank] == "kept"
        style, vault = self.custodians[int(self.rng.integers(len(self.custodians)))] if kept else ("", None)
        style = style or ("home" if self.way[rank] == "home" else self._style(rank))
        turn = self.founded[style]
        self.founded[style] += 1
        entity = self.registry.entity("exchange", f"exchange {rank}")
        if vault is None:
            vault = self._vault(entity, style, turn, share)
            deposits = vault.till
        else:  # a brand has addresses of its own; whatever they receive lies in the custodian's till
            deposits = self.registry.wallet(
                entity, "direct-legacy" if style == "direct" else "deposits", keeper=vault.till
            )
        period = int(spread(turn, EXCHANGES.batch_period, self.phase) * (1 + rank / EXCHANGES.slower))
        sweep_period = int(spread(turn, EXCHANGES.sweep_period, self.phase))
        return Exchange(
            style=style,
            deposits=deposits,
            vault=vault,
            batch_period=1 if style in EVERY_BLOCK else period,
            batch_most=min(self.config.largest_batch, int(spread(turn, EXCHANGES.batch_most[style], self.phase))),
            sweep_period=1 if style == "forward" else sweep_period,
            partner_payments=_partner_payments(style, rank / self.config.exchanges),
        )

    def _vault(self, entity: int, style: str, turn: int, share: float) -> Vault:
        """An exchange's own wallets."""
        program = EXCHANGES.hot_programs[style][turn % len(EXCHANGES.hot_programs[style])]
        mechanism = "home-change" if style == "home" else ""
        if style == "peel" and self.rng.random() < self.payee_pays:
            mechanism = "fee-from-payee"
        busy = EXCHANGES.withdrawals * share * (1.0 if style in ONE_BY_ONE else EXCHANGES.batched)
        till = hot = self.registry.wallet(entity, program, weight=busy, mechanism=mechanism)
        if style not in NEVER_SWEEP:
            kind = EXCHANGES.deposit_programs[turn % len(EXCHANGES.deposit_programs)]
            each = 1.0 if style == "forward" else EXCHANGES.batched
            till = self.registry.wallet(entity, kind, weight=each * EXCHANGES.withdrawals * share)
        return Vault(hot, till, self.registry.wallet(entity, "cold"))

    def _custodian(self, number: int) -> tuple[str, Vault]:
        """A custodian's style and wallets."""
        style = EXCHANGES.custodian_styles[(number + int(4 * self.phase)) % len(EXCHANGES.custodian_styles)]
        entity = self.registry.entity("custodian", f"custodian {number}")
        programs = EXCHANGES.hot_programs[style]
        weight = EXCHANGES.batched * EXCHANGES.withdrawals * EXCHANGES.brands / self.config.exchanges
        how: dict[str, Any] = {"weight": weight, "mechanism": "shared-custody"}
        till = hot = self.registry.wallet(entity, programs[number % len(programs)], **how)
        if style != "direct":
            till = self.registry.wallet(entity, "deposits", **how)
        return style, Vault(hot, till, self.registry.wallet(entity, "cold"))

    def _style(self, rank: int) -> str:
        late = rank - len(self._large)
        return str(self._large[rank] if late < 0 else self._small[late % len(self._small)])


def _partner_payments(style: str, standing: float) -> int:
    """`standing` is 0 for the largest exchange and near 1 for the smallest."""
    if style in EVERY_BLOCK:
        return 0
    return round(1 + (EXCHANGES.most_partner_payments - 1) * standing) if style == "direct" else 1


def _waiting(world: World, exchange: Exchange) -> int:
    """Deposits to be spent now: those that came in, and the share of the old ones whose time has come."""
    return max(0, int(world.ledger.coins[exchange.vault.till]) - int(exchange.vault.old * world.ahead))


def _sweep(world: World, exchange: Exchange) -> None:
    """Gather deposits in the hot wallet, in transactions of very different sizes."""
    waiting = _waiting(world, exchange)
    if exchange.style in NEVER_SWEEP or not waiting:
        return
    if exchange.style == "forward":
        world.orders.pay(np.full(waiting, exchange.vault.till), wallet=exchange.vault.hot, mode=SWEEP, most_inputs=1)
        return
    sizes = _sweep_sizes(world, waiting)
    joined = np.where(world.rng.random(len(sizes)) < EXCHANGES.joined, exchange.vault.hot, -1)
    payer = np.full(len(sizes), exchange.vault.till)
    world.orders.pay(
        payer, wallet=exchange.vault.hot, mode=SWEEP, most_inputs=sizes, companion=joined, hurry=EXCHANGES.sweep_hurry
    )


def _sweep_sizes(world: World, waiting: int) -> Array:
    """Split `waiting` inputs into sweeps with a long-tailed number of inputs each."""
    least, exponent = EXCHANGES.sweep_size
    sizes: list[int] = []
    while waiting > 0:
        size = int(least * (1.0 - world.rng.random()) ** (-1.0 / exponent))
        sizes.append(min(size, waiting, world.config.largest_consolidation))
        waiting -= sizes[-1]
    return np.array(sizes)


def _balance_books(exchange: Exchange, amounts: Array, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Payments to the exchange's own accounts elsewhere, as rows of its queue."""
    extra = min(exchange.partner_payments, len(exchange.partners))
    first = int(rng.integers(max(1, len(exchange.partners))))
    account = np.roll(exchange.partners, first)[:extra]
    return np.full(extra, -1), account, amounts[:extra]


def _pay_queue(world: World, exchange: Exchange) -> None:
    wallet, address, value = (np.concatenate(column) for column in zip(*exchange.queue, strict=True))
    exchange.queue.clear()
    _refill(world, exchange, int(value.sum()))
    if exchange.style in ONE_BY_ONE:
        world.orders.pay(np.full(len(value), exchange.vault.hot), wallet=wallet, address=address, value=value)
        return
    least, companion = 1, -1
    if exchange.style == "direct":  # deposits leave with the withdrawals as fast as they come in
        batches = -(-len(value) // exchange.batch_most)
        least = min(max(1, _waiting(world, exchange) // batches), world.config.largest_consolidation)
        companion = exchange.vault.hot
    for start in range(0, len(value), exchange.batch_most):
        part = slice(start, start + exchange.batch_most)
        world.orders.batch(
            exchange.vault.hot, wallet[part], address[part], value[part], least_inputs=least, companion=companion
        )


def _refill(world: World, exchange: Exchange, wanted: int) -> None:
    """Fetch coins from cold storage when the hot wallet runs low, and bring back what is too much."""
    have = int(world.ledger.balance[exchange.vault.hot])
    (few, spare), (many, much) = EXCHANGES.too_little, EXCHANGES.too_much
    if have < few * wanted:
        world.orders.pay(exchange.vault.cold, wallet=exchange.vault.hot, value=few * wanted + spare)
    elif have > many * wanted + much:
        world.orders.pay(exchange.vault.hot, wallet=exchange.vault.cold, value=have // 2)
