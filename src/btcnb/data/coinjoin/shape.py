"""What the detectors look at: the shape of each transaction, measured once in one compiled pass over all of them.

Unknown values, addresses and script types never speak against anything: an unknown address counts as one more, an
unknown value as enough, an unknown type as the right one. What is measured on known values only says so.
"""

from __future__ import annotations

from typing import Any, NamedTuple, get_type_hints

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.data.coinjoin import measure
from btcnb.data.coinjoin.constants import wasabi2_denominations
from btcnb.data.coinjoin.measure import NULLDATA, P2PKH, P2SH, P2TR, P2WPKH, UNKNOWN_TYPE
from btcnb.data.transactions import IntArray, Transactions

__all__ = [
    "MEASURED",
    "NULLDATA",
    "P2PKH",
    "P2SH",
    "P2TR",
    "P2WPKH",
    "UNKNOWN_TYPE",
    "BoolArray",
    "FloatArray",
    "Rows",
    "Shape",
]

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
TypeArray = npt.NDArray[np.int8]


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
    placed: BoolArray  # no known input is too large to be part of what one participant brings: see `measure`
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
        measure.shapes(table, rows, wasabi2_denominations())
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
