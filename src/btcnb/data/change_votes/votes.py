"""Twenty-six heuristics on every transaction with two outputs: which of the two does each take for change?

Nine universal ones look at the transaction alone, seventeen compare its fingerprint with those of the two transactions
that spend its outputs. A heuristic keeps the outputs that it cannot rule out; it votes if exactly one is left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.data.change_votes.flags import HIDDEN, UNTOLD, transaction_flags
from btcnb.data.change_votes.two_outputs import BoolArray, TwoOutputs, two_outputs, unique_index
from btcnb.data.transactions import UNKNOWN, IntArray, Transactions
from btcnb.errors import ParameterError
from btcnb.gates import choice, flag, instance

VoteArray = npt.NDArray[np.int8]

NO_VOTE = np.int8(-1)
POWERS = (2, 3, 4, 5, 6, 7)
"""Exponents d of the round-amount heuristics: an amount that is a multiple of 10^d satoshi is a payment."""
TYPES = ("multisig", "p2pkh", "p2sh", "p2wpkh", "p2wsh", "other")

FINGERPRINTS: dict[str, tuple[str, ...]] = {
    "fp_inout_count": ("inputs", "outputs"),
    "fp_output_count": ("outputs",),
    "fp_version": ("version",),
    "fp_locktime": ("locktime_height", "locktime_time"),
    "fp_rbf": ("rbf",),
    "fp_segwit": ("segwit",),
    "fp_possible_segwit": ("segwit_compatible",),
    "fp_ordered_inouts": ("sorted",),
    "fp_zeroconf": ("zeroconf",),
    "fp_absolute_fee": ("fee",),
    "fp_relative_fee": ("fee_per_byte",),
    "fp_multisig": ("multisig",),
    "fp_p2pkh": ("p2pkh",),
    "fp_p2sh": ("p2sh",),
    "fp_p2wpkh": ("p2wpkh",),
    "fp_p2wsh": ("p2wsh",),
    "fp_address_type": TYPES,
}
"""Flags (see `transaction_flags`) that must all be equal in a transaction and in the one that spends its output."""
UNIVERSAL = ("optimal_change", "optimal_change_with_fee", "address_type", *(f"power_of_ten_{d}" for d in POWERS))
HEURISTICS = (*UNIVERSAL, *FINGERPRINTS)
"""The 26 names, in the order of the columns."""

P2SH_HEIGHT, BIP69_HEIGHT, RBF_HEIGHT, VERSION2_HEIGHT, SEGWIT_HEIGHT = 173_805, 363_000, 398_000, 419_328, 481_824
SINCE: dict[str, int] = {
    "p2sh": P2SH_HEIGHT,
    "sorted": BIP69_HEIGHT,
    "rbf": RBF_HEIGHT,
    "version": VERSION2_HEIGHT,
    "segwit": SEGWIT_HEIGHT,
    "segwit_compatible": SEGWIT_HEIGHT,
    "p2wpkh": SEGWIT_HEIGHT,
    "p2wsh": SEGWIT_HEIGHT,
}
"""Block from which on a flag means anything; 0 for the others. `smart` comparisons leave out what did not exist when
the transaction was made, so that a coin that lay still for years and is moved by newer software makes no vote. P2SH,
version 2 (BIP 68) and SegWit have heights; BIP 69 (2015) and replace-by-fee (early 2016) are habits, dated roughly."""


@dataclass(frozen=True)
class ChangeVotes:
    """What each heuristic says about each eligible transaction (see `two_outputs`), in chain order."""

    tx: IntArray  # (E,) transaction ids
    votes: VoteArray  # (E, 26) index 0 or 1 of the output voted for as change, -1 for no vote
    both_spent: BoolArray  # (E,) both outputs are spent in the data; fingerprints vote only there

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return HEURISTICS

    def __len__(self) -> int:
        return len(self.tx)

    def column(self, name: str) -> VoteArray:
        """The votes (E,) of one heuristic."""
        return self.votes[:, HEURISTICS.index(choice("name", name, HEURISTICS))]

    def signed(self) -> VoteArray:
        """(2E, 26), a row per output (row 2k is output 0 of the k-th transaction): +1 for it, -1 for the other, 0."""
        index = np.array([0, 1], dtype=np.int8)[None, :, None]
        vote = self.votes[:, None, :]
        signs = np.where(vote == NO_VOTE, 0, np.where(vote == index, 1, -1)).astype(np.int8)
        return signs.reshape(2 * len(self), len(HEURISTICS))

    def of(self, tx: IntArray) -> ChangeVotes:
        """The rows of the given transactions, in their order; each must be eligible."""
        place = np.searchsorted(self.tx, tx)
        if len(tx) and (not len(self) or (self.tx[np.minimum(place, len(self) - 1)] != tx).any()):
            raise ParameterError("tx names transactions that have no two outputs to vote on; see two_outputs.")
        return ChangeVotes(self.tx[place], self.votes[place], self.both_spent[place])

    def table(self) -> pd.DataFrame:
        """One column per heuristic, one row per transaction, indexed by its id."""
        return pd.DataFrame(self.votes, columns=list(HEURISTICS), index=pd.Index(self.tx, name="tx"))


def change_votes(txs: Transactions, smart: bool = True) -> ChangeVotes:
    """The votes of all 26 heuristics on every eligible transaction.

    smart: compare a flag only if it existed when the transaction was made (`SINCE`)
    """
    instance("txs", txs, Transactions)
    flag("smart", smart)
    two = two_outputs(txs)
    votes = np.full((len(two.tx), len(HEURISTICS)), NO_VOTE, dtype=np.int8)
    votes[:, : len(UNIVERSAL)] = _universal(txs, two)
    spender = txs.spent_by()[two.rows]
    both = (spender != UNKNOWN).all(axis=1)
    votes[both, len(UNIVERSAL) :] = _fingerprints(txs, two.tx[both], spender[both], smart)
    return ChangeVotes(two.tx, votes, both)


def _universal(txs: Transactions, two: TwoOutputs) -> VoteArray:
    value = txs.outputs["value"].to_numpy()[two.rows]
    kind = txs.outputs["script_type"].to_numpy()[two.rows]
    least, common = _least_input(txs)[two.tx][:, None], _common_type(txs)[two.tx][:, None]
    fee = txs.transactions["fee"].to_numpy()[two.tx][:, None]
    candidates = [
        (least >= 0) & (value < least),
        (least >= 0) & (fee >= 0) & (value + np.maximum(fee, 0) < least),
        kind == common,
        *(value % 10**power != 0 for power in POWERS),
    ]
    return np.stack([unique_index(each) for each in candidates], axis=1)


def _fingerprints(txs: Transactions, tx: IntArray, spender: IntArray, smart: bool) -> VoteArray:
    """Votes (k, 17) for transactions tx (k,) whose outputs are spent by spender (k, 2)."""
    flags, height = transaction_flags(txs), txs.transactions["block_number"].to_numpy()[tx]
    votes = np.empty((len(tx), len(FINGERPRINTS)), dtype=np.int8)
    equal, told = {}, {}
    for name, value in flags.items():
        own, theirs = value[tx], value[spender]
        told[name] = (own != UNTOLD) & (theirs != UNTOLD).all(axis=1)
        equal[name] = own[:, None] == theirs
        if smart:  # where both outputs agree, nobody is ruled out
            equal[name] |= (height < SINCE.get(name, 0))[:, None]
    for column, names in enumerate(FINGERPRINTS.values()):
        agrees = np.logical_and.reduce([equal[name] for name in names])
        known = np.logical_and.reduce([told[name] for name in names])
        votes[:, column] = np.where(known, unique_index(agrees), NO_VOTE)
    return votes


def _least_input(txs: Transactions) -> IntArray:
    """Per transaction the smallest input value; -1 where one is unknown (it is then the smallest), or there is none."""
    least = np.full(len(txs), np.iinfo(np.int64).max)
    np.minimum.at(least, txs.inputs["tx"].to_numpy(), txs.inputs["value"].to_numpy())
    return np.where(np.diff(txs.input_offsets()) > 0, least, UNKNOWN)


def _common_type(txs: Transactions) -> IntArray:
    """Per transaction the script type that all its inputs have, -1 where they differ or one is not told."""
    kind, start = txs.inputs["script_type"].to_numpy().astype(np.int64), txs.input_offsets()
    some = np.flatnonzero(np.diff(start) > 0)
    first = np.full(len(txs), UNKNOWN, dtype=np.int64)
    first[some] = kind[start[some]]
    owner = txs.inputs["tx"].to_numpy()
    first[owner[(kind != first[owner]) | (kind == HIDDEN)]] = UNKNOWN
    return first
