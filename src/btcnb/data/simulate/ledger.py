"""The ledger: every coin, address, wallet and transaction as growing numpy arrays, and the few ways to change them.

A *coin* is an output. Coins that existed before the first block come first and have no transaction (`coin_tx` = -1);
coin `c` made by a transaction is row `c - initial_coins` of the outputs table. A wallet's unspent coins are a doubly
linked list, oldest first, so that taking any coin costs O(1) whatever the size of the wallet.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from btcnb.data.simulate.coins import (
    Fields,
    append_transaction,
    credit,
    endow,
    new_addresses,
    receive_addresses,
    unlink,
)
from btcnb.data.simulate.orders import OrderTable
from btcnb.data.simulate.programs import draw_reuse, program_table
from btcnb.data.simulate.scripts import P2PKH
from btcnb.data.simulate.spending import execute

Array = npt.NDArray[np.int64]

COUNT_TX, COUNT_COIN, COUNT_INPUT, COUNT_ADDRESS = range(4)
LARGEST_TRANSACTION = 4096
"""Room for the inputs and for the outputs of one transaction (the 100 kB relay limit allows fewer)."""

PLAIN = Fields()
TX_FIELDS = (
    "block",
    "version",
    "lock_time",
    "sequence",
    "size",
    "virtual_size",
    "fee",
    "change",
    "protocol",
    "mechanism",
)


class Book(NamedTuple):
    """The arrays that the compiled kernels read and write."""

    counts: Array  # number of transactions, coins, inputs, addresses
    random: npt.NDArray[np.uint64]  # state of the kernels' generator, and the word that hashes start from
    tx: Array  # (transactions, 10), columns TX_FIELDS
    input_tx: npt.NDArray[np.int32]
    input_coin: npt.NDArray[np.int32]
    coin_tx: npt.NDArray[np.int32]
    coin_index: npt.NDArray[np.int32]
    coin_address: npt.NDArray[np.int32]
    coin_value: Array
    coin_wallet: npt.NDArray[np.int32]  # whose list the coin is in, -1 for none
    coin_block: npt.NDArray[np.int32]
    coin_next: npt.NDArray[np.int32]
    coin_previous: npt.NDArray[np.int32]
    address_wallet: npt.NDArray[np.int32]
    address_script: npt.NDArray[np.int8]
    wallet_program: Array  # row of `programs`
    wallet_keeper: Array  # wallet that holds and spends its coins: itself, unless somebody else keeps them
    wallet_mechanism: Array  # what its ordinary transactions are known for, 0 for nothing
    wallet_reuse: Array  # per mille
    wallet_address: Array  # last receiving address, -1 for none
    wallet_change: Array  # the one address that change goes to where a program has one, -1 for none yet
    wallet_first: Array  # oldest coin, -1 for none
    wallet_last: Array
    wallet_balance: Array
    wallet_coins: Array
    scripts: Array  # script types that a wallet with addresses of every type draws from
    programs: Array  # habits: one row per program, or per wallet where every wallet has marks of its own
    picked: Array  # scratch: coins of the transaction being built
    out_address: Array  # scratch: its outputs
    out_value: Array


class Ledger:
    """Owns a `Book`, grows it, and wraps the compiled functions."""

    def __init__(
        self,
        rng: np.random.Generator,
        wallet_programs: Array,
        habits: Array | None = None,
        keepers: Array | None = None,
        mechanisms: Array | None = None,
        scripts: Array | None = None,
    ) -> None:
        """One program a wallet; `habits` (wallets, columns) gives each wallet a row of its own instead.

        scripts: script types in proportion to their shares, for wallets with addresses of every type
        """
        wallets = len(wallet_programs)
        own = np.arange(wallets, dtype=np.int64)
        self.book = Book(
            counts=np.zeros(4, dtype=np.int64),
            random=rng.integers(2**63, size=2).astype(np.uint64),
            tx=np.zeros((1024, len(TX_FIELDS)), dtype=np.int64),
            input_tx=np.zeros(4096, dtype=np.int32),
            input_coin=np.zeros(4096, dtype=np.int32),
            coin_tx=np.zeros(4096, dtype=np.int32),
            coin_index=np.zeros(4096, dtype=np.int32),
            coin_address=np.zeros(4096, dtype=np.int32),
            coin_value=np.zeros(4096, dtype=np.int64),
            coin_wallet=np.zeros(4096, dtype=np.int32),
            coin_block=np.zeros(4096, dtype=np.int32),
            coin_next=np.zeros(4096, dtype=np.int32),
            coin_previous=np.zeros(4096, dtype=np.int32),
            address_wallet=np.zeros(4096, dtype=np.int32),
            address_script=np.zeros(4096, dtype=np.int8),
            wallet_program=wallet_programs if habits is None else own.copy(),
            wallet_keeper=own if keepers is None else keepers,
            wallet_mechanism=np.zeros(wallets, dtype=np.int64) if mechanisms is None else mechanisms,
            wallet_reuse=draw_reuse(rng, wallet_programs),
            wallet_address=np.full(wallets, -1, dtype=np.int64),
            wallet_change=np.full(wallets, -1, dtype=np.int64),
            wallet_first=np.full(wallets, -1, dtype=np.int64),
            wallet_last=np.full(wallets, -1, dtype=np.int64),
            wallet_balance=np.zeros(wallets, dtype=np.int64),
            wallet_coins=np.zeros(wallets, dtype=np.int64),
            scripts=np.array([P2PKH]) if scripts is None else scripts,
            programs=program_table() if habits is None else habits,
            picked=np.zeros(LARGEST_TRANSACTION, dtype=np.int64),
            out_address=np.zeros(LARGEST_TRANSACTION, dtype=np.int64),
            out_value=np.zeros(LARGEST_TRANSACTION, dtype=np.int64),
        )
        self.initial_coins = 0
        self.height = 0

    @property
    def balance(self) -> Array:
        """Satoshi per wallet (a live view)."""
        return self.book.wallet_balance

    @property
    def coins(self) -> Array:
        """Unspent coins per wallet (a live view)."""
        return self.book.wallet_coins

    @property
    def num_transactions(self) -> int:
        return int(self.book.counts[COUNT_TX])

    def new_addresses(self, wallets: Array) -> Array:
        """A fresh address for each given wallet, shape of `wallets`."""
        self._reserve(addresses=len(wallets))
        return new_addresses(self.book, wallets)

    def receive_addresses(self, wallets: Array) -> Array:
        """The address each wallet hands out to a payer: its last one again, or a fresh one, as its habits are."""
        self._reserve(addresses=len(wallets))
        return receive_addresses(self.book, wallets)

    def endow(self, addresses: Array, values: Array) -> Array:
        """Give coins from before the first block to the wallets of the addresses; only before any transaction.
        Returns coin ids."""
        self._reserve(coins=len(addresses))
        made = endow(self.book, addresses, values, self.height - 1)
        self.initial_coins = int(self.book.counts[COUNT_COIN])
        return made

    def execute(self, orders: OrderTable) -> npt.NDArray[np.bool_]:
        """Carry out orders one after the other; True where the payer could pay, shape (orders,)."""
        outputs = len(orders.out_value) + len(orders.payer)
        self._reserve(transactions=len(orders.payer), coins=outputs, addresses=outputs)
        return execute(self.book, self.height, orders)

    def write(
        self,
        coins: Array,
        addresses: Array,
        values: Array,
        fields: Fields = PLAIN,
        *,
        credit: bool = True,
    ) -> int:
        """Append one transaction exactly as given (address -1 is an OP_RETURN output); the fee is what is left.

        With `credit`, outputs enter the wallets of their addresses; without, whoever calls holds them. Returns the
        transaction's id.
        """
        self._reserve(transactions=1, coins=len(addresses))
        self.book.picked[: len(coins)] = coins
        self.book.out_address[: len(addresses)] = addresses
        self.book.out_value[: len(values)] = values
        return int(append_transaction(self.book, self.height, len(coins), len(addresses), fields, credit))

    def outputs_of(self, tx: int) -> Array:
        """Coin ids of the outputs of the latest transaction, which must be `tx`."""
        last = int(self.book.counts[COUNT_COIN])
        first = last
        while first > 0 and self.book.coin_tx[first - 1] == tx:
            first -= 1
        return np.arange(first, last)

    def credit(self, coin: int) -> None:
        """Put a held coin into the wallet of its address."""
        credit(self.book, coin)

    def take(self, coin: int) -> None:
        """Take a coin out of its wallet's list without spending it."""
        unlink(self.book, coin)

    def coins_of(self, wallet: int, most: int = 1000) -> list[int]:
        """The wallet's coins confirmed before this block, oldest first, at most `most`."""
        found: list[int] = []
        coin = int(self.book.wallet_first[wallet])
        while coin >= 0 and len(found) < most:
            if self.book.coin_block[coin] < self.height:
                found.append(coin)
            coin = int(self.book.coin_next[coin])
        return found

    def _reserve(self, transactions: int = 0, coins: int = 0, addresses: int = 0) -> None:
        counts = self.book.counts
        grown = {}
        for prefix, needed in (
            ("tx", counts[COUNT_TX] + transactions),
            ("coin_", counts[COUNT_COIN] + coins),
            ("input_", counts[COUNT_COIN] + coins),  # a coin is spent at most once
            ("address_", counts[COUNT_ADDRESS] + addresses),
        ):
            for name in Book._fields:
                array = getattr(self.book, name)
                if (name == prefix or (prefix.endswith("_") and name.startswith(prefix))) and needed > len(array):
                    larger = np.zeros((max(int(needed), 2 * len(array)), *array.shape[1:]), dtype=array.dtype)
                    larger[: len(array)] = array
                    grown[name] = larger
        if grown:
            self.book = self.book._replace(**grown)
