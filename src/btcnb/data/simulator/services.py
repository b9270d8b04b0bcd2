"""Services: merchants, mining pools, and writers of data.

Merchants are shops with a fresh address per invoice, sites with one public address, and betting sites that pay back.
Some shops leave invoices to a payment processor, some sites show an address of their account at an exchange: somebody
else then keeps the coins and spends them with those of strangers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from btcnb.data.intervals import subsidy
from btcnb.data.simulator.config import SimulationConfig
from btcnb.data.simulator.parameters import Dial, Era, numbers
from btcnb.data.simulator.spending import NO_ADDRESS, OP_RETURN, SWEEP
from btcnb.data.simulator.wallets import Registry
from btcnb.data.simulator.world import NOBODY, World, spread

Array = npt.NDArray[np.int64]

MERCHANTS, POOLS, DATA_WRITERS = numbers("merchants"), numbers("pools"), numbers("data_writers")


class Merchants:
    """All merchants; sizes fall like 1/rank."""

    def __init__(
        self, config: SimulationConfig, rng: np.random.Generator, registry: Registry, dial: Dial, tills: Array
    ) -> None:
        """`tills`: per exchange, the wallet that keeps what its customers pay in."""
        self.bets_won: float = MERCHANTS.bets_won
        number = config.merchants
        phase = float(rng.random())
        self.style = np.array([MERCHANTS.styles[rank % len(MERCHANTS.styles)] for rank in range(number)])
        self.wallet = np.empty(number, dtype=np.int64)
        shops = int((self.style == "invoice").sum())
        processors = range(-(-round(dial("payment-processor") * shops) // MERCHANTS.clients))
        how: dict[str, Any] = {"weight": MERCHANTS.busy * MERCHANTS.clients / number, "mechanism": "payment-processor"}
        made = [registry.newcomer("processor", f"processor {i}", "shop", **how) for i in processors]
        self.processors = np.array(made, dtype=np.int64)
        self._settles = min(MERCHANTS.settles, config.largest_consolidation)
        self.clients: list[list[int]] = [[] for _ in self.processors]  # ranks of the shops of each processor
        for rank in range(number):
            programs = MERCHANTS.programs[str(self.style[rank])]
            program = programs[rank // len(MERCHANTS.styles) % len(programs)]
            kind = "service" if self.style[rank] == "betting" else "merchant"
            keeper = self._keeper(rank, rng, dial, tills)
            weight = 0.0 if keeper >= 0 else MERCHANTS.busy / (rank + 1)
            self.wallet[rank] = registry.newcomer(kind, f"{kind} {rank}", program, weight=weight, keeper=keeper)
        popularity = 1.0 / np.arange(1, number + 1) ** MERCHANTS.popularity
        self._cumulative = np.cumsum(popularity) / popularity.sum()
        # how many coins a merchant collects before forwarding them, long-tailed
        most, (factor, less) = config.largest_consolidation, MERCHANTS.patience
        rarity = np.array([spread(rank, (0.0, 1.0), phase) for rank in range(number)])
        self._patience = np.minimum(most, factor * rarity**-MERCHANTS.patience_tail - less).astype(np.int64)
        self._account = np.empty(0, dtype=np.int64)
        self._standing_address = np.empty(0, dtype=np.int64)

    def _keeper(self, rank: int, rng: np.random.Generator, dial: Dial, tills: Array) -> int:
        """The wallet that keeps a merchant's coins, -1 for its own."""
        draw = rng.random()
        if self.style[rank] == "betting":
            return -1
        if draw < dial("hosted-address"):
            return int(tills[rng.integers(len(tills))])
        if self.style[rank] == "invoice" and len(self.processors) and 1 - draw < dial("payment-processor"):
            chosen = int(rng.integers(len(self.processors)))
            self.clients[chosen].append(rank)
            return int(self.processors[chosen])
        return -1

    def settle(self, world: World, exchange_wallets: Array) -> None:
        """Accounts at exchanges, and the first coins."""
        rng = world.rng
        at = rng.integers(len(exchange_wallets), size=len(self.wallet))
        self._account = world.ledger.new_addresses(exchange_wallets[at])
        self._standing_address = world.ledger.new_addresses(self.wallet)
        of_betting, of_others = MERCHANTS.first_coins
        coins = np.where(self.style == "betting", of_betting, np.minimum(self._patience, of_others))
        owners = np.repeat(self.wallet, coins)
        world.endow(owners, world.money.payments(len(owners), scale=MERCHANTS.first_coin))

    def checkout(self, world: World, number: int) -> tuple[Array, Array]:
        """Merchants that customers choose and the addresses they get, shapes (number,)."""
        rank = np.searchsorted(self._cumulative, world.rng.random(number))
        address = np.where(self.style[rank] == "betting", self._standing_address[rank], NO_ADDRESS)
        return self.wallet[rank], address

    def plan(self, world: World, gamblers: Array) -> None:
        """Forward what has been collected to the exchange; betting sites also pay winners, one by one."""
        rng, coins = world.rng, world.ledger.coins[self.wallet]
        ready = (self.style != "betting") & (coins >= self._patience)
        buying = ready & (rng.random(len(ready)) < MERCHANTS.buys_supplies) & (self._patience >= MERCHANTS.least_coins)
        selling = ready & ~buying
        world.orders.pay(
            self.wallet[selling],
            address=self._account[selling],
            mode=SWEEP,
            least_inputs=self._patience[selling],
            most_inputs=self._patience[selling],
        )
        for rank in np.flatnonzero(buying):
            self._buy_supplies(world, int(rank))
        for processor, shops in zip(self.processors, self.clients, strict=True):
            self._settle_up(world, int(processor), shops)
        betting = np.flatnonzero((self.style == "betting") & (coins > MERCHANTS.betting_coins))
        if len(betting) and len(gamblers):
            site = self.wallet[betting[rng.integers(len(betting), size=len(gamblers))]]
            value = world.money.payments(len(gamblers), scale=MERCHANTS.prize)
            value = np.minimum(value, world.ledger.balance[site] // MERCHANTS.prizes_in_hand)
            fine = value > MERCHANTS.least_prize
            world.orders.pay(site[fine], wallet=gamblers[fine], value=value[fine])

    def _settle_up(self, world: World, processor: int, shops: list[int]) -> None:
        """A processor pays its shops, at their accounts, from what it has collected for them."""
        coins = int(world.ledger.coins[processor])
        if coins < self._settles or not shops:
            return
        each = int(MERCHANTS.settled * world.ledger.balance[processor] * self._settles / coins / len(shops))
        if each > MERCHANTS.least_supply:
            account, value = self._account[shops], np.full(len(shops), each)
            world.orders.batch(processor, np.full(len(shops), -1), account, value, least_inputs=self._settles)

    def _buy_supplies(self, world: World, rank: int) -> None:
        """Spend what has been collected on suppliers: merchants of about the same size, at their standing address."""
        near = np.arange(
            max(0, rank - MERCHANTS.supplier_reach), min(len(self.wallet), rank + MERCHANTS.supplier_reach + 1)
        )
        near = near[(near != rank) & (self.style[near] == "invoice")]
        supplier = world.rng.choice(near, min(MERCHANTS.suppliers, len(near)), replace=False)
        budget = MERCHANTS.supplied * world.ledger.balance[self.wallet[rank]] * self._patience[rank]
        each = int(budget / world.ledger.coins[self.wallet[rank]] / max(1, len(supplier)))
        if len(supplier) and each > MERCHANTS.least_supply:
            world.orders.batch(
                int(self.wallet[rank]),
                self.wallet[supplier],
                self._standing_address[supplier],
                np.full(len(supplier), each),
                least_inputs=self._patience[rank],
            )


class Pools:
    """All pools; hash rates fall like 1/rank."""

    def __init__(self, config: SimulationConfig, rng: np.random.Generator, registry: Registry) -> None:
        number, phase = config.pools, float(rng.random())
        self.wallet = np.array([registry.newcomer("pool", f"pool {rank}", "pool") for rank in range(number)])
        power = 1.0 / np.arange(1, number + 1)
        self._cumulative = np.cumsum(power) / power.sum()
        self._period = [int(spread(rank, POOLS.period, phase)) for rank in range(number)]  # blocks between payouts
        self._address = np.empty(0, dtype=np.int64)
        self._immature: list[int] = []
        self._miners: list[tuple[Array, Array]] = []
        self._reserved = 0

    def settle(self, world: World) -> None:
        """Coinbases of the hundred blocks before the first one mature one by one; miners join a pool."""
        self._address = world.ledger.receive_addresses(self.wallet)
        owner = self._lucky(world, POOLS.maturity)
        reward = np.full(POOLS.maturity, int(subsidy(world.height)))
        least, most = POOLS.earlier_fees
        extra = world.rng.integers(least, most, POOLS.maturity)
        for coin in world.ledger.endow(self._address[owner], reward + extra):
            world.ledger.hold(int(coin))
            self._immature.append(int(coin))
        least, apart = POOLS.miners
        each = max(least, world.config.users // (apart * len(self.wallet)))
        for _ in self.wallet:
            miner = world.rng.choice(world.config.users, size=min(each, world.config.users), replace=False)
            direct = world.rng.random(len(miner)) < POOLS.direct  # paid straight to the account at an exchange
            self._miners.append((miner, np.where(direct, world.customer_address[miner], NO_ADDRESS)))

    def mine(self, world: World) -> None:
        """Open the block: its coinbase stands first, with a value that `close` fills in."""
        pool = int(self._lucky(world, 1)[0])
        addresses = np.array([self._address[pool], -1])  # the second output commits to the witnesses
        made = world.ledger.write(NOBODY, addresses, np.array([int(subsidy(world.height)), 0]), credited=False)
        self._reserved = int(made[0])

    def close(self, world: World, fees: int) -> None:
        """The block is full: the coinbase takes subsidy and fees, and the one a hundred blocks back matures."""
        world.ledger.state.coin_value[self._reserved] += fees
        self._immature.append(self._reserved)
        world.ledger.credit(self._immature.pop(0))

    def plan(self, world: World) -> None:
        size = world.config.transactions_per_block
        for rank in range(len(self.wallet)):
            wallet, period = int(self.wallet[rank]), int(self._period[rank])
            if (world.height + rank) % period or not world.ledger.coins[wallet]:
                continue
            power = self._cumulative[rank] - (self._cumulative[rank - 1] if rank else 0.0)
            wanted = world.rng.poisson(POOLS.payouts * world.era.batches * size * period * power)
            self._pay_out(world, rank, wallet, max(POOLS.least_paid, int(wanted)))

    def _pay_out(self, world: World, rank: int, wallet: int, wanted: int) -> None:
        """Share most of the balance among miners; long lists are split over a chain of transactions."""
        miner, address = self._miners[rank]
        chosen = world.rng.choice(len(miner), size=min(wanted, len(miner)), replace=False)
        tail, least = POOLS.work
        weight = world.rng.pareto(tail, len(chosen)) + least
        value = np.floor(POOLS.paid_out * world.ledger.balance[wallet] * weight / weight.sum()).astype(np.int64)
        chosen, value = chosen[value > POOLS.least_payout], value[value > POOLS.least_payout]
        chunk = world.config.largest_batch
        for start in range(0, len(chosen), chunk):
            part = slice(start, start + chunk)
            world.orders.batch(wallet, miner[chosen[part]], address[chosen[part]], value[part])

    def _lucky(self, world: World, number: int) -> Array:
        """Which pool finds each of `number` blocks."""
        return np.searchsorted(self._cumulative, world.rng.random(number))


class DataWriters:
    """Services that write timestamps in OP_RETURN outputs, and people who send tokens by notes in them, as Omni did."""

    def __init__(self, config: SimulationConfig, rng: np.random.Generator, registry: Registry, era: Era) -> None:
        number, weight = DATA_WRITERS.anchors, era.anchors / DATA_WRITERS.anchors
        entities = [registry.entity("service", f"anchor {i}") for i in range(number)]
        self.anchors = np.array([registry.wallet(entity, "static", weight=weight) for entity in entities])
        number = max(DATA_WRITERS.least_holders, int(DATA_WRITERS.token_holders * config.users))
        tail, least = DATA_WRITERS.activity
        activity = rng.pareto(tail, number) + least
        self._cumulative = np.cumsum(activity) / activity.sum()
        weights = (era.tokens * activity / activity.sum()).tolist()
        holders = [registry.newcomer("user", f"holder {i}", "token", weight=each) for i, each in enumerate(weights)]
        self.holders = np.array(holders)

    def settle(self, world: World) -> None:
        """The first coins of both."""
        for wallets, (coins, value) in (
            (self.anchors, DATA_WRITERS.anchor_coins),
            (self.holders, DATA_WRITERS.holder_coins),
        ):
            world.endow(np.repeat(wallets, coins), np.full(coins * len(wallets), value))

    def plan(self, world: World) -> None:
        """Timestamps, with the rest back to the service; then tokens, from one standing address to another."""
        number = world.rng.poisson(world.era.anchors * world.busy)
        wallet = self.anchors[world.rng.integers(len(self.anchors), size=number)]
        world.orders.pay(wallet, address=OP_RETURN, hurry=DATA_WRITERS.anchor_hurry)
        number = int(world.rng.poisson(world.era.tokens * world.busy))
        sender, receiver = (np.searchsorted(self._cumulative, world.rng.random(number)) for _ in range(2))
        for one, other in zip(self.holders[sender], self.holders[receiver], strict=True):
            if one != other:
                payees, places = np.array([other, -1]), np.array([NO_ADDRESS, OP_RETURN])
                world.orders.batch(int(one), payees, places, np.array([DATA_WRITERS.token_output, 0]))
