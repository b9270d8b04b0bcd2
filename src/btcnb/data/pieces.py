"""Small pieces of a long chain: what `Transactions.select` gives, at the cost of the piece and not of the chain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.data._select import rows_of
from btcnb.data.transactions import UNKNOWN, IntArray, Transactions


class Piece(NamedTuple):
    """Some transactions as a chain of their own; ids in `txs` are positions in the two arrays."""

    txs: Transactions
    transactions: IntArray  # ids in the whole chain, ascending
    addresses: IntArray  # ids in the whole chain, ascending


@dataclass(frozen=True)
class Cutter:
    """The whole chain, prepared once so that many small selections are cheap."""

    txs: Transactions
    in_start: IntArray  # (T+1,)
    out_start: IntArray  # (T+1,)
    maker: IntArray  # per output row: the transaction that makes it
    hashes: npt.NDArray[Any]  # (T,)

    @classmethod
    def of(cls, txs: Transactions) -> Cutter:
        return cls(
            txs,
            txs.input_offsets(),
            txs.output_offsets(),
            txs.outputs["tx"].to_numpy(),
            txs.transactions["hash"].to_numpy(dtype=object),
        )

    def cut(self, ids: IntArray) -> Piece:
        """`txs.select(ids)` and what its ids were; `ids` are ascending and distinct."""
        in_rows, in_tx = rows_of(self.in_start, ids)
        out_rows, out_tx = rows_of(self.out_start, ids)
        inputs = self.txs.inputs.take(in_rows).reset_index(drop=True)
        outputs = self.txs.outputs.take(out_rows).reset_index(drop=True)
        used = np.unique(np.append(inputs["address"].to_numpy(), outputs["address"].to_numpy()))
        used = used[used >= 0]
        for table, tx in ((inputs, in_tx), (outputs, out_tx)):
            table["tx"] = tx
            table["address"] = _places(used, table["address"].to_numpy())
        self._tie(inputs, out_rows)
        truth = self.txs.truth
        own: Any = used  # `Truth.select` takes ascending ids as well as masks
        chosen: Any = ids
        piece = replace(
            self.txs,
            transactions=self.txs.transactions.take(ids).reset_index(drop=True),
            inputs=inputs,
            outputs=outputs,
            addresses=self.txs.addresses[used],
            truth=None if truth is None else truth.select(own, chosen),
        )
        return Piece(piece, ids, used)

    def _tie(self, inputs: pd.DataFrame, out_rows: IntArray) -> None:
        """Renumber the spent outputs; an input whose spent output falls away gets that transaction's hash."""
        before = inputs["spent_output"].to_numpy()
        inputs["spent_output"] = after = _places(out_rows, before)
        lost = (before >= 0) & (after < 0)
        if lost.any():
            told = inputs["spent_transaction_hash"].to_numpy(dtype=object, copy=True)
            told[lost] = self.hashes[self.maker[before[lost]]]
            inputs["spent_transaction_hash"] = pd.Series(told, dtype="str")


def _places(sorted_ids: IntArray, ids: IntArray) -> IntArray:
    """Position of each id among the sorted ones, -1 where it is not there."""
    if not len(sorted_ids):
        return np.full(len(ids), UNKNOWN, dtype=np.int64)
    place = np.minimum(np.searchsorted(sorted_ids, ids), len(sorted_ids) - 1)
    return np.where(sorted_ids[place] == ids, place, UNKNOWN)
