"""The ledger: every coin, address, wallet and transaction as NumPy arrays, and the compiled functions that change them.

A *coin* is an output. Coins that existed before the first block come first and have no transaction (`coin_tx` = -1);
coin `c` made by a transaction is row `c - initial_coins` of the outputs table. A wallet's unspent coins are a doubly
linked list, oldest first, so that taking any coin costs O(1) whatever the size of the wallet.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from btcnb.data.simulator.parameters import (
    ANY,
    CUSTODY,
    FIXED_BYTES,
    INPUT_BYTES,
    MECHANISM_NUMBER,
    NULLDATA_BYTES,
    OUTPUT_BYTES,
    P2PKH,
    SEGWIT_BYTES,
    WITNESS_BYTES,
)
from btcnb.data.simulator.wallets import PLAIN, TRANSACTION, Habits, Header, draw_reuse, program_habits

Array = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]

TXS, COINS, INPUTS, ADDRESSES = range(4)
"""Positions in `State.counts`."""
LARGEST_TRANSACTION = 4096
"""Room for the inputs and for the outputs of one transaction (the 100 kB relay limit allows fewer)."""


class State(NamedTuple):
    """The arrays of a ledger, which compiled functions read and write."""

    counts: Array  # number of transactions, coins, inputs, addresses
    random: npt.NDArray[np.uint64]  # state of the compiled generator, and the word that hashes start from
    tx: npt.NDArray[np.void]  # (transactions,) of TRANSACTION
    input_tx: Int32
    input_coin: Int32
    coin_tx: Int32
    coin_index: Int32
    coin_address: Int32
    coin_value: Array
    coin_wallet: Int32  # wallet whose list holds the coin, -1 for none
    coin_block: Int32
    coin_next: Int32
    coin_previous: Int32
    address_wallet: Int32
    address_script: npt.NDArray[np.int8]
    wallet_habits: Array  # row of `habits`
    wallet_keeper: Array  # wallet that holds and spends its coins: itself, unless somebody else keeps them
    wallet_mechanism: Array  # what its ordinary transactions are known for, 0 for nothing
    wallet_reuse: Array  # per mille
    wallet_address: Array  # last receiving address, -1 for none
    wallet_change: Array  # the one address that change goes to where a program has one, -1 for none yet
    wallet_first: Array  # oldest coin, -1 for none
    wallet_last: Array
    wallet_balance: Array
    wallet_coins: Array
    scripts: Array  # scripts that a wallet with addresses of every type draws from
    habits: npt.NDArray[np.void]  # of HABITS: one row per program, or per wallet where every wallet has its own
    custody: Array  # mechanisms of wallets that keep the coins of others: custodian, processor; and hosted-address
    picked: Array  # scratch: coins of the transaction being built
    out_address: Array  # scratch: its outputs
    out_value: Array


GROWING: dict[str, Any] = {
    "tx": TRANSACTION,
    **dict.fromkeys(("input_tx", "input_coin", "coin_tx", "coin_index", "coin_address"), np.int32),
    "coin_value": np.int64,
    **dict.fromkeys(("coin_wallet", "coin_block", "coin_next", "coin_previous", "address_wallet"), np.int32),
    "address_script": np.int8,
}
"""Arrays that grow, with their types."""

# Inner functions are called by compiled code only: without a bridge to Python they compile in half the time.
_LEAN: dict[str, Any] = {"cache": True, "no_cfunc_wrapper": True}
outer: Any = njit(**_LEAN)
inner: Any = njit(**{**_LEAN, "no_cpython_wrapper": True})

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FACTOR_1 = np.uint64(0xBF58476D1CE4E5B9)
_FACTOR_2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)


@outer
def scramble(x: Any) -> Any:
    """A one-to-one scrambling of 64 bits (the finaliser of SplitMix64)."""
    z = x + _GOLDEN
    z = (z ^ (z >> _S30)) * _FACTOR_1
    z = (z ^ (z >> _S27)) * _FACTOR_2
    return z ^ (z >> _S31)


@inner
def draw(state: Any, below: Any) -> Any:
    """A random integer in 0..below-1 (the bias of the remainder is below 2⁻⁴⁰ here)."""
    state.random[0] += _GOLDEN
    return np.int64(scramble(state.random[0]) % np.uint64(below))


@outer
def hash_word(state: Any, tx: Any, coin: Any) -> Any:
    """The first 64 bits of the hash of transaction `tx`, or, where tx is -1, of the unseen one that made `coin`."""
    if tx >= 0:
        return scramble(state.random[1] + np.uint64(8) * np.uint64(tx))
    return scramble(state.random[1] + np.uint64(8) * np.uint64(coin) + np.uint64(4))


# --- addresses ---


@inner
def new_address_of(state: Any, wallet: Any, script: Any) -> Any:
    address = state.counts[ADDRESSES]
    state.counts[ADDRESSES] += 1
    state.address_wallet[address] = wallet
    state.address_script[address] = script
    return address


@inner
def new_address(state: Any, wallet: Any) -> Any:
    script = state.habits[state.wallet_habits[wallet]].script
    if script == ANY:
        script = state.scripts[draw(state, len(state.scripts))]
    return new_address_of(state, wallet, script)


@outer
def new_addresses(state: Any, wallets: Any) -> Any:
    made = np.empty(len(wallets), dtype=np.int64)
    for i in range(len(wallets)):
        made[i] = new_address(state, wallets[i])
    return made


@inner
def receive_address(state: Any, wallet: Any) -> Any:
    last = state.wallet_address[wallet]
    if last >= 0 and draw(state, 1000) < state.wallet_reuse[wallet]:
        return last
    state.wallet_address[wallet] = new_address(state, wallet)
    return state.wallet_address[wallet]


@outer
def receive_addresses(state: Any, wallets: Any) -> Any:
    handed_out = np.empty(len(wallets), dtype=np.int64)
    for i in range(len(wallets)):
        handed_out[i] = receive_address(state, wallets[i])
    return handed_out


# --- coins in wallets ---


@outer
def credit(state: Any, coin: Any) -> None:
    """Put a coin into the list of the wallet that keeps the coins of its address."""
    wallet = state.wallet_keeper[state.address_wallet[state.coin_address[coin]]]
    last = state.wallet_last[wallet]
    state.coin_wallet[coin] = wallet
    state.coin_next[coin] = -1
    state.coin_previous[coin] = last
    if last >= 0:
        state.coin_next[last] = coin
    else:
        state.wallet_first[wallet] = coin
    state.wallet_last[wallet] = coin
    state.wallet_balance[wallet] += state.coin_value[coin]
    state.wallet_coins[wallet] += 1


@outer
def unlink(state: Any, coin: Any) -> None:
    """Take a coin out of the list of its wallet."""
    wallet = state.coin_wallet[coin]
    before, after = state.coin_previous[coin], state.coin_next[coin]
    if before >= 0:
        state.coin_next[before] = after
    else:
        state.wallet_first[wallet] = after
    if after >= 0:
        state.coin_previous[after] = before
    else:
        state.wallet_last[wallet] = before
    state.coin_wallet[coin] = -1
    state.wallet_balance[wallet] -= state.coin_value[coin]
    state.wallet_coins[wallet] -= 1


@inner
def new_coin(state: Any, tx: Any, index: Any, address: Any, value: Any, height: Any) -> Any:
    coin = state.counts[COINS]
    state.counts[COINS] += 1
    state.coin_tx[coin] = tx
    state.coin_index[coin] = index
    state.coin_address[coin] = address
    state.coin_value[coin] = value
    state.coin_wallet[coin] = -1
    state.coin_block[coin] = height
    return coin


@outer
def endow(state: Any, addresses: Any, values: Any, height: Any) -> Any:
    """Coins from before the first block, in the wallets of the addresses; returns their ids."""
    made = np.empty(len(addresses), dtype=np.int64)
    for i in range(len(addresses)):
        made[i] = new_coin(state, -1, draw(state, 3), addresses[i], values[i], height)
        credit(state, made[i])
    return made


# --- transactions ---


@inner
def output_bytes(state: Any, address: Any) -> Any:
    return OUTPUT_BYTES[state.address_script[address]] if address >= 0 else NULLDATA_BYTES


@inner
def sizes(state: Any, n_in: Any, bytes_out: Any) -> tuple[Any, Any]:
    """Bytes and virtual bytes of a transaction that spends the picked coins into outputs of so many bytes."""
    stripped, witness = FIXED_BYTES + bytes_out, 0
    for i in range(n_in):
        script = state.address_script[state.coin_address[state.picked[i]]]
        stripped += INPUT_BYTES[script]
        witness += WITNESS_BYTES[script]
    if witness > 0:
        witness += SEGWIT_BYTES
    return stripped + witness, (4 * stripped + witness + 3) // 4


@outer
def append_transaction(state: Any, height: Any, n_in: Any, n_out: Any, header: Any, credited: Any) -> Any:
    """Write the transaction in the scratch arrays: spend its coins, make its outputs. No inputs: a coinbase."""
    tx = state.counts[TXS]
    state.counts[TXS] += 1
    fee, bytes_out = 0, 0
    for i in range(n_in):
        coin = state.picked[i]
        if state.coin_wallet[coin] >= 0:
            unlink(state, coin)
        row = state.counts[INPUTS]
        state.counts[INPUTS] += 1
        state.input_tx[row] = tx
        state.input_coin[row] = coin
        fee += state.coin_value[coin]
    for i in range(n_out):
        coin = new_coin(state, tx, i, state.out_address[i], state.out_value[i], height)
        fee -= state.out_value[i]
        bytes_out += output_bytes(state, state.out_address[i])
        if credited and state.out_address[i] >= 0:
            credit(state, coin)
    made = state.tx[tx]
    made.block = height
    made.size, made.virtual_size = sizes(state, n_in, bytes_out)
    made.fee = fee if n_in > 0 else 0
    made.version, made.lock_time, made.sequence = header.version, header.lock_time, header.sequence
    made.change, made.protocol, made.mechanism = header.change, header.protocol, header.mechanism
    return tx


# --- the owner of the arrays ---

SCRATCH = ("picked", "out_address", "out_value")


class Ledger:
    """Owns the arrays, grows them, and calls the compiled functions."""

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
        self.state = State(
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
        return self.state.wallet_balance

    @property
    def coins(self) -> Array:
        """Unspent coins per wallet (a live view)."""
        return self.state.wallet_coins

    @property
    def num_transactions(self) -> int:
        return int(self.state.counts[TXS])

    def new_addresses(self, wallets: Array) -> Array:
        """A fresh address for each given wallet, shape of `wallets`."""
        self.reserve(addresses=len(wallets))
        return new_addresses(self.state, wallets)  # type: ignore[no-any-return]

    def receive_addresses(self, wallets: Array) -> Array:
        """The address each wallet hands out to a payer: its last one again, or a fresh one, as its habits are."""
        self.reserve(addresses=len(wallets))
        return receive_addresses(self.state, wallets)  # type: ignore[no-any-return]

    def endow(self, addresses: Array, values: Array) -> Array:
        """Give coins from before the first block to the wallets of the addresses; only before any transaction.
        Returns coin ids."""
        self.reserve(coins=len(addresses))
        made: Array = endow(self.state, addresses, values, self.height - 1)
        self.initial_coins = int(self.state.counts[COINS])
        return made

    def write(
        self, coins: Array, addresses: Array, values: Array, header: Header = PLAIN, *, credited: bool = True
    ) -> Array:
        """Append one transaction exactly as given (address -1 is an OP_RETURN output); the fee is what is left.

        With `credited`, outputs enter the wallets of their addresses; without, whoever calls holds them. Returns the
        coin ids of the outputs.
        """
        self.reserve(transactions=1, coins=len(addresses))
        self.state.picked[: len(coins)] = coins
        self.state.out_address[: len(addresses)] = addresses
        self.state.out_value[: len(values)] = values
        append_transaction(self.state, self.height, len(coins), len(addresses), header, credited)
        last = int(self.state.counts[COINS])
        return np.arange(last - len(addresses), last)

    def credit(self, coin: int) -> None:
        """Put a held coin into the wallet of its address."""
        credit(self.state, coin)

    def hold(self, coin: int) -> None:
        """Take a coin out of its wallet's list without spending it."""
        unlink(self.state, coin)

    def coins_of(self, wallet: int, most: int = 1000) -> list[int]:
        """The wallet's coins confirmed before this block, oldest first, at most `most`."""
        confirmed: list[int] = []
        coin = int(self.state.wallet_first[wallet])
        while coin >= 0 and len(confirmed) < most:
            if self.state.coin_block[coin] < self.height:
                confirmed.append(coin)
            coin = int(self.state.coin_next[coin])
        return confirmed

    def owner(self, coin: int) -> int:
        """The wallet that the coin's address belongs to."""
        return int(self.state.address_wallet[self.state.coin_address[coin]])

    def reserve(self, transactions: int = 0, coins: int = 0, addresses: int = 0) -> None:
        """Make room for so many more rows."""
        counts = self.state.counts
        needed = {"tx": counts[TXS] + transactions, "address": counts[ADDRESSES] + addresses}
        needed["coin"] = needed["input"] = counts[COINS] + coins  # a coin is spent at most once
        grown = {}
        for name, dtype in GROWING.items():
            array, rows = getattr(self.state, name), int(needed[name.split("_")[0]])
            if rows > len(array):
                grown[name] = np.zeros(max(rows, 2 * len(array)), dtype=dtype)
                grown[name][: len(array)] = array
        if grown:
            self.state = self.state._replace(**grown)
