"""The compiled pass that fills a `Shape`, one transaction at a time. What each field means is told there."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from btcnb.data.coinjoin.constants import (
    JOINMARKET_FEE_LIMIT,
    JOINMARKET_FEE_SHARE,
    JOINMARKET_LEAST_CHANGE,
    WASABI1_DENOMINATION,
    WASABI1_LEVELS,
)
from btcnb.data.transactions import SCRIPT_TYPES, IntArray

TypeArray = npt.NDArray[np.int8]

NULLDATA = SCRIPT_TYPES.index("nulldata")
P2PKH = SCRIPT_TYPES.index("pubkeyhash")
P2SH = SCRIPT_TYPES.index("scripthash")
P2WPKH = SCRIPT_TYPES.index("witness_v0_keyhash")
P2TR = SCRIPT_TYPES.index("witness_v1_taproot")
UNKNOWN_TYPE = SCRIPT_TYPES.index("unknown")
_TYPES = len(SCRIPT_TYPES)
_NARROWEST = 1.5
"""The lowest level above the base lies beyond so many times the base: at twice the base, or a little below."""


@njit(cache=True)
def shapes(table: Any, rows: Any, denominations: IntArray) -> None:
    in_start, in_address, in_value, in_type = rows.in_start, rows.in_address, rows.in_value, rows.in_type
    out_start, out_address, out_value, out_type = rows.out_start, rows.out_address, rows.out_value, rows.out_type
    for t in range(len(table)):
        row = table[t]
        a, b, c, d = in_start[t], in_start[t + 1], out_start[t], out_start[t + 1]
        _inputs(row, in_address[a:b], in_value[a:b])
        _outputs(row, out_address[c:d], out_value[c:d])
        _script_types(row, in_type[a:b], out_type[c:d])
        values = np.sort(out_value[c:d][out_type[c:d] != NULLDATA])
        row.outputs = len(values)
        row.output_order = _orders(values)
        row.level_gap = np.inf
        if len(values) > 0:
            _frequencies(row, values, denominations)
            _mixing_levels(row, values)
            row.leading = np.all(out_value[c : c + row.k] == row.value_near_tenth)
        _worth(row, in_value[a:b])
        row.placed = row.unknown_inputs > 0 or _placed(row, np.sort(in_value[a:b]), values)
        row.shared = _shared(in_address[a:b], out_address[c:d])


@njit(cache=True)
def _inputs(row: Any, address: IntArray, value: IntArray) -> None:
    row.inputs = len(value)
    ordered = np.sort(address)
    for i in range(len(value)):
        row.input_addresses += ordered[i] < 0 or i == 0 or ordered[i] != ordered[i - 1]
    known = value[value >= 0]
    row.unknown_inputs = len(value) - len(known)
    row.least_input = known.min() if len(known) > 0 else -1
    row.largest_input = known.max() if len(known) > 0 else -1
    row.inputs_descend = not np.any(np.diff(known) > 0)
    row.input_order = _orders(np.sort(known))


@njit(cache=True)
def _outputs(row: Any, address: IntArray, value: IntArray) -> None:
    ordered = np.sort(address)
    row.outputs_distinct = not np.any((ordered[1:] >= 0) & (ordered[1:] == ordered[:-1]))
    step = np.diff(value)
    row.outputs_descend = not np.any(step > 0)
    row.outputs_ascend = not np.any(step < 0)


@njit(cache=True)
def _script_types(row: Any, senders: TypeArray, receivers: TypeArray) -> None:
    sent, received = np.zeros(_TYPES, dtype=np.int64), np.zeros(_TYPES, dtype=np.int64)
    for kind in senders:
        sent[kind] += 1
    for kind in receivers:
        received[kind] += 1
    row.nulldata = received[NULLDATA]
    row.input_type = UNKNOWN_TYPE
    for kind in range(UNKNOWN_TYPE):
        if sent[kind] > 0:
            row.input_types += 1
            row.input_type = kind
    if row.input_types > 1:
        row.input_type = -1
    received[NULLDATA] = 0
    row.main_type = np.argmax(received[:UNKNOWN_TYPE])
    row.main_inputs = sent[row.main_type] + sent[UNKNOWN_TYPE]
    row.main_outputs = received[row.main_type] + received[UNKNOWN_TYPE]
    keys_in, keys_out = sent[UNKNOWN_TYPE] + sent[P2WPKH], received[UNKNOWN_TYPE] + received[P2WPKH]
    row.segwit_keys = keys_in == len(senders) and keys_out + row.nulldata == len(receivers)
    row.input_keys = keys_in + sent[P2TR] == len(senders)
    row.key_outputs = keys_out + received[P2TR]


@njit(cache=True)
def _orders(values: IntArray) -> float:
    """log2 of the number of different orders of sorted values: n! over the factorials of how often each occurs."""
    orders, run = math.lgamma(len(values) + 1.0), 1
    for i in range(1, len(values) + 1):
        if i < len(values) and values[i] == values[i - 1]:
            run += 1
        else:
            orders -= math.lgamma(run + 1.0)
            run = 1
    return orders / math.log(2.0)


@njit(cache=True)
def _frequencies(row: Any, values: IntArray, denominations: IntArray) -> None:
    """Walk the sorted output values group by group."""
    begin = 0
    for i in range(1, len(values) + 1):
        if i < len(values) and values[i] == values[begin]:
            continue
        count, worth = i - begin, values[begin]
        if count > row.k:
            row.k, row.value, row.value_near_tenth = count, worth, worth
        elif count == row.k:
            row.value = worth
            if abs(worth - WASABI1_DENOMINATION) < abs(row.value_near_tenth - WASABI1_DENOMINATION):
                row.value_near_tenth = worth
        place = np.searchsorted(denominations, worth)
        if place < len(denominations) and denominations[place] == worth:
            row.standard += count
            row.odd_values += worth % 1_000 != 0
        begin = i
    row.small_others = np.sum((values < JOINMARKET_LEAST_CHANGE) & (values != row.value))


@njit(cache=True)
def _count(values: IntArray, worth: int) -> int:
    return int(np.searchsorted(values, worth, side="right") - np.searchsorted(values, worth))


@njit(cache=True)
def _mixing_levels(row: Any, values: IntArray) -> None:
    for level in range(WASABI1_LEVELS):
        low = 2**level * (WASABI1_DENOMINATION - WASABI1_DENOMINATION // 10)
        high = 2**level * (WASABI1_DENOMINATION + WASABI1_DENOMINATION // 10)
        row.levels += np.searchsorted(values, high, side="right") - np.searchsorted(values, low)
    base = row.value_near_tenth
    if base <= 0:
        return
    # Levels above the base are fixed when a round opens, the base when it closes: of the values at twice the base or
    # a little below, the lowest level is the one on which most outputs stand, counting its exact doublings.
    place = np.searchsorted(values, int(_NARROWEST * base), side="right")
    while place < len(values) and values[place] <= 2 * base:
        lowest, count, chain, total = values[place], _count(values, values[place]), 0, 0
        place += count
        worth = lowest
        while count >= 2 and count <= row.k and chain < WASABI1_LEVELS - 1:
            total, chain, worth = total + count, chain + 1, 2 * worth
            count = min(count, _count(values, worth))  # who takes a level takes those below it, too
        if total >= row.doubled and chain > 0:
            row.doubled, row.chain, row.level_gap = total, chain, 2 * base / lowest - 1


@njit(cache=True)
def _worth(row: Any, value: IntArray) -> None:
    for each in value:
        row.coverage += row.value if each < 0 else min(each, row.value)
        row.at_value += each == row.value
        row.below_value += 0 <= each < row.value
        row.mirrored += each != row.value and abs(each - row.value) <= JOINMARKET_FEE_SHARE * row.value


@njit(cache=True)
def _placed(row: Any, brought: IntArray, values: IntArray) -> bool:
    """Whether k participants can have brought these (sorted) inputs, each taking `value` and at most one change.

    Participant j takes d_j = value + change_j, d_1 >= d_2 >= …, and brings as much but for fees. An input above d_j+1
    belongs to one of the first j, so all such inputs together are worth at most d_1 + … + d_j. Where there are more
    changes than participants nothing is said.
    """
    others = values[values != row.value][::-1]
    if len(others) > row.k or len(brought) == 0:
        return True
    fee = max(0, int(brought.sum() - values.sum()))
    slack = fee + row.k * max(int(JOINMARKET_FEE_SHARE * row.value), JOINMARKET_FEE_LIMIT)
    above, taken, i = 0, 0, len(brought) - 1
    for j in range(row.k):
        takes = row.value + (others[j] if j < len(others) else 0)
        while i >= 0 and brought[i] > takes + slack:
            above += brought[i]
            i -= 1
        if above > (taken + slack if j > 0 else 0):
            return False
        taken += takes
    return True


@njit(cache=True)
def _shared(senders: IntArray, receivers: IntArray) -> int:
    senders, found = np.unique(senders), 0
    for receiver in np.unique(receivers):
        place = np.searchsorted(senders, receiver)
        found += receiver >= 0 and place < len(senders) and senders[place] == receiver
    return found
