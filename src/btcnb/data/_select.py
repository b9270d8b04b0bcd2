"""Cutting a subset out of a `Transactions`, with every id renumbered."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.errors import ParameterError

if TYPE_CHECKING:
    from btcnb.data.transactions import Transactions, Truth


def select(txs: Transactions, keep: npt.NDArray[Any]) -> Transactions:
    """See `Transactions.select`."""
    mask = _mask(np.asarray(keep), len(txs))  # (T,)
    in_rows = mask[txs.inputs["tx"].to_numpy()]
    out_rows = mask[txs.outputs["tx"].to_numpy()]
    new_tx = np.cumsum(mask) - 1
    new_output = np.append(np.where(out_rows, np.cumsum(out_rows) - 1, -1), -1)  # the last slot stands for "outside"

    inputs = txs.inputs[in_rows].reset_index(drop=True)
    outputs = txs.outputs[out_rows].reset_index(drop=True)
    used = np.zeros(txs.num_addresses + 1, dtype=bool)  # the last slot catches address -1
    used[inputs["address"].to_numpy()] = True
    used[outputs["address"].to_numpy()] = True
    used = used[:-1]
    new_address = np.append(np.where(used, np.cumsum(used) - 1, -1), -1)

    old_spent = inputs["spent_output"].to_numpy()
    spent = new_output[old_spent]
    lost = (old_spent >= 0) & (spent < 0)
    if lost.any():
        parents = txs.outputs["tx"].to_numpy()[old_spent[lost]]
        hashes = inputs["spent_transaction_hash"].to_numpy(dtype=object, copy=True)
        hashes[lost] = txs.transactions["hash"].to_numpy(dtype=object)[parents]
        inputs["spent_transaction_hash"] = pd.Series(hashes, dtype="str")
    inputs["spent_output"] = spent
    for table in (inputs, outputs):
        table["tx"] = new_tx[table["tx"].to_numpy()]
        table["address"] = new_address[table["address"].to_numpy()]

    return replace(
        txs,
        transactions=txs.transactions[mask].reset_index(drop=True),
        inputs=inputs,
        outputs=outputs,
        addresses=txs.addresses[used],
        truth=None if txs.truth is None else _truth(txs.truth, mask, used),
    )


def _mask(keep: npt.NDArray[Any], number: int) -> npt.NDArray[np.bool_]:
    if keep.dtype == bool:
        if keep.shape != (number,):
            raise ParameterError(f"keep: a mask of shape {keep.shape} does not fit {number} transactions.")
        return keep
    mask = np.zeros(number, dtype=bool)
    ids = keep.astype(np.int64)
    if len(ids) and (ids.min() < 0 or ids.max() >= number):
        raise ParameterError(f"keep: transaction ids must lie in 0..{number - 1}.")
    mask[ids] = True
    return mask


def _truth(truth: Truth, mask: npt.NDArray[np.bool_], used: npt.NDArray[np.bool_]) -> Truth:
    return replace(
        truth,
        owner=truth.owner[used],
        label=None if truth.label is None else truth.label[used],
        coinjoin=None if truth.coinjoin is None else truth.coinjoin[mask],
        change=None if truth.change is None else truth.change[mask],
    )
