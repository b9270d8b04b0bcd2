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
        hints = get_type_hints(cls)
        kinds = (bool if hints[name] == BoolArray else np.int64 for name in MEASURED)
        columns: list[npt.NDArray[Any]] = [np.zeros(len(txs), dtype=kind) for kind in kinds]
        shape = cls(Rows.of(txs), *columns)
        _measure(shape, wasabi2_denominations())
        return shape


MEASURED = Shape._fields[1:]


def _column(table: pd.DataFrame, name: str) -> npt.NDArray[Any]:
    """Contiguous and read-only whatever the table's history, so that one compiled version serves all."""
    column = np.ascontiguousarray(table[name].to_numpy()).view()
    column.flags.writeable = False
    return column


@njit(cache=True)
def _measure(s: Shape, denominations: IntArray) -> None:
    for t in range(len(s.inputs)):
        s.segwit_keys[t] = s.segwit_keys_or_taproot[t] = True
        a, b = s.rows.in_start[t], s.rows.in_start[t + 1]
        _measure_inputs(s, t, s.rows.in_address[a:b], s.rows.in_value[a:b], s.rows.in_type[a:b])
        c, d = s.rows.out_start[t], s.rows.out_start[t + 1]
        _measure_outputs(s, t, s.rows.out_address[c:d], s.rows.out_value[c:d], s.rows.out_type[c:d])
        values = np.sort(s.rows.out_value[c:d][s.rows.out_type[c:d] != NULLDATA])
        s.outputs[t] = len(values)
        if len(values) > 0:
            _frequencies(s, t, values, denominations)
            _mixing_levels(s, t, values)
            s.leading[t] = np.all(s.rows.out_value[c : c + s.k[t]] == s.value_near_tenth[t])
        for value in s.rows.in_value[a:b]:
            s.coverage[t] += min(value, s.value[t])
        s.shared[t] = _shared(s.rows.in_address[a:b], s.rows.out_address[c:d])


@njit(cache=True)
def _measure_inputs(s: Shape, t: int, address: IntArray, value: IntArray, kind: TypeArray) -> None:
    s.inputs[t] = len(value)
    s.least_input[t] = s.largest_input[t] = s.input_type[t] = -1
    s.inputs_descend[t] = True
    if len(value) == 0:
        return
    ordered = np.sort(address)
    for i in range(len(value)):
        s.input_addresses[t] += ordered[i] < 0 or i == 0 or ordered[i] != ordered[i - 1]
    s.least_input[t] = value.min()
    s.largest_input[t] = value.max() if s.least_input[t] >= 0 else -1
    s.input_type[t] = kind[0] if np.all(kind == kind[0]) else -1
    for i in range(1, len(value)):
        if value[i] > value[i - 1]:
            s.inputs_descend[t] = False
    _types(s, t, kind)


@njit(cache=True)
def _measure_outputs(s: Shape, t: int, address: IntArray, value: IntArray, kind: TypeArray) -> None:
    s.outputs_distinct[t] = s.outputs_descend[t] = s.outputs_ascend[t] = True
    ordered = np.sort(address)
    for i in range(1, len(value)):
        if ordered[i] >= 0 and ordered[i] == ordered[i - 1]:
            s.outputs_distinct[t] = False
        if value[i] > value[i - 1]:
            s.outputs_descend[t] = False
        if value[i] < value[i - 1]:
            s.outputs_ascend[t] = False
    s.nulldata[t] = np.sum(kind == NULLDATA)
    s.same_type[t] = np.sum(kind == s.input_type[t])
    _types(s, t, kind)


@njit(cache=True)
def _types(s: Shape, t: int, kind: TypeArray) -> None:
    for each in kind:
        if each != P2WPKH:
            s.segwit_keys[t] = False
            if each != P2TR:
                s.segwit_keys_or_taproot[t] = False


@njit(cache=True)
def _frequencies(s: Shape, t: int, values: IntArray, denominations: IntArray) -> None:
    """Walk the sorted output values group by group."""
    begin = 0
    for i in range(1, len(values) + 1):
        if i < len(values) and values[i] == values[begin]:
            continue
        count, worth = i - begin, values[begin]
        if count > s.k[t]:
            s.k[t], s.value[t], s.value_near_tenth[t] = count, worth, worth
        elif count == s.k[t]:
            s.value[t] = worth
            if abs(worth - WASABI1_DENOMINATION) < abs(s.value_near_tenth[t] - WASABI1_DENOMINATION):
                s.value_near_tenth[t] = worth
        s.repeated[t] += count > 1
        place = np.searchsorted(denominations, worth)
        if place < len(denominations) and denominations[place] == worth:
            s.standard[t] += count
            s.standard_values[t] += 1
        begin = i


@njit(cache=True)
def _mixing_levels(s: Shape, t: int, values: IntArray) -> None:
    near = s.value_near_tenth[t]
    for level in range(WASABI1_LEVELS):
        factor = 2**level
        low = factor * (WASABI1_DENOMINATION - WASABI1_DENOMINATION // 10)
        high = factor * (WASABI1_DENOMINATION + WASABI1_DENOMINATION // 10)
        s.levels[t] += np.searchsorted(values, high, side="right") - np.searchsorted(values, low)
        exact = np.searchsorted(values, factor * near, side="right") - np.searchsorted(values, factor * near)
        if level > 0 and near > 0 and exact >= 2:
            s.doubled[t] += exact


@njit(cache=True)
def _shared(senders: IntArray, receivers: IntArray) -> int:
    senders, found = np.unique(senders), 0
    for receiver in np.unique(receivers):
        place = np.searchsorted(senders, receiver)
        found += receiver >= 0 and place < len(senders) and senders[place] == receiver
    return found
