"""From the ledger's arrays to the `Transactions` container: strings for hashes and addresses, truth for owners."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.data.simulate.disorder import NAMES as MECHANISMS
from btcnb.data.simulate.labels import address_labels
from btcnb.data.simulate.ledger import COUNT_ADDRESS, COUNT_COIN, COUNT_INPUT, COUNT_TX, TX_FIELDS, Book
from btcnb.data.simulate.mixes import NAMES
from btcnb.data.simulate.names import address_strings, hash_strings
from btcnb.data.simulate.scripts import NULLDATA, SCRIPT_TYPE
from btcnb.data.simulate.world import World
from btcnb.data.transactions import Transactions, Truth

Array = npt.NDArray[np.int64]


def to_transactions(world: World) -> Transactions:
    """The finished chain. Addresses that no transaction shows are left out."""
    book, config = world.ledger.book, world.config
    number = int(book.counts[COUNT_TX])
    initial, coins = world.ledger.initial_coins, int(book.counts[COUNT_COIN])
    input_coin = book.input_coin[: book.counts[COUNT_INPUT]].astype(np.int64)
    used, rename = _used_addresses(world, initial, coins, input_coin)
    tx = {name: book.tx[:number, column] for column, name in enumerate(TX_FIELDS)}
    transactions = _transaction_table(world, tx, number)
    inputs = _input_table(book, tx["sequence"], initial, input_coin, rename)
    outputs = _output_table(book, initial, coins, rename)
    return Transactions.checked(
        transactions,
        inputs,
        outputs,
        address_strings(book.random[1], used, book.address_script[used]),
        truth=_truth(world, used, tx),
        source=f"simulated economy (split {config.split}, blocks {config.start_block:,} to "
        f"{config.start_block + config.blocks - 1:,}, seed {config.seed})",
    )


def _used_addresses(world: World, initial: int, coins: int, input_coin: Array) -> tuple[Array, Array]:
    """Ids of the addresses that occur, shuffled, and new ids by old ones (the last slot maps -1 to -1).

    Shuffled, because addresses are made in an order that tells owners apart, and whatever breaks ties by id would see
    it.
    """
    book, config = world.ledger.book, world.config
    seen = np.zeros(int(book.counts[COUNT_ADDRESS]) + 1, dtype=bool)
    seen[book.coin_address[initial:coins]] = True
    seen[book.coin_address[input_coin]] = True
    seen[-1] = False
    used = np.random.default_rng([config.seed, config.start_block, 3]).permutation(np.flatnonzero(seen))
    rename = np.full(len(seen), -1, dtype=np.int64)
    rename[used] = np.arange(len(used))
    return used, rename


def _transaction_table(world: World, tx: dict[str, Array], number: int) -> pd.DataFrame:
    config = world.config
    block = tx["block"]
    opens = np.flatnonzero(np.diff(block, prepend=-1))
    index = np.arange(number) - np.repeat(opens, np.diff(np.append(opens, number)))
    return pd.DataFrame(
        {
            "hash": hash_strings(world.ledger.book.random[1], 8 * np.arange(number, dtype=np.uint64)),
            "block_number": block,
            "block_timestamp": world.times[block - config.start_block],
            "index": index,
            "is_coinbase": index == 0,
            **{name: tx[name] for name in ("version", "lock_time", "size", "virtual_size", "fee")},
        }
    )


def _input_table(book: Book, sequence: Array, initial: int, coin: Array, rename: Array) -> pd.DataFrame:
    tx = book.input_tx[: len(coin)].astype(np.int64)
    first = np.flatnonzero(np.diff(tx, prepend=-1))
    index = np.arange(len(tx)) - np.repeat(first, np.diff(np.append(first, len(tx))))
    inside = coin >= initial
    address = book.coin_address[coin]
    return pd.DataFrame(
        {
            "tx": tx,
            "index": index,
            "spent_output": np.where(inside, coin - initial, -1),
            "spent_transaction_hash": hash_strings(
                book.random[1], 8 * coin.astype(np.uint64) + np.uint64(4), missing=inside
            ),
            "spent_output_index": book.coin_index[coin],
            "address": rename[address],
            "value": book.coin_value[coin],
            "script_type": SCRIPT_TYPE[book.address_script[address]],
            "sequence": sequence[tx],
        }
    )


def _output_table(book: Book, initial: int, coins: int, rename: Array) -> pd.DataFrame:
    rows = slice(initial, coins)
    address = book.coin_address[rows].astype(np.int64)
    return pd.DataFrame(
        {
            "tx": book.coin_tx[rows],
            "index": book.coin_index[rows],
            "address": rename[address],
            "value": book.coin_value[rows],
            "script_type": np.where(address >= 0, SCRIPT_TYPE[book.address_script[address]], NULLDATA),
        }
    )


def _truth(world: World, used: Array, tx: dict[str, Array]) -> Truth:
    registry, config = world.registry, world.config
    owner = np.array(registry.wallet_entity, dtype=np.int64)[world.ledger.book.address_wallet[used]]
    rng = np.random.default_rng([config.seed, config.start_block, 2])
    return Truth(
        owner=owner,
        entities=pd.DataFrame({"kind": registry.kinds, "name": registry.names}),
        label=address_labels(rng, registry, owner, config.label_share, world.dial),
        coinjoin=np.array(NAMES, dtype=object)[tx["protocol"]],
        change=tx["change"].copy(),
        mechanism=np.array(MECHANISMS, dtype=object)[tx["mechanism"]],
    )
