"""Transactions that several people sign: the draft that all of them share, small CoinJoins, Lightning channels."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from btcnb.data.coinjoin import PROTOCOLS
from btcnb.data.simulator.ledger import hash_word
from btcnb.data.simulator.parameters import (
    INPUT_BYTES,
    MECHANISM_NUMBER,
    OUTPUT_BYTES,
    P2WPKH,
    WITNESS_BYTES,
    Dial,
    numbers,
)
from btcnb.data.simulator.spending import LEAST_OUTPUT
from btcnb.data.simulator.users import Users
from btcnb.data.simulator.wallets import SEQUENCE_FINAL, SEQUENCE_LOCKTIME, Header, Registry
from btcnb.data.simulator.world import World

Array = npt.NDArray[np.int64]

COINJOINS, SMALL, LIGHTNING = numbers("coinjoins"), numbers("small_coinjoin"), numbers("lightning")
PROTOCOL_NUMBER = {name: position for position, name in enumerate(("", *PROTOCOLS))}
INPUT_SIZE = int(INPUT_BYTES[P2WPKH] + (WITNESS_BYTES[P2WPKH] + 3) // 4)
OUTPUT_SIZE = int(OUTPUT_BYTES[P2WPKH])
"""Virtual bytes of an input and of an output."""


@dataclass
class Peer:
    """One participant: a wallet and the coins it brings."""

    wallet: int
    coins: list[int]
    total: int  # satoshi


@dataclass
class Draft:
    """A transaction in the making: coins, and outputs as (address, value)."""

    coins: list[int] = field(default_factory=list)
    payees: list[tuple[int, int]] = field(default_factory=list)  # (wallet, value); wallet -1 is an OP_RETURN
    outputs: list[tuple[int, int]] = field(default_factory=list)  # (address, value), once addresses are asked for

    def pay(self, wallet: int, value: int) -> None:
        """An output to an address the wallet hands out (fresh for CoinJoin wallets)."""
        self.payees.append((wallet, value))

    def address(self, world: World) -> Draft:
        """Ask everybody for an address, in the order of the payments."""
        wallets = np.array([wallet for wallet, _ in self.payees], dtype=np.int64)
        addresses = np.full(len(wallets), -1, dtype=np.int64)
        addresses[wallets >= 0] = world.ledger.receive_addresses(wallets[wallets >= 0])
        self.outputs = [(int(address), value) for address, (_, value) in zip(addresses, self.payees, strict=True)]
        return self

    def write(
        self,
        world: World,
        protocol: str,
        *,
        version: int = 1,
        lock_time: int = 0,
        change: int = -1,
        credited: bool = True,
        mechanism: str = "",
    ) -> list[int]:
        """Write the transaction; returns the coins that its outputs make."""
        addresses, values = np.array(self.outputs, dtype=np.int64).T
        sequence = SEQUENCE_LOCKTIME if lock_time else SEQUENCE_FINAL
        header = Header(version, lock_time, sequence, change, PROTOCOL_NUMBER[protocol], MECHANISM_NUMBER[mechanism])
        coins = np.array(self.coins, dtype=np.int64)
        made: list[int] = world.ledger.write(coins, addresses, values, header, credited=credited).tolist()
        return made

    def shuffle(self, world: World) -> None:
        self.coins = [self.coins[i] for i in world.rng.permutation(len(self.coins))]
        self.outputs = [self.outputs[i] for i in world.rng.permutation(len(self.outputs))]

    def sort_descending(self, world: World) -> None:
        """Largest amount first on both sides, as Wasabi does."""
        value = world.ledger.state.coin_value
        self.coins.sort(key=lambda coin: (-int(value[coin]), coin))
        self.outputs.sort(key=lambda output: (-output[1], output[0]))

    def sort_bip69(self, world: World) -> None:
        state = world.ledger.state
        self.coins.sort(key=lambda c: (int(hash_word(state, state.coin_tx[c], c)), int(state.coin_index[c])))
        self.outputs.sort(key=lambda output: (output[1], output[0]))


def gather(world: World, wallet: int, need: int, most: int, more: float = 0.0) -> Peer | None:
    """A peer with randomly chosen confirmed coins worth at least `need`, at most `most` of them; None if it cannot.

    With probability `more` each time, a peer who has enough brings yet another coin.
    """
    coins = world.ledger.coins_of(wallet, most=COINJOINS.coins_offered)
    value = world.ledger.state.coin_value
    peer = Peer(wallet, [], 0)
    for i in world.rng.permutation(len(coins)):
        peer.coins.append(coins[i])
        peer.total += int(value[coins[i]])
        if len(peer.coins) == most or (peer.total >= need and world.rng.random() >= more):
            break
    return peer if peer.total >= need else None


def gather_many(world: World, members: Array, need: int, number: int, most: int, more: float = 0.0) -> list[Peer]:
    """Up to `number` distinct peers among the members who can bring `need`, in random order."""
    able = members[world.ledger.balance[members] >= need]
    peers: list[Peer] = []
    for wallet in world.rng.permutation(able):
        peer = gather(world, int(wallet), need, most, more)
        if peer is not None:
            peers.append(peer)
        if len(peers) == number:
            break
    return peers


def joined_coins(peers: list[Peer]) -> list[int]:
    return [coin for peer in peers for coin in peer.coins]


# --- small CoinJoins ---


def run_small_coinjoins(world: World, users: Users) -> None:
    """The rounds of one block: two or three people mix, with amounts that no published rule looks for."""
    for _ in range(world.rng.poisson(world.dial("small-coinjoin") * world.busy)):
        _mix_few(world, users.draw(world, SMALL.asked))


def _mix_few(world: World, asked: Array) -> None:
    """One round among two or three of the people asked, if so many can take part."""
    number = world.between(SMALL.participants)
    amount = int(world.money.payments(1, scale=SMALL.amount)[0]) + SMALL.least_amount
    fee = int(world.rate * (6 + 4 * INPUT_SIZE + 2 * OUTPUT_SIZE))
    peers = gather_many(world, np.unique(asked), amount + fee + SMALL.least_amount, number, SMALL.most_inputs)
    if len(peers) < number:
        return
    draft = Draft(joined_coins(peers))
    for peer in peers:  # three equal outputs would look like JoinMarket
        part = amount if number == 2 else int(amount * world.rng.uniform(*SMALL.parts))
        draft.pay(peer.wallet, part)
        draft.pay(peer.wallet, peer.total - part - fee)
    draft.address(world).shuffle(world)
    draft.write(world, "", mechanism="small-coinjoin")


# --- Lightning ---


class Lightning:
    """All channels: two people lock coins in a shared output, and a later transaction pays both their shares.

    The shared output counts as the opener's: the coins are, until a payment runs through it.
    """

    def __init__(self, users: Users, rng: np.random.Generator, registry: Registry, dial: Dial) -> None:
        nodes = max(LIGHTNING.least_nodes, users.number // LIGHTNING.users_per_node) if dial("lightning") > 0 else 0
        self.nodes = rng.choice(users.number, size=nodes, replace=False).astype(np.int64)
        self._lock = np.array([registry.wallet(int(user), "channel") for user in self.nodes], dtype=np.int64)
        self._open: list[tuple[int, int, int]] = []  # coin, wallets of the opener and of the peer

    def run(self, world: World) -> None:
        """Opens and closes of one block."""
        rate = world.dial("lightning") * world.busy / 2  # every open is followed by a close
        for _ in range(world.rng.poisson(rate)):
            self._open_one(world)
        for channel in [channel for channel in self._open if world.rng.random() < LIGHTNING.closes]:
            self._close(world, *channel)

    def _open_one(self, world: World) -> None:
        place, other = world.rng.choice(len(self.nodes), size=2, replace=False)
        value = int(np.exp(world.rng.uniform(*np.log(LIGHTNING.sizes))))
        fee = int(world.rate * (11 + LIGHTNING.most_inputs * INPUT_SIZE + 2 * OUTPUT_SIZE))
        opener = int(self.nodes[place])
        peer = gather(world, opener, value + fee, LIGHTNING.most_inputs)
        if peer is None:
            return
        draft = Draft(peer.coins, outputs=[(int(world.ledger.new_addresses(self._lock[[place]])[0]), value)])
        left = peer.total - value - fee
        has_change = left >= LEAST_OUTPUT
        if has_change:
            draft.outputs.append((int(world.ledger.receive_addresses(self.nodes[[place]])[0]), left))
        change = 1 if has_change else -1
        shared, *rest = draft.write(world, "", version=2, change=change, credited=False, mechanism="lightning")
        for coin in rest:
            world.ledger.credit(coin)
        self._open.append((shared, opener, int(self.nodes[other])))

    def _close(self, world: World, coin: int, opener: int, peer: int) -> None:
        state = world.ledger.state
        left = int(state.coin_value[coin]) - int(world.rate * (LIGHTNING.close_size + 2 * OUTPUT_SIZE))
        if state.coin_block[coin] >= world.height or left < 4 * LEAST_OUTPUT:
            return
        one_sided = world.rng.random() < LIGHTNING.one_sided
        theirs = 0 if one_sided else int(left * world.rng.uniform(*LIGHTNING.shares))
        draft = Draft([coin])
        for wallet, value in ((opener, left - theirs), (peer, theirs)):
            if value >= LEAST_OUTPUT:
                draft.pay(wallet, value)
        draft.address(world).write(world, "", version=2, mechanism="lightning")
        self._open.remove((coin, opener, peer))


def network_fee(world: World, peer: Peer) -> int:
    """A peer pays the miner for its inputs and two outputs, and carries its share of the fixed bytes."""
    return int(world.rate * (INPUT_SIZE * len(peer.coins) + 2 * OUTPUT_SIZE + 2))


def output_fee(world: World) -> int:
    return int(world.rate * OUTPUT_SIZE)


def source_of(world: World, coin: int) -> int:
    """The transaction a coin comes from; coins from before the first block come each from their own."""
    tx = int(world.ledger.state.coin_tx[coin])
    return tx if tx >= 0 else -1 - coin
