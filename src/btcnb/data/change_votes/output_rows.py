"""Outputs as rows of numbers: what each heuristic says of an output, and nine plain features of it.

A transaction with two outputs makes two rows, row 2k for output 0 of the k-th. The features are those that Möser and
Narayanan keep beside the 26 votes, by their public notebooks: two of the output, seven of the transaction.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from btcnb.data.change_votes.flags import transaction_flags
from btcnb.data.change_votes.votes import HEURISTICS, UNIVERSAL, ChangeVotes
from btcnb.data.transactions import IntArray, Transactions
from btcnb.errors import DataError, ParameterError
from btcnb.gates import instance

FloatArray = npt.NDArray[np.float32]

EXTRA = (
    "value_share",  # value of the output / value of both outputs; 0.5 where both are worth nothing
    "output_index",  # 0 or 1
    "fee_per_byte",  # whole satoshi per virtual byte; -1 where the data does not tell the fee
    "output_total",  # satoshi of both outputs
    "version",
    "segwit",  # 0 or 1; -1 where an input's type is not told
    "locktime",  # 1 where a lock time is set
    "inputs",  # number of inputs
    "epoch",  # block height // 1008, about a week
)
"""The nine features beside the votes, in the order of the columns."""
COLUMNS = (*HEURISTICS, *EXTRA)
"""The 35 inputs of the full model."""
UNIVERSAL_COLUMNS = (*UNIVERSAL, *EXTRA)
"""The 18 inputs of the model that needs no spending transaction."""
EPOCH_BLOCKS = 1008


def output_rows(txs: Transactions, votes: ChangeVotes) -> FloatArray:
    """The rows (2E, 35) of the transactions that `votes` (E) speaks about, columns as in `COLUMNS`. No NaN."""
    instance("votes", votes, ChangeVotes)
    return np.concatenate([votes.signed().astype(np.float32), extra_features(txs, votes.tx)], axis=1)


def universal(rows: FloatArray) -> FloatArray:
    """The columns `UNIVERSAL_COLUMNS` of rows (n, 35): (n, 18)."""
    return rows[:, [COLUMNS.index(name) for name in UNIVERSAL_COLUMNS]]


def has_vote(rows: FloatArray, columns: tuple[str, ...] = HEURISTICS) -> npt.NDArray[np.bool_]:
    """Per row of (n, 35): whether one of the named heuristics votes, for the output or for the other."""
    return np.asarray((rows[:, [COLUMNS.index(name) for name in columns]] != 0).any(axis=1))


def extra_features(txs: Transactions, tx: IntArray) -> FloatArray:
    """The nine features of both outputs of each named transaction, (2E, 9); each must have exactly two outputs."""
    instance("txs", txs, Transactions)
    start = txs.output_offsets()
    if len(tx) and (int(np.min(tx)) < 0 or int(np.max(tx)) >= len(txs)):
        raise ParameterError(f"tx names transactions outside 0 to {len(txs) - 1}.")
    if (np.diff(start)[tx] != 2).any():
        raise ParameterError("tx names transactions that have not two outputs; see two_outputs.")
    rows = np.stack([start[tx], start[tx] + 1], axis=1)
    value = txs.outputs["value"].to_numpy()[rows].astype(np.float64)  # (E, 2)
    if (value < 0).any():
        raise DataError(txs.source, "outputs.value", "an output's value is unknown", "read blocks or full tables")
    total = value.sum(axis=1, keepdims=True)
    flags, table = transaction_flags(txs), txs.transactions
    of_tx = [
        flags["fee_per_byte"],
        np.zeros(len(txs)),  # the total, filled in below: it is known for these transactions only
        table["version"].to_numpy(),
        flags["segwit"],
        table["lock_time"].to_numpy() > 0,
        np.diff(txs.input_offsets()),
        table["block_number"].to_numpy() // EPOCH_BLOCKS,
    ]
    found = np.empty((len(tx), 2, len(EXTRA)), dtype=np.float32)
    found[:, :, 0] = np.divide(value, total, out=np.full_like(value, 0.5), where=total > 0)
    found[:, :, 1] = txs.outputs["index"].to_numpy()[rows]
    for column, feature in enumerate(of_tx, 2):
        found[:, :, column] = feature[tx][:, None]
    found[:, :, EXTRA.index("output_total")] = total
    return found.reshape(2 * len(tx), len(EXTRA))
