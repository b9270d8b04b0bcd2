"""The compiled heart of the ledger: coin selection, change, ordering, exact amounts.

Plain functions on the arrays of a `Book` (see `ledger`). Nothing here decides who pays whom; it only carries out
orders.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from btcnb.data.simulate.orders import NO_ADDRESS, OP_RETURN, SWEEP
from btcnb.data.simulate.programs import (
    CHANGE,
    CHANGE_TO_INPUT,
    CHANGE_TO_MAIN,
    CONFIRMATIONS,
    FEE,
    LOCKTIME,
    ORDER,
    ORDER_BIP69,
    ORDER_RANDOM,
    RBF,
    SCRIPT,
    SELECT_BEST,
    SELECT_MIXED,
    SELECT_NEWEST,
    SELECTION,
    VERSION,
)
from btcnb.data.simulate.scripts import (
    FIXED_BYTES,
    INPUT_BYTES,
    NULLDATA_BYTES,
    OUTPUT_BYTES,
    SEGWIT_BYTES,
    WITNESS_BYTES,
)

SEQUENCE_FINAL = 0xFFFFFFFF
SEQUENCE_LOCKTIME = 0xFFFFFFFE
SEQUENCE_RBF = 0xFFFFFFFD

LEAST_OUTPUT = 1_000
"""Satoshi; smaller change is left to the miner. Above Bitcoin Core's dust limit of 546."""
SCANNED_COINS = 48
"""How many of its oldest coins a wallet looks at when it searches the best one."""
OLD_LOCKTIME = 10
"""One in so many anti-fee-sniping transactions sets a lock time up to 99 blocks back, as Bitcoin Core does."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FACTOR_1 = np.uint64(0xBF58476D1CE4E5B9)
_FACTOR_2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)


@njit(cache=True)
def mix(x: Any) -> Any:
    """A one-to-one scrambling of 64 bits (the finaliser of SplitMix64)."""
    z = x + _GOLDEN
    z = (z ^ (z >> _S30)) * _FACTOR_1
    z = (z ^ (z >> _S27)) * _FACTOR_2
    return z ^ (z >> _S31)


@njit(cache=True)
def draw(book: Any, below: Any) -> Any:
    """A random integer in 0..below-1 (the bias of the remainder is below 2⁻⁴⁰ here)."""
    book.random[0] += _GOLDEN
    return np.int64(mix(book.random[0]) % np.uint64(below))


@njit(cache=True)
def hash_word(book: Any, tx: Any, coin: Any) -> Any:
    """The first 64 bits of the hash of transaction `tx`, or, where tx is -1, of the unseen one that made `coin`."""
    if tx >= 0:
        return mix(book.random[1] + np.uint64(8) * np.uint64(tx))
    return mix(book.random[1] + np.uint64(8) * np.uint64(coin) + np.uint64(4))


@njit(cache=True)
def new_address(book: Any, wallet: Any) -> Any:
    address = book.counts[3]
    book.counts[3] += 1
    book.address_wallet[address] = wallet
    book.address_script[address] = book.programs[book.wallet_program[wallet], SCRIPT]
    return address


@njit(cache=True)
def new_addresses(book: Any, wallets: Any) -> Any:
    made = np.empty(len(wallets), dtype=np.int64)
    for i in range(len(wallets)):
        made[i] = new_address(book, wallets[i])
    return made


@njit(cache=True)
def receive_address(book: Any, wallet: Any) -> Any:
    last = book.wallet_address[wallet]
    if last >= 0 and draw(book, 1000) < book.wallet_reuse[wallet]:
        return last
    book.wallet_address[wallet] = new_address(book, wallet)
    return book.wallet_address[wallet]


@njit(cache=True)
def receive_addresses(book: Any, wallets: Any) -> Any:
    told = np.empty(len(wallets), dtype=np.int64)
    for i in range(len(wallets)):
        told[i] = receive_address(book, wallets[i])
    return told


@njit(cache=True)
def credit(book: Any, coin: Any) -> None:
    wallet = book.address_wallet[book.coin_address[coin]]
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


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
def endow(book: Any, addresses: Any, values: Any, height: Any) -> Any:
    made = np.empty(len(addresses), dtype=np.int64)
    for i in range(len(addresses)):
        made[i] = new_coin(book, -1, draw(book, 3), addresses[i], values[i], height)
        credit(book, made[i])
    return made


@njit(cache=True)
def sizes(book: Any, n_in: Any, n_out: Any, extra_script: Any) -> tuple[Any, Any]:
    """Bytes and virtual bytes of the transaction in the scratch arrays, plus one more output where extra_script >= 0.
    Bytes and virtual bytes of the transaction in the scratch arrays, plus one more output where extra_script >= 0."""
    stripped, witness = FIXED_BYTES, 0
    for i in range(n_in):
        script = book.address_script[book.coin_address[book.picked[i]]]
        stripped += INPUT_BYTES[script]
        witness += WITNESS_BYTES[script]
    for i in range(n_out):
        address = book.out_address[i]
        stripped += OUTPUT_BYTES[book.address_script[address]] if address >= 0 else NULLDATA_BYTES
    if extra_script >= 0:
        stripped += OUTPUT_BYTES[extra_script]
    if witness > 0:
        witness += SEGWIT_BYTES
    return stripped + witness, (4 * stripped + witness + 3) // 4


@njit(cache=True)
def append_transaction(book: Any, height: Any, n_in: Any, n_out: Any, fields: Any, credited: Any) -> Any:
    """Write the transaction in the scratch arrays: spend its coins, make its outputs. No inputs: a coinbase."""
    tx = book.counts[0]
    book.counts[0] += 1
    version, lock_time, sequence, change, protocol = fields
    fee = 0
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
        if credited and book.out_address[i] >= 0:
            credit(book, coin)
    size, virtual_size = sizes(book, n_in, n_out, -1)
    row = book.tx[tx]
    row[0], row[1], row[2], row[3] = height, version, lock_time, sequence
    row[4], row[5], row[6], row[7], row[8] = size, virtual_size, (fee if n_in > 0 else 0), change, protocol
    return tx


@njit(cache=True)
def fee_of(fixed: Any, rate: Any, virtual_size: Any) -> Any:
    if fixed > 0:
        return max(fixed, virtual_size)
    return np.int64(np.ceil(rate * virtual_size))


@njit(cache=True)
def spendable(book: Any, coin: Any, height: Any, confirmations: Any) -> Any:
    return book.coin_block[coin] <= height - confirmations


@njit(cache=True)
def pick_best(book: Any, wallet: Any, height: Any, confirmations: Any, need: Any) -> Any:
    """The smallest single coin that is enough, else the largest coins first. Returns how many were picked."""
    best, number, total = -1, 0, 0
    coin = book.wallet_first[wallet]
    while coin >= 0 and number < SCANNED_COINS:
        if spendable(book, coin, height, confirmations):
            value = book.coin_value[coin]
            if value >= need and (best < 0 or value < book.coin_value[best]):
                best = coin
            place = number  # insertion, largest first
            while place > 0 and book.coin_value[book.picked[place - 1]] < value:
                book.picked[place] = book.picked[place - 1]
                place -= 1
            book.picked[place] = coin
            number += 1
        coin = book.coin_next[coin]
    if best >= 0:
        book.picked[0] = best
        return 1
    for i in range(number):
        total += book.coin_value[book.picked[i]]
        if total >= need * (i + 5) // 5:  # each further input costs a fee as well; the caller checks exactly
            return i + 1
    return number


@njit(cache=True)
def pick_in_order(
    book: Any,
    wallet: Any,
    height: Any,
    confirmations: Any,
    need: Any,
    rate: Any,
    least: Any,
    most: Any,
    selection: Any,
) -> Any:
    """Coins from the old end of the wallet, the new end or both, until they pay for the outputs and their own bytes."""
    number, total = 0, 0
    old, new = book.wallet_first[wallet], book.wallet_last[wallet]
    for step in range(book.wallet_coins[wallet]):
        take_new = selection == SELECT_NEWEST or (selection == SELECT_MIXED and step % 3 == 0)
        coin = new if take_new else old
        if take_new:
            new = book.coin_previous[coin]
        else:
            old = book.coin_next[coin]
        if spendable(book, coin, height, confirmations):
            book.picked[number] = coin
            number += 1
            script = book.address_script[book.coin_address[coin]]
            total += book.coin_value[coin]
            total -= np.int64(rate * (INPUT_BYTES[script] + WITNESS_BYTES[script] // 4 + 1))
            if number == most or (number >= least and total >= need):
                break
    return number


@njit(cache=True)
def add_companion(book: Any, wallet: Any, height: Any, number: Any) -> Any:
    """Spend the newest coin of another wallet of the same owner as well. Returns how many are picked now."""
    if wallet < 0 or number == 0:
        return number
    coin = book.wallet_last[wallet]
    confirmations = book.programs[book.wallet_program[wallet], CONFIRMATIONS]
    if coin < 0 or not spendable(book, coin, height, confirmations):
        return number
    for i in range(number):
        if book.picked[i] == coin:
            return number
    book.picked[number] = coin
    return number + 1


@njit(cache=True)
def swap_inputs(book: Any, i: Any, j: Any) -> None:
    book.picked[i], book.picked[j] = book.picked[j], book.picked[i]


@njit(cache=True)
def swap_outputs(book: Any, i: Any, j: Any) -> None:
    book.out_address[i], book.out_address[j] = book.out_address[j], book.out_address[i]
    book.out_value[i], book.out_value[j] = book.out_value[j], book.out_value[i]


@njit(cache=True)
def coin_before(book: Any, a: Any, b: Any) -> Any:
    """BIP 69 order of inputs: by the hash of the spent transaction, then by index."""
    word_a, word_b = hash_word(book, book.coin_tx[a], a), hash_word(book, book.coin_tx[b], b)
    return word_a < word_b or (word_a == word_b and book.coin_index[a] < book.coin_index[b])


@njit(cache=True)
def arrange(book: Any, n_in: Any, n_out: Any, order: Any, change: Any) -> Any:
    """Order inputs and outputs as the program does; the change output stands last on entry. Returns its new position.
    Order inputs and outputs as the program does; the change output stands last on entry. Returns its new position."""
    if order == ORDER_RANDOM:
        for i in range(n_in - 1, 0, -1):
            swap_inputs(book, i, draw(book, i + 1))
        for i in range(n_out - 1, 0, -1):
            j = draw(book, i + 1)
            swap_outputs(book, i, j)
            if change == i:
                change = j
            elif change == j:
                change = i
    elif order == ORDER_BIP69:
        for i in range(1, n_in):
            j = i
            while j > 0 and coin_before(book, book.picked[j], book.picked[j - 1]):
                swap_inputs(book, j, j - 1)
                j -= 1
        for i in range(1, n_out):
            j = i
            while j > 0 and book.out_value[j] < book.out_value[j - 1]:
                swap_outputs(book, j, j - 1)
                if change == j:
                    change = j - 1
                elif change == j - 1:
                    change = j
                j -= 1
    return change


@njit(cache=True)
def change_address(book: Any, wallet: Any, habit: Any) -> Any:
    if habit == CHANGE_TO_INPUT:
        address = book.coin_address[book.picked[0]]
        if book.address_wallet[address] == wallet:
            return np.int64(address)
    elif habit == CHANGE_TO_MAIN:
        if book.wallet_address[wallet] < 0:
            book.wallet_address[wallet] = new_address(book, wallet)
        return book.wallet_address[wallet]
    return new_address(book, wallet)


@njit(cache=True)
def carry_out(book: Any, height: Any, orders: Any, o: Any) -> Any:
    """One order. False, and nothing has changed, where the payer's coins do not reach."""
    wallet, mode, rate = orders.payer[o], orders.mode[o], orders.rate[o]
    program = book.programs[book.wallet_program[wallet]]
    first, n_out = orders.first[o], orders.first[o + 1] - orders.first[o]
    pay, bytes_out = 0, FIXED_BYTES + 34 * (n_out + 1) + SEGWIT_BYTES
    for i in range(n_out):
        pay += orders.out_value[first + i]
        bytes_out += NULLDATA_BYTES if orders.out_address[first + i] == OP_RETURN else 0
    fixed = program[FEE]
    need = pay + fee_of(fixed, rate, bytes_out + (150 if program[SELECTION] == SELECT_BEST else 0))
    least, most = orders.least_inputs[o], orders.most_inputs[o]
    if mode == SWEEP:
        n_in = pick_in_order(book, wallet, height, program[CONFIRMATIONS], 0, 0.0, most, most, program[SELECTION])
        if n_in < least:
            return False
    elif program[SELECTION] == SELECT_BEST and least <= 1:
        n_in = pick_best(book, wallet, height, program[CONFIRMATIONS], need)
    else:
        cost = rate if fixed == 0 else 0.0
        n_in = pick_in_order(book, wallet, height, program[CONFIRMATIONS], need, cost, least, most, program[SELECTION])
    n_in = add_companion(book, orders.companion[o], height, n_in)
    total = 0
    for i in range(n_in):
        total += book.coin_value[book.picked[i]]
    if n_in == 0 or total <= pay:
        return False

    # Sizes need addresses, addresses are only made once it is sure that they are used: take stand-ins of the same
    # scripts.
    script = program[SCRIPT]
    for i in range(n_out):
        address = orders.out_address[first + i]
        if address == NO_ADDRESS:
            address = book.wallet_address[orders.out_wallet[first + i]]
        book.out_address[i] = address if address >= 0 else (-1 if address == OP_RETURN else 0)
    if mode == SWEEP:
        fee = fee_of(fixed, rate, sizes(book, n_in, n_out, -1)[1])
        if total - fee < LEAST_OUTPUT:
            return False
        change = -1
    else:
        fee = fee_of(fixed, rate, sizes(book, n_in, n_out, script)[1])
        if total - pay < fee - fee // 4:  # three quarters of the going rate still confirm
            return False
        change = total - pay - fee
        if change < LEAST_OUTPUT:
            change = -1
        if change < 0 and n_out == 1 and orders.out_address[first] == OP_RETURN:
            return False

    for i in range(n_out):
        address = orders.out_address[first + i]
        if address == NO_ADDRESS:
            address = receive_address(book, orders.out_wallet[first + i])
        book.out_address[i] = address if address >= 0 else -1
        book.out_value[i] = total - fee if mode == SWEEP else orders.out_value[first + i]
    position = -1
    if change >= 0:
        position = n_out
        book.out_address[n_out] = change_address(book, orders.change_wallet[o], program[CHANGE])
        book.out_value[n_out] = change
        n_out += 1
    position = arrange(book, n_in, n_out, program[ORDER], position)

    lock_time, sequence = 0, SEQUENCE_FINAL
    if program[LOCKTIME]:
        sequence = SEQUENCE_LOCKTIME
        lock_time = height - 1
        if draw(book, OLD_LOCKTIME) == 0:
            lock_time -= draw(book, 100)
    if program[RBF]:
        sequence = SEQUENCE_RBF
    append_transaction(book, height, n_in, n_out, (program[VERSION], lock_time, sequence, position, 0), True)
    return True


@njit(cache=True)
def execute(book: Any, height: Any, orders: Any) -> Any:
    done = np.zeros(len(orders.payer), dtype=np.bool_)
    for o in range(len(orders.payer)):
        done[o] = carry_out(book, height, orders, o)
    return done
