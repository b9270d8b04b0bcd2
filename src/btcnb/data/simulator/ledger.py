"""Orders, which say what the actors want to happen in a block, and the ledger, which finds coins for them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from btcnb.data.simulator import book as compiled
from btcnb.data.simulator.book import ADDRESSES, COINS, GROWING, LARGEST_TRANSACTION, TXS, Book, Header
from btcnb.data.simulator.parameters import MECHANISM_NUMBER, P2PKH, numbers
from btcnb.data.simulator.spending import NO_ADDRESS, PAY, execute
from btcnb.data.simulator.wallets import Habits, draw_reuse, program_habits

Array = npt.NDArray[np.int64]

CLOCK = numbers("clock")
MOST_INPUTS = 600
"""Inputs of one transaction, at most: more would not fit the 100 kB that nodes relay."""
OPTIONS: dict[str, int] = {
    "mode": PAY,
    "least_inputs": 1,
    "most_inputs": MOST_INPUTS,
    "companion": -1,
    "hurry": 100,
    "mechanism": 0,
}
"""Options of an order and their defaults."""
CUSTODY = ("shared-custody", "payment-processor", "hosted-address")
SCRATCH = ("picked", "out_address", "out_value")
PLAIN = Header()


class OrderTable(NamedTuple):
    """Orders in columns; order o pays rows first[o]:first[o+1] of the out_ columns."""

    payer: Array  # wallet that pays
    mode: Array  # PAY, SWEEP or PAYJOIN
    least_inputs: Array  # spend at least so many coins, if the wallet has them
    most_inputs: Array
    companion: Array  # wallet whose newest coin is spent as well, -1 for none; in a PAYJOIN the payee gets it back
    mechanism: Array  # position in `MECHANISM_NAMES`, 0: what the payer's wallet is known for
    rate: npt.NDArray[np.float64]  # satoshi per virtual byte
    first: Array  # (orders + 1,)
    out_wallet: Array  # payee, asked for an address where out_address is NO_ADDRESS
    out_address: Array  # address, NO_ADDRESS or OP_RETURN
    out_value: Array


class Orders:
    """Collects the orders of one block. Whatever is not an array holds for all orders of a call.

    Options of every call: `mode`, `least_inputs`, `most_inputs`, `companion`, `mechanism` as in `OrderTable`, and
    `hurry`, the per cent of the block's going fee rate that the payer is ready to pay.
    """

    def __init__(self, rng: np.random.Generator, rate: float) -> None:
        self._rng = rng
        self._rate = rate
        self._orders: list[Array] = []  # (orders, 8): payer, payees, and the options in their order
        self._outs: list[Array] = []  # (payees, 3): wallet, address, value

    def __len__(self) -> int:
        return sum(map(len, self._orders))

    def pay(self, payer: Any, wallet: Any = -1, address: Any = NO_ADDRESS, value: Any = 0, **options: Any) -> None:
        """One order per payer, each with one payee."""
        number = len(payer) if isinstance(payer, np.ndarray) else 1
        if number:
            self._append(number, payer, 1, options)
            self._append_outs(number, wallet, address, value)

    def batch(self, payer: int, wallet: Any, address: Any, value: Array, **options: Any) -> None:
        """One order that pays many."""
        if len(value):
            self._append(1, payer, len(value), options)
            self._append_outs(len(value), wallet, address, value)

    def table(self) -> OrderTable:
        """All orders of the block, in random order."""
        orders, outs = np.concatenate(self._orders), np.concatenate(self._outs)
        start = np.concatenate([[0], np.cumsum(orders[:, 1])])
        order = self._rng.permutation(len(orders))
        orders, start = orders[order], start[order]
        payer, payees, mode, least, most, companion, hurry, mechanism = (np.ascontiguousarray(c) for c in orders.T)
        first = np.concatenate([[0], np.cumsum(payees)])
        wallet, address, value = outs[np.repeat(start - first[:-1], payees) + np.arange(first[-1])].T
        noise = np.exp(self._rng.normal(0.0, CLOCK.rate_spread, len(payer)))
        rate = np.maximum(CLOCK.least_rate, np.rint(hurry / 100 * self._rate * noise))
        columns = (np.ascontiguousarray(column) for column in (wallet, address, value))
        return OrderTable(payer, mode, least, most, companion, mechanism, rate, first, *columns)

    def _append(self, number: int, payer: Any, payees: int, options: dict[str, Any]) -> None:
        rows = np.empty((number, 2 + len(OPTIONS)), dtype=np.int64)
        for column, entry in enumerate((payer, payees, *{**OPTIONS, **options}.values())):
            rows[:, column] = entry
        self._orders.append(rows)

    def _append_outs(self, number: int, wallet: Any, address: Any, value: Any) -> None:
        outs = np.empty((number, 3), dtype=np.int64)
        outs[:, 0], outs[:, 1], outs[:, 2] = wallet, address, value
        self._outs.append(outs)


class Ledger:
    """Owns a `Book`, grows it, and wraps the compiled functions."""

    def __init__(
        self,
        rng: np.random.Generator,
        wallet_programs: Array,
        habits: Habits | None = None,
        keepers: Array | None = None,
        mechanisms: Array | None = None,
        scripts: Array | None = None,
    ) -> None:
        """One program per wallet; `habits` (wallets,) gives each wallet a row of its own instead.

        scripts: scripts in proportion to their shares, for wallets with addresses of every type
        """
        wallets = len(wallet_programs)
        own = np.arange(wallets, dtype=np.int64)
        empty: dict[str, Any] = {name: np.zeros(4096, dtype=dtype) for name, dtype in GROWING.items()}
        empty |= {f"wallet_{name}": np.full(wallets, -1) for name in ("address", "change", "first", "last")}
        empty |= {f"wallet_{name}": np.zeros(wallets, dtype=np.int64) for name in ("balance", "coins")}
        empty |= {name: np.zeros(LARGEST_TRANSACTION, dtype=np.int64) for name in SCRATCH}
        self.book = Book(
            counts=np.zeros(4, dtype=np.int64),
            random=rng.integers(2**63, size=2).astype(np.uint64),
            wallet_habits=wallet_programs if habits is None else own.copy(),
            wallet_keeper=own if keepers is None else keepers,
            wallet_mechanism=np.zeros(wallets, dtype=np.int64) if mechanisms is None else mechanisms,
            wallet_reuse=draw_reuse(rng, wallet_programs),
            scripts=np.array([P2PKH]) if scripts is None else scripts,
            habits=program_habits() if habits is None else habits,
            custody=np.array([MECHANISM_NUMBER[name] for name in CUSTODY]),
            **empty,
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
        return int(self.book.counts[TXS])

    def new_addresses(self, wallets: Array) -> Array:
        """A fresh address for each given wallet, shape of `wallets`."""
        self._reserve(addresses=len(wallets))
        return compiled.new_addresses(self.book, wallets)  # type: ignore[no-any-return]

    def receive_addresses(self, wallets: Array) -> Array:
        """The address each wallet hands out to a payer: its last one again, or a fresh one, as its habits are."""
        self._reserve(addresses=len(wallets))
        return compiled.receive_addresses(self.book, wallets)  # type: ignore[no-any-return]

    def endow(self, addresses: Array, values: Array) -> Array:
        """Give coins from before the first block to the wallets of the addresses; only before any transaction.
        Returns coin ids."""
        self._reserve(coins=len(addresses))
        made: Array = compiled.endow(self.book, addresses, values, self.height - 1)
        self.initial_coins = int(self.book.counts[COINS])
        return made

    def execute(self, orders: OrderTable) -> npt.NDArray[np.bool_]:
        """Carry out orders one after the other; True where the payer could pay, shape (orders,)."""
        outputs = len(orders.out_value) + len(orders.payer)
        self._reserve(transactions=len(orders.payer), coins=outputs, addresses=outputs)
        return execute(self.book, self.height, orders)  # type: ignore[no-any-return]

    def write(
        self, coins: Array, addresses: Array, values: Array, header: Header = PLAIN, *, credit: bool = True
    ) -> int:
        """Append one transaction exactly as given (address -1 is an OP_RETURN output); the fee is what is left.

        With `credit`, outputs enter the wallets of their addresses; without, whoever calls holds them. Returns the
        transaction's id.
        """
        self._reserve(transactions=1, coins=len(addresses))
        self.book.picked[: len(coins)] = coins
        self.book.out_address[: len(addresses)] = addresses
        self.book.out_value[: len(values)] = values
        return int(compiled.append_transaction(self.book, self.height, len(coins), len(addresses), header, credit))

    def outputs_of(self, tx: int) -> Array:
        """Coin ids of the outputs of the latest transaction, which must be `tx`."""
        last = int(self.book.counts[COINS])
        first = last
        while first > 0 and self.book.coin_tx[first - 1] == tx:
            first -= 1
        return np.arange(first, last)

    def credit(self, coin: int) -> None:
        """Put a held coin into the wallet of its address."""
        compiled.credit(self.book, coin)

    def hold(self, coin: int) -> None:
        """Take a coin out of its wallet's list without spending it."""
        compiled.unlink(self.book, coin)

    def coins_of(self, wallet: int, most: int = 1000) -> list[int]:
        """The wallet's coins confirmed before this block, oldest first, at most `most`."""
        confirmed: list[int] = []
        coin = int(self.book.wallet_first[wallet])
        while coin >= 0 and len(confirmed) < most:
            if self.book.coin_block[coin] < self.height:
                confirmed.append(coin)
            coin = int(self.book.coin_next[coin])
        return confirmed

    def owner(self, coin: int) -> int:
        """The wallet that the coin's address belongs to."""
        return int(self.book.address_wallet[self.book.coin_address[coin]])

    def _reserve(self, transactions: int = 0, coins: int = 0, addresses: int = 0) -> None:
        """Make room for so many more rows."""
        counts = self.book.counts
        needed = {"tx": counts[TXS] + transactions, "address": counts[ADDRESSES] + addresses}
        needed["coin"] = needed["input"] = counts[COINS] + coins  # a coin is spent at most once
        grown = {}
        for name, dtype in GROWING.items():
            array, rows = getattr(self.book, name), int(needed[name.split("_")[0]])
            if rows > len(array):
                grown[name] = np.zeros(max(rows, 2 * len(array)), dtype=dtype)
                grown[name][: len(array)] = array
        if grown:
            self.book = self.book._replace(**grown)
