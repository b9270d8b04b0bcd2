"""How an order becomes a transaction: coin selection, change, order of inputs and outputs, fee. Compiled.

Nothing here decides who pays whom; it only carries out orders, each exactly or not at all. `orders` is a
`ledger.OrderTable`, `o` the position of one order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from btcnb.data.simulator.book import (
    FIXED_BYTES,
    INPUT_BYTES,
    SEGWIT_BYTES,
    SEQUENCE_FINAL,
    SEQUENCE_LOCKTIME,
    SEQUENCE_RBF,
    WITNESS_BYTES,
    Header,
    append_transaction,
    draw,
    hash_word,
    inner,
    new_address,
    new_address_of,
    outer,
    output_bytes,
    receive_address,
    sizes,
    usual_output_bytes,
)
from btcnb.data.simulator.parameters import (
    CHANGE_TO_INPUT,
    CHANGE_TO_MAIN,
    ORDER_BIP69,
    ORDER_RANDOM,
    SELECT_BEST,
    SELECT_MIXED,
    SELECT_NEWEST,
)

PAY, SWEEP, PAYJOIN = range(3)
"""Pay the stated values; spend up to `most_inputs` coins to the one payee; pay with the payee's help."""
NO_ADDRESS, OP_RETURN = -1, -2
"""In place of an address: the payee is asked for one; an output that holds data."""

LEAST_OUTPUT = 1_000
"""Satoshi; smaller change is left to the miner. Above Bitcoin Core's dust limit of 546."""
SCANNED_COINS = 48
"""How many of its oldest coins a wallet looks at when it searches the best one."""
NO_CHANGE = -1
LARGE_INPUT, LARGE_OUTPUT = 150, 34
"""Virtual bytes assumed for an input and an output before coins are chosen; the final size is exact."""
OLD_LOCKTIME = 10
"""One in so many anti-fee-sniping transactions sets a lock time up to 99 blocks back, as Bitcoin Core does."""


@inner
def fee_of(fixed: Any, rate: Any, virtual_size: Any) -> Any:
    if fixed > 0:
        return max(fixed, virtual_size)
    return np.int64(np.ceil(rate * virtual_size))


@inner
def spendable(book: Any, coin: Any, height: Any, confirmations: Any) -> Any:
    return book.coin_block[coin] <= height - confirmations


@inner
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


@inner
def pick_in_order(book: Any, wallet: Any, height: Any, need: Any, rate: Any, least: Any, most: Any) -> Any:
    """Coins from the old end of the wallet, the new end or both, until they pay for the outputs and their own bytes."""
    habits = book.habits[book.wallet_habits[wallet]]
    confirmations, selection = habits.confirmations, habits.selection
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


@inner
def add_companion(book: Any, wallet: Any, height: Any, number: Any) -> Any:
    """Spend the newest coin of another wallet of the same owner as well. Returns how many are picked now."""
    if wallet < 0 or number == 0:
        return number
    coin = book.wallet_last[wallet]
    confirmations = book.habits[book.wallet_habits[wallet]].confirmations
    if coin < 0 or not spendable(book, coin, height, confirmations):
        return number
    for i in range(number):
        if book.picked[i] == coin:
            return number
    book.picked[number] = coin
    return number + 1


@inner
def swap_inputs(book: Any, i: Any, j: Any) -> None:
    book.picked[i], book.picked[j] = book.picked[j], book.picked[i]


@inner
def swap_outputs(book: Any, i: Any, j: Any, change: Any) -> Any:
    """Returns the position of the change afterwards."""
    book.out_address[i], book.out_address[j] = book.out_address[j], book.out_address[i]
    book.out_value[i], book.out_value[j] = book.out_value[j], book.out_value[i]
    if change == i:
        return j
    return i if change == j else change


@inner
def coin_before(book: Any, a: Any, b: Any) -> Any:
    """BIP 69 order of inputs: by the hash of the spent transaction, then by index."""
    word_a, word_b = hash_word(book, book.coin_tx[a], a), hash_word(book, book.coin_tx[b], b)
    return word_a < word_b or (word_a == word_b and book.coin_index[a] < book.coin_index[b])


@inner
def arrange(book: Any, n_in: Any, n_out: Any, order: Any, change: Any) -> Any:
    """Order inputs and outputs as its habits are; on entry the change stands last. Returns its new position."""
    if order == ORDER_RANDOM:
        for i in range(n_in - 1, 0, -1):
            swap_inputs(book, i, draw(book, i + 1))
        for i in range(n_out - 1, 0, -1):
            change = swap_outputs(book, i, draw(book, i + 1), change)
    elif order == ORDER_BIP69:
        for i in range(1, n_in):
            j = i
            while j > 0 and coin_before(book, book.picked[j], book.picked[j - 1]):
                swap_inputs(book, j, j - 1)
                j -= 1
        for i in range(1, n_out):
            j = i
            while j > 0 and book.out_value[j] < book.out_value[j - 1]:
                change = swap_outputs(book, j, j - 1, change)
                j -= 1
    return change


@inner
def change_address(book: Any, wallet: Any) -> Any:
    habits = book.habits[book.wallet_habits[wallet]]
    if habits.change == CHANGE_TO_INPUT:
        address = book.coin_address[book.picked[0]]
        if book.address_wallet[address] == wallet:
            return np.int64(address)
    elif habits.change == CHANGE_TO_MAIN:
        if book.wallet_change[wallet] < 0:
            if book.wallet_address[wallet] < 0:
                book.wallet_address[wallet] = new_address(book, wallet)
            book.wallet_change[wallet] = book.wallet_address[wallet]
        return book.wallet_change[wallet]
    if habits.change_script >= 0:
        return new_address_of(book, wallet, habits.change_script)
    return new_address(book, wallet)


@inner
def choose_coins(book: Any, height: Any, orders: Any, o: Any, pay: Any) -> Any:
    """Pick coins for an order as the payer's program does. Returns how many; 0 where there are too few to try."""
    wallet, rate = orders.payer[o], orders.rate[o]
    habits = book.habits[book.wallet_habits[wallet]]
    depth, selection, fixed = habits.confirmations, habits.selection, habits.fixed_fee
    least, most = orders.least_inputs[o], orders.most_inputs[o]
    if orders.mode[o] != SWEEP:
        least = max(least, habits.least_inputs)
    if orders.mode[o] == SWEEP:
        number = pick_in_order(book, wallet, height, 0, 0.0, most, most)
        if number < least:
            return 0
    else:
        payees = orders.first[o + 1] - orders.first[o]
        size = FIXED_BYTES + SEGWIT_BYTES + LARGE_OUTPUT * (payees + 1)
        if selection == SELECT_BEST and least <= 1:
            number = pick_best(book, wallet, height, depth, pay + fee_of(fixed, rate, size + LARGE_INPUT))
        else:
            cost = rate if fixed == 0 else 0.0
            need = pay + fee_of(fixed, rate, size)
            number = pick_in_order(book, wallet, height, need, cost, least, most)
    return add_companion(book, orders.companion[o], height, number)


@inner
def fee_and_change(book: Any, orders: Any, o: Any, n_in: Any, pay: Any, total: Any) -> tuple[Any, Any, Any]:
    """Fee, change, and what the payee pays of the fee, in satoshi; change is NO_CHANGE where none is due, and fee is -1
    where the coins do not reach."""
    habits = book.habits[book.wallet_habits[orders.payer[o]]]
    first, n_out = orders.first[o], orders.first[o + 1] - orders.first[o]
    bytes_out = 0
    for i in range(first, first + n_out):  # payees are asked for addresses only once it is sure that they are paid
        if orders.out_address[i] == NO_ADDRESS:
            bytes_out += usual_output_bytes(book, orders.out_wallet[i])
        else:
            bytes_out += output_bytes(book, orders.out_address[i])
    if orders.mode[o] == SWEEP:
        fee = fee_of(habits.fixed_fee, orders.rate[o], sizes(book, n_in, bytes_out)[1])
        return (fee if total - fee >= LEAST_OUTPUT else -1), NO_CHANGE, 0
    own = usual_output_bytes(book, orders.payer[o])
    fee = fee_of(habits.fixed_fee, orders.rate[o], sizes(book, n_in, bytes_out + own)[1])
    deducted = habits.payee_pays_fee and n_out == 1 and orders.mode[o] == PAY
    if deducted and min(pay - fee, total - pay) >= LEAST_OUTPUT:
        return fee, total - pay, fee
    if total - pay < fee - fee // 4:  # three quarters of the going rate still confirm
        return -1, NO_CHANGE, 0
    change = total - pay - fee
    if change >= LEAST_OUTPUT:
        return fee, change, 0
    if pay == 0:  # only an OP_RETURN output would be left
        return -1, NO_CHANGE, 0
    return total - pay, NO_CHANGE, 0


@inner
def fill_outputs(book: Any, orders: Any, o: Any, swept: Any, more: Any, change: Any) -> Any:
    """Ask payees for addresses and write the outputs, the change last. Returns how many there are.

    swept: what the payee of a sweep gets; more: satoshi that the first payee gets beyond the stated value.
    """
    first, n_out = orders.first[o], orders.first[o + 1] - orders.first[o]
    for i in range(n_out):
        address = orders.out_address[first + i]
        if address == NO_ADDRESS:
            address = receive_address(book, orders.out_wallet[first + i])
        book.out_address[i] = max(-1, address)
        book.out_value[i] = swept if orders.mode[o] == SWEEP else orders.out_value[first + i]
    book.out_value[0] += more
    if change == NO_CHANGE:
        return n_out
    book.out_address[n_out] = change_address(book, orders.payer[o])
    book.out_value[n_out] = change
    return n_out + 1


@inner
def lock_fields(book: Any, habits: Any, height: Any) -> tuple[Any, Any]:
    """Lock time and sequence as the program sets them."""
    lock_time, sequence = 0, SEQUENCE_FINAL
    if habits.locktime:
        lock_time, sequence = height - 1, SEQUENCE_LOCKTIME
        if draw(book, OLD_LOCKTIME) == 0:
            lock_time -= draw(book, 100)
    if habits.rbf:
        sequence = SEQUENCE_RBF
    return lock_time, sequence


@inner
def helping_coin(book: Any, orders: Any, o: Any, n_in: Any) -> Any:
    """Satoshi that the payee of a PAYJOIN puts in, and gets back on top of the payment; 0 where it has no coin."""
    if orders.mode[o] != PAYJOIN or n_in == 0:
        return 0
    coin = book.picked[n_in - 1]
    return book.coin_value[coin] if book.coin_wallet[coin] == orders.companion[o] else 0


@inner
def mechanism_of(book: Any, orders: Any, o: Any, n_in: Any) -> Any:
    """What the transaction is known for; before the coins are put in order.

    An order's own mechanism is a coin of somebody else: without it the payment is ordinary. A coin that is kept for a
    stranger tells a hosted address, unless keeping the coins of strangers is what the payer is known for.
    """
    own, companion = book.wallet_mechanism[orders.payer[o]], orders.companion[o]
    if orders.mechanism[o] > 0 and (companion < 0 or book.coin_wallet[book.picked[n_in - 1]] == companion):
        return orders.mechanism[o]
    if own == book.custody[0] or own == book.custody[1]:
        return own
    for i in range(n_in):
        wallet = book.address_wallet[book.coin_address[book.picked[i]]]
        if book.wallet_keeper[wallet] != wallet:
            return book.custody[2]
    return own


@inner
def carry_out(book: Any, height: Any, orders: Any, o: Any) -> Any:
    """One order. False, and nothing has changed, where the payer's coins do not reach."""
    pay, total = 0, 0
    for i in range(orders.first[o], orders.first[o + 1]):
        pay += orders.out_value[i]
    n_in = choose_coins(book, height, orders, o, pay)
    for i in range(n_in):
        total += book.coin_value[book.picked[i]]
    brought = helping_coin(book, orders, o, n_in)
    if total <= pay + brought:
        return False
    fee, change, borne = fee_and_change(book, orders, o, n_in, pay + brought, total)
    if fee < 0:
        return False
    mechanism = mechanism_of(book, orders, o, n_in)
    n_out = fill_outputs(book, orders, o, total - fee, brought - borne, change)
    habits = book.habits[book.wallet_habits[orders.payer[o]]]
    position = arrange(book, n_in, n_out, habits.order, -1 if change == NO_CHANGE else n_out - 1)
    lock_time, sequence = lock_fields(book, habits, height)
    header = Header(habits.version, lock_time, sequence, position, 0, mechanism)
    append_transaction(book, height, n_in, n_out, header, True)
    return True


@outer
def execute(book: Any, height: Any, orders: Any) -> Any:
    """Carry out orders one after the other; True where it worked, shape (orders,)."""
    done = np.zeros(len(orders.payer), dtype=np.bool_)
    for o in range(len(orders.payer)):
        done[o] = carry_out(book, height, orders, o)
    return done
