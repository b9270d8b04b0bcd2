"""What the detectors look at: the shape of each transaction, measured once in one compiled pass over all of them."""

from __future__ import annotations

from typing import Any, NamedTuple, get_type_hints

import numpy as np
import numpy.typing as npt
import pandas as pd
from numba import njit

from btcnb.data.coinjoin.constants import WASABI1_DENOMINATION, WASABI1_LEVELS, wasabi2_denominations
from btcnb.data.transactions import SCRIPT_TYPES, IntArray, Transactions

BoolArray = npt.NDArray[np.bool_]
TypeArray = npt.NDArray[np.int8]

NULLDATA = SCRIPT_TYPES.index("nulldata")
P2PKH = SCRIPT_TYPES.index("pubkeyhash")
P2SH = SCRIPT_TYPES.index("scripthash")
P2WPKH = SCRIPT_TYPES.index("witness_v0_keyhash")
P2TR = SCRIPT_TYPES.index("witness_v1_taproot")


class Rows(NamedTuple):
    """Inputs of transaction t are rows in_start[t]:in_start[t+1] of the in_ columns, outputs alike."""

    time: IntArray  # (T,) unix seconds
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
        return cls(_column(txs.transactions, "block_timestamp"), *sides[0], *sides[1])


class Shape(NamedTuple):
    """One value per transaction in each column but `rows`."""

    rows: Rows
    inputs: IntArray  # number of inputs
    input_addresses: IntArray  # distinct addresses among them; each unknown one counts as another
    least_input: IntArray  # smallest and largest input value; -1 as soon as one is unknown
    largest_input: IntArray
    input_type: IntArray  # the inputs' script type if they share one, else -1
    outputs: IntArray  # number of outputs that can be spent: OP_RETURN does not count
    nulldata: IntArray  # number of OP_RETURN outputs
    outputs_distinct: BoolArray  # no two outputs go to one address
    shared: IntArray  # addresses that occur on both sides
    k: IntArray  # how often the most frequent output value occurs
    value: IntArray  # that value; the largest where several occur k times
    value_near_tenth: IntArray  # that value; the one nearest 0.1 BTC where several occur k times
    repeated: IntArray  # number of values that occur at least twice
    leading: BoolArray  # the first k outputs are those worth `value_near_tenth`
    coverage: IntArray  # sum over inputs of min(input, value)
    same_type: IntArray  # outputs of the type `input_type`
    segwit_keys: BoolArray  # all inputs and outputs are P2WPKH
    segwit_keys_or_taproot: BoolArray  # all inputs and outputs are P2WPKH or P2TR
    inputs_descend: BoolArray  # values never rise from one input (output) to the next
    outputs_descend: BoolArray
    outputs_ascend: BoolArray  # values never fall from one output to the next (OP_RETURN included)
    standard: IntArray  # outputs worth a Wasabi 2 denomination
    standard_values: IntArray  # distinct denominations among them
    levels: IntArray  # outputs within 2^l × (0.1 ± 0.01) BTC, l = 0..11
    doubled: IntArray  # outputs worth exactly 2^l × `value_near_tenth`, l = 1..11, where at least two are

    @classmethod
    def of(cls, txs: Transactions) -> Shape:
        rows, table = Rows.of(txs), np.zeros(len(txs), dtype=RECORD)
        _measure(table, rows, wasabi2_denominations())
        columns: list[npt.NDArray[Any]] = [np.ascontiguousarray(table[name]) for name in MEASURED]
        return cls(rows, *columns)


MEASURED = Shape._fields[1:]
RECORD = np.dtype(
    [(name, bool if get_type_hints(Shape)[name] == BoolArray else np.int64) for name in MEASURED], align=True
)
"""All that is measured on one transaction: what is measured together is written together."""


def _column(table: pd.DataFrame, name: str) -> npt.NDArray[Any]:
    """Contiguous and read-only whatever the table's history, so that one compiled version serves all."""
    column = np.ascontiguousarray(table[name].to_numpy()).view()
    column.flags.writeable = False
    return column


@njit(cache=True)
def _measure(table: Any, rows: Rows, denominations: IntArray) -> None:
    in_start, in_address, in_value, in_type = rows.in_start, rows.in_address, rows.in_value, rows.in_type
    out_start, out_address, out_value, out_type = rows.out_start, rows.out_address, rows.out_value, rows.out_type
    for t in range(len(table)):
        row = table[t]
        a, b, c, d = in_start[t], in_start[t + 1], out_start[t], out_start[t + 1]
        row.segwit_keys = row.segwit_keys_or_taproot = True
        _measure_inputs(row, in_address[a:b], in_value[a:b], in_type[a:b])
        _measure_outputs(row, out_address[c:d], out_value[c:d], out_type[c:d])
        values = np.sort(out_value[c:d][out_type[c:d] != NULLDATA])
        row.outputs = len(values)
        if len(values) > 0:
            _frequencies(row, values, denominations)
            _mixing_levels(row, values)
            row.leading = np.all(out_value[c : c + row.k] == row.value_near_tenth)
        for value in in_value[a:b]:
            row.coverage += min(value, row.value)
        row.shared = _shared(in_address[a:b], out_address[c:d])


@njit(cache=True)
def _measure_inputs(row: Any, address: IntArray, value: IntArray, kind: TypeArray) -> None:
    row.inputs = len(value)
    row.least_input = row.largest_input = row.input_type = -1
    row.inputs_descend = True
    if len(value) == 0:
        return
    ordered = np.sort(address)
    for i in range(len(value)):
        row.input_addresses += ordered[i] < 0 or i == 0 or ordered[i] != ordered[i - 1]
    row.least_input = value.min()
    row.largest_input = value.max() if row.least_input >= 0 else -1
    row.input_type = kind[0] if np.all(kind == kind[0]) else -1
    for i in range(1, len(value)):
        if value[i] > value[i - 1]:
            row.inputs_descend = False
    _types(row, kind)


@njit(cache=True)
def _measure_outputs(row: Any, address: IntArray, value: IntArray, kind: TypeArray) -> None:
    row.outputs_distinct = row.outputs_descend = row.outputs_ascend = True
    ordered = np.sort(address)
    for i in range(1, len(value)):
        if ordered[i] >= 0 and ordered[i] == ordered[i - 1]:
            row.outputs_distinct = False
        if value[i] > value[i - 1]:
            row.outputs_descend = False
        if value[i] < value[i - 1]:
            row.outputs_ascend = False
    row.nulldata = np.sum(kind == NULLDATA)
    row.same_type = np.sum(kind == row.input_type)
    _types(row, kind)


@njit(cache=True)
def _types(row: Any, kind: TypeArray) -> None:
    for each in kind:
        if each != P2WPKH:
            row.segwit_keys = False
            if each != P2TR:
                row.segwit_keys_or_taproot = False


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
        row.repeated += count > 1
        place = np.searchsorted(denominations, worth)
        if place < len(denominations) and denominations[place] == worth:
            row.standard += count
            row.standard_values += 1
        begin = i


@njit(cache=True)
def _mixing_levels(row: Any, values: IntArray) -> None:
    near = row.value_near_tenth
    for level in range(WASABI1_LEVELS):
        factor = 2**level
        low = factor * (WASABI1_DENOMINATION - WASABI1_DENOMINATION // 10)
        high = factor * (WASABI1_DENOMINATION + WASABI1_DENOMINATION // 10)
        row.levels += np.searchsorted(values, high, side="right") - np.searchsorted(values, low)
        exact = np.searchsorted(values, factor * near, side="right") - np.searchsorted(values, factor * near)
        if level > 0 and near > 0 and exact >= 2:
            row.doubled += exact


@njit(cache=True)
def _shared(senders: IntArray, receivers: IntArray) -> int:
    senders, found = np.unique(senders), 0
    for receiver in np.unique(receivers):
        place = np.searchsorted(senders, receiver)
        found += receiver >= 0 and place < len(senders) and senders[place] == receiver
    return found
