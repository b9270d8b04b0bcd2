"""The five merging rules, each a function from candidate transactions to pairs of addresses, and their thresholds.

A rule sees all inputs and outputs of a transaction. Where it compares addresses, an unknown one (id -1: a previous
output that the source does not tell, or an output nobody can spend) makes it stay silent; `common_input` links those
that are known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field

from btcnb.configuration import Flag, Real, Whole, configuration
from btcnb.data.coinjoin import PROTOCOLS
from btcnb.data.intervals import FIRST, SATOSHI_PER_BITCOIN
from btcnb.data.transactions import UNKNOWN, IntArray, Transactions, rows_of

BoolArray = npt.NDArray[np.bool_]


@configuration
class HeuristicConfig:
    """Thresholds of the rules; defaults are those of the pipeline's example configuration."""

    price_usd: Annotated[Real, Field(gt=0)] = FIRST.price_usd
    """USD per bitcoin near the start of the interval (default: the paper's first)."""
    round_usd: Annotated[Real, Field(gt=0)] = 1.0
    """x of the round-value rule: a round amount ends with floor(log10(x USD in satoshi)) zeros."""
    round_slack: Annotated[Whole, Field(ge=0)] = 1
    """j of the round-value rule: the change must not even end with j zeros fewer."""
    deposit_min_inputs: Annotated[Whole, Field(ge=1)] = 25
    """Distinct input addresses from which on a sweep to one address counts as a service's deposits."""
    exclude_coinjoins: Flag = True
    """Whether detected CoinJoins are left out by every rule."""
    coinjoin_rules: Literal["published", "improved"] = "published"
    """Which detectors say what a CoinJoin is: `published` (the paper's pipeline) or `improved`."""
    excluded_protocols: tuple[Literal[PROTOCOLS], ...] = PROTOCOLS  # type: ignore[valid-type]
    """Which detected protocols are left out. A Whirlpool Tx0 has one owner: drop it here to let the rules see it."""

    @property
    def round_zeros(self) -> int:
        """i = floor(log10(x / price of one satoshi)): the trailing zeros, in satoshi, that make an amount round."""
        satoshi = self.round_usd * SATOSHI_PER_BITCOIN / self.price_usd
        return math.floor(math.log10(min(max(satoshi, 1.0), 1e18)))  # no amount has more zeros


class Links(NamedTuple):
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
    def of(cls, txs: Transactions) -> View:
        block = txs.transactions["block_number"].to_numpy()
        address = txs.outputs["address"].to_numpy()
        known = address >= 0
        last = np.full(txs.num_addresses + 1, -1, dtype=np.int64)
        # rows are in chain order: the last write is the latest block
        last[address[known]] = block[txs.outputs["tx"].to_numpy()[known]]
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


def common_input(view: View, tx: IntArray, config: HeuristicConfig) -> Links:
    """All input addresses have one owner."""
    rows, position = rows_of(view.in_start, tx)
    address = view.in_address[rows]
    known = address >= 0
    return _stars(tx, position[known], address[known])


def change(view: View, tx: IntArray, config: HeuristicConfig) -> Links:
    """One input, two outputs of which exactly one is reused: the other is the sender's change (fresh, used once)."""
    tx, sender, first, second, _, _ = _simple_payments(view, tx)
    first_reused, second_reused = view.reused(first, tx), view.reused(second, tx)
    fires = ~view.reused(sender, tx) & (first_reused != second_reused)
    return Links(tx[fires], sender[fires], np.where(first_reused, second, first)[fires])


def round_value(view: View, tx: IntArray, config: HeuristicConfig) -> Links:
    """One input, two outputs of which one is a round amount: the other, not nearly round and not reused, is change."""
    zeros = config.round_zeros
    if zeros <= config.round_slack:  # every amount ends with "at least 0 zeros": nothing can be told apart
        return Links(*(np.empty(0, dtype=np.int64),) * 3)
    tx, sender, first, second, first_value, second_value = _simple_payments(view, tx)
    round_at, near_at = 10**zeros, 10 ** (zeros - config.round_slack)
    first_is_change = (second_value % round_at == 0) & (first_value % near_at != 0) & ~view.reused(first, tx)
    second_is_change = (first_value % round_at == 0) & (second_value % near_at != 0) & ~view.reused(second, tx)
    fires = first_is_change | second_is_change  # never both: an amount that is not nearly round is not round
    return Links(tx[fires], sender[fires], np.where(first_is_change, first, second)[fires])


def forced_merge(view: View, tx: IntArray, config: HeuristicConfig) -> Links:
    """Every input was needed to pay the larger of two outputs: inputs and change (the smaller) have one owner."""
    tx = tx[(np.diff(view.in_start)[tx] >= 2) & (np.diff(view.out_start)[tx] == 2)]
    start = view.out_start[tx]
    larger = np.where(view.out_value[start] >= view.out_value[start + 1], start, start + 1)
    smaller = 2 * start + 1 - larger
    payment, remainder = view.out_value[larger], view.out_address[smaller]
    fires = (payment > view.out_value[smaller]) & _two_addresses(view, start) & ~view.reused(remainder, tx)
    tx, payment, remainder = tx[fires], payment[fires], remainder[fires]

    rows, position = rows_of(view.in_start, tx)
    address, value = view.in_address[rows], view.in_value[rows]
    bad = (address < 0) | (value < 0) | view.reused(address, tx[position])
    number = np.bincount(position, minlength=len(tx))
    fires = ~_any(bad, position, len(tx)) & (_distinct(position, address, len(tx)) == number)
    total, least = np.zeros(len(tx), dtype=np.int64), np.full(len(tx), np.iinfo(np.int64).max)
    np.add.at(total, position, value)
    np.minimum.at(least, position, value)
    fires &= total - least < payment

    keep = fires[position]
    position, address = position[keep], address[keep]
    return _stars(tx, np.append(position, np.flatnonzero(fires)), np.append(address, remainder[fires]))


def deposit(view: View, tx: IntArray, config: HeuristicConfig) -> Links:
    """Many addresses swept to a single one: the deposit addresses of one service."""
    rows, position = rows_of(view.out_start, tx)
    address = view.out_address[rows]
    tx = tx[~_any(address < 0, position, len(tx)) & (_distinct(position, address, len(tx)) == 1)]
    rows, position = rows_of(view.in_start, tx)
    address = view.in_address[rows]
    position, address = position[address >= 0], address[address >= 0]
    fires = (_distinct(position, address, len(tx)) >= config.deposit_min_inputs)[position]
    return _stars(tx, position[fires], address[fires])


RULES: dict[str, Callable[[View, IntArray, HeuristicConfig], Links]] = {
    "common_input": common_input,
    "change": change,
    "round_value": round_value,
    "forced_merge": forced_merge,
    "deposit": deposit,
}
"""The rules by name, in the order of the pipeline's description. To add one, write its function and name it here."""


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


def _stars(tx: IntArray, position: IntArray, address: IntArray) -> Links:
    """Pairs (lowest address, each other address) per transaction; position[i] is the place in `tx` of address[i]."""
    position, address = _pairs(position, address)
    lowest = np.searchsorted(position, position)
    other = lowest < np.arange(len(position))
    return Links(tx[position[other]], address[lowest[other]], address[other])


def _pairs(position: IntArray, address: IntArray) -> tuple[IntArray, IntArray]:
    """The distinct pairs of place and address, sorted."""
    order = np.lexsort((address, position))
    position, address = position[order], address[order]
    new = np.ones(len(address), dtype=bool)
    new[1:] = (address[1:] != address[:-1]) | (position[1:] != position[:-1])
    return position[new], address[new]


def _distinct(position: IntArray, address: IntArray, number: int) -> IntArray:
    """Distinct addresses at each of `number` places."""
    return np.bincount(_pairs(position, address)[0], minlength=number)


def _any(flag: BoolArray, position: IntArray, number: int) -> BoolArray:
    """Per place: whether the flag is set in one of its rows."""
    return np.bincount(position[flag], minlength=number) > 0
