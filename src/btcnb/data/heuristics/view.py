"""What the merging rules read and write: columns of all transactions, and pairs of addresses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from btcnb.data.transactions import IntArray, Transactions, rows_of

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Merges:
    """Pairs of addresses that a rule says have one owner, with the transaction that says so."""

    tx: IntArray
    a: IntArray
    b: IntArray


@dataclass(frozen=True)
class View:
    """The columns that the rules read. Inputs of transaction t are rows in_start[t]:in_start[t+1], outputs alike."""

    block: IntArray  # (T,)
    in_start: IntArray  # (T+1,)
    in_address: IntArray
    in_value: IntArray
    out_start: IntArray  # (T+1,)
    out_address: IntArray
    out_value: IntArray
    last_received: IntArray  # (A+1,) last block that pays the address, -1 for none; the last slot serves address -1

    @classmethod
    def of(cls, txs: Transactions, end_block: int | None) -> View:
        block = txs.transactions["block_number"].to_numpy()
        address = txs.outputs["address"].to_numpy()
        received = block[txs.outputs["tx"].to_numpy()]
        inside = address >= 0
        if end_block is not None:
            inside &= received <= end_block
        last = np.full(txs.num_addresses + 1, -1, dtype=np.int64)
        last[address[inside]] = received[inside]  # rows are in chain order: the last write is the latest block
        return cls(
            block=block,
            in_start=txs.input_offsets(),
            in_address=txs.inputs["address"].to_numpy(),
            in_value=txs.inputs["value"].to_numpy(),
            out_start=txs.output_offsets(),
            out_address=address,
            out_value=txs.outputs["value"].to_numpy(),
            last_received=last,
        )

    def reused(self, address: IntArray, tx: IntArray) -> BoolArray:
        """Whether the address receives again in a block later than the transaction's."""
        return self.last_received[address] > self.block[tx]

    def input_rows(self, tx: IntArray) -> tuple[IntArray, IntArray]:
        """Rows of the transactions' inputs, and for each row the position of its transaction in `tx`."""
        return rows_of(self.in_start, tx)

    def output_rows(self, tx: IntArray) -> tuple[IntArray, IntArray]:
        """Rows of the transactions' outputs, and for each row the position of its transaction in `tx`."""
        return rows_of(self.out_start, tx)


def stars(tx: IntArray, position: IntArray, address: IntArray) -> Merges:
    """Pairs (lowest address, each other address) per transaction; position[i] is the place in `tx` of address[i]."""
    order = np.lexsort((address, position))
    position, address = position[order], address[order]
    opens = np.ones(len(position), dtype=bool)
    opens[1:] = position[1:] != position[:-1]
    differs = np.ones(len(position), dtype=bool)
    differs[1:] = address[1:] != address[:-1]
    centre = address[opens][np.cumsum(opens) - 1]
    pair = differs & ~opens
    return Merges(tx[position[pair]], centre[pair], address[pair])


def counts(position: IntArray, number: int) -> IntArray:
    return np.bincount(position, minlength=number).astype(np.int64)


def any_of(flag: BoolArray, position: IntArray, number: int) -> BoolArray:
    return counts(position[flag], number) > 0


def distinct(address: IntArray, position: IntArray, number: int) -> IntArray:
    """Distinct addresses in each group of rows."""
    order = np.lexsort((address, position))
    address, position = address[order], position[order]
    new = np.ones(len(address), dtype=bool)
    new[1:] = (address[1:] != address[:-1]) | (position[1:] != position[:-1])
    return counts(position[new], number)


def sums(value: IntArray, position: IntArray, number: int) -> IntArray:
    total = np.zeros(number, dtype=np.int64)
    np.add.at(total, position, value)
    return total


def minima(value: IntArray, position: IntArray, number: int) -> IntArray:
    least = np.full(number, np.iinfo(np.int64).max)
    np.minimum.at(least, position, value)
    return least
