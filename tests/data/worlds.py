"""Simulated chains that several tests look at, made once a run, and what the truth says about them."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from btcnb.data import SimulationConfig, Transactions, simulate
from btcnb.data.simulator import parameters
from btcnb.data.simulator.economy import Economy
from btcnb.data.simulator.tables import to_transactions

TOWN = replace(
    SimulationConfig.preset("tiny"),
    blocks=60,
    transactions_per_block=40,
    users=400,
    exchanges=15,
    merchants=25,
    largest_consolidation=20,
    privacy_share=0.0,
    mixing=0.0,
)
"""A small busy place without CoinJoin wallets, where a single mechanism shows."""


def simulated(size: str = "quick", split: str = "train1", seed: int = 0, **changes: Any) -> Transactions:
    """The chain of a named size, with fields of its configuration changed."""
    return _simulated(replace(SimulationConfig.preset(size, split=split, seed=seed), **changes))


@functools.cache
def _simulated(config: SimulationConfig) -> Transactions:
    return simulate(config)


class Alone:
    """A world in which one mechanism works, at a rate of one's choice, and all others rest."""

    def __init__(self, patch: pytest.MonkeyPatch, name: str, rate: float, **changes: Any) -> None:
        chosen = [replace(entry, rate=rate if entry.name == name else 0.0) for entry in parameters.MECHANISMS]
        patch.setattr(parameters, "MECHANISMS", tuple(chosen))
        self.name = name
        self.config = replace(TOWN, **changes)
        self.economy = Economy(self.config)
        self.habits = self.economy.world.ledger.state.habits.copy()  # of every wallet, before the first block
        for _ in range(self.config.blocks):
            self.economy.block()
        self.txs = to_transactions(self.economy.world)
        assert self.txs.truth is not None and self.txs.truth.mechanism is not None and self.txs.truth.change is not None
        self.truth = self.txs.truth
        self.kind = self.truth.entities["kind"].to_numpy()
        self.mechanism, self.change = self.truth.mechanism, self.truth.change

    def found(self) -> list[int]:
        """Transactions that the mechanism wrote; nobody else may have left a mark."""
        assert set(self.mechanism) <= {"", self.name}
        return np.flatnonzero(self.mechanism == self.name).tolist()

    def inputs(self, tx: int) -> pd.DataFrame:
        """Inputs of a transaction, with `owner` and `kind`."""
        first = self.txs.input_offsets()
        return self._told(self.txs.inputs.iloc[first[tx] : first[tx + 1]])

    def outputs(self, tx: int) -> pd.DataFrame:
        """Outputs of a transaction, with `owner` and `kind`."""
        first = self.txs.output_offsets()
        return self._told(self.txs.outputs.iloc[first[tx] : first[tx + 1]])

    def change_output(self, tx: int) -> pd.Series:
        return self.outputs(tx).iloc[int(self.change[tx])]

    def payment_output(self, tx: int) -> pd.Series:
        """The other output of two."""
        return self.outputs(tx).iloc[1 - int(self.change[tx])]

    def payer_wallets(self) -> list[np.ndarray]:
        """Per transaction: the wallets that its inputs' addresses belong to."""
        state = self.economy.world.ledger.state
        number = int(state.counts[2])
        wallet = state.address_wallet[state.coin_address[state.input_coin[:number]]]
        return np.split(wallet, np.searchsorted(state.input_tx[:number], np.arange(1, len(self.txs))))

    def _told(self, rows: pd.DataFrame) -> pd.DataFrame:
        owner = np.append(self.truth.owner, -1)[rows["address"].to_numpy()]
        return rows.assign(owner=owner, kind=np.append(self.kind, "")[owner])


def payers_differ(txs: Transactions) -> np.ndarray:
    """Per transaction: whether its inputs have several owners."""
    assert txs.truth is not None
    tx, owner = txs.inputs["tx"].to_numpy(), txs.truth.owner[txs.inputs["address"].to_numpy()]
    mixed = np.zeros(len(txs), dtype=bool)
    mixed[tx[owner != owner[txs.input_offsets()[tx]]]] = True
    return mixed
