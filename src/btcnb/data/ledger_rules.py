"""The rules that every chain keeps, counted: money neither appears nor vanishes, and time runs forward."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.data.transactions import Transactions

IntArray = npt.NDArray[np.int64]

FIRST_SUBSIDY = 50 * 100_000_000
"""Satoshi of a block's subsidy before the first halving."""
HALVING = 210_000
"""Blocks after which the subsidy halves, on the main chain."""


def subsidy(blocks: npt.ArrayLike, halving: int = HALVING) -> IntArray:
    """New satoshi that a block of each height may pay to its miner; the reward halves every `halving` blocks."""
    halvings = np.asarray(blocks, dtype=np.int64) // halving
    return np.right_shift(np.int64(FIRST_SUBSIDY), np.minimum(halvings, 63))


def satoshi_per_transaction(txs: Transactions) -> tuple[IntArray, IntArray]:
    """What each transaction takes in and pays out; -1 in for one with an input whose value the source does not tell."""
    paid_in, paid_out = np.zeros(len(txs), dtype=np.int64), np.zeros(len(txs), dtype=np.int64)
    for total, table in ((paid_in, txs.inputs), (paid_out, txs.outputs)):
        np.add.at(total, table["tx"].to_numpy(), table["value"].to_numpy())
    paid_in[txs.inputs["tx"].to_numpy()[txs.inputs["value"].to_numpy() < 0]] = -1
    return paid_in, paid_out


def links(txs: Transactions) -> tuple[IntArray, IntArray]:
    """(parents, children): transactions whose outputs are spent within the table, and those that spend them."""
    spent = txs.inputs["spent_output"].to_numpy()
    inside = spent >= 0
    return txs.outputs["tx"].to_numpy()[spent[inside]], txs.inputs["tx"].to_numpy()[inside]


def ledger_rules(txs: Transactions, whole_blocks: bool = True) -> pd.DataFrame:
    """One row per rule: `rule`, how many cases were `checked`, how many are `violations`.

    whole_blocks: every block is at hand with all its transactions, and subsidies halve as on the main chain; only then
        can a coinbase be checked, which must pay exactly what its block earns
    """
    paid_in, paid_out = satoshi_per_transaction(txs)
    coinbase = txs.transactions["is_coinbase"].to_numpy()
    fee = txs.transactions["fee"].to_numpy()
    told = ~coinbase & (paid_in >= 0) & (fee >= 0)
    spent = txs.inputs["spent_output"].to_numpy()
    spent = spent[spent >= 0]
    parents, children = links(txs)
    rows = [
        ("inputs = outputs + fee", int(told.sum()), int((paid_in != paid_out + fee)[told].sum())),
        ("no output is spent twice", len(spent), len(spent) - len(np.unique(spent))),
        ("no coin is spent before it exists", len(spent), int((parents >= children).sum())),
    ]
    if whole_blocks:
        block = txs.transactions["block_number"].to_numpy()
        fees = pd.Series(fee[~coinbase]).groupby(block[~coinbase]).sum()
        earned = subsidy(block[coinbase]) + fees.reindex(block[coinbase], fill_value=0).to_numpy()
        wrong = int((paid_out[coinbase] != earned).sum())
        rows.append(("coinbase = subsidy + fees of its block", int(coinbase.sum()), wrong))
    return pd.DataFrame(rows, columns=["rule", "checked", "violations"])
