"""Whirlpool: a Tx0 cuts coins to size, mixes shuffle equal coins among five users (more in a surge cycle).

From Samourai's client and server: pools of 0.001, 0.01, 0.05 and 0.5 bitcoin with flat fees; premix coins carry the
miner's fee on top of the pool's value; a mix has at least two premix coins and one remix, all from distinct users and
distinct transactions; Tx0 is sorted by BIP 69.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from btcnb.data.coinjoin.shape import WHIRLPOOL_POOL_FEES
from btcnb.data.simulator.book import NULLDATA_BYTES
from btcnb.data.simulator.mixes.joint import INPUT_SIZE, OUTPUT_SIZE, Draft, Peer, gather_many
from btcnb.data.simulator.parameters import numbers
from btcnb.data.simulator.spending import LEAST_OUTPUT
from btcnb.data.simulator.world import World

Array = npt.NDArray[np.int64]

WHIRLPOOL = numbers("whirlpool")
POOLS = tuple(WHIRLPOOL_POOL_FEES)
POOL_FEES = tuple(WHIRLPOOL_POOL_FEES.values())


class Whirlpool:
    """The coordinator's view: coins waiting to be mixed, per pool."""

    def __init__(self) -> None:
        self.premix: list[list[int]] = [[] for _ in POOLS]
        self.remix: list[list[int]] = [[] for _ in POOLS]

    def settle(self, world: World, members: Array) -> None:
        """Coins that were mid-mix before the first block."""
        if not len(members):
            return
        for pool, value in enumerate(POOLS):
            owner = world.rng.choice(members, size=min(20, len(members)), replace=False)
            half = len(owner) // 2
            least, most = WHIRLPOOL.surplus
            extra = np.where(np.arange(len(owner)) < half, world.rng.integers(least, most, len(owner)), 0)
            coins = world.ledger.endow(world.ledger.new_addresses(owner), value + extra)
            for coin in coins:
                world.ledger.hold(int(coin))
            self.premix[pool] += [int(coin) for coin in coins[:half]]
            self.remix[pool] += [int(coin) for coin in coins[half:]]

    def tx0(self, world: World, members: Array, coordinator: int) -> bool:
        """A user enters a pool; False if nobody can afford it."""
        pool = self._choose_pool(world)
        value, fee = POOLS[pool], POOL_FEES[pool]
        if world.rng.random() < WHIRLPOOL.partners:
            fee = int(WHIRLPOOL.partner_discount * fee)
        premix = value + int(np.clip(world.rate * WHIRLPOOL.mix_size / WHIRLPOOL.least_premix, *WHIRLPOOL.surplus))
        wanted = int(world.rng.integers(1, 12))
        reserve = int(world.rate * (200 + NULLDATA_BYTES + 8 * INPUT_SIZE))
        peers = gather_many(world, members, wanted * premix + fee + reserve, 1, 8)
        if not peers:
            peers = gather_many(world, members, premix + fee + reserve, 1, 8)
        if not peers:
            return False
        self._enter(world, peers[0], pool, premix, fee, coordinator)
        return True

    def _enter(self, world: World, peer: Peer, pool: int, premix: int, fee: int, coordinator: int) -> None:
        size = 13 + NULLDATA_BYTES + INPUT_SIZE * len(peer.coins) + OUTPUT_SIZE * 2
        left = peer.total - fee - int(world.rate * size)
        each = premix + int(world.rate * OUTPUT_SIZE)
        number = min(WHIRLPOOL.most_premix[pool], max(1, left // each))
        change = left - number * each
        draft = Draft(coins=peer.coins, payees=[(-1, 0)])
        draft.pay(coordinator, fee)
        for _ in range(number):
            draft.pay(peer.wallet, premix)
        if change >= LEAST_OUTPUT:
            draft.pay(peer.wallet, change)
        draft.address(world).sort_bip69(world)
        tx = draft.write(world, "whirlpool-tx0", credit=False)
        for coin, (address, value) in zip(world.ledger.outputs_of(tx), draft.outputs, strict=True):
            if value == premix:
                self.premix[pool].append(int(coin))
            elif address >= 0:
                world.ledger.credit(int(coin))

    def mix(self, world: World) -> bool:
        """One mix in a pool that has the coins for it; False if none has."""
        number = WHIRLPOOL.participants
        if world.rng.random() < world.config.whirlpool_surge:
            number = int(world.rng.integers(WHIRLPOOL.surge[0], WHIRLPOOL.surge[1] + 1))
        for pool in world.rng.permutation(len(POOLS)):
            chosen = self._choose_coins(world, int(pool), number)
            if chosen is not None:
                self._shuffle(world, int(pool), chosen)
                return True
        return False

    def _choose_coins(self, world: World, pool: int, number: int) -> list[int] | None:
        """Coins of distinct users and distinct transactions, two or more premix and one or more remix; else None."""
        fresh = int(world.rng.integers(WHIRLPOOL.least_premix, max(WHIRLPOOL.least_premix + 1, number // 2 + 1)))
        chosen: list[int] = []
        owners: set[int] = set()
        sources: set[int] = set()
        for waiting, target in ((self.premix[pool], fresh), (self.remix[pool], number)):
            for i in world.rng.permutation(len(waiting)):
                coin = waiting[i]
                owner, source = world.ledger.owner(coin), _source(world, coin)
                if owner not in owners and source not in sources:
                    chosen.append(coin)
                    owners.add(owner)
                    sources.add(source)
                if len(chosen) == target:
                    break
            if len(chosen) < min(target, WHIRLPOOL.least_premix):
                return None
        return chosen if len(chosen) == number and chosen[-1] in self.remix[pool] else None

    def _shuffle(self, world: World, pool: int, chosen: list[int]) -> None:
        draft = Draft(coins=list(chosen))
        for coin in chosen:
            draft.pay(world.ledger.owner(coin), POOLS[pool])
        draft.address(world).shuffle(world)
        tx = draft.write(world, "whirlpool", credit=False)
        gone = set(chosen)
        self.premix[pool] = [coin for coin in self.premix[pool] if coin not in gone]
        self.remix[pool] = [coin for coin in self.remix[pool] if coin not in gone]
        for coin in world.ledger.outputs_of(tx):
            if world.rng.random() < WHIRLPOOL.leaves:
                world.ledger.credit(int(coin))
            else:
                self.remix[pool].append(int(coin))

    def _choose_pool(self, world: World) -> int:
        share = np.array(WHIRLPOOL.popularity)
        if world.height < WHIRLPOOL.smallest_pool_since:
            share[0] = 0.0
        return int(world.rng.choice(len(POOLS), p=share / share.sum()))


def _source(world: World, coin: int) -> int:
    """The transaction a coin comes from; coins from before the first block come each from their own."""
    tx = int(world.ledger.book.coin_tx[coin])
    return tx if tx >= 0 else -1 - coin
