"""Cutting a subset out of tables of transactions, with every id renumbered."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.errors import ParameterError

Mask = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]


def mask_of(keep: Any, number: int) -> Mask:
    """Ids, or a mask, of `number` things as a mask."""
    try:
        wanted = np.asarray(keep)
    except ValueError:
        wanted = np.asarray([keep], dtype=object)  # ragged: refused below
    if wanted.dtype == bool:
        if wanted.shape != (number,):
            raise ParameterError(f"keep: a mask of shape {wanted.shape} does not fit {number} transactions.")
        return wanted
    if wanted.size and (wanted.dtype.kind not in "iu" or wanted.min() < 0 or wanted.max() >= number):
        raise ParameterError(f"keep: transaction ids must lie in 0..{number - 1}.")
    mask = np.zeros(number, dtype=bool)
    mask[wanted.astype(np.int64)] = True
    return mask


def kept_rows(
    transactions: pd.DataFrame, inputs: pd.DataFrame, outputs: pd.DataFrame, num_addresses: int, mask: Mask
) -> tuple[pd.DataFrame, pd.DataFrame, Mask]:
    """Inputs and outputs of the transactions in `mask` (T,), renumbered, and the mask (A,) of the addresses in use."""
    kept_outputs = mask[outputs["tx"].to_numpy()]
    new_output = _renumbering(kept_outputs)
    parents, hashes = outputs["tx"].to_numpy(), transactions["hash"].to_numpy(dtype=object)
    inputs = inputs[mask[inputs["tx"].to_numpy()]].reset_index(drop=True)
    outputs = outputs[kept_outputs].reset_index(drop=True)
    used = np.zeros(num_addresses + 1, dtype=bool)  # the last slot catches address -1
    used[inputs["address"].to_numpy()] = True
    used[outputs["address"].to_numpy()] = True
    used = used[:-1]

    old_spent = inputs["spent_output"].to_numpy()
    inputs["spent_output"] = spent = new_output[old_spent]
    lost = (old_spent >= 0) & (spent < 0)
    if lost.any():
        told = inputs["spent_transaction_hash"].to_numpy(dtype=object, copy=True)
        told[lost] = hashes[parents[old_spent[lost]]]
        inputs["spent_transaction_hash"] = pd.Series(told, dtype="str")
    new_tx, new_address = _renumbering(mask), _renumbering(used)
    for table in (inputs, outputs):
        table["tx"] = new_tx[table["tx"].to_numpy()]
        table["address"] = new_address[table["address"].to_numpy()]
    return inputs, outputs, used


def rows_of(starts: IntArray, groups: IntArray) -> tuple[IntArray, IntArray]:
    """Rows of the given groups, and for each row the place of its group in `groups`.

    starts: CSR offsets, the rows of group g are starts[g]:starts[g+1]. Costs what the groups hold, not the table.
    """
    length = starts[groups + 1] - starts[groups]
    position = np.repeat(np.arange(len(groups)), length)
    within = np.arange(len(position)) - np.repeat(np.cumsum(length) - length, length)
    return starts[groups][position] + within, position


def _renumbering(mask: Mask) -> IntArray:
    """Old id -> new id, -1 for what falls away; the last slot stands for -1, "outside"."""
    return np.append(np.where(mask, np.cumsum(mask) - 1, -1), -1)
