"""How an order becomes a transaction: coin selection, change, order of inputs and outputs, fee. Compiled.

Nothing here decides who pays whom; it only carries out orders, each exactly or not at all. `orders` is a
`world.OrderTable`, `o` the position of one order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from btcnb.data.simulator.ledger import (
    Ledger,
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
)
from btcnb.data.simulator.parameters import (
    ANY,
    CHANGE_TO_INPUT,
    CHANGE_TO_MAIN,
    FIXED_BYTES,
    INPUT_BYTES,
    ORDER_BIP69,
    ORDER_RANDOM,
    OUTPUT_BYTES,
    P2SH_P2WPKH,
    SEGWIT_BYTES,
    SELECT_BEST,
    SELECT_MIXED,
    SELECT_NEWEST,
    WITNESS_BYTES,
)
from btcnb.data.simulator.wallets import SEQUENCE_FINAL, SEQUENCE_LOCKTIME, SEQUENCE_RBF, Header

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
def usual_output_bytes(state: Any, wallet: Any) -> Any:
    """Bytes of an output to the wallet; where its addresses are of every type, those of a script hash."""
    script = state.habits[state.wallet_habits[wallet]].script
    return OUTPUT_BYTES[P2SH_P2WPKH if script == ANY else script]


@inner
def fee_of(fixed: Any, rate: Any, virtual_size: Any) -> Any:
    if fixed > 0:
        return max(fixed, virtual_size)
    return np.int64(np.ceil(rate * virtual_size))


@inner
def spendable(state: Any, coin: Any, height: Any, confirmations: Any) -> Any:
    return state.coin_block[coin] <= height - confirmations


@inner
def pick_best(state: Any, wallet: Any, height: Any, confirmations: Any, need: Any) -> Any:
    """The smallest single coin that is enough, else the largest coins first. Returns how many were picked."""
    best, number, total = -1, 0, 0
    coin = state.wallet_first[wallet]
    while coin >= 0 and number < SCANNED_COINS:
        if spendable(state, coin, height, confirmations):
            value = state.coin_value[coin]
            if value >= need and (best < 0 or value < state.coin_value[best]):
                best = coin
            place = number  # insertion, largest first
            while place > 0 and state.coin_value[state.picked[place - 1]] < value:
                state.picked[place] = state.picked[place - 1]
                place -= 1
            state.picked[place] = coin
            number += 1
        coin = state.coin_next[coin]
    if best >= 0:
        state.picked[0] = best
        return 1
    for i in range(number):
        total += state.coin_value[state.picked[i]]
        if total >= need * (i + 5) // 5:  # each further input costs a fee as well; the caller checks exactly
            return i + 1
    return number


@inner
def pick_in_order(state: Any, wallet: Any, height: Any, need: Any, rate: Any, least: Any, most: Any) -> Any:
    """Coins from the old end of the wallet, the new end or both, until they pay for the outputs and their own bytes."""
    habits = state.habits[state.wallet_habits[wallet]]
    confirmations, selection = habits.confirmations, habits.selection
    number, total = 0, 0
    old, new = state.wallet_first[wallet], state.wallet_last[wallet]
    for step in range(state.wallet_coins[wallet]):
        take_new = selection == SELECT_NEWEST or (selection == SELECT_MIXED and step % 3 == 0)
        coin = new if take_new else old
        if take_new:
            new = state.coin_previous[coin]
        else:
            old = state.coin_next[coin]
        if spendable(state, coin, height, confirmations):
            state.picked[number] = coin
            number += 1
            script = state.address_script[state.coin_address[coin]]
            total += state.coin_value[coin]
            total -= np.int64(rate * (INPUT_BYTES[script] + WITNESS_BYTES[script] // 4 + 1))
            if number == most or (number >= least and total >= need):
                break
    return number


@inner
def add_companion(state: Any, wallet: Any, height: Any, number: Any) -> Any:
    """Spend the newest coin of another wallet of the same owner as well. Returns how many are picked now."""
    if wallet < 0 or number == 0:
        return number
    coin = state.wallet_last[wallet]
    confirmations = state.habits[state.wallet_habits[wallet]].confirmations
    if coin < 0 or not spendable(state, coin, height, confirmations):
        return number
    for i in range(number):
        if state.picked[i] == coin:
            return number
    state.picked[number] = coin
    return number + 1


@inner
def swap_inputs(state: Any, i: Any, j: Any) -> None:
    state.picked[i], state.picked[j] = state.picked[j], state.picked[i]


@inner
def swap_outputs(state: Any, i: Any, j: Any, change: Any) -> Any:
    """Returns the position of the change afterwards."""
    state.out_address[i], state.out_address[j] = state.out_address[j], state.out_address[i]
    state.out_value[i], state.out_value[j] = state.out_value[j], state.out_value[i]
    if change == i:
        return j
    return i if change == j else change


@inner
def coin_before(state: Any, a: Any, b: Any) -> Any:
    """BIP 69 order of inputs: by the hash of the spent transaction, then by index."""
    word_a, word_b = hash_word(state, state.coin_tx[a], a), hash_word(state, state.coin_tx[b], b)
    return word_a < word_b or (word_a == word_b and state.coin_index[a] < state.coin_index[b])


@inner
def arrange(state: Any, n_in: Any, n_out: Any, order: Any, change: Any) -> Any:
    """Order inputs and outputs as its habits are; on entry the change stands last. Returns its new position."""
    if order == ORDER_RANDOM:
        for i in range(n_in - 1, 0, -1):
            swap_inputs(state, i, draw(state, i + 1))
        for i in range(n_out - 1, 0, -1):
            change = swap_outputs(state, i, draw(state, i + 1), change)
    elif order == ORDER_BIP69:
        for i in range(1, n_in):
            j = i
            while j > 0 and coin_before(state, state.picked[j], state.picked[j - 1]):
                swap_inputs(state, j, j - 1)
                j -= 1
        for i in range(1, n_out):
            j = i
            while j > 0 and state.out_value[j] < state.out_value[j - 1]:
                change = swap_outputs(state, j, j - 1, change)
                j -= 1
    return change


@inner
def change_address(state: Any, wallet: Any) -> Any:
    habits = state.habits[state.wallet_habits[wallet]]
    if habits.change == CHANGE_TO_INPUT:
        address = state.coin_address[state.picked[0]]
        if state.address_wallet[address] == wallet:
            return np.int64(address)
    elif habits.change == CHANGE_TO_MAIN:
        if state.wallet_change[wallet] < 0:
            if state.wallet_address[wallet] < 0:
                state.wallet_address[wallet] = new_address(state, wallet)
            state.wallet_change[wallet] = state.wallet_address[wallet]
        return state.wallet_change[wallet]
    if habits.change_script >= 0:
        return new_address_of(state, wallet, habits.change_script)
    return new_address(state, wallet)


@inner
def choose_coins(state: Any, height: Any, orders: Any, o: Any, pay: Any) -> Any:
    """Pick coins for an order as the payer's program does. Returns how many; 0 where there are too few to try."""
    wallet, rate = orders.payer[o], orders.rate[o]
    habits = state.habits[state.wallet_habits[wallet]]
    depth, selection, fixed = habits.confirmations, habits.selection, habits.fixed_fee
    least, most = orders.least_inputs[o], orders.most_inputs[o]
    if orders.mode[o] != SWEEP:
        least = max(least, habits.least_inputs)
    if orders.mode[o] == SWEEP:
        number = pick_in_order(state, wallet, height, 0, 0.0, most, most)
        if number < least:
            return 0
    else:
        payees = orders.first[o + 1] - orders.first[o]
        size = FIXED_BYTES + SEGWIT_BYTES + LARGE_OUTPUT * (payees + 1)
        if selection == SELECT_BEST and least <= 1:
            number = pick_best(state, wallet, height, depth, pay + fee_of(fixed, rate, size + LARGE_INPUT))
        else:
            cost = rate if fixed == 0 else 0.0
            need = pay + fee_of(fixed, rate, size)
            number = pick_in_order(state, wallet, height, need, cost, least, most)
    return add_companion(state, orders.companion[o], height, number)


@inner
def fee_and_change(state: Any, orders: Any, o: Any, n_in: Any, pay: Any, total: Any) -> tuple[Any, Any, Any]:
    """Fee, change, and what the payee pays of the fee, in satoshi; change is NO_CHANGE where none is due, and fee is -1
    where the coins do not reach."""
    habits = state.habits[state.wallet_habits[orders.payer[o]]]
    first, n_out = orders.first[o], orders.first[o + 1] - orders.first[o]
    bytes_out = 0
    for i in range(first, first + n_out):  # payees are asked for addresses only once it is sure that they are paid
        if orders.out_address[i] == NO_ADDRESS:
            bytes_out += usual_output_bytes(state, orders.out_wallet[i])
        else:
            bytes_out += output_bytes(state, orders.out_address[i])
    if orders.mode[o] == SWEEP:
        fee = fee_of(habits.fixed_fee, orders.rate[o], sizes(state, n_in, bytes_out)[1])
        return (fee if total - fee >= LEAST_OUTPUT else -1), NO_CHANGE, 0
    own = usual_output_bytes(state, orders.payer[o])
    fee = fee_of(habits.fixed_fee, orders.rate[o], sizes(state, n_in, bytes_out + own)[1])
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
def fill_outputs(state: Any, orders: Any, o: Any, swept: Any, more: Any, change: Any) -> Any:
    """Ask payees for addresses and write the outputs, the change last. Returns how many there are.

    swept: what the payee of a sweep gets; more: satoshi that the first payee gets beyond the stated value.
    """
    first, n_out = orders.first[o], orders.first[o + 1] - orders.first[o]
    for i in range(n_out):
        address = orders.out_address[first + i]
        if address == NO_ADDRESS:
            address = receive_address(state, orders.out_wallet[first + i])
        state.out_address[i] = max(-1, address)
        state.out_value[i] = swept if orders.mode[o] == SWEEP else orders.out_value[first + i]
    state.out_value[0] += more
    if change == NO_CHANGE:
        return n_out
    state.out_address[n_out] = change_address(state, orders.payer[o])
    state.out_value[n_out] = change
    return n_out + 1


@inner
def lock_fields(state: Any, habits: Any, height: Any) -> tuple[Any, Any]:
    """Lock time and sequence as the program sets them."""
    lock_time, sequence = 0, SEQUENCE_FINAL
    if habits.locktime:
        lock_time, sequence = height - 1, SEQUENCE_LOCKTIME
        if draw(state, OLD_LOCKTIME) == 0:
            lock_time -= draw(state, 100)
    if habits.rbf:
        sequence = SEQUENCE_RBF
    return lock_time, sequence


@inner
def helping_coin(state: Any, orders: Any, o: Any, n_in: Any) -> Any:
    """Satoshi that the payee of a PAYJOIN puts in, and gets back on top of the payment; 0 where it has no coin."""
    if orders.mode[o] != PAYJOIN or n_in == 0:
        return 0
    coin = state.picked[n_in - 1]
    return state.coin_value[coin] if state.coin_wallet[coin] == orders.companion[o] else 0


@inner
def mechanism_of(state: Any, orders: Any, o: Any, n_in: Any) -> Any:
    """What the transaction is known for; before the coins are put in order.

    An order's own mechanism is a coin of somebody else: without it the payment is ordinary. A coin that is kept for a
    stranger tells a hosted address, unless keeping the coins of strangers is what the payer is known for.
    """
    own, companion = state.wallet_mechanism[orders.payer[o]], orders.companion[o]
    if orders.mechanism[o] > 0 and (companion < 0 or state.coin_wallet[state.picked[n_in - 1]] == companion):
        return orders.mechanism[o]
    if own == state.custody[0] or own == state.custody[1]:
        return own
    for i in range(n_in):
        wallet = state.address_wallet[state.coin_address[state.picked[i]]]
        if state.wallet_keeper[wallet] != wallet:
            return state.custody[2]
    return own


@inner
def carry_out(state: Any, height: Any, orders: Any, o: Any) -> Any:
    """One order. False, and nothing has changed, where the payer's coins do not reach."""
    pay, total = 0, 0
    for i in range(orders.first[o], orders.first[o + 1]):
        pay += orders.out_value[i]
    n_in = choose_coins(state, height, orders, o, pay)
    for i in range(n_in):
        total += state.coin_value[state.picked[i]]
    brought = helping_coin(state, orders, o, n_in)
    if total <= pay + brought:
        return False
    fee, change, borne = fee_and_change(state, orders, o, n_in, pay + brought, total)
    if fee < 0:
        return False
    mechanism = mechanism_of(state, orders, o, n_in)
    n_out = fill_outputs(state, orders, o, total - fee, brought - borne, change)
    habits = state.habits[state.wallet_habits[orders.payer[o]]]
    position = arrange(state, n_in, n_out, habits.order, -1 if change == NO_CHANGE else n_out - 1)
    lock_time, sequence = lock_fields(state, habits, height)
    header = Header(habits.version, lock_time, sequence, position, 0, mechanism)
    append_transaction(state, height, n_in, n_out, header, True)
    return True


@outer
def carry_out_all(state: Any, height: Any, orders: Any) -> Any:
    """Carry out orders one after the other; True where it worked, shape (orders,)."""
    done = np.zeros(len(orders.payer), dtype=np.bool_)
    for o in range(len(orders.payer)):
        done[o] = carry_out(state, height, orders, o)
    return done


def execute(ledger: Ledger, orders: Any) -> npt.NDArray[np.bool_]:
    """Carry out the orders of a block one after the other; True where the payer could pay, shape (orders,)."""
    outputs = len(orders.out_value) + len(orders.payer)
    ledger.reserve(transactions=len(orders.payer), coins=outputs, addresses=outputs)
    return carry_out_all(ledger.state, ledger.height, orders)  # type: ignore[no-any-return]
