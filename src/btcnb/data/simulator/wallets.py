"""Habits of wallets: what their program does, with version, lock time, RBF and script type as real blocks show them.

These marks are dealt in proportion to how much a wallet transacts, the busiest first: each wallet gets a mark with a
probability proportional to what is still missing of it. If marks were drawn independently, a few large services would
make two economies differ by more than two years of the real chain do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from btcnb.data.simulator.parameters import (
    ANY,
    CHANGE_TO_MAIN,
    MECHANISM_NUMBER,
    P2PKH,
    P2SH_P2WPKH,
    P2WPKH,
    PROGRAM_NUMBER,
    PROGRAMS,
    Era,
)

SEQUENCE_FINAL, SEQUENCE_LOCKTIME, SEQUENCE_RBF = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD


class Header(NamedTuple):
    """What a transaction says beside its coins and outputs."""

    version: int = 1
    lock_time: int = 0
    sequence: int = SEQUENCE_FINAL
    change: int = -1  # index of the change output, -1 for none
    protocol: int = 0  # position in `coinjoin.PROTOCOLS`, counted from 1; 0 for no CoinJoin
    mechanism: int = 0  # position in `MECHANISM_NAMES`


TRANSACTION = np.dtype([(name, np.int64) for name in ("block", "size", "virtual_size", "fee", *Header._fields)])
"""One row per transaction."""

PLAIN = Header()


Array = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
Habits = npt.NDArray[np.void]

OF_PROGRAM = ("version", "locktime", "rbf", "order", "script", "change", "fixed_fee", "selection", "confirmations")
HABITS = np.dtype([(name, np.int64) for name in (*OF_PROGRAM, "least_inputs", "payee_pays_fee", "change_script")])
"""Habits of a program or of a wallet, read by compiled code. The last three: coins spent at least; whether the payee
bears the fee; script type of change, -1 for that of the wallet."""
MARKS = ["version", "locktime", "rbf"]
SEGWIT = np.array([False, False, True, True, True])
"""By script: whether spending it leaves a witness."""
OTHER_SCRIPT = np.array([P2SH_P2WPKH, P2PKH, P2WPKH, P2SH_P2WPKH, P2WPKH])
"""By script: the script of change in wallets that hold two types."""


@dataclass
class Registry:
    """Who exists: entities with a kind and a name, and the wallets each of them runs."""

    kinds: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    wallet_entity: list[int] = field(default_factory=list)
    wallet_program: list[int] = field(default_factory=list)
    wallet_weight: list[float] = field(default_factory=list)
    wallet_keeper: list[int] = field(default_factory=list)
    wallet_mechanism: list[int] = field(default_factory=list)

    def entity(self, kind: str, name: str) -> int:
        self.kinds.append(kind)
        self.names.append(name)
        return len(self.kinds) - 1

    def wallet(self, entity: int, program: str, *, weight: float = 0.0, keeper: int = -1, mechanism: str = "") -> int:
        """A new wallet.

        weight:    how much it transacts among wallets of its class, for dealing out marks; 0: hardly
        keeper:    the wallet that holds and spends its coins, -1 for itself
        mechanism: what its ordinary transactions are known for
        """
        number = len(self.wallet_entity)
        self.wallet_entity.append(entity)
        self.wallet_program.append(PROGRAM_NUMBER[program])
        self.wallet_weight.append(weight)
        self.wallet_keeper.append(number if keeper < 0 else keeper)
        self.wallet_mechanism.append(MECHANISM_NUMBER[mechanism])
        return number

    def newcomer(self, kind: str, name: str, program: str, **options: Any) -> int:
        """A new entity with one wallet, which is returned."""
        return self.wallet(self.entity(kind, name), program, **options)


def of_program(name: str, programs: Array) -> npt.NDArray[Any]:
    """A field of `Program` for each wallet, shape (wallets,)."""
    return np.array([getattr(program, name) for program in PROGRAMS])[programs]


def program_habits() -> Habits:
    """The habits of all programs, shape (programs,)."""
    rows = [(*(getattr(program, name) for name in OF_PROGRAM), 1, 0, -1) for program in PROGRAMS]
    return np.array(rows, dtype=HABITS)


def draw_user_programs(rng: np.random.Generator, number: int) -> Array:
    """A program for each of `number` ordinary users, shape (number,)."""
    shares = np.array([program.share for program in PROGRAMS])
    return rng.choice(len(PROGRAMS), size=number, p=shares / shares.sum()).astype(np.int64)


def draw_reuse(rng: np.random.Generator, programs: Array) -> Array:
    """Per wallet: how often (per mille) it hands out its last receiving address again, shape (wallets,)."""
    low, high = of_program("reuse", programs).T
    return (1000 * (low + (high - low) * rng.random(len(programs)))).astype(np.int64)


def wallet_habits(rng: np.random.Generator, era: Era, programs: Array, weights: FloatArray) -> Habits:
    """Habits of each wallet, shape (wallets,): its program's, with marks of its own.

    weights: how much each wallet transacts, about
    """
    habits = program_habits()[programs]
    own = ~of_program("marked", programs)
    weights = np.maximum(weights, 1e-6 * weights.max())
    habits[own] = with_marks(rng, era, habits[own], weights[own], habits[~own], weights[~own])
    habits["script"][of_program("for_customers", programs)] = ANY
    return habits


def with_mechanisms(habits: Habits, mechanisms: Array) -> Habits:
    """The habits with what wallets known for a mechanism do; the others unchanged."""
    habits = habits.copy()
    habits["change"][mechanisms == MECHANISM_NUMBER["fixed-change"]] = CHANGE_TO_MAIN
    habits["payee_pays_fee"][mechanisms == MECHANISM_NUMBER["fee-from-payee"]] = 1
    habits["least_inputs"][mechanisms == MECHANISM_NUMBER["overspending"]] = 2
    other = mechanisms == MECHANISM_NUMBER["other-change-type"]
    habits["change_script"][other] = OTHER_SCRIPT[habits["script"][other]]
    return habits


def with_marks(
    rng: np.random.Generator,
    era: Era,
    habits: Habits,
    weights: FloatArray,
    others: Habits | None = None,
    other_weights: FloatArray | None = None,
) -> Habits:
    """The habits with marks dealt by weight, so that the year's shares come out together with the marks of `others`."""
    if others is None or other_weights is None:
        others, other_weights = habits[:0], weights[:0]
    kinds, shares = era.marks()
    table = np.array(kinds, dtype=np.int64)  # (16, 4): version, lock time, RBF, SegWit
    fixed = np.column_stack([*(others[mark] for mark in MARKS), SEGWIT[others["script"]]])
    held = np.array([other_weights[(fixed == row).all(axis=1)].sum() for row in table])
    chosen = table[deal(rng, weights, shares, held)]
    habits = habits.copy()
    for column, mark in enumerate(MARKS):
        habits[mark] = chosen[:, column]
    for segwit in (0, 1):
        place = np.flatnonzero(chosen[:, 3] == segwit)
        scripts, split = era.scripts(bool(segwit))
        held = np.array([other_weights[others["script"] == script].sum() for script in scripts])
        habits["script"][place] = np.array(scripts)[deal(rng, weights[place], split, held)]
    return habits


def deal(rng: np.random.Generator, weights: FloatArray, shares: FloatArray, held: FloatArray | None = None) -> Array:
    """A category for each weight, so that the weighted shares come out; shape of `weights`.

    held: weight that each category has already, shape of `shares`
    """
    held = np.zeros(len(shares)) if held is None else held
    missing = (shares * (weights.sum() + held.sum()) - held).tolist()
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
