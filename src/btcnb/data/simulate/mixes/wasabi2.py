"""Wasabi 2 (WabiSabi): wallets bring up to ten coins each and split what they own into standard denominations.

From WalletWasabi 2.0: denominations are 2^i, 3^i, 2·3^i, 10^i, 2·10^i, 5·10^i satoshi from 5,000 up; at least 50
inputs; the coordinator takes 0.3 % of fresh inputs above 0.01 bitcoin; inputs and outputs stand in descending order of
value.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from btcnb.data.coinjoin.constants import WASABI2_LEAST, wasabi2_denominations
from btcnb.data.simulate.ledger import TX_FIELDS
from btcnb.data.simulate.mixes import NAMES
from btcnb.data.simulate.mixes.draft import INPUT_SIZE, OUTPUT_SIZE, Draft, Peer
from btcnb.data.simulate.world import World

Array = npt.NDArray[np.int64]

NAME = "wasabi2"
DENOMINATIONS = wasabi2_denominations()
"""Satoshi, ascending."""
MOST_INPUTS = 10
MOST_OUTPUTS = 8
COORDINATOR_RATE = 0.003
FREE_BELOW = 1_000_000
LEAST_COORDINATOR_OUTPUT = 10_000
_PROTOCOL = TX_FIELDS.index("protocol")


def mix(world: World, members: Array, coordinator: int) -> bool:
    """One round; False if the members do not bring enough coins."""
    wanted = int(world.rng.integers(world.config.wasabi2_inputs[0], world.config.wasabi2_inputs[1] + 1))
    peers = _register(world, members, wanted)
    number = sum(len(peer.coins) for peer in peers)
    if number < world.config.wasabi2_inputs[0]:
        return False
    draft = Draft()
    income = 0
    for peer in peers:
        fee = sum(_coordination_fee(world, coin) for coin in peer.coins)
        left = peer.total - fee - int(world.rate * INPUT_SIZE * len(peer.coins))
        draft.coins += peer.coins
        income += fee + _decompose(world, draft, peer.wallet, left)
    if income >= LEAST_COORDINATOR_OUTPUT:
        draft.pay(coordinator, income)
    draft.address(world).sort_descending(world)
    draft.write(world, NAME)
    return True


def _register(world: World, members: Array, wanted: int) -> list[Peer]:
    """Distinct wallets with one to ten coins each, until `wanted` inputs are there."""
    value, peers, number = world.ledger.book.coin_value, [], 0
    least = WASABI2_LEAST + int(world.rate * (INPUT_SIZE + 2 * OUTPUT_SIZE))
    for wallet in world.rng.permutation(members):
        coins = [coin for coin in world.ledger.coins_of(int(wallet), most=40) if value[coin] >= 2 * least]
        if not coins:
            continue
        most = min(len(coins), MOST_INPUTS, wanted - number)
        chosen = [coins[i] for i in world.rng.permutation(len(coins))[: int(world.rng.integers(1, most + 1))]]
        peers.append(Peer(int(wallet), chosen, int(value[chosen].sum())))
        number += len(chosen)
        if number >= wanted:
            break
    return peers


def _coordination_fee(world: World, coin: int) -> int:
    """0.3 % of a fresh coin; coins that come out of a mix, and small ones, are free."""
    book = world.ledger.book
    value, tx = int(book.coin_value[coin]), int(book.coin_tx[coin])
    remix = tx >= 0 and book.tx[tx, _PROTOCOL] == NAMES.index(NAME)
    return 0 if remix or value <= FREE_BELOW else int(COORDINATOR_RATE * value)


def _decompose(world: World, draft: Draft, wallet: int, left: int) -> int:
    """Greedy split into denominations, now and then a size smaller; returns the rest, too small for an output."""
    cost = int(world.rate * OUTPUT_SIZE)
    for _ in range(MOST_OUTPUTS - 1):
        fitting = int(np.searchsorted(DENOMINATIONS, left - cost, side="right"))
        if fitting == 0:
            return max(0, left)
        step = 1 + int(world.rng.random() < 0.15 and fitting > 1)
        value = int(DENOMINATIONS[fitting - step])
        draft.pay(wallet, value)
        left -= value + cost
    if left - cost >= WASABI2_LEAST:
        draft.pay(wallet, left - cost)
        return 0
    return max(0, left)
