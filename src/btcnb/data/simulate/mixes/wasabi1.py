"""Wasabi 1: many peers, one coordinator, a base denomination near 0.1 bitcoin; version 1.1 adds levels that double it.

From WalletWasabi 1.0.5 and 1.1: at most 7 inputs a peer; the base is the least that any peer can afford, so it drifts;
the coordinator takes 0.003 % of the denomination times the number of peers from each peer, and change too small to
return.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from btcnb.data.coinjoin.constants import WASABI1_DENOMINATION, WASABI1_INPUTS_PER_PEER, WASABI1_LEVELS
from btcnb.data.simulate.mixes.draft import INPUT_SIZE, OUTPUT_SIZE, Draft, Peer, gather_many
from btcnb.data.simulate.world import World

Array = npt.NDArray[np.int64]

DRIFT = (0.955, 1.045)
"""The base wanders between these multiples of 0.1 bitcoin."""
COORDINATOR_RATE = 0.00003
LEAST_COORDINATOR_OUTPUT = 30_000
LEAST_CHANGE = 10_000
LEAST_CHANGE_SHARE = 0.01
EXTRA_COINS = 0.4
"""How often a peer who has enough registers another coin, in the hope of a higher level."""
PEERS_PER_LEVEL = 2
"""A level is used only by at least so many peers."""


def mix(world: World, members: Array, coordinator: int, levels: bool) -> bool:
    """One round of version 1.1 (with levels) or 1.0 (without); False if too few members can take part."""
    low, high = world.config.wasabi_peers
    number = int(world.rng.integers(low, high + 1))
    base = int(WASABI1_DENOMINATION * world.rng.uniform(*DRIFT))
    network = int(world.rate * (WASABI1_INPUTS_PER_PEER * INPUT_SIZE + 2 * OUTPUT_SIZE))
    need = base + int(base * COORDINATOR_RATE * number) + network
    peers = gather_many(world, members, need, number, WASABI1_INPUTS_PER_PEER, more=EXTRA_COINS if levels else 0.0)
    if len(peers) < low:
        return False
    rest = {peer.wallet: peer.total - _network_fee(world, peer) for peer in peers}
    base = min(base, min(int(value / (1 + COORDINATOR_RATE * len(peers))) for value in rest.values()))
    draft = Draft(coins=[coin for peer in peers for coin in peer.coins])
    income = 0
    for level in range(WASABI1_LEVELS if levels else 1):
        value = base << level
        fee = int(value * COORDINATOR_RATE * len(peers))
        joining = [peer for peer in peers if rest[peer.wallet] >= value + fee + _output_fee(world)]
        if level == 0:
            joining = peers
        if len(joining) < PEERS_PER_LEVEL:
            break
        fee = int(value * COORDINATOR_RATE * len(joining))
        for peer in joining:
            draft.pay(peer.wallet, value)
            rest[peer.wallet] -= value + fee + (_output_fee(world) if level else 0)
            income += fee
    income += _return_change(world, draft, peers, rest, base)
    if income > LEAST_COORDINATOR_OUTPUT:
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
        if rest[peer.wallet] >= max(LEAST_CHANGE, int(LEAST_CHANGE_SHARE * base)):
            draft.pay(peer.wallet, rest[peer.wallet])
        else:
            kept += max(0, rest[peer.wallet])
    return kept


def _network_fee(world: World, peer: Peer) -> int:
    """A peer pays the miner for its inputs and two outputs, and carries its share of the fixed bytes."""
    return int(world.rate * (INPUT_SIZE * len(peer.coins) + 2 * OUTPUT_SIZE + 2))


def _output_fee(world: World) -> int:
    return int(world.rate * OUTPUT_SIZE)
