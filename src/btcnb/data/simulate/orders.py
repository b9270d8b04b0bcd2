"""Orders: what the actors of the economy want to happen in a block, before the ledger finds coins for it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.int64]

PAY, SWEEP = 0, 1
NO_ADDRESS = -1
OP_RETURN = -2


class OrderTable(NamedTuple):
    """Orders in columns; order o pays rows first[o]:first[o+1] of the out_ columns."""

    payer: Array  # wallet that pays
    change_wallet: Array  # wallet that gets the change
    mode: Array  # PAY the stated values, or SWEEP up to most_inputs coins to the one payee
    least_inputs: Array  # spend at least so many coins, if the wallet has them
    most_inputs: Array
    rate: npt.NDArray[np.float64]  # satoshi per virtual byte
    first: Array  # (orders + 1,)
    out_wallet: Array  # payee, asked for an address where out_address is NO_ADDRESS
    out_address: Array  # address, NO_ADDRESS or OP_RETURN
    out_value: Array


class Orders:
    """Collects the orders of one block."""

    def __init__(self, rng: np.random.Generator, rate: float) -> None:
        self._rng = rng
        self._rate = rate
        self._orders: list[tuple[Array, ...]] = []
        self._rates: list[npt.NDArray[np.float64]] = []
        self._outs: list[tuple[Array, Array, Array]] = []

    def __len__(self) -> int:
        return sum(len(chunk[0]) for chunk in self._orders)

    def pay(self, payer: Any, wallet: Any = -1, address: Any = NO_ADDRESS, value: Any = 0, **options: Any) -> None:
        """One order per entry, each with one payee; scalars are broadcast. Options as in `add`."""
        payers, wallets, addresses, values = (
            np.atleast_1d(column).astype(np.int64) for column in np.broadcast_arrays(payer, wallet, address, value)
        )
        self.add(payers, np.ones(len(payers), dtype=np.int64), wallets, addresses, values, **options)

    def batch(self, payer: int, wallet: Array, address: Array, value: Array, **options: Any) -> None:
        """One order that pays many."""
        self.add(np.array([payer]), np.array([len(value)]), wallet, address, value, **options)

    def add(
        self,
        payer: Array,
        payees: Array,
        wallet: Array,
        address: Array,
        value: Array,
        *,
        change_wallet: Any = None,
        mode: int = PAY,
        least_inputs: Any = 1,
        most_inputs: Any = 600,
        hurry: float = 1.0,
    ) -> None:
        """Orders with `payees[o]` payees each; `hurry` multiplies the block's going fee rate."""
        number = len(payer)
        if not number:
            return
        change = payer if change_wallet is None else change_wallet
        columns = (payer, payees, change, mode, least_inputs, most_inputs)
        self._orders.append(tuple(np.broadcast_to(column, number).astype(np.int64) for column in columns))
        noise = np.exp(self._rng.normal(0.0, 0.5, number))
        self._rates.append(np.maximum(1.0, np.rint(hurry * self._rate * noise)))
        self._outs.append((wallet, address, value))

    def table(self) -> OrderTable:
        """All orders of the block, in random order."""
        payer, payees, change, mode, least, most = (
            np.concatenate([chunk[column] for chunk in self._orders]) for column in range(6)
        )
        rate = np.concatenate(self._rates)
        wallet, address, value = (
            np.concatenate([chunk[column] for chunk in self._outs]).astype(np.int64) for column in range(3)
        )
        order = self._rng.permutation(len(payer))
        start = np.concatenate([[0], np.cumsum(payees)])
        first = np.concatenate([[0], np.cumsum(payees[order])])
        rows = np.repeat(start[order] - first[:-1], payees[order]) + np.arange(first[-1])
        return OrderTable(
            payer[order],
            change[order],
            mode[order],
            least[order],
            most[order],
            rate[order],
            first,
            wallet[rows],
            address[rows],
            value[rows],
        )
