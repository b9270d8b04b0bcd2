"""What the years were like: habits of wallets from real blocks, and the few rates that real blocks do not tell.

Marginals come from `real_chain.csv` (real blocks of 2019, 2020 and 2021); rates that lead to them are set so that the
simulated chain shows the same shares. Nothing here looks at the score of a learned model.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from btcnb.data import chain_measures as chain
from btcnb.data.simulate.scripts import P2PKH, P2SH_MULTISIG, P2SH_P2WPKH, P2WPKH, P2WSH_MULTISIG

FloatArray = npt.NDArray[np.float64]

FIRST_OF_2020, FIRST_OF_2021 = 610_691, 663_913
"""First block of each year."""


ROUNDER = 1.1
"""Payments that are meant to be round, as a multiple of those that are seen to be."""


class Marks(NamedTuple):
    """What a wallet's software leaves on every transaction."""

    version: int
    locktime: bool
    rbf: bool
    segwit: bool


@dataclass(frozen=True)
class Era:
    """One year. Rates are a multiple of the number of transactions in a block."""

    year: str
    native: float
    """Of SegWit wallets: share with native addresses (P2WPKH); the rest is wrapped (P2SH), and few are P2WSH."""
    witness_scripts: float
    """Of SegWit wallets: share with native multisig (P2WSH)."""
    multisig: float
    """Of wallets without SegWit: share with P2SH multisig; the rest is P2PKH."""
    moves: float
    """Single coins sent whole to another address of the owner or to an account: one input, one output."""
    tokens: float
    """Token transfers (Omni): OP_RETURN, dust to the receiver, change."""
    anchors: float
    """Timestamps: OP_RETURN and change."""
    batches: float
    """Payments to several people at once, and payouts of pools, as a multiple of those of 2020."""

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

    def customer_scripts(self) -> npt.NDArray[np.int64]:
        """A thousand script types in proportion to what is spent: most of that was paid in by customers."""
        measured = chain.real_chain(self.year)
        types = dict(zip(chain.SHOWN_TYPES, (P2PKH, P2SH_P2WPKH, P2WPKH, P2WSH_MULTISIG), strict=True))
        shares = np.array([measured[chain.type_name("inputs", name)] for name in types])
        places = np.searchsorted(np.cumsum(shares) / shares.sum(), (np.arange(1000) + 0.5) / 1000)
        return np.array(list(types.values()), dtype=np.int64)[places]

    def roundness(self) -> FloatArray:
        """Share of payments that end in at least 2, 3, … 7 zeros: somewhat more than those that show it, because change
        may be round as well, and a payment may be too small for its zeros."""
        measured = chain.real_chain(self.year)
        return np.array([ROUNDER * measured[chain.round_name(zeros)] for zeros in chain.ZEROS]) / 100


ERAS = {
    era.year: era
    for era in (
        Era("2019", 0.05, 0.008, 0.02, moves=0.012, tokens=0.165, anchors=0.12, batches=0.3),
        Era("2020", 0.14, 0.02, 0.03, moves=0.033, tokens=0.023, anchors=0.03, batches=1.0),
        Era("2021", 0.21, 0.02, 0.03, moves=0.052, tokens=0.010, anchors=0.007, batches=0.6),
    )
}


def era_of(block: int) -> Era:
    """The year that a block belongs to; blocks before 2019 and after 2021 take the nearest."""
    return ERAS["2019" if block < FIRST_OF_2020 else "2020" if block < FIRST_OF_2021 else "2021"]
