"""Compiled functions on the arrays of a `Book`: randomness, addresses, coins in wallets, finished transactions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from btcnb.data.simulate.programs import SCRIPT
from btcnb.data.simulate.scripts import (
    ANY,
    FIXED_BYTES,
    INPUT_BYTES,
    NULLDATA_BYTES,
    OUTPUT_BYTES,
    P2SH_P2WPKH,
    SEGWIT_BYTES,
    WITNESS_BYTES,
)

SEQUENCE_FINAL = 0xFFFFFFFF


class Fields(NamedTuple):
    """What a transaction says beside its coins and outputs."""

    version: int = 1
    lock_time: int = 0
    sequence: int = SEQUENCE_FINAL
    change: int = -1  # index of the change output, -1 for none
    protocol: int = 0  # position in `mixes.NAMES`
    mechanism: int = 0  # position in `disorder.NAMES`


_LEAN: dict[str, Any] = {"cache": True, "no_cfunc_wrapper": True}
_BARE: dict[str, Any] = {**_LEAN, "no_cpython_wrapper": True}
outer: Any = njit(**_LEAN)
inner: Any = njit(**_BARE)
"""Inner functions are called by compiled code only: without a bridge to Python they compile in half the time."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FACTOR_1 = np.uint64(0xBF58476D1CE4E5B9)
_FACTOR_2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)


@outer
def mix(x: Any) -> Any:
    """A one-to-one scrambling of 64 bits (the finaliser of SplitMix64)."""
    z = x + _GOLDEN
    z = (z ^ (z >> _S30)) * _FACTOR_1
    z = (z ^ (z >> _S27)) * _FACTOR_2
    return z ^ (z >> _S31)


@inner
def draw(book: Any, below: Any) -> Any:
    """A random integer in 0..below-1 (the bias of the remainder is below 2⁻⁴⁰ here)."""
    book.random[0] += _GOLDEN
    return np.int64(mix(book.random[0]) % np.uint64(below))


@outer
def hash_word(book: Any, tx: Any, coin: Any) -> Any:
    """The first 64 bits of the hash of transaction `tx`, or, where tx is -1, of the unseen one that made `coin`."""
    if tx >= 0:
        return mix(book.random[1] + np.uint64(8) * np.uint64(tx))
    return mix(book.random[1] + np.uint64(8) * np.uint64(coin) + np.uint64(4))


@inner
def new_address_of(book: Any, wallet: Any, script: Any) -> Any:
    address = book.counts[3]
    book.counts[3] += 1
    book.address_wallet[address] = wallet
    book.address_script[address] = script
    return address


@inner
def new_address(book: Any, wallet: Any) -> Any:
    script = book.programs[book.wallet_program[wallet], SCRIPT]
    if script == ANY:
        script = book.scripts[draw(book, len(book.scripts))]
    return new_address_of(book, wallet, script)


@inner
def usual_bytes(book: Any, wallet: Any) -> Any:
    """Bytes of an output to the wallet; where its addresses are of every type, those of a script hash."""
    script = book.programs[book.wallet_program[wallet], SCRIPT]
    return OUTPUT_BYTES[P2SH_P2WPKH if script == ANY else script]


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
    told = np.empty(len(wallets), dtype=np.int64)
    for i in range(len(wallets)):
        told[i] = receive_address(book, wallets[i])
    return told


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
    coin = book.counts[1]
    book.counts[1] += 1
    book.coin_tx[coin] = tx
    book.coin_index[coin] = index
    book.coin_address[coin] = address
    book.coin_value[coin] = value
    book.coin_wallet[coin] = -1
    book.coin_block[coin] = height
    return coin


@outer
def endow(book: Any, addresses: Any, values: Any, height: Any) -> Any:
    made = np.empty(len(addresses), dtype=np.int64)
    for i in range(len(addresses)):
        made[i] = new_coin(book, -1, draw(book, 3), addresses[i], values[i], height)
        credit(book, made[i])
    return made


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
def append_transaction(book: Any, height: Any, n_in: Any, n_out: Any, fields: Any, credited: Any) -> Any:
    """Write the transaction in the scratch arrays: spend its coins, make its outputs. No inputs: a coinbase."""
    tx = book.counts[0]
    book.counts[0] += 1
    fee, bytes_out = 0, 0
    for i in range(n_in):
        coin = book.picked[i]
        if book.coin_wallet[coin] >= 0:
            unlink(book, coin)
        row = book.counts[2]
        book.counts[2] += 1
        book.input_tx[row] = tx
        book.input_coin[row] = coin
        fee += book.coin_value[coin]
    for i in range(n_out):
        coin = new_coin(book, tx, i, book.out_address[i], book.out_value[i], height)
        fee -= book.out_value[i]
        bytes_out += output_bytes(book, book.out_address[i])
        if credited and book.out_address[i] >= 0:
            credit(book, coin)
    size, virtual_size = sizes(book, n_in, bytes_out)
    row = book.tx[tx]
    row[0], row[1], row[2], row[3] = height, fields.version, fields.lock_time, fields.sequence
    row[4], row[5], row[6] = size, virtual_size, (fee if n_in > 0 else 0)
    row[7], row[8], row[9] = fields.change, fields.protocol, fields.mechanism
    return tx
