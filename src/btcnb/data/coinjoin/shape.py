"""What the detectors look at: the shape of each transaction, measured once in one compiled pass over all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from btcnb.data.coinjoin.constants import WASABI1_DENOMINATION, WASABI1_LEVELS, wasabi2_denominations
from btcnb.data.transactions import SCRIPT_TYPES, IntArray, Transactions

NULLDATA = SCRIPT_TYPES.index("nulldata")
P2PKH = SCRIPT_TYPES.index("pubkeyhash")
P2SH = SCRIPT_TYPES.index("scripthash")
P2WPKH = SCRIPT_TYPES.index("witness_v0_keyhash")
P2TR = SCRIPT_TYPES.index("witness_v1_taproot")

COLUMNS = (
    "inputs",  # number of inputs
    "input_addresses",  # distinct addresses among them; each unknown one counts as another
    "least_input",  # smallest and largest input value; -1 as soon as one is unknown
    "largest_input",
    "input_type",  # the inputs' script type if they share one, else -1
    "outputs",  # number of outputs that can be spent: OP_RETURN does not count
    "nulldata",  # number of OP_RETURN outputs
    "outputs_distinct",  # 1 if no two outputs go to one address
    "shared",  # addresses that occur on both sides
    "k",  # how often the most frequent output value occurs
    "value",  # that value; the largest where several occur k times
    "value_near_tenth",  # that value; the one nearest 0.1 BTC where several occur k times
    "repeated",  # number of values that occur at least twice
    "leading",  # 1 if the first k outputs are those worth `value_near_tenth`
    "inputs_equal",  # inputs worth exactly `value`
    "coverage",  # sum over inputs of min(input, value)
    "same_type",  # outputs of the type `input_type`
    "segwit_keys",  # 1 if all inputs and outputs are P2WPKH
    "segwit_keys_or_taproot",  # 1 if all inputs and outputs are P2WPKH or P2TR
    "inputs_descend",  # 1 if values never rise from one input (output) to the next
    "outputs_descend",
    "outputs_ascend",  # 1 if values never fall from one output to the next (OP_RETURN included)
    "standard",  # outputs worth a Wasabi 2 denomination
    "standard_values",  # distinct denominations among them
    "levels",  # outputs within 2^l × (0.1 ± 0.01) BTC, l = 0..11
    "doubled",  # outputs worth exactly 2^l × `value_near_tenth`, l = 1..11, where at least two are
)
_AT = {name: position for position, name in enumerate(COLUMNS)}
_FLAGS = (
    "outputs_distinct",
    "leading",
    "segwit_keys",
    "segwit_keys_or_taproot",
    "inputs_descend",
    "outputs_descend",
    "outputs_ascend",
)


@dataclass(frozen=True)
class Shape:
    """One value per transaction for each name in `COLUMNS` (`shape.k`, `shape.outputs`, …), and the transactions."""

    txs: Transactions
    table: IntArray  # (transactions, columns): what is measured together is written together

    def __getattr__(self, name: str) -> Any:
        if name not in _AT:
            raise AttributeError(name)
        column = self.table[:, _AT[name]]
        return column.astype(bool) if name in _FLAGS else column.copy()

    @classmethod
    def of(cls, txs: Transactions) -> Shape:
        table = np.zeros((len(txs), len(COLUMNS)), dtype=np.int64)
        in_start, out_start = txs.input_offsets(), txs.output_offsets()
        _measure_inputs(
            table,
            in_start,
            txs.inputs["address"].to_numpy(),
            txs.inputs["value"].to_numpy(),
            txs.inputs["script_type"].to_numpy(),
        )
        _measure_outputs(
            table,
            out_start,
            txs.outputs["address"].to_numpy(),
            txs.outputs["value"].to_numpy(),
            txs.outputs["script_type"].to_numpy(),
            wasabi2_denominations(),
        )
        _measure_both(
            table,
            in_start,
            txs.inputs["address"].to_numpy(),
            txs.inputs["value"].to_numpy(),
            out_start,
            txs.outputs["address"].to_numpy(),
        )
        return cls(txs, table)


_INPUTS, _IN_ADDRESSES, _LEAST, _LARGEST, _IN_TYPE = (_AT[n] for n in COLUMNS[:5])
_OUTPUTS, _NULLDATA, _DISTINCT, _SHARED, _K, _VALUE, _NEAR, _REPEATED, _LEADING = (_AT[n] for n in COLUMNS[5:14])
_EQUAL, _COVERAGE, _SAME_TYPE, _KEYS, _KEYS_OR_TAPROOT = (_AT[n] for n in COLUMNS[14:19])
_IN_DESCEND, _OUT_DESCEND, _OUT_ASCEND, _STANDARD, _STANDARD_VALUES, _LEVELS, _DOUBLED = (
    _AT[n] for n in COLUMNS[19:26]
)


@njit(cache=True)
def _measure_inputs(
    table: IntArray, start: IntArray, address: IntArray, value: IntArray, kind: npt.NDArray[np.int8]
) -> None:
    for t in range(len(table)):
        a, b = start[t], start[t + 1]
        table[t, _INPUTS] = b - a
        table[t, _LEAST] = table[t, _LARGEST] = table[t, _IN_TYPE] = -1
        table[t, _KEYS] = table[t, _KEYS_OR_TAPROOT] = table[t, _IN_DESCEND] = 1
        if a == b:
            continue
        ordered = np.sort(address[a:b])
        distinct = 0
        for i in range(b - a):
            distinct += ordered[i] < 0 or i == 0 or ordered[i] != ordered[i - 1]
        table[t, _IN_ADDRESSES] = distinct
        table[t, _LEAST] = value[a:b].min()
        table[t, _LARGEST] = value[a:b].max() if table[t, _LEAST] >= 0 else -1
        table[t, _IN_TYPE] = kind[a]
        for i in range(a, b):
            if kind[i] != kind[a]:
                table[t, _IN_TYPE] = -1
            if kind[i] != P2WPKH:
                table[t, _KEYS] = 0
                if kind[i] != P2TR:
                    table[t, _KEYS_OR_TAPROOT] = 0
            if i > a and value[i] > value[i - 1]:
                table[t, _IN_DESCEND] = 0


@njit(cache=True)
def _measure_outputs(
    table: IntArray,
    start: IntArray,
    address: IntArray,
    value: IntArray,
    kind: npt.NDArray[np.int8],
    denominations: IntArray,
) -> None:
    for t in range(len(table)):
        a, b = start[t], start[t + 1]
        _order_and_types(table, t, value[a:b], kind[a:b])
        ordered = np.sort(address[a:b])
        table[t, _DISTINCT] = 1
        for i in range(1, b - a):
            if ordered[i] >= 0 and ordered[i] == ordered[i - 1]:
                table[t, _DISTINCT] = 0
        values = np.sort(value[a:b][kind[a:b] != NULLDATA])
        table[t, _OUTPUTS] = len(values)
        if len(values) == 0:
            continue
        _frequencies(table, t, values, denominations)
        _mixing_levels(table, t, values)
        table[t, _LEADING] = np.all(value[a : a + table[t, _K]] == table[t, _NEAR])


@njit(cache=True)
def _order_and_types(table: IntArray, t: int, value: IntArray, kind: npt.NDArray[np.int8]) -> None:
    table[t, _OUT_DESCEND] = table[t, _OUT_ASCEND] = 1
    for i in range(len(value)):
        if i > 0 and value[i] > value[i - 1]:
            table[t, _OUT_DESCEND] = 0
        if i > 0 and value[i] < value[i - 1]:
            table[t, _OUT_ASCEND] = 0
        if kind[i] == NULLDATA:
            table[t, _NULLDATA] += 1
        if kind[i] == table[t, _IN_TYPE]:
            table[t, _SAME_TYPE] += 1
        if kind[i] != P2WPKH:
            table[t, _KEYS] = 0
            if kind[i] != P2TR:
                table[t, _KEYS_OR_TAPROOT] = 0


@njit(cache=True)
def _frequencies(table: IntArray, t: int, values: IntArray, denominations: IntArray) -> None:
    """Walk the sorted output values group by group."""
    begin = 0
    for i in range(1, len(values) + 1):
        if i < len(values) and values[i] == values[begin]:
            continue
        count, worth = i - begin, values[begin]
        if count > table[t, _K]:
            table[t, _K], table[t, _VALUE], table[t, _NEAR] = count, worth, worth
        elif count == table[t, _K]:
            table[t, _VALUE] = worth
            if abs(worth - WASABI1_DENOMINATION) < abs(table[t, _NEAR] - WASABI1_DENOMINATION):
                table[t, _NEAR] = worth
        table[t, _REPEATED] += count > 1
        place = np.searchsorted(denominations, worth)
        if place < len(denominations) and denominations[place] == worth:
            table[t, _STANDARD] += count
            table[t, _STANDARD_VALUES] += 1
        begin = i


@njit(cache=True)
def _mixing_levels(table: IntArray, t: int, values: IntArray) -> None:
    near = table[t, _NEAR]
    for level in range(WASABI1_LEVELS):
        factor = 2**level
        low = factor * (WASABI1_DENOMINATION - WASABI1_DENOMINATION // 10)
        high = factor * (WASABI1_DENOMINATION + WASABI1_DENOMINATION // 10)
        table[t, _LEVELS] += np.searchsorted(values, high, side="right") - np.searchsorted(values, low)
        exact = np.searchsorted(values, factor * near, side="right") - np.searchsorted(values, factor * near)
        if level > 0 and near > 0 and exact >= 2:
            table[t, _DOUBLED] += exact


@njit(cache=True)
def _measure_both(
    table: IntArray,
    in_start: IntArray,
    in_address: IntArray,
    in_value: IntArray,
    out_start: IntArray,
    out_address: IntArray,
) -> None:
    for t in range(len(table)):
        worth = table[t, _VALUE]
        for i in range(in_start[t], in_start[t + 1]):
            table[t, _EQUAL] += in_value[i] == worth
            table[t, _COVERAGE] += min(in_value[i], worth)
        senders = np.unique(in_address[in_start[t] : in_start[t + 1]])
        for receiver in np.unique(out_address[out_start[t] : out_start[t + 1]]):
            place = np.searchsorted(senders, receiver)
            table[t, _SHARED] += receiver >= 0 and place < len(senders) and senders[place] == receiver
