"""The shape of each transaction, measured once in one compiled pass over all of them: what the CoinJoin rules look at.

Unknown values, addresses and script types never speak against anything: an unknown address counts as one more, an
unknown value as enough, an unknown type as the right one. What is measured on known values only says so.

The amounts and limits of the wallets' own software, in satoshi, stand first; the rules and the simulator use them too.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, get_type_hints

import numpy as np
import numpy.typing as npt
import pandas as pd
from numba import njit

from btcnb.data.transactions import SCRIPT_TYPES, IntArray, Transactions

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
TypeArray = npt.NDArray[np.int8]

NULLDATA, P2PKH, P2SH, P2WPKH, P2TR, UNKNOWN_TYPE = (
    SCRIPT_TYPES.index(name)
    for name in ("nulldata", "pubkeyhash", "scripthash", "witness_v0_keyhash", "witness_v1_taproot", "unknown")
)


class Fitted(NamedTuple):
    """Constants of the improved rules that no source fixes: `fit` finds them on real mixes, so that the rules can be
    judged on a list that did not take part. The defaults are what it finds without a single mix: what the descriptions
    of the protocols say."""

    level_gap: float = 0.0
    """Wasabi 1.1: relative height of the base denomination above half of the next level, where there is one level.
    The levels are fixed when a round opens, the base when it closes."""
    standard_share: float = 0.8
    """Wasabi 2: least share of outputs that are worth a standard denomination; 0.8 in the Dumplings project."""


FITTED = Fitted(level_gap=0.00128, standard_share=0.5)
"""What `fit` finds on all lists at hand (Wasabi 1 of 2018 and 2021, Wasabi 2 of 2024, two test networks), rounded."""


WASABI1_DENOMINATION = 10_000_000
"""Wasabi 1 mixes 0.1 BTC; the denomination drifts, being the least that any peer has left after fees."""
WASABI1_LEVELS = 12
"""Wasabi 1.1 adds outputs of twice the denomination, four times, … up to 2^11 times."""
WASABI1_INPUTS_PER_PEER = 7
"""Wasabi 1 lets a peer register at most 7 inputs."""
WASABI2_LEAST, WASABI2_MOST = 5_000, 137_438_953_472
"""Wasabi 2 takes no smaller input and makes no larger standard output."""
WHIRLPOOL_POOL_FEES = {100_000: 5_000, 1_000_000: 50_000, 5_000_000: 175_000, 50_000_000: 1_750_000}
"""Whirlpool's pools of 0.001, 0.01, 0.05 and 0.5 BTC with the fee that entry by a Tx0 costs."""
JOINMARKET_LEAST_CHANGE = 27_300
"""JoinMarket's dust threshold: nobody mixes a smaller amount, and a maker leaves no smaller change."""
JOINMARKET_FEE_SHARE = 0.01
"""Share of the amount that fees can take from or add to what a participant brings; takers allow 0.4 % per maker."""
JOINMARKET_FEE_LIMIT = 40_000
"""Absolute fee to a maker that takers allow at most."""


def wasabi2_denominations() -> IntArray:
    """The standard amounts of Wasabi 2: 2^i, 3^i, 2·3^i, 10^i, 2·10^i, 5·10^i from 5,000 to 2^37 satoshi, ascending."""
    series = ((1, 2), (1, 3), (2, 3), (1, 10), (2, 10), (5, 10))
    values = {factor * base**power for factor, base in series for power in range(38)}
    return np.array(sorted(value for value in values if WASABI2_LEAST <= value <= WASABI2_MOST), dtype=np.int64)


class Rows(NamedTuple):
    """Inputs of transaction t are rows in_start[t]:in_start[t+1] of the in_ columns, outputs alike."""

    in_start: IntArray  # (T+1,)
    in_address: IntArray
    in_value: IntArray
    in_type: TypeArray
    out_start: IntArray  # (T+1,)
    out_address: IntArray
    out_value: IntArray
    out_type: TypeArray

    @classmethod
    def of(cls, txs: Transactions) -> Rows:
        sides = [
            [offsets, *(_column(table, name) for name in ("address", "value", "script_type"))]
            for offsets, table in ((txs.input_offsets(), txs.inputs), (txs.output_offsets(), txs.outputs))
        ]
        return cls(*sides[0], *sides[1])


class Shape(NamedTuple):
    """One value per transaction in each column but `rows`."""

    rows: Rows
    inputs: IntArray  # number of inputs
    input_addresses: IntArray  # distinct addresses among them; each unknown one counts as another
    unknown_inputs: IntArray  # inputs of unknown value
    least_input: IntArray  # smallest and largest known input value; -1 where none is known
    largest_input: IntArray
    input_type: IntArray  # the script type that the inputs share: UNKNOWN_TYPE if none is known, -1 if they differ
    input_types: IntArray  # number of different known script types among the inputs
    input_keys: BoolArray  # all inputs are P2WPKH or Taproot
    inputs_descend: BoolArray  # known values never rise from one input to the next
    input_order: FloatArray  # bits: log2 of the number of different orders that the known input values have
    outputs: IntArray  # number of outputs that can be spent: OP_RETURN does not count
    nulldata: IntArray  # number of OP_RETURN outputs
    outputs_distinct: BoolArray  # no two outputs go to one address
    outputs_descend: BoolArray  # values never rise from one output to the next (OP_RETURN included)
    outputs_ascend: BoolArray  # values never fall
    output_order: FloatArray  # bits: log2 of the number of different orders of the spendable outputs' values
    shared: IntArray  # addresses that occur on both sides
    k: IntArray  # how often the most frequent output value occurs
    value: IntArray  # that value; the largest where several occur k times
    value_near_tenth: IntArray  # that value; the one nearest 0.1 BTC where several occur k times
    leading: BoolArray  # the first k outputs are those worth `value_near_tenth`
    small_others: IntArray  # outputs not worth `value` that are smaller than a JoinMarket maker's least change
    at_value: IntArray  # known inputs worth exactly `value`
    below_value: IntArray  # known inputs worth less
    mirrored: IntArray  # known inputs within a fee of `value` that are not worth exactly that
    coverage: IntArray  # sum over inputs of min(input, value)
    placed: BoolArray  # no known input is too large to be part of what one participant brings: see `_placed`
    main_type: IntArray  # the script type of most spendable outputs; the least code where several have most
    main_inputs: IntArray  # inputs and
    main_outputs: IntArray  # outputs of that type
    segwit_keys: BoolArray  # all inputs and outputs are P2WPKH
    key_outputs: IntArray  # outputs that are P2WPKH or Taproot
    standard: IntArray  # outputs worth a Wasabi 2 denomination
    odd_values: IntArray  # distinct denominations among them that are not round in the decimal system
    levels: IntArray  # outputs within 2^l × (0.1 ± 0.01) BTC, l = 0..11
    doubled: IntArray  # outputs on levels above `value_near_tenth`, of two outputs and more, that double exactly
    chain: IntArray  # number of those levels
    level_gap: FloatArray  # relative height of `value_near_tenth` above half of the lowest of them; inf where none is

    @classmethod
    def of(cls, txs: Transactions) -> Shape:
        rows, table = Rows.of(txs), np.zeros(len(txs), dtype=RECORD)
        _measure(table, rows, wasabi2_denominations())
        columns: list[npt.NDArray[Any]] = [np.ascontiguousarray(table[name]) for name in MEASURED]
        return cls(rows, *columns)


MEASURED = Shape._fields[1:]
_KINDS = {BoolArray: np.bool_, FloatArray: np.float64, IntArray: np.int64}
RECORD = np.dtype([(name, _KINDS[get_type_hints(Shape)[name]]) for name in MEASURED], align=True)
"""All that is measured on one transaction: what is measured together is written together."""


def _column(table: pd.DataFrame, name: str) -> npt.NDArray[Any]:
    """Contiguous and read-only whatever the table's history, so that one compiled version serves all."""
    column = np.ascontiguousarray(table[name].to_numpy()).view()
    column.flags.writeable = False
    return column


# --- the compiled pass ---

_NARROWEST = 1.5
"""The lowest level above the base lies beyond so many times the base: at twice the base, or a little below."""


@njit(cache=True)
def _measure(table: Any, rows: Any, denominations: IntArray) -> None:
    """Fill the records of `table`, one transaction at a time."""
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
    sent, received = np.zeros(len(SCRIPT_TYPES), dtype=np.int64), np.zeros(len(SCRIPT_TYPES), dtype=np.int64)
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
