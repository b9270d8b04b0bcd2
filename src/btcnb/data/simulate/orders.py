"""Orders: what the actors of the economy want to happen in a block, before the ledger finds coins for it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.int64]

PAY, SWEEP, PAYJOIN = range(3)
NO_ADDRESS = -1
OP_RETURN = -2
MOST_INPUTS = 600
"""Inputs of one transaction, at most: more would not fit the 100 kB that nodes relay."""
RATE_SPREAD = 0.5
"""Standard deviation of the logarithm of fee rates within a block."""
LEAST_RATE = 2.0
"""Satoshi per virtual byte."""


OPTIONS: dict[str, int] = {
    "mode": PAY,
    "least_inputs": 1,
    "most_inputs": MOST_INPUTS,
    "companion": -1,
    "hurry": 100,
    "mechanism": 0,
}


class OrderTable(NamedTuple):
    """Orders in columns; order o pays rows first[o]:first[o+1] of the out_ columns."""

    payer: Array  # wallet that pays
    mode: Array  # PAY the stated values; SWEEP up to most_inputs coins to the one payee; PAYJOIN: pay with its help
    least_inputs: Array  # spend at least so many coins, if the wallet has them
    most_inputs: Array
    companion: Array  # wallet whose newest coin is spent as well, -1 for none; in a PAYJOIN the payee gets it back
    mechanism: Array  # position in `disorder.NAMES`, 0: what the payer's wallet is known for
    rate: npt.NDArray[np.float64]  # satoshi per virtual byte
    first: Array  # (orders + 1,)
    out_wallet: Array  # payee, asked for an address where out_address is NO_ADDRESS
    out_address: Array  # address, NO_ADDRESS or OP_RETURN
    out_value: Array


class Orders:
    """Collects the orders of one block. Whatever is not an array is taken for all orders of a call.

    Options of every call: `mode`, `least_inputs`, `most_inputs`, `companion`, `mechanism` as in `OrderTable`, and
    `hurry`, the per cent of the block's going fee rate that the payer is ready to pay.
    """

    def __init__(self, rng: np.random.Generator, rate: float) -> None:
        self._rng = rng
        self._rate = rate
        self._orders: list[Array] = []  # (orders, 8): payer, payees, and the options in their order
        self._outs: list[Array] = []  # (payees, 3): wallet, address, value

    def __len__(self) -> int:
        return sum(map(len, self._orders))

    def pay(self, payer: Any, wallet: Any = -1, address: Any = NO_ADDRESS, value: Any = 0, **options: Any) -> None:
        """One order per payer, each with one payee."""
        number = len(payer) if isinstance(payer, np.ndarray) else 1
        if number:
            self._append(number, payer, 1, options)
            self._append_outs(number, wallet, address, value)

    def batch(self, payer: int, wallet: Any, address: Any, value: Array, **options: Any) -> None:
        """One order that pays many."""
        if len(value):
            self._append(1, payer, len(value), options)
            self._append_outs(len(value), wallet, address, value)

    def table(self) -> OrderTable:
        """All orders of the block, in random order."""
        orders, outs = np.concatenate(self._orders), np.concatenate(self._outs)
        start = np.concatenate([[0], np.cumsum(orders[:, 1])])
        order = self._rng.permutation(len(orders))
        orders, start = orders[order], start[order]
        payer, payees, mode, least, most, companion, hurry, mechanism = (np.ascontiguousarray(c) for c in orders.T)
        first = np.concatenate([[0], np.cumsum(payees)])
        wallet, address, value = outs[np.repeat(start - first[:-1], payees) + np.arange(first[-1])].T
        noise = np.exp(self._rng.normal(0.0, RATE_SPREAD, len(payer)))
        rate = np.maximum(LEAST_RATE, np.rint(hurry / 100 * self._rate * noise))
        columns = (np.ascontiguousarray(column) for column in (wallet, address, value))
        return OrderTable(payer, mode, least, most, companion, mechanism, rate, first, *columns)

    def _append(self, number: int, payer: Any, payees: int, options: dict[str, Any]) -> None:
        rows = np.empty((number, 2 + len(OPTIONS)), dtype=np.int64)
        for column, entry in enumerate((payer, payees, *{**OPTIONS, **options}.values())):
            rows[:, column] = entry
        self._orders.append(rows)

    def _append_outs(self, number: int, wallet: Any, address: Any, value: Any) -> None:
        outs = np.empty((number, 3), dtype=np.int64)
        outs[:, 0], outs[:, 1], outs[:, 2] = wallet, address, value
        self._outs.append(outs)
