"""The five merging rules, each a function from candidate transactions to pairs of addresses.

A rule sees all inputs and outputs of a transaction. Where it compares addresses, an unknown one (id -1: a previous
output that the source does not tell, or an output nobody can spend) makes it stay silent; `common_input` merges those
that are known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from btcnb.data.transactions import UNKNOWN, IntArray, Transactions

if TYPE_CHECKING:
    from btcnb.data.heuristics import HeuristicConfig

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
        return _rows(self.in_start, tx)

    def output_rows(self, tx: IntArray) -> tuple[IntArray, IntArray]:
        """Rows of the transactions' outputs, and for each row the position of its transaction in `tx`."""
        return _rows(self.out_start, tx)


def common_input(view: View, tx: IntArray, config: HeuristicConfig) -> Merges:
    """All input addresses have one owner."""
    rows, position = view.input_rows(tx)
    address = view.in_address[rows]
    known = address >= 0
    address, position = address[known], position[known]
    return _stars(tx, position, address)


def change(view: View, tx: IntArray, config: HeuristicConfig) -> Merges:
    """One input, two outputs of which exactly one is reused: the other is the sender's change (fresh, used once)."""
    tx, sender, first, second, _, _ = _simple_payments(view, tx)
    first_reused, second_reused = view.reused(first, tx), view.reused(second, tx)
    fires = ~view.reused(sender, tx) & (first_reused != second_reused)
    return Merges(tx[fires], sender[fires], np.where(first_reused, second, first)[fires])


def round_value(view: View, tx: IntArray, config: HeuristicConfig) -> Merges:
    """One input, two outputs of which one is a round amount: the other, not nearly round and not reused, is change."""
    zeros = config.round_zeros
    if zeros <= config.round_slack:  # every amount ends with "at least 0 zeros": nothing can be told apart
        return Merges(*(np.empty(0, dtype=np.int64),) * 3)
    tx, sender, first, second, first_value, second_value = _simple_payments(view, tx)
    round_at, near_at = 10**zeros, 10 ** (zeros - config.round_slack)
    first_is_change = (second_value % round_at == 0) & (first_value % near_at != 0) & ~view.reused(first, tx)
    second_is_change = (first_value % round_at == 0) & (second_value % near_at != 0) & ~view.reused(second, tx)
    fires = first_is_change | second_is_change  # never both: an amount that is not nearly round is not round
    return Merges(tx[fires], sender[fires], np.where(first_is_change, first, second)[fires])


def forced_merge(view: View, tx: IntArray, config: HeuristicConfig) -> Merges:
    """Every input was needed to pay the larger of two outputs: inputs and change (the smaller) have one owner."""
    tx = tx[(np.diff(view.in_start)[tx] >= 2) & (np.diff(view.out_start)[tx] == 2)]
    start = view.out_start[tx]
    larger = np.where(view.out_value[start] >= view.out_value[start + 1], start, start + 1)
    smaller = 2 * start + 1 - larger
    payment, remainder = view.out_value[larger], view.out_address[smaller]
    fires = (payment > view.out_value[smaller]) & _two_addresses(view, start) & ~view.reused(remainder, tx)
    tx, payment, remainder = tx[fires], payment[fires], remainder[fires]

    rows, position = view.input_rows(tx)
    address, value = view.in_address[rows], view.in_value[rows]
    bad = (address < 0) | (value < 0) | view.reused(address, tx[position])
    fires = ~_any(bad, position, len(tx)) & (_distinct(address, position, len(tx)) == _count(position, len(tx)))
    total, least = _sum(value, position, len(tx)), _least(value, position, len(tx))
    fires &= total - least < payment

    keep = fires[position]
    position, address = position[keep], address[keep]
    forced = np.flatnonzero(fires)
    return _stars(tx, np.append(position, forced), np.append(address, remainder[fires]))


def deposit(view: View, tx: IntArray, config: HeuristicConfig) -> Merges:
    """Many addresses swept to a single one: the deposit addresses of one service."""
    rows, position = view.output_rows(tx)
    address = view.out_address[rows]
    target = ~_any(address < 0, position, len(tx)) & (_distinct(address, position, len(tx)) == 1)
    tx = tx[target]
    rows, position = view.input_rows(tx)
    address = view.in_address[rows]
    rows, position, address = rows[address >= 0], position[address >= 0], address[address >= 0]
    fires = _distinct(address, position, len(tx)) >= config.deposit_min_inputs
    return _stars(tx, position[fires[position]], address[fires[position]])


RULES: dict[str, Callable[[View, IntArray, HeuristicConfig], Merges]] = {
    "common_input": common_input,
    "change": change,
    "round_value": round_value,
    "forced_merge": forced_merge,
    "deposit": deposit,
}
"""The rules by name, in the order of the pipeline's description."""


def _simple_payments(view: View, tx: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Transactions with one input and two outputs to two other addresses: tx, sender, both addresses, both values."""
    tx = tx[(np.diff(view.in_start)[tx] == 1) & (np.diff(view.out_start)[tx] == 2)]
    start = view.out_start[tx]
    sender = view.in_address[view.in_start[tx]]
    first, second = view.out_address[start], view.out_address[start + 1]
    keep = (sender >= 0) & _two_addresses(view, start) & (first != sender) & (second != sender)
    start = start[keep]
    return tx[keep], sender[keep], first[keep], second[keep], view.out_value[start], view.out_value[start + 1]


def _two_addresses(view: View, start: IntArray) -> BoolArray:
    """Whether the outputs in rows start and start+1 go to two known, distinct addresses."""
    first, second = view.out_address[start], view.out_address[start + 1]
    return (first != UNKNOWN) & (second != UNKNOWN) & (first != second)


def _rows(starts: IntArray, tx: IntArray) -> tuple[IntArray, IntArray]:
    length = starts[tx + 1] - starts[tx]
    position = np.repeat(np.arange(len(tx)), length)
    within = np.arange(len(position)) - np.repeat(np.cumsum(length) - length, length)
    return starts[tx][position] + within, position


def _stars(tx: IntArray, position: IntArray, address: IntArray) -> Merges:
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


def _count(position: IntArray, number: int) -> IntArray:
    return np.bincount(position, minlength=number).astype(np.int64)


def _any(flag: BoolArray, position: IntArray, number: int) -> BoolArray:
    return _count(position[flag], number) > 0


def _distinct(address: IntArray, position: IntArray, number: int) -> IntArray:
    """Distinct addresses in each group of rows."""
    order = np.lexsort((address, position))
    address, position = address[order], position[order]
    new = np.ones(len(address), dtype=bool)
    new[1:] = (address[1:] != address[:-1]) | (position[1:] != position[:-1])
    return _count(position[new], number)


def _sum(value: IntArray, position: IntArray, number: int) -> IntArray:
    total = np.zeros(number, dtype=np.int64)
    np.add.at(total, position, value)
    return total


def _least(value: IntArray, position: IntArray, number: int) -> IntArray:
    least = np.full(number, np.iinfo(np.int64).max)
    np.minimum.at(least, position, value)
    return least
