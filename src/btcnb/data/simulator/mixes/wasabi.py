"""Wasabi: many peers and one coordinator.

Wasabi 1 (WalletWasabi 1.0.5 and 1.1) has a base denomination near 0.1 bitcoin: the least that any peer can afford, so
it drifts. Version 1.1 adds levels that double it. The coordinator takes 0.003 % of the denomination times the number of
peers from each peer, and change too small to return.

Wasabi 2 (WabiSabi, WalletWasabi 2.0): wallets bring up to ten coins each and split what they own into standard
denominations. The coordinator takes 0.3 % of fresh inputs above 0.01 bitcoin. Inputs and outputs stand in descending
order of value.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from btcnb.data.coinjoin.shape import (
    WASABI1_DENOMINATION,
    WASABI1_INPUTS_PER_PEER,
    WASABI1_LEVELS,
    WASABI2_LEAST,
    wasabi2_denominations,
)
from btcnb.data.simulator.mixes.joint import INPUT_SIZE, OUTPUT_SIZE, PROTOCOL_NUMBER, Draft, Peer, gather_many
from btcnb.data.simulator.parameters import numbers
from btcnb.data.simulator.world import World

Array = npt.NDArray[np.int64]

WASABI1, WASABI2 = numbers("wasabi1"), numbers("wasabi2")
DENOMINATIONS = wasabi2_denominations()
"""Of Wasabi 2, satoshi, ascending."""


def mix1(world: World, members: Array, coordinator: int, levels: bool) -> bool:
    """One round of version 1.1 (with levels) or 1.0 (without); False if too few members can take part."""
    low, high = world.config.wasabi_peers
    number = int(world.rng.integers(low, high + 1))
    base = int(WASABI1_DENOMINATION * world.rng.uniform(*WASABI1.drift))
    network = int(world.rate * (WASABI1_INPUTS_PER_PEER * INPUT_SIZE + 2 * OUTPUT_SIZE))
    need = base + int(base * WASABI1.coordinator_rate * number) + network
    peers = gather_many(
        world, members, need, number, WASABI1_INPUTS_PER_PEER, more=WASABI1.extra_coins if levels else 0.0
    )
    if len(peers) < low:
        return False
    rest = {peer.wallet: peer.total - _network_fee(world, peer) for peer in peers}
    base = min(base, min(int(value / (1 + WASABI1.coordinator_rate * len(peers))) for value in rest.values()))
    draft = Draft(coins=[coin for peer in peers for coin in peer.coins])
    income = 0
    for level in range(WASABI1_LEVELS if levels else 1):
        value = base << level
        fee = int(value * WASABI1.coordinator_rate * len(peers))
        joining = [peer for peer in peers if rest[peer.wallet] >= value + fee + _output_fee(world)]
        if level == 0:
            joining = peers
        if len(joining) < WASABI1.peers_per_level:
            break
        fee = int(value * WASABI1.coordinator_rate * len(joining))
        for peer in joining:
            draft.pay(peer.wallet, value)
            rest[peer.wallet] -= value + fee + (_output_fee(world) if level else 0)
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
    return True


def _return_change(world: World, draft: Draft, peers: list[Peer], rest: dict[int, int], base: int) -> int:
    """Give each peer its change; returns what is too small for that and goes to the coordinator."""
    kept = 0
    for peer in peers:
        if rest[peer.wallet] >= max(WASABI1.least_change, int(WASABI1.least_change_share * base)):
            draft.pay(peer.wallet, rest[peer.wallet])
        else:
            kept += max(0, rest[peer.wallet])
    return kept


def _network_fee(world: World, peer: Peer) -> int:
    """A peer pays the miner for its inputs and two outputs, and carries its share of the fixed bytes."""
    return int(world.rate * (INPUT_SIZE * len(peer.coins) + 2 * OUTPUT_SIZE + 2))


def _output_fee(world: World) -> int:
    return int(world.rate * OUTPUT_SIZE)


def mix2(world: World, members: Array, coordinator: int) -> bool:
    """One round of version 2; False if the members do not bring enough coins."""
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
    if income >= WASABI2.least_coordinator_output:
        draft.pay(coordinator, income)
    draft.address(world).sort_descending(world)
    draft.write(world, "wasabi2")
    return True


def _register(world: World, members: Array, wanted: int) -> list[Peer]:
    """Distinct wallets with one to ten coins each, until `wanted` inputs are there."""
    value, peers, number = world.ledger.book.coin_value, [], 0
    least = WASABI2_LEAST + int(world.rate * (INPUT_SIZE + 2 * OUTPUT_SIZE))
    for wallet in world.rng.permutation(members):
        coins = [coin for coin in world.ledger.coins_of(int(wallet), most=40) if value[coin] >= 2 * least]
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
    book = world.ledger.book
    value, tx = int(book.coin_value[coin]), int(book.coin_tx[coin])
    remix = tx >= 0 and book.tx["protocol"][tx] == PROTOCOL_NUMBER["wasabi2"]
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
