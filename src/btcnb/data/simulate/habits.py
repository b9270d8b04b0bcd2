"""Marks of wallets: version, lock time, RBF and script type, dealt out so that each year looks like its real blocks.

Marks are dealt in proportion to how much a wallet transacts, the busiest first: each gets a mark with a probability
proportional to what is still missing of it. Drawn independently, a few large services would make two economies differ
by more than two years of the real chain do.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from btcnb.data.simulate.disorder import NUMBER as MECHANISM
from btcnb.data.simulate.eras import Era
from btcnb.data.simulate.programs import (
    CHANGE,
    CHANGE_SCRIPT,
    CHANGE_TO_MAIN,
    LEAST,
    LOCKTIME,
    PAYEE_PAYS,
    PROGRAMS,
    RBF,
    SCRIPT,
    VERSION,
    program_table,
)
from btcnb.data.simulate.scripts import (
    ANY,
    P2PKH,
    P2SH_MULTISIG,
    P2SH_P2WPKH,
    P2WPKH,
    P2WSH_MULTISIG,
    WITNESS_BYTES,
)

Array = npt.NDArray[np.int64]

OTHER_SCRIPT = np.array([P2SH_P2WPKH, P2PKH, P2WPKH, P2SH_P2WPKH, P2WPKH], dtype=np.int64)
"""Script type of change in wallets that hold two types, by the type they receive at (in the order of `scripts.py`)."""
assert list(range(len(OTHER_SCRIPT))) == [P2PKH, P2SH_MULTISIG, P2SH_P2WPKH, P2WPKH, P2WSH_MULTISIG]
FloatArray = npt.NDArray[np.float64]


def deal(rng: np.random.Generator, weights: FloatArray, shares: FloatArray, taken: FloatArray | None = None) -> Array:
    """A category for each weight, so that the weighted shares come out; shape of `weights`.

    taken: weight that each category has already, shape of `shares`
    """
    taken = np.zeros(len(shares)) if taken is None else taken
    missing = (shares * (weights.sum() + taken.sum()) - taken).tolist()
    dealt = np.zeros(len(weights), dtype=np.int64)
    draws = rng.random(len(weights)).tolist()
    for place in np.argsort(-weights, kind="stable").tolist():
        least = 0.5 * weights[place]  # a large wallet in a small category would overshoot it
        room = [left if left >= least else 0.0 for left in missing]
        if not any(room):
            room = [max(left, 0.0) for left in missing]
        aim = draws[place] * sum(room)
        category = 0
        while aim > room[category] and category < len(room) - 1:
            aim -= room[category]
            category += 1
        missing[category] -= weights[place]
        dealt[place] = category
    return dealt


def wallet_habits(rng: np.random.Generator, era: Era, programs: Array, weights: FloatArray) -> Array:
    """A row of habits per wallet, shape (wallets, columns): its program's, with marks of its own.

    weights: how much each wallet transacts, about
    """
    rows = program_table()[programs]
    own = ~np.array([program.marked for program in PROGRAMS])[programs]
    weights = np.maximum(weights, 1e-6 * weights.max())
    rows[own] = marked(rng, era, rows[own], weights[own], rows[~own], weights[~own])
    return for_customers(rows, programs)


def careless(rows: Array, mechanisms: Array) -> Array:
    """The rows with what wallets known for a mechanism do; the others unchanged."""
    rows = rows.copy()
    rows[mechanisms == MECHANISM["fixed-change"], CHANGE] = CHANGE_TO_MAIN
    rows[mechanisms == MECHANISM["fee-from-payee"], PAYEE_PAYS] = 1
    rows[mechanisms == MECHANISM["overspending"], LEAST] = 2
    other = mechanisms == MECHANISM["other-change-type"]
    rows[other, CHANGE_SCRIPT] = OTHER_SCRIPT[rows[other, SCRIPT]]
    return rows


def marked(
    rng: np.random.Generator,
    era: Era,
    rows: Array,
    weights: FloatArray,
    others: Array | None = None,
    other_weights: FloatArray | None = None,
) -> Array:
    """The rows with marks dealt by weight, so that the shares come out together with `others`, which have theirs."""
    if others is None or other_weights is None:
        others, other_weights = rows[:0], weights[:0]
    kinds, shares = era.marks()
    table = np.array([[mark.version, mark.locktime, mark.rbf, mark.segwit] for mark in kinds], dtype=np.int64)
    segwit = (WITNESS_BYTES[others[:, SCRIPT]] > 0).astype(np.int64)
    fixed = np.column_stack([others[:, [VERSION, LOCKTIME, RBF]], segwit])
    taken = np.array([other_weights[(fixed == row).all(axis=1)].sum() for row in table])
    chosen = table[deal(rng, weights, shares, taken)]
    rows = rows.copy()
    rows[:, [VERSION, LOCKTIME, RBF]] = chosen[:, :3]
    for flag in (0, 1):
        place = np.flatnonzero(chosen[:, 3] == flag)
        scripts, split = era.scripts(bool(flag))
        taken = np.array([other_weights[(others[:, SCRIPT] == script)].sum() for script in scripts])
        rows[place, SCRIPT] = np.array(scripts)[deal(rng, weights[place], split, taken)]
    return rows


def for_customers(rows: Array, programs: Array) -> Array:
    """The rows, with addresses of every type in wallets that hand them out to customers."""
    rows = rows.copy()
    rows[np.array([program.for_customers for program in PROGRAMS])[programs], SCRIPT] = ANY
    return rows
