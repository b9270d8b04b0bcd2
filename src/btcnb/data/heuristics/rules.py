"""The five merging rules, each a function from candidate transactions to pairs of addresses.

A rule sees all inputs and outputs of a transaction. Where it compares addresses, an unknown one (id -1: a previous
output that the source does not tell, or an output nobody can spend) makes it stay silent; `common_input` merges those
that are known.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from btcnb.data.heuristics.config import HeuristicConfig
from btcnb.data.heuristics.view import BoolArray, Merges, View, any_of, counts, distinct, minima, stars, sums
from btcnb.data.transactions import UNKNOWN, IntArray


def common_input(view: View, tx: IntArray, config: HeuristicConfig) -> Merges:
    """All input addresses have one owner."""
    rows, position = view.input_rows(tx)
    address = view.in_address[rows]
    known = address >= 0
    address, position = address[known], position[known]
    return stars(tx, position, address)


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
    fires = ~any_of(bad, position, len(tx)) & (distinct(address, position, len(tx)) == counts(position, len(tx)))
    total, least = sums(value, position, len(tx)), minima(value, position, len(tx))
    fires &= total - least < payment

    keep = fires[position]
    position, address = position[keep], address[keep]
    forced = np.flatnonzero(fires)
    return stars(tx, np.append(position, forced), np.append(address, remainder[fires]))


def deposit(view: View, tx: IntArray, config: HeuristicConfig) -> Merges:
    """Many addresses swept to a single one: the deposit addresses of one service."""
    rows, position = view.output_rows(tx)
    address = view.out_address[rows]
    target = ~any_of(address < 0, position, len(tx)) & (distinct(address, position, len(tx)) == 1)
    tx = tx[target]
    rows, position = view.input_rows(tx)
    address = view.in_address[rows]
    rows, position, address = rows[address >= 0], position[address >= 0], address[address >= 0]
    fires = distinct(address, position, len(tx)) >= config.deposit_min_inputs
    return stars(tx, position[fires[position]], address[fires[position]])


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


RULES: dict[str, Callable[[View, IntArray, HeuristicConfig], Merges]] = {
    "common_input": common_input,
    "change": change,
    "round_value": round_value,
    "forced_merge": forced_merge,
    "deposit": deposit,
}
"""The rules by name, in the order of the pipeline's description. To add one, write its function and name it here."""
