"""Wallet programs: the habits of software that show in every transaction it writes.

A program is a row of integers, so that the compiled ledger can read it. How coins are chosen, where change goes and how
outputs are ordered belongs to the program; the marks that differ from year to year (version, lock time, RBF, script
type) are drawn for each wallet from what real blocks of its year show (`habits.py`), unless the program is `marked`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from btcnb.data.simulate.scripts import P2PKH, P2SH_MULTISIG, P2SH_P2WPKH, P2WPKH, P2WSH_MULTISIG

IntTable = npt.NDArray[np.int64]

# columns of the table
(
    VERSION,
    LOCKTIME,
    RBF,
    ORDER,
    SCRIPT,
    CHANGE,
    FEE,
    SELECTION,
    CONFIRMATIONS,
    LEAST,
    PAYEE_PAYS,
    CHANGE_SCRIPT,
) = range(12)

ORDER_CHANGE_LAST, ORDER_RANDOM, ORDER_BIP69 = range(3)
CHANGE_FRESH, CHANGE_TO_INPUT, CHANGE_TO_MAIN = range(3)
SELECT_OLDEST, SELECT_NEWEST, SELECT_BEST, SELECT_MIXED = range(4)
"""Mixed: one new coin, then two old ones, and so on, as a service does that tidies up while it pays."""


@dataclass(frozen=True)
class Program:
    """One wallet program. `share` is its share among ordinary users; 0 marks programs that services or CoinJoin users
    run."""

    name: str
    share: float
    script: int
    version: int = 1
    locktime: bool = False  # anti-fee-sniping: lock_time = current height
    rbf: bool = False
    order: int = ORDER_RANDOM
    change: int = CHANGE_FRESH
    fixed_fee: int = 0  # satoshi; 0 = fee by virtual size
    selection: int = SELECT_BEST
    confirmations: int = 1  # how deep a coin must be before it is spent
    reuse: tuple[float, float] = (0.0, 0.3)  # range of the probability to hand out the last receiving address again
    for_customers: bool = False  # hands out addresses of every type
    marked: bool = (
        False  # version, lock time, RBF and script are the program's own; else they are drawn for each wallet
    )

    def row(self) -> list[int]:
        return [
            self.version,
            int(self.locktime),
            int(self.rbf),
            self.order,
            self.script,
            self.change,
            self.fixed_fee,
            self.selection,
            self.confirmations,
            1,  # coins spent at least
            0,  # whether the payee bears the fee
            -1,  # script type of change, -1 for that of the wallet
        ]


_TILL: dict[str, Any] = {"selection": SELECT_MIXED, "reuse": (0, 0), "for_customers": True}
_ONE_ADDRESS: dict[str, Any] = {"change": CHANGE_TO_MAIN, "reuse": (1.0, 1.0)}

PROGRAMS: tuple[Program, ...] = (
    Program("web-legacy", 0.26, P2PKH, selection=SELECT_OLDEST),
    Program("web-fixed-fee", 0.05, P2PKH, selection=SELECT_OLDEST, fixed_fee=10_000, order=ORDER_CHANGE_LAST),
    Program("single-address", 0.15, P2PKH, selection=SELECT_OLDEST, change=CHANGE_TO_INPUT, reuse=(0.9, 1.0)),
    Program("phone-spv", 0.04, P2PKH, order=ORDER_BIP69, confirmations=0, selection=SELECT_OLDEST),
    Program("light-legacy", 0.14, P2PKH, selection=SELECT_OLDEST, locktime=True, order=ORDER_BIP69),
    Program("light-segwit", 0.06, P2WPKH, version=2, locktime=True, rbf=True, order=ORDER_BIP69),
    Program("node-wrapped", 0.07, P2SH_P2WPKH, version=2, locktime=True),
    Program("node-segwit", 0.04, P2WPKH, version=2, locktime=True, rbf=True),
    Program("node-legacy", 0.06, P2PKH, selection=SELECT_OLDEST, version=2, locktime=True),
    Program("hardware-wrapped", 0.04, P2SH_P2WPKH, selection=SELECT_OLDEST, order=ORDER_CHANGE_LAST),
    Program("phone-segwit", 0.02, P2WPKH),
    Program("shared-multisig", 0.07, P2SH_MULTISIG, selection=SELECT_OLDEST, order=ORDER_BIP69),
    # CoinJoin wallets (native SegWit)
    Program("wasabi", 0, P2WPKH, order=ORDER_RANDOM, reuse=(0.0, 0.0), marked=True),
    Program("samourai", 0, P2WPKH, order=ORDER_BIP69, reuse=(0.0, 0.0), marked=True),
    Program("joinmarket-wrapped", 0, P2SH_P2WPKH, reuse=(0.0, 0.0), marked=True),
    Program("joinmarket", 0, P2WPKH, version=2, locktime=True, reuse=(0.0, 0.0), marked=True),
    Program("coordinator-static", 0, P2WPKH, selection=SELECT_OLDEST, reuse=(1.0, 1.0), marked=True),
    Program("coordinator", 0, P2WPKH, selection=SELECT_OLDEST, reuse=(0.0, 0.0), marked=True),
    # services
    Program("hot-fixed", 0, P2PKH, order=ORDER_CHANGE_LAST, selection=SELECT_OLDEST, **_ONE_ADDRESS),
    Program("hot-rolling", 0, P2SH_P2WPKH, selection=SELECT_OLDEST, confirmations=0, reuse=(0.9, 0.9)),
    Program("cold", 0, P2SH_MULTISIG, selection=SELECT_OLDEST, confirmations=0, reuse=(0, 0)),
    Program("direct-multisig", 0, P2SH_MULTISIG, confirmations=0, **_TILL),
    Program("direct-segwit", 0, P2WSH_MULTISIG, version=2, confirmations=0, **_TILL),
    Program("direct-legacy", 0, P2PKH, confirmations=0, **_TILL),
    Program("deposits", 0, P2PKH, **_TILL),
    Program("deposits-wrapped", 0, P2SH_P2WPKH, **_TILL),
    Program("hot-legacy", 0, P2PKH, selection=SELECT_OLDEST, confirmations=0, reuse=(0.9, 0.9)),
    Program("peeler", 0, P2PKH, order=ORDER_RANDOM, selection=SELECT_NEWEST, confirmations=0, reuse=(0, 0)),
    Program("peeler-2", 0, P2PKH, version=2, selection=SELECT_NEWEST, confirmations=0, reuse=(0, 0)),
    Program("peeler-segwit", 0, P2WPKH, version=2, selection=SELECT_NEWEST, confirmations=0, reuse=(0, 0)),
    Program("home", 0, P2PKH, selection=SELECT_OLDEST, change=CHANGE_TO_MAIN, reuse=(0, 0), for_customers=True),
    Program("token", 0, P2PKH, selection=SELECT_NEWEST, confirmations=0, change=CHANGE_TO_INPUT, reuse=(1.0, 1.0)),
    Program("channel", 0, P2WSH_MULTISIG, version=2, reuse=(0, 0), marked=True),
    Program("shop", 0, P2PKH, selection=SELECT_OLDEST, reuse=(0, 0)),
    Program("shop-wrapped", 0, P2SH_P2WPKH, selection=SELECT_OLDEST, reuse=(0, 0)),
    Program("static", 0, P2PKH, selection=SELECT_OLDEST, confirmations=0, **_ONE_ADDRESS),
    Program("pool", 0, P2PKH, order=ORDER_CHANGE_LAST, selection=SELECT_NEWEST, confirmations=0, **_ONE_ADDRESS),
)

NUMBER: dict[str, int] = {program.name: position for position, program in enumerate(PROGRAMS)}


def program_table() -> IntTable:
    """All programs as integers, shape (programs, 12)."""
    return np.array([program.row() for program in PROGRAMS], dtype=np.int64)


def draw_user_programs(rng: np.random.Generator, number: int) -> IntTable:
    """A program for each of `number` ordinary users, shape (number,)."""
    shares = np.array([program.share for program in PROGRAMS])
    return rng.choice(len(PROGRAMS), size=number, p=shares / shares.sum()).astype(np.int64)


def draw_reuse(rng: np.random.Generator, programs: IntTable) -> IntTable:
    """Per wallet: how often (per mille) it hands out its last receiving address again, shape (wallets,)."""
    low = np.array([program.reuse[0] for program in PROGRAMS])[programs]
    high = np.array([program.reuse[1] for program in PROGRAMS])[programs]
    return (1000 * (low + (high - low) * rng.random(len(programs)))).astype(np.int64)
