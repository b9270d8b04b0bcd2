"""Twenty-six heuristics on every transaction with two outputs: which of the two does each take for change?

Nine universal ones look at the transaction alone, seventeen compare its fingerprint with those of the two transactions
that spend its outputs. A heuristic keeps the outputs that it cannot rule out; it votes if exactly one is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from btcnb.data.chain_measures import FINAL_SEQUENCES, any_input, has_witness, paid_back
from btcnb.data.heuristics import heuristic_clusters
from btcnb.data.transactions import SCRIPT_TYPES, UNKNOWN, IntArray, Transactions
from btcnb.errors import ParameterError

BoolArray = npt.NDArray[np.bool_]
VoteArray = npt.NDArray[np.int8]
FloatArray = npt.NDArray[np.float32]

NULLDATA, P2PKH, P2SH, P2WPKH, P2WSH, MULTISIG, UNTOLD_TYPE = (
    SCRIPT_TYPES.index(name)
    for name in (
        "nulldata",
        "pubkeyhash",
        "scripthash",
        "witness_v0_keyhash",
        "witness_v0_scripthash",
        "multisig",
        "unknown",
    )
)
NO_VOTE = np.int8(-1)


# --- transactions that change heuristics speak about ---


class TwoOutputs(NamedTuple):
    """Eligible transactions in chain order. Output 0 of the k-th is row first[k] of `outputs`, output 1 the next."""

    tx: IntArray  # (E,)
    first: IntArray  # (E,)

    @property
    def rows(self) -> IntArray:
        """Rows of both outputs, (E, 2)."""
        return np.stack([self.first, self.first + 1], axis=1)


def two_outputs(txs: Transactions) -> TwoOutputs:
    """No coinbase, exactly two outputs, both spendable, and no input address among them.

    Where an input address is paid, its output is change beyond doubt, and heuristics have nothing to add.
    """
    start, kind = txs.output_offsets(), txs.outputs["script_type"].to_numpy()
    tx = np.flatnonzero((np.diff(start) == 2) & ~txs.transactions["is_coinbase"].to_numpy())
    first = start[tx]
    keep = (kind[first] != NULLDATA) & (kind[first + 1] != NULLDATA) & ~paid_back(txs)[tx]
    return TwoOutputs(tx[keep], first[keep])


def multi_input_clusters(txs: Transactions) -> IntArray:
    """The base clustering: input addresses of one transaction belong together, unless it is a detected CoinJoin."""
    return heuristic_clusters(txs, rules=("common_input",))


def input_clusters(txs: Transactions, tx: IntArray, clusters: IntArray) -> IntArray:
    """Per transaction the cluster of its first input with a known address, -1 where none is known."""
    address, sender = txs.inputs["address"].to_numpy(), txs.inputs["tx"].to_numpy()
    known = np.flatnonzero(address >= 0)[::-1]
    found = np.full(len(txs), -1, dtype=np.int64)
    found[sender[known]] = clusters[address[known]]  # from the last to the first: the first is written last
    return found[tx]


def first_seen(txs: Transactions) -> IntArray:
    """Per address the first transaction that shows it, as sender or receiver. What came before the data is unknown."""
    seen = np.full(txs.num_addresses + 1, len(txs), dtype=np.int64)  # the last slot catches address -1
    for table in (txs.inputs, txs.outputs):
        np.minimum.at(seen, table["address"].to_numpy(), table["tx"].to_numpy())
    return seen[:-1]


def only_candidate(candidate: BoolArray) -> VoteArray:
    """From (E, 2) outputs that cannot be ruled out to votes (E,): the index of the only one left, else -1."""
    return np.where(candidate[:, 0] != candidate[:, 1], candidate[:, 1], NO_VOTE).astype(np.int8)


# --- fingerprints ---
#
# What a transaction shows of the software that wrote it, as one small number per flag. The names are those of Möser and
# Narayanan's public notebooks; how some flags are computed there is not public, and the data shows only what an input's
# script type and the transaction's sizes tell. Our readings:
#
# - A transaction is SegWit when an input has a witness type, or when its bytes weigh less than they count.
# - `segwit_compatible` (meaning not found): it could carry a witness, since some input is a script hash or SegWit.
# - `multisig`: an input is bare multisig, or P2WSH, or P2SH in a transaction without any witness. A script hash does
#   not say what it hides; in these two guises it is multisig nearly always.
# - Presence of a type is looked for among the inputs, by what is written on the chain: a SegWit key wrapped in a script
#   hash counts as P2SH.
# - `sorted`: outputs by amount, inputs by spent transaction and position (BIP 69; equal amounts are not told apart).
# - `zeroconf`: it spends an output made in its own block.

UNTOLD = np.int64(-1)
"""The value of a flag that the data does not tell; it takes part in no comparison."""
LOCKTIME_IS_TIME = 500_000_000
"""Lock times below are block heights, from here on unix seconds (consensus rule)."""
MANY = 3
"""Numbers of inputs and outputs are compared as 1, 2, or at least so many."""
PRESENCE = {"p2pkh": P2PKH, "p2sh": P2SH, "p2wpkh": P2WPKH, "p2wsh": P2WSH}


def transaction_flags(txs: Transactions) -> dict[str, IntArray]:
    """Every flag by name, int64 of shape (T,); `UNTOLD` where the data does not tell it."""
    table = txs.transactions
    lock, fee, size = (table[name].to_numpy() for name in ("lock_time", "fee", "virtual_size"))
    kind = txs.inputs["script_type"].to_numpy()
    present = {name: any_input(txs, kind == position) for name, position in PRESENCE.items()}
    segwit, bare = has_witness(txs), any_input(txs, kind == MULTISIG)
    of_types = {
        **present,
        "segwit": segwit,
        "segwit_compatible": segwit | present["p2sh"],
        "multisig": bare | present["p2wsh"] | (present["p2sh"] & ~segwit),
        "other": any_input(txs, ~np.isin(kind, [*PRESENCE.values(), MULTISIG])),
    }
    untold = any_input(txs, kind == UNTOLD_TYPE)
    flags: dict[str, npt.NDArray[Any]] = {
        "inputs": np.minimum(np.diff(txs.input_offsets()), MANY),
        "outputs": np.minimum(np.diff(txs.output_offsets()), MANY),
        "version": table["version"].to_numpy() > 1,
        "locktime_height": (lock > 0) & (lock < LOCKTIME_IS_TIME),
        "locktime_time": lock >= LOCKTIME_IS_TIME,
        "rbf": any_input(txs, ~np.isin(txs.inputs["sequence"].to_numpy(), FINAL_SEQUENCES)),
        "sorted": _sorted(txs),
        "zeroconf": _spends_its_own_block(txs),
        "fee": np.where(fee >= 0, fee, UNTOLD),
        "fee_per_byte": np.where((fee >= 0) & (size > 0), fee // np.maximum(size, 1), UNTOLD),
        **{name: np.where(untold, UNTOLD, flag) for name, flag in of_types.items()},
    }
    return {name: flag.astype(np.int64) for name, flag in flags.items()}


def _spends_its_own_block(txs: Transactions) -> BoolArray:
    block, spent = txs.transactions["block_number"].to_numpy(), txs.inputs["spent_output"].to_numpy()
    made = txs.outputs["tx"].to_numpy()
    inside = np.flatnonzero(spent >= 0)
    same = np.zeros(len(spent), dtype=bool)
    same[inside] = block[made[spent[inside]]] == block[txs.inputs["tx"].to_numpy()[inside]]
    return any_input(txs, same)


def _sorted(txs: Transactions) -> BoolArray:
    """Outputs never fall in amount; inputs never fall by (hash of the spent transaction, position there)."""
    tx, value = txs.outputs["tx"].to_numpy(), txs.outputs["value"].to_numpy()
    ordered = np.ones(len(txs), dtype=bool)
    ordered[tx[1:][(np.diff(tx) == 0) & (np.diff(value) < 0)]] = False
    tx, position = txs.inputs["tx"].to_numpy(), txs.inputs["spent_output_index"].to_numpy()
    later = np.flatnonzero(np.diff(tx) == 0) + 1  # inputs that follow another of the same transaction
    before, after = (_spent_hashes(txs, rows) for rows in (later - 1, later))
    falls = np.asarray(pc.greater(before, after)) | (
        np.asarray(pc.equal(before, after)) & (position[later - 1] > position[later])
    )
    ordered[tx[later[falls.astype(bool)]]] = False
    return ordered


def _spent_hashes(txs: Transactions, rows: IntArray) -> Any:
    """Hash of the transaction that each of the given inputs spends from, as an Arrow array of texts."""
    spent = txs.inputs["spent_output"].to_numpy()[rows]
    inside = spent >= 0
    parent = txs.outputs["tx"].to_numpy()[np.maximum(spent, 0)] if len(txs.outputs) else np.zeros(len(rows), np.int64)
    made = pa.array(txs.transactions["hash"], type=pa.large_string()).take(pa.array(parent))
    told = pa.array(txs.inputs["spent_transaction_hash"].iloc[rows], type=pa.large_string(), from_pandas=True)
    return pc.fill_null(pc.if_else(pa.array(inside), made, told), "")


# --- votes ---

POWERS = (2, 3, 4, 5, 6, 7)
"""Exponents d of the round-amount heuristics: an amount that is a multiple of 10^d satoshi is a payment."""
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
    "fp_address_type": ("multisig", "p2pkh", "p2sh", "p2wpkh", "p2wsh", "other"),
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
    **dict.fromkeys(("segwit", "segwit_compatible", "p2wpkh", "p2wsh"), SEGWIT_HEIGHT),
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

    def __len__(self) -> int:
        return len(self.tx)

    def signed(self) -> VoteArray:
        """(2E, 26), a row per output (row 2k is output 0 of the k-th transaction): +1 for it, -1 for the other, 0."""
        index = np.array([0, 1], dtype=np.int8)[None, :, None]
        vote = self.votes[:, None, :]
        signs = np.where(vote == NO_VOTE, 0, np.where(vote == index, 1, -1)).astype(np.int8)
        return signs.reshape(2 * len(self), len(HEURISTICS))

    def of(self, tx: IntArray) -> ChangeVotes:
        """The rows of the given transactions, in their order; each must be eligible."""
        if not np.isin(tx, self.tx).all():
            raise ParameterError("tx names transactions that have no two outputs to vote on; see two_outputs.")
        place = np.searchsorted(self.tx, tx)
        return ChangeVotes(self.tx[place], self.votes[place], self.both_spent[place])


def change_votes(txs: Transactions, smart: bool = True) -> ChangeVotes:
    """The votes of all 26 heuristics on every eligible transaction.

    smart: compare a flag only if it existed when the transaction was made (`SINCE`)
    """
    two = two_outputs(txs)
    spender = txs.spent_by()[two.rows]
    both = (spender != UNKNOWN).all(axis=1)
    votes = np.full((len(two.tx), len(HEURISTICS)), NO_VOTE, dtype=np.int8)
    votes[:, : len(UNIVERSAL)] = _universal_votes(txs, two)
    votes[both, len(UNIVERSAL) :] = _fingerprint_votes(txs, two.tx[both], spender[both], smart)
    return ChangeVotes(two.tx, votes, both)


def _universal_votes(txs: Transactions, two: TwoOutputs) -> VoteArray:
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
    return np.stack([only_candidate(each) for each in candidates], axis=1)


def _fingerprint_votes(txs: Transactions, tx: IntArray, spender: IntArray, smart: bool) -> VoteArray:
    """Votes (k, 17) for transactions tx (k,) whose outputs are spent by spender (k, 2)."""
    height = txs.transactions["block_number"].to_numpy()[tx]
    equal, told = {}, {}
    for name, value in transaction_flags(txs).items():
        own, theirs = value[tx], value[spender]
        told[name] = (own != UNTOLD) & (theirs != UNTOLD).all(axis=1)
        equal[name] = own[:, None] == theirs
        if smart:  # where both outputs agree, nobody is ruled out
            equal[name] |= (height < SINCE.get(name, 0))[:, None]
    votes = []
    for names in FINGERPRINTS.values():
        agrees = np.logical_and.reduce([equal[name] for name in names])
        known = np.logical_and.reduce([told[name] for name in names])
        votes.append(np.where(known, only_candidate(agrees), NO_VOTE))
    return np.stack(votes, axis=1)


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
    first[owner[(kind != first[owner]) | (kind == UNTOLD_TYPE)]] = UNKNOWN
    return first


# --- outputs as rows of numbers ---

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
"""The nine features beside the votes, as Möser and Narayanan's notebooks keep them: two of the output, seven of the
transaction."""
COLUMNS = (*HEURISTICS, *EXTRA)
"""The 35 inputs of the full model."""
UNIVERSAL_COLUMNS = (*UNIVERSAL, *EXTRA)
"""The 18 inputs of the model that needs no spending transaction."""
EPOCH_BLOCKS = 1008


def output_rows(txs: Transactions, votes: ChangeVotes) -> FloatArray:
    """The rows (2E, 35) of the transactions that `votes` (E) speaks about, columns as in `COLUMNS`. No NaN.

    Row 2k is output 0 of the k-th transaction.
    """
    tx, start, table = votes.tx, txs.output_offsets(), txs.transactions
    rows = np.stack([start[tx], start[tx] + 1], axis=1)
    value = txs.outputs["value"].to_numpy()[rows].astype(np.float64)  # (E, 2)
    total = value.sum(axis=1, keepdims=True)
    flags = transaction_flags(txs)
    features = {
        "value_share": np.divide(value, total, out=np.full_like(value, 0.5), where=total > 0),
        "output_index": txs.outputs["index"].to_numpy()[rows],
        "fee_per_byte": flags["fee_per_byte"][tx, None],
        "output_total": total,
        "version": table["version"].to_numpy()[tx, None],
        "segwit": flags["segwit"][tx, None],
        "locktime": table["lock_time"].to_numpy()[tx, None] > 0,
        "inputs": np.diff(txs.input_offsets())[tx, None],
        "epoch": table["block_number"].to_numpy()[tx, None] // EPOCH_BLOCKS,
    }
    extra = np.stack([np.broadcast_to(features[name], value.shape) for name in EXTRA], axis=2, dtype=np.float32)
    return np.concatenate([votes.signed().astype(np.float32), extra.reshape(2 * len(tx), len(EXTRA))], axis=1)


def universal(rows: FloatArray) -> FloatArray:
    """The columns `UNIVERSAL_COLUMNS` of rows (n, 35): (n, 18)."""
    return rows[:, [COLUMNS.index(name) for name in UNIVERSAL_COLUMNS]]


def has_vote(rows: FloatArray, columns: tuple[str, ...] = HEURISTICS) -> BoolArray:
    """Per row of (n, 35): whether one of the named heuristics votes, for the output or for the other."""
    return np.asarray((rows[:, [COLUMNS.index(name) for name in columns]] != 0).any(axis=1))
