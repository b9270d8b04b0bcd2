"""The numbers of the simulated economy, read from `world.yml`: wallet programs, mechanisms, eras and rates.

What real blocks of a year show (marks, script types, round amounts) comes from `real_chain.csv`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import yaml

from btcnb.data import chain_measures as chain

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

FILE = Path(__file__).with_name("world.yml")
_WORLD: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))

SCRIPTS = ("p2pkh", "p2sh-multisig", "p2sh-p2wpkh", "p2wpkh", "p2wsh-multisig")
"""Ways to lock a coin, finer than `SCRIPT_TYPES`: whether a script hash hides a multisig script or a wrapped SegWit key
shows only when the coin is spent."""
P2PKH, P2SH_MULTISIG, P2SH_P2WPKH, P2WPKH, P2WSH_MULTISIG = range(5)
ANY = -1
"""Script of a wallet with addresses of every type, as customers wish; each new one is drawn from the year's shares."""

# Bytes by script follow from the serialisation rules (BIP 141): multisig is 2-of-3, signatures are taken at 72 bytes.
INPUT_BYTES = np.array([148, 297, 64, 41, 41], dtype=np.int64)
"""Bytes of an input outside the witness."""
WITNESS_BYTES = np.array([0, 0, 107, 107, 254], dtype=np.int64)
"""Bytes of an input's witness; 0 for scripts without SegWit."""
OUTPUT_BYTES = np.array([34, 32, 32, 31, 43], dtype=np.int64)
"""Bytes of an output."""
NULLDATA_BYTES = 75
"""Bytes of an OP_RETURN output with a 64-byte payload."""
FIXED_BYTES = 10
"""Version, lock time and the two counts."""
SEGWIT_BYTES = 2
"""Marker and flag, counted as witness."""

ORDERS = ("change-last", "random", "bip69")
ORDER_CHANGE_LAST, ORDER_RANDOM, ORDER_BIP69 = range(3)
CHANGES = ("fresh", "to-input", "to-main")
CHANGE_FRESH, CHANGE_TO_INPUT, CHANGE_TO_MAIN = range(3)
SELECTIONS = ("oldest", "newest", "best", "mixed")
SELECT_OLDEST, SELECT_NEWEST, SELECT_BEST, SELECT_MIXED = range(4)


def numbers(section: str) -> SimpleNamespace:
    """The values of one section of `numbers` by name, lists as tuples."""
    entries = _WORLD["numbers"][section]
    return SimpleNamespace(**{name: _fixed(entry["value"]) for name, entry in entries.items() if name != "source"})


def _fixed(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


# --- wallet programs ---


@dataclass(frozen=True)
class Program:
    """One wallet program; `world.yml` explains the fields. The last four are no habits of a transaction."""

    name: str
    version: int
    locktime: bool
    rbf: bool
    order: int
    script: int
    change: int
    fixed_fee: int
    selection: int
    confirmations: int
    share: float
    reuse: tuple[float, float]
    for_customers: bool
    marked: bool


def _program(name: str, **habits: Any) -> Program:
    for habit, names in (("order", ORDERS), ("script", SCRIPTS), ("change", CHANGES), ("selection", SELECTIONS)):
        habits[habit] = names.index(habits[habit])
    return Program(name, **{**habits, "reuse": tuple(habits["reuse"])})


_PROGRAMS = _WORLD["programs"]
PROGRAMS = tuple(_program(name, **{**_PROGRAMS["default"], **row}) for name, row in _PROGRAMS["table"].items())
PROGRAM_NUMBER = {program.name: position for position, program in enumerate(PROGRAMS)}


# --- mechanisms ---


@dataclass(frozen=True)
class Mechanism:
    """One way in which heuristics fail.

    A rate is a share (of wallets, services or labels), or a number of transactions per transaction of a block.
    """

    name: str
    rate: float
    of: str
    """What the rate is a share of."""
    source: str
    """Where the rate comes from."""
    words: str
    """What happens, and which rule it misleads."""
    kind: str = "share"
    """share (at most 1), count or spread."""


def _mechanism(name: str, source: str, **entry: Any) -> Mechanism:
    return Mechanism(name, source=_WORLD["sources"].get(source, source), **entry)


MECHANISMS = tuple(_mechanism(name, **entry) for name, entry in _WORLD["mechanisms"].items())
MECHANISM_NAMES = ("", *(mechanism.name for mechanism in MECHANISMS))
"""Names by the number that a transaction stores; 0 is an ordinary transaction."""
CUSTODY = ("shared-custody", "payment-processor", "hosted-address")
"""Mechanisms of wallets that keep the coins of others."""
MECHANISM_NUMBER = {name: position for position, name in enumerate(MECHANISM_NAMES)}


class Dial:
    """The rates of all mechanisms at one `disorder`: 0 switches them off, 1 is calibrated, 2 doubles them."""

    def __init__(self, disorder: float) -> None:
        self.disorder = disorder
        self.mechanisms = {mechanism.name: mechanism for mechanism in MECHANISMS}

    def __call__(self, name: str) -> float:
        """The rate of a mechanism; a share is at most 1."""
        mechanism = self.mechanisms[name]
        rate = self.disorder * mechanism.rate
        return min(1.0, rate) if mechanism.kind == "share" else rate


# --- eras ---


class Marks(NamedTuple):
    """What a wallet's software leaves on every transaction."""

    version: int
    locktime: bool
    rbf: bool
    segwit: bool


@dataclass(frozen=True)
class Era:
    """One year; `world.yml` explains the fields. Rates are per transaction of a block."""

    year: str
    first_block: int
    native: float
    witness_scripts: float
    multisig: float
    moves: float
    tokens: float
    anchors: float
    batches: float

    def marks(self) -> tuple[list[Marks], FloatArray]:
        """Combinations of marks and their shares among two-output transactions of real blocks."""
        measured = chain.real_chain(self.year)
        kinds = [
            Marks(1 + version, lock, rbf, segwit) for version, lock, rbf, segwit in product((False, True), repeat=4)
        ]
        shares = np.array([measured[chain.fingerprint_name(k.version > 1, k.locktime, k.rbf, k.segwit)] for k in kinds])
        return kinds, shares / shares.sum()

    def scripts(self, segwit: bool) -> tuple[list[int], FloatArray]:
        """Ways to lock a coin, with their shares among wallets with or without SegWit."""
        if segwit:
            native, shared = self.native, self.witness_scripts
            return [P2SH_P2WPKH, P2WPKH, P2WSH_MULTISIG], np.array([1 - native - shared, native, shared])
        return [P2PKH, P2SH_MULTISIG], np.array([1 - self.multisig, self.multisig])

    def customer_scripts(self) -> IntArray:
        """A thousand scripts in proportion to what is spent: customers paid in most of that."""
        measured = chain.real_chain(self.year)
        types = dict(zip(chain.SHOWN_TYPES, (P2PKH, P2SH_P2WPKH, P2WPKH, P2WSH_MULTISIG), strict=True))
        shares = np.array([measured[chain.type_name("inputs", name)] for name in types])
        places = np.searchsorted(np.cumsum(shares) / shares.sum(), (np.arange(1000) + 0.5) / 1000)
        return np.array(list(types.values()), dtype=np.int64)[places]

    def roundness(self) -> FloatArray:
        """Share of payments that end in at least 2, 3, … 7 zeros.

        It exceeds the share that shows on the chain, because change may be round too, and a payment may be too small
        for its zeros.
        """
        measured = chain.real_chain(self.year)
        rounder = numbers("amounts").rounder
        return np.array([rounder * measured[chain.round_name(zeros)] for zeros in chain.ZEROS]) / 100


ERAS = {
    year: Era(year, first_block=row["from"], **{name: row[name] for name in row if name != "from"})
    for year, row in _WORLD["eras"]["table"].items()
}


def era_of(block: int) -> Era:
    """The year that a block belongs to; blocks before 2019 and after 2021 take the nearest."""
    return [era for era in ERAS.values() if block >= era.first_block][-1]
