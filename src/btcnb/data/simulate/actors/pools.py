"""Mining pools: they find the blocks, wait for the coinbase to mature, and pay their miners in batches."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from btcnb.data.simulate import rates
from btcnb.data.simulate.actors import spread
from btcnb.data.simulate.amounts import subsidy
from btcnb.data.simulate.config import SimulationConfig
from btcnb.data.simulate.orders import NO_ADDRESS
from btcnb.data.simulate.programs import NUMBER
from btcnb.data.simulate.world import COINBASE_MATURITY, Registry, World

Array = npt.NDArray[np.int64]

LEAST_PAYOUT = 20_000
"""Satoshi."""


class Pools:
    """All pools; hash rates fall like 1/rank."""

    def __init__(self, config: SimulationConfig, rng: np.random.Generator, registry: Registry) -> None:
        number, phase = config.pools, float(rng.random())
        self.wallet = np.array(
            [registry.wallet(registry.entity("pool", f"pool {rank}"), NUMBER["pool"]) for rank in range(number)]
        )
        power = 1.0 / np.arange(1, number + 1)
        self._cumulative = np.cumsum(power) / power.sum()
        self._period = [int(spread(rank, 4, 25, phase)) for rank in range(number)]  # blocks between payouts
        self._address = np.empty(0, dtype=np.int64)
        self._immature: list[int] = []
        self._miners: list[tuple[Array, Array]] = []
        self._reserved = 0

    def settle(self, world: World) -> None:
        """Coinbases of the hundred blocks before the first one mature one by one; miners join a pool."""
        self._address = world.ledger.receive_addresses(self.wallet)
        owner = self._lucky(world, COINBASE_MATURITY)
        reward = np.full(COINBASE_MATURITY, subsidy(world.height))
        extra = world.rng.integers(10**6, 5 * 10**7, COINBASE_MATURITY)  # the fees of those blocks
        for coin in world.ledger.endow(self._address[owner], reward + extra):
            world.ledger.take(int(coin))
            self._immature.append(int(coin))
        each = max(10, world.config.users // (4 * len(self.wallet)))
        for _ in self.wallet:
            miner = world.rng.choice(world.config.users, size=min(each, world.config.users), replace=False)
            direct = world.rng.random(len(miner)) < 0.2  # paid straight to the account at an exchange
            self._miners.append((miner, np.where(direct, world.customer_address[miner], NO_ADDRESS)))

    def mine(self, world: World) -> None:
        """Open the block: its coinbase stands first, with a value that `close` fills in."""
        pool = int(self._lucky(world, 1)[0])
        tx = world.ledger.write(
            np.zeros(0, dtype=np.int64),
            np.array([self._address[pool], -1]),  # the second output commits to the witnesses
            np.array([subsidy(world.height), 0]),
            credit=False,
        )
        self._reserved = int(world.ledger.outputs_of(tx)[0])

    def close(self, world: World, fees: int) -> None:
        """The block is full: the coinbase takes subsidy and fees, and the one a hundred blocks back matures."""
        world.ledger.book.coin_value[self._reserved] += fees
        self._immature.append(self._reserved)
        world.ledger.credit(self._immature.pop(0))

    def plan(self, world: World) -> None:
        size = world.config.transactions_per_block
        for rank in range(len(self.wallet)):
            wallet, period = int(self.wallet[rank]), int(self._period[rank])
            if (world.height + rank) % period or not world.ledger.coins[wallet]:
                continue
            power = self._cumulative[rank] - (self._cumulative[rank - 1] if rank else 0.0)
            wanted = world.rng.poisson(rates.MINER_PAYOUTS * world.era.batches * size * period * power)
            self._pay_out(world, rank, wallet, max(3, int(wanted)))

    def _pay_out(self, world: World, rank: int, wallet: int, wanted: int) -> None:
        """Share most of the balance among miners; long lists are split over a chain of transactions."""
        miner, address = self._miners[rank]
        chosen = world.rng.choice(len(miner), size=min(wanted, len(miner)), replace=False)
        weight = world.rng.pareto(1.2, len(chosen)) + 0.1
        value = np.floor(0.97 * world.ledger.balance[wallet] * weight / weight.sum()).astype(np.int64)
        chosen, value = chosen[value > LEAST_PAYOUT], value[value > LEAST_PAYOUT]
        chunk = world.config.largest_batch
        for start in range(0, len(chosen), chunk):
            part = slice(start, start + chunk)
            world.orders.batch(wallet, miner[chosen[part]], address[chosen[part]], value[part])

    def _lucky(self, world: World, number: int) -> Array:
        """Which pool finds each of `number` blocks."""
        return np.searchsorted(self._cumulative, world.rng.random(number))
