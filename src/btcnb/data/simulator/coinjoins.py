"""CoinJoins with their real denominations, round sizes, fees and order: JoinMarket, Wasabi 1 and 2, Whirlpool.

`CoinJoins` says when they happen, who may take part, and what the coordinators do with their income.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from btcnb.data.coinjoin.shape import (
    JOINMARKET_LEAST_CHANGE,
    WASABI1_DENOMINATION,
    WASABI1_INPUTS_PER_PEER,
    WASABI1_LEVELS,
    WASABI2_LEAST,
    WHIRLPOOL_POOL_FEES,
    wasabi2_denominations,
)
from btcnb.data.simulator.config import SimulationConfig
from btcnb.data.simulator.joint import (
    COINJOINS,
    INPUT_SIZE,
    OUTPUT_SIZE,
    PROTOCOL_NUMBER,
    Draft,
    Peer,
    gather,
    gather_many,
    joined_coins,
    network_fee,
    output_fee,
    source_of,
)
from btcnb.data.simulator.parameters import NULLDATA_BYTES, numbers
from btcnb.data.simulator.spending import LEAST_OUTPUT, SWEEP
from btcnb.data.simulator.users import USERS, Users
from btcnb.data.simulator.wallets import Registry
from btcnb.data.simulator.world import World

Array = npt.NDArray[np.int64]

JOINMARKET, WASABI1, WASABI2, WHIRLPOOL = map(numbers, ("joinmarket", "wasabi1", "wasabi2", "whirlpool"))
DENOMINATIONS = wasabi2_denominations()
"""Of Wasabi 2, satoshi, ascending."""
POOLS, POOL_FEES = tuple(WHIRLPOOL_POOL_FEES), tuple(WHIRLPOOL_POOL_FEES.values())


class CoinJoins:
    """All protocols and their coordinators."""

    def __init__(self, config: SimulationConfig, registry: Registry) -> None:
        fresh = config.start_block >= COINJOINS.fresh_coordinator
        program = "coordinator" if fresh else "coordinator-static"
        self.wasabi_coordinator = registry.newcomer("coordinator", "wasabi coordinator", program)
        self.whirlpool_coordinator = registry.newcomer("coordinator", "whirlpool coordinator", "coordinator")
        self.whirlpool = Whirlpool()
        self._members: dict[str, Array] = {}  # users by wallet program
        self._account = np.empty(0, dtype=np.int64)

    def settle(self, world: World, users: Users, exchange_wallets: Array) -> None:
        """People who mix own more, and more coins, than the average user."""
        (fewest, most), (spread, least) = COINJOINS.first_coins, COINJOINS.first_coin
        for program, median in COINJOINS.endowment.items():
            members = self._members[program] = users.members(program)
            owner = np.repeat(members, world.rng.integers(fewest, most + 1, len(members)))
            value = (median * np.exp(world.rng.normal(0.0, spread, len(owner)))).astype(np.int64) + least
            world.endow(owner, value)
        self.whirlpool.settle(world, self._members["samourai"])
        self._account = world.ledger.new_addresses(exchange_wallets[:2])

    def run(self, world: World) -> None:
        """The mixes of one block, protocol by protocol."""
        peers, coordinator = self._members, self.wasabi_coordinator
        rounds: dict[str, Callable[[], None]] = {
            "joinmarket": lambda: mix_joinmarket(world, peers["joinmarket"]),
            "wasabi1.0": lambda: mix_wasabi1(world, peers["wasabi"], coordinator, levels=False),
            "wasabi1.1": lambda: mix_wasabi1(world, peers["wasabi"], coordinator, levels=True),
            "wasabi2": lambda: mix_wasabi2(world, peers["wasabi"], coordinator),
            "whirlpool-tx0": lambda: self.whirlpool.tx0(world, peers["samourai"], self.whirlpool_coordinator),
            "whirlpool": lambda: self.whirlpool.mix(world),
        }
        for name, mix in rounds.items():
            field = name.replace(".", "").replace("-", "_")
            for _ in range(world.rng.poisson(world.config.mixing * getattr(world.config.coinjoins, field))):
                mix()

    def plan(self, world: World) -> None:
        """Coordinators sell what they have earned."""
        for wallet, account in zip((self.wasabi_coordinator, self.whirlpool_coordinator), self._account, strict=True):
            if world.ledger.coins[wallet] >= COINJOINS.coordinator_coins:
                world.orders.pay(wallet, address=account, mode=SWEEP, most_inputs=COINJOINS.swept)


# --- JoinMarket: a taker pays makers for mixing one amount of the taker's choice ---
#
# Makers take a relative or an absolute fee and keep their change; the taker pays the miner and may sweep, which leaves
# no change. Inputs and outputs are shuffled.


def mix_joinmarket(world: World, members: Array) -> None:
    """One round, if enough members can take part."""
    rng = world.rng
    number = world.between(JOINMARKET.participants)
    if len(members) < number:
        return
    richest = np.sort(world.ledger.balance[members])[::-1]
    limit = JOINMARKET.offered * richest[min(len(members), 3 * number) - 1]  # makers who offer less are not asked
    median, spread = JOINMARKET.amount
    wanted = int(max(JOINMARKET.least_amount, min(limit, median * np.exp(rng.normal(0.0, spread)))))
    spare = JOINMARKET_LEAST_CHANGE + 10
    makers = gather_many(world, members, wanted + spare, number, JOINMARKET.most_inputs)
    if len(makers) < number:
        return
    taker = makers.pop()
    amount = _sweep_amount(world, taker, makers, wanted) if rng.random() < JOINMARKET.sweeps else wanted
    fees = [_maker_fee(rng, amount) for _ in makers]
    miner = _taker_miner_fee(world, taker, makers)
    if taker.total < amount + sum(fees) + miner:
        more = gather(world, taker.wallet, amount + sum(fees) + 2 * miner, JOINMARKET.most_inputs)
        if more is None:
            return
        taker = more
        miner = _taker_miner_fee(world, taker, makers)
    draft = Draft(joined_coins([taker, *makers]))
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


def _maker_fee(rng: np.random.Generator, amount: int) -> int:
    return int(max(JOINMARKET.absolute_fee, JOINMARKET.relative_fee * amount) * rng.uniform(*JOINMARKET.fee_range))


def _taker_miner_fee(world: World, taker: Peer, makers: list[Peer]) -> int:
    inputs = len(taker.coins) + sum(len(peer.coins) for peer in makers)
    return int(world.rate * (11 + JOINMARKET.input_size * inputs + 32 * 2 * (len(makers) + 1)))


def _sweep_amount(world: World, taker: Peer, makers: list[Peer], wanted: int) -> int:
    """The amount that uses up the taker's coins to the last satoshi, if the makers can match it; else the wanted."""
    capacity = min(peer.total for peer in makers) - JOINMARKET_LEAST_CHANGE
    amount = taker.total - _taker_miner_fee(world, taker, makers)
    largest = len(makers) * JOINMARKET.fee_range[1]
    amount -= int(largest * max(JOINMARKET.absolute_fee, JOINMARKET.relative_fee * amount))
    return amount if JOINMARKET.least_amount <= amount <= capacity else wanted


# --- Wasabi: many peers and one coordinator ---
#
# Wasabi 1 (WalletWasabi 1.0.5 and 1.1) has a base denomination near 0.1 bitcoin: the least that any peer can afford, so
# it drifts. Version 1.1 adds levels that double it. The coordinator takes 0.003 % of the denomination times the number
# of peers from each peer, and change too small to return.
#
# Wasabi 2 (WabiSabi, WalletWasabi 2.0): wallets bring up to ten coins each and split what they own into standard
# denominations. The coordinator takes 0.3 % of fresh inputs above 0.01 bitcoin. Inputs and outputs stand in descending
# order of value.


def mix_wasabi1(world: World, members: Array, coordinator: int, levels: bool) -> None:
    """One round of version 1.1 (with levels) or 1.0 (without), if enough members can take part."""
    number = world.between(world.config.wasabi_peers)
    base = int(WASABI1_DENOMINATION * world.rng.uniform(*WASABI1.drift))
    network = int(world.rate * (WASABI1_INPUTS_PER_PEER * INPUT_SIZE + 2 * OUTPUT_SIZE))
    need = base + int(base * WASABI1.coordinator_rate * number) + network
    peers = gather_many(
        world, members, need, number, WASABI1_INPUTS_PER_PEER, more=WASABI1.extra_coins if levels else 0.0
    )
    if len(peers) < world.config.wasabi_peers[0]:
        return
    rest = {peer.wallet: peer.total - network_fee(world, peer) for peer in peers}
    base = min(base, min(int(value / (1 + WASABI1.coordinator_rate * len(peers))) for value in rest.values()))
    draft = Draft(joined_coins(peers))
    income = 0
    for level in range(WASABI1_LEVELS if levels else 1):
        value = base << level
        fee = int(value * WASABI1.coordinator_rate * len(peers))
        joining = [peer for peer in peers if rest[peer.wallet] >= value + fee + output_fee(world)]
        if level == 0:
            joining = peers
        if len(joining) < WASABI1.peers_per_level:
            break
        fee = int(value * WASABI1.coordinator_rate * len(joining))
        for peer in joining:
            draft.pay(peer.wallet, value)
            rest[peer.wallet] -= value + fee + (output_fee(world) if level else 0)
            income += fee
    income += _return_change(world, draft, peers, rest, base)
    if income > WASABI1.least_coordinator_output:
        draft.pay(coordinator, income)
    if levels:
        draft.address(world).sort_descending(world)
    else:  # version 1.0 writes the equal outputs first, in no order, and then what is left to each peer
        draft.address(world).shuffle(world)
        draft.outputs.sort(key=lambda output: output[1] != base)
    draft.write(world, "wasabi1.1" if levels else "wasabi1.0")


def _return_change(world: World, draft: Draft, peers: list[Peer], rest: dict[int, int], base: int) -> int:
    """Give each peer its change; returns what is too small for that and goes to the coordinator."""
    kept = 0
    for peer in peers:
        if rest[peer.wallet] >= max(WASABI1.least_change, int(WASABI1.least_change_share * base)):
            draft.pay(peer.wallet, rest[peer.wallet])
        else:
            kept += max(0, rest[peer.wallet])
    return kept


def mix_wasabi2(world: World, members: Array, coordinator: int) -> None:
    """One round of version 2, if the members bring enough coins."""
    wanted = world.between(world.config.wasabi2_inputs)
    peers = _register(world, members, wanted)
    number = sum(len(peer.coins) for peer in peers)
    if number < world.config.wasabi2_inputs[0]:
        return
    draft = Draft()
    income = 0
    for peer in peers:
        fee = sum(_coordination_fee(world, coin) for coin in peer.coins)
        left = peer.total - fee - int(world.rate * INPUT_SIZE * len(peer.coins))
        draft.coins += peer.coins
        income += fee + _decompose(world, draft, peer.wallet, left)
    if income >= WASABI2.least_coordinator_output:
        draft.pay(coordinator, income)
    draft.address(world).sort_descending(world)
    draft.write(world, "wasabi2")


def _register(world: World, members: Array, wanted: int) -> list[Peer]:
    """Distinct wallets with one to ten coins each, until `wanted` inputs are there."""
    value, peers, number = world.ledger.state.coin_value, [], 0
    least = WASABI2_LEAST + int(world.rate * (INPUT_SIZE + 2 * OUTPUT_SIZE))
    for wallet in world.rng.permutation(members):
        coins = [
            coin
            for coin in world.ledger.coins_of(int(wallet), most=COINJOINS.coins_offered)
            if value[coin] >= 2 * least
        ]
        if not coins:
            continue
        most = min(len(coins), WASABI2.most_inputs, wanted - number)
        chosen = [coins[i] for i in world.rng.permutation(len(coins))[: int(world.rng.integers(1, most + 1))]]
        peers.append(Peer(int(wallet), chosen, int(value[chosen].sum())))
        number += len(chosen)
        if number >= wanted:
            break
    return peers


def _coordination_fee(world: World, coin: int) -> int:
    """0.3 % of a fresh coin; coins that come out of a mix, and small ones, are free."""
    state = world.ledger.state
    value, tx = int(state.coin_value[coin]), int(state.coin_tx[coin])
    remix = tx >= 0 and state.tx["protocol"][tx] == PROTOCOL_NUMBER["wasabi2"]
    return 0 if remix or value <= WASABI2.free_below else int(WASABI2.coordinator_rate * value)


def _decompose(world: World, draft: Draft, wallet: int, left: int) -> int:
    """Greedy split into denominations, now and then a size smaller; returns the rest, too small for an output."""
    cost = int(world.rate * OUTPUT_SIZE)
    for _ in range(WASABI2.most_outputs - 1):
        fitting = int(np.searchsorted(DENOMINATIONS, left - cost, side="right"))
        if fitting == 0:
            return max(0, left)
        step = 1 + int(world.rng.random() < WASABI2.smaller and fitting > 1)
        value = int(DENOMINATIONS[fitting - step])
        draft.pay(wallet, value)
        left -= value + cost
    if left - cost >= WASABI2_LEAST:
        draft.pay(wallet, left - cost)
        return 0
    return max(0, left)


# --- Whirlpool: a Tx0 cuts coins to size, mixes shuffle equal coins among five users (more in a surge cycle) ---
#
# From Samourai's client and server: pools of 0.001, 0.01, 0.05 and 0.5 bitcoin with flat fees; premix coins carry the
# miner's fee on top of the pool's value; a mix has at least two premix coins and one remix, all from distinct users and
# distinct transactions; Tx0 is sorted by BIP 69.


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
            owner = world.rng.choice(members, size=min(WHIRLPOOL.first_owners, len(members)), replace=False)
            half = len(owner) // 2
            least, most = WHIRLPOOL.surplus
            extra = np.where(np.arange(len(owner)) < half, world.rng.integers(least, most, len(owner)), 0)
            coins = world.ledger.endow(world.ledger.new_addresses(owner), value + extra).tolist()
            for coin in coins:
                world.ledger.hold(coin)
            self.premix[pool] += coins[:half]
            self.remix[pool] += coins[half:]

    def tx0(self, world: World, members: Array, coordinator: int) -> None:
        """A user enters a pool, if somebody can afford it."""
        pool = self._choose_pool(world)
        value, fee = POOLS[pool], POOL_FEES[pool]
        if world.rng.random() < WHIRLPOOL.partners:
            fee = int(WHIRLPOOL.partner_discount * fee)
        premix = value + int(np.clip(world.rate * WHIRLPOOL.mix_size / WHIRLPOOL.least_premix, *WHIRLPOOL.surplus))
        wanted = world.between(WHIRLPOOL.wanted)
        most = WHIRLPOOL.most_inputs
        reserve = int(world.rate * (200 + NULLDATA_BYTES + most * INPUT_SIZE))
        for number in (wanted, 1):
            peers = gather_many(world, members, number * premix + fee + reserve, 1, most)
            if peers:
                self._enter(world, peers[0], pool, premix, fee, coordinator)
                return

    def _enter(self, world: World, peer: Peer, pool: int, premix: int, fee: int, coordinator: int) -> None:
        size = 13 + NULLDATA_BYTES + INPUT_SIZE * len(peer.coins) + OUTPUT_SIZE * 2
        left = peer.total - fee - int(world.rate * size)
        each = premix + int(world.rate * OUTPUT_SIZE)
        number = min(WHIRLPOOL.most_premix[pool], max(1, left // each))
        change = left - number * each
        draft = Draft(peer.coins, payees=[(-1, 0)])
        draft.pay(coordinator, fee)
        for _ in range(number):
            draft.pay(peer.wallet, premix)
        if change >= LEAST_OUTPUT:
            draft.pay(peer.wallet, change)
        draft.address(world).sort_bip69(world)
        made = draft.write(world, "whirlpool-tx0", credited=False)
        for coin, (address, value) in zip(made, draft.outputs, strict=True):
            if value == premix:
                self.premix[pool].append(coin)
            elif address >= 0:
                world.ledger.credit(coin)

    def mix(self, world: World) -> None:
        """One mix in a pool that has the coins for it, if one has."""
        number = WHIRLPOOL.participants
        if world.rng.random() < world.config.whirlpool_surge:
            number = world.between(WHIRLPOOL.surge)
        for pool in world.rng.permutation(len(POOLS)):
            chosen = self._choose_coins(world, int(pool), number)
            if chosen is not None:
                self._shuffle(world, int(pool), chosen)
                return

    def _choose_coins(self, world: World, pool: int, number: int) -> list[int] | None:
        """Coins of distinct users and distinct transactions, two or more premix and one or more remix; else None."""
        fresh = int(world.rng.integers(WHIRLPOOL.least_premix, max(WHIRLPOOL.least_premix + 1, number // 2 + 1)))
        chosen: list[int] = []
        owners: set[int] = set()
        sources: set[int] = set()
        for waiting, target in ((self.premix[pool], fresh), (self.remix[pool], number)):
            for i in world.rng.permutation(len(waiting)):
                coin = waiting[i]
                owner, source = world.ledger.owner(coin), source_of(world, coin)
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
        draft = Draft(chosen)
        for coin in chosen:
            draft.pay(world.ledger.owner(coin), POOLS[pool])
        draft.address(world).shuffle(world)
        made = draft.write(world, "whirlpool", credited=False)
        for waiting in (self.premix, self.remix):
            waiting[pool] = [coin for coin in waiting[pool] if coin not in chosen]
        for coin in made:
            if world.rng.random() < WHIRLPOOL.leaves:
                world.ledger.credit(coin)
            else:
                self.remix[pool].append(coin)

    def _choose_pool(self, world: World) -> int:
        share = np.array(WHIRLPOOL.popularity)
        if world.height < WHIRLPOOL.smallest_pool_since:
            share[0] = 0.0
        return int(world.rng.choice(len(POOLS), p=share / share.sum()))
