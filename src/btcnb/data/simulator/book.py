"""The book: every coin, address, wallet and transaction as NumPy arrays, and the compiled functions that change them.

A *coin* is an output. Coins that existed before the first block come first and have no transaction (`coin_tx` = -1);
coin `c` made by a transaction is row `c - initial_coins` of the outputs table. A wallet's unspent coins are a doubly
linked list, oldest first, so that taking any coin costs O(1) whatever the size of the wallet.

`Ledger` owns a book, grows it and calls these functions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from btcnb.data.simulator.parameters import ANY, P2SH_P2WPKH

Array = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]

# Bytes by script, from the serialisation rules (BIP 141): multisig is 2-of-3, signatures are taken at 72 bytes.
INPUT_BYTES = np.array([148, 297, 64, 41, 41], dtype=np.int64)
"""Bytes of an input outside the witness."""
WITNESS_BYTES = np.array([0, 0, 107, 107, 254], dtype=np.int64)
"""Bytes of an input's witness; 0 for scripts without SegWit."""
OUTPUT_BYTES = np.array([34, 32, 32, 31, 43], dtype=np.int64)
"""Bytes of an output."""
NULLDATA_BYTES = 75
"""Bytes of an OP_RETURN output with a 64-byte payload."""
FIXED_BYTES = 10
"""Version, lock time and the two counts."""
SEGWIT_BYTES = 2
"""Marker and flag, counted as witness."""

SEQUENCE_FINAL, SEQUENCE_LOCKTIME, SEQUENCE_RBF = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
TXS, COINS, INPUTS, ADDRESSES = range(4)
"""Positions in `Book.counts`."""
LARGEST_TRANSACTION = 4096
"""Room for the inputs and for the outputs of one transaction (the 100 kB relay limit allows fewer)."""


class Header(NamedTuple):
    """What a transaction says beside its coins and outputs."""

    version: int = 1
    lock_time: int = 0
    sequence: int = SEQUENCE_FINAL
    change: int = -1  # index of the change output, -1 for none
    protocol: int = 0  # position in `coinjoin.PROTOCOLS`, counted from 1; 0 for no CoinJoin
    mechanism: int = 0  # position in `MECHANISM_NAMES`


TRANSACTION = np.dtype([(name, np.int64) for name in ("block", "size", "virtual_size", "fee", *Header._fields)])
"""One row per transaction."""


class Book(NamedTuple):
    """The arrays that compiled functions read and write."""

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
"""Arrays of a book that grow with it, with their types."""

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
def draw(book: Any, below: Any) -> Any:
    """A random integer in 0..below-1 (the bias of the remainder is below 2⁻⁴⁰ here)."""
    book.random[0] += _GOLDEN
    return np.int64(scramble(book.random[0]) % np.uint64(below))


@outer
def hash_word(book: Any, tx: Any, coin: Any) -> Any:
    """The first 64 bits of the hash of transaction `tx`, or, where tx is -1, of the unseen one that made `coin`."""
    if tx >= 0:
        return scramble(book.random[1] + np.uint64(8) * np.uint64(tx))
    return scramble(book.random[1] + np.uint64(8) * np.uint64(coin) + np.uint64(4))


# --- addresses ---


@inner
def new_address_of(book: Any, wallet: Any, script: Any) -> Any:
    address = book.counts[ADDRESSES]
    book.counts[ADDRESSES] += 1
    book.address_wallet[address] = wallet
    book.address_script[address] = script
    return address


@inner
def new_address(book: Any, wallet: Any) -> Any:
    script = book.habits[book.wallet_habits[wallet]].script
    if script == ANY:
        script = book.scripts[draw(book, len(book.scripts))]
    return new_address_of(book, wallet, script)


@outer
def new_addresses(book: Any, wallets: Any) -> Any:
    made = np.empty(len(wallets), dtype=np.int64)
    for i in range(len(wallets)):
        made[i] = new_address(book, wallets[i])
    return made


@inner
def receive_address(book: Any, wallet: Any) -> Any:
    last = book.wallet_address[wallet]
    if last >= 0 and draw(book, 1000) < book.wallet_reuse[wallet]:
        return last
    book.wallet_address[wallet] = new_address(book, wallet)
    return book.wallet_address[wallet]


@outer
def receive_addresses(book: Any, wallets: Any) -> Any:
    handed_out = np.empty(len(wallets), dtype=np.int64)
    for i in range(len(wallets)):
        handed_out[i] = receive_address(book, wallets[i])
    return handed_out


# --- coins in wallets ---


@outer
def credit(book: Any, coin: Any) -> None:
    """Put a coin into the list of the wallet that keeps the coins of its address."""
    wallet = book.wallet_keeper[book.address_wallet[book.coin_address[coin]]]
    last = book.wallet_last[wallet]
    book.coin_wallet[coin] = wallet
    book.coin_next[coin] = -1
    book.coin_previous[coin] = last
    if last >= 0:
        book.coin_next[last] = coin
    else:
        book.wallet_first[wallet] = coin
    book.wallet_last[wallet] = coin
    book.wallet_balance[wallet] += book.coin_value[coin]
    book.wallet_coins[wallet] += 1


@outer
def unlink(book: Any, coin: Any) -> None:
    """Take a coin out of the list of its wallet."""
    wallet = book.coin_wallet[coin]
    before, after = book.coin_previous[coin], book.coin_next[coin]
    if before >= 0:
        book.coin_next[before] = after
    else:
        book.wallet_first[wallet] = after
    if after >= 0:
        book.coin_previous[after] = before
    else:
        book.wallet_last[wallet] = before
    book.coin_wallet[coin] = -1
    book.wallet_balance[wallet] -= book.coin_value[coin]
    book.wallet_coins[wallet] -= 1


@inner
def new_coin(book: Any, tx: Any, index: Any, address: Any, value: Any, height: Any) -> Any:
    coin = book.counts[COINS]
    book.counts[COINS] += 1
    book.coin_tx[coin] = tx
    book.coin_index[coin] = index
    book.coin_address[coin] = address
    book.coin_value[coin] = value
    book.coin_wallet[coin] = -1
    book.coin_block[coin] = height
    return coin


@outer
def endow(book: Any, addresses: Any, values: Any, height: Any) -> Any:
    """Coins from before the first block, in the wallets of the addresses; returns their ids."""
    made = np.empty(len(addresses), dtype=np.int64)
    for i in range(len(addresses)):
        made[i] = new_coin(book, -1, draw(book, 3), addresses[i], values[i], height)
        credit(book, made[i])
    return made


# --- transactions ---


@inner
def usual_output_bytes(book: Any, wallet: Any) -> Any:
    """Bytes of an output to the wallet; where its addresses are of every type, those of a script hash."""
    script = book.habits[book.wallet_habits[wallet]].script
    return OUTPUT_BYTES[P2SH_P2WPKH if script == ANY else script]


@inner
def output_bytes(book: Any, address: Any) -> Any:
    return OUTPUT_BYTES[book.address_script[address]] if address >= 0 else NULLDATA_BYTES


@inner
def sizes(book: Any, n_in: Any, bytes_out: Any) -> tuple[Any, Any]:
    """Bytes and virtual bytes of a transaction that spends the picked coins into outputs of so many bytes."""
    stripped, witness = FIXED_BYTES + bytes_out, 0
    for i in range(n_in):
        script = book.address_script[book.coin_address[book.picked[i]]]
        stripped += INPUT_BYTES[script]
        witness += WITNESS_BYTES[script]
    if witness > 0:
        witness += SEGWIT_BYTES
    return stripped + witness, (4 * stripped + witness + 3) // 4


@outer
def append_transaction(book: Any, height: Any, n_in: Any, n_out: Any, header: Any, credited: Any) -> Any:
    """Write the transaction in the scratch arrays: spend its coins, make its outputs. No inputs: a coinbase."""
    tx = book.counts[TXS]
    book.counts[TXS] += 1
    fee, bytes_out = 0, 0
    for i in range(n_in):
        coin = book.picked[i]
        if book.coin_wallet[coin] >= 0:
            unlink(book, coin)
        row = book.counts[INPUTS]
        book.counts[INPUTS] += 1
        book.input_tx[row] = tx
        book.input_coin[row] = coin
        fee += book.coin_value[coin]
    for i in range(n_out):
        coin = new_coin(book, tx, i, book.out_address[i], book.out_value[i], height)
        fee -= book.out_value[i]
        bytes_out += output_bytes(book, book.out_address[i])
        if credited and book.out_address[i] >= 0:
            credit(book, coin)
    made = book.tx[tx]
    made.block = height
    made.size, made.virtual_size = sizes(book, n_in, bytes_out)
    made.fee = fee if n_in > 0 else 0
    made.version, made.lock_time, made.sequence = header.version, header.lock_time, header.sequence
    made.change, made.protocol, made.mechanism = header.change, header.protocol, header.mechanism
    return tx
