"""What all CoinJoin rounds share: peers who bring coins, and a draft that becomes one transaction."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from btcnb.data.simulate.coins import SEQUENCE_FINAL, Fields, hash_word
from btcnb.data.simulate.disorder import NUMBER as MECHANISM
from btcnb.data.simulate.mixes import NAMES
from btcnb.data.simulate.scripts import INPUT_BYTES, OUTPUT_BYTES, P2WPKH, WITNESS_BYTES
from btcnb.data.simulate.spending import SEQUENCE_LOCKTIME
from btcnb.data.simulate.world import World

Array = npt.NDArray[np.int64]

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
        told = np.full(len(wallets), -1, dtype=np.int64)
        told[wallets >= 0] = world.ledger.receive_addresses(wallets[wallets >= 0])
        self.outputs = [(int(address), value) for address, (_, value) in zip(told, self.payees, strict=True)]
        return self

    def write(
        self,
        world: World,
        protocol: str,
        version: int = 1,
        lock_time: int = 0,
        credit: bool = True,
        mechanism: str = "",
    ) -> int:
        addresses = np.array([address for address, _ in self.outputs], dtype=np.int64)
        values = np.array([value for _, value in self.outputs], dtype=np.int64)
        sequence = SEQUENCE_LOCKTIME if lock_time else SEQUENCE_FINAL
        named = {"protocol": NAMES.index(protocol), "mechanism": MECHANISM[mechanism]}
        fields = Fields(version, lock_time, sequence, **named)
        return world.ledger.write(np.array(self.coins, dtype=np.int64), addresses, values, fields, credit=credit)

    def shuffle(self, world: World) -> None:
        self.coins = [self.coins[i] for i in world.rng.permutation(len(self.coins))]
        self.outputs = [self.outputs[i] for i in world.rng.permutation(len(self.outputs))]

    def sort_descending(self, world: World) -> None:
        """Largest amount first on both sides, as Wasabi does."""
        value = world.ledger.book.coin_value
        self.coins.sort(key=lambda coin: (-int(value[coin]), coin))
        self.outputs.sort(key=lambda output: (-output[1], output[0]))

    def sort_bip69(self, world: World) -> None:
        book = world.ledger.book
        self.coins.sort(key=lambda coin: (int(hash_word(book, book.coin_tx[coin], coin)), int(book.coin_index[coin])))
        self.outputs.sort(key=lambda output: (output[1], output[0]))


def gather(world: World, wallet: int, need: int, most: int, more: float = 0.0) -> Peer | None:
    """A peer with randomly chosen confirmed coins worth at least `need`, at most `most` of them; None if it cannot.

    With probability `more` each time, a peer who has enough brings yet another coin.
    """
    coins = world.ledger.coins_of(wallet, most=40)
    value = world.ledger.book.coin_value
    chosen: list[int] = []
    total = 0
    for i in world.rng.permutation(len(coins)):
        chosen.append(coins[i])
        total += int(value[coins[i]])
        if len(chosen) == most or (total >= need and world.rng.random() >= more):
            break
    return Peer(wallet, chosen, total) if total >= need else None


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
