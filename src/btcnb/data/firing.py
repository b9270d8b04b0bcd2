"""How often each rule fires, on any chain: real blocks that lie years apart, or an interval without gaps.

Rules that ask whether an address is paid *later* see little in scattered blocks. So the transactions are also taken as
if nothing came after them (`at_once`), and the shapes that a rule looks for are counted beside its firings: these
compare.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.data.heuristics import HeuristicConfig, heuristic_clusters, heuristic_merges
from btcnb.data.transactions import Transactions
from btcnb.gates import instance

BoolArray = npt.NDArray[np.bool_]

PER_THOUSAND = (
    "common_input fires",
    "shape of change",
    "change fires",
    "round_value fires",
    "shape of forced_merge",
    "forced_merge fires",
)
"""Quantities per 1,000 transactions, coinbases left out."""
CLUSTERS = ("clusters of two or more", "addresses in them, %", "largest cluster")
"""Clusters per 1,000 transactions, share of addresses, and addresses."""
COMPARABLE = tuple(name for name in PER_THOUSAND if name != "change fires")
"""Those that do not depend on how far apart the blocks lie."""
KNOWN = 0.5
"""Share of the transactions with the shape whose input values must be known for `forced_merge` to be counted."""


def at_once(txs: Transactions) -> Transactions:
    """The same transactions in one block: no address is paid in a later one."""
    table = instance("txs", txs, Transactions).transactions
    block = table["block_number"].iloc[0] if len(table) else 0
    return replace(txs, transactions=table.assign(block_number=block, index=np.arange(len(table))))


def rule_firing(txs: Transactions, config: HeuristicConfig | None = None) -> dict[str, float]:
    """The quantities of `PER_THOUSAND` and `CLUSTERS` by name; NaN where the data does not tell.

    `round_value fires` and `forced_merge fires` are counted `at_once`, `change fires` and the clusters on the chain as
    it is. `forced_merge` compares input values: its firings are those among transactions whose values are known, scaled
    to all of that shape; NaN where fewer than half are.
    """
    number = max(int((~instance("txs", txs, Transactions).transactions["is_coinbase"].to_numpy()).sum()), 1)
    alone = heuristic_merges(at_once(txs), ["common_input", "round_value", "forced_merge"], config)
    fires = alone.groupby("rule")["tx"].nunique()
    one_by_one, several, valued = _shapes(txs)
    known = several & valued
    scaled = np.nan
    if several.any() and known.sum() >= KNOWN * several.sum():
        scaled = float(fires.get("forced_merge", 0)) * several.sum() / known.sum()
    changes = heuristic_merges(txs, ["change"], config)["tx"].nunique()
    found = (
        fires.get("common_input", 0),
        one_by_one.sum(),
        changes,
        fires.get("round_value", 0),
        several.sum(),
        scaled,
    )
    rates = {name: 1000 * float(value) / number for name, value in zip(PER_THOUSAND, found, strict=True)}
    sizes = np.bincount(heuristic_clusters(txs, config=config), minlength=1)
    joined = sizes[sizes > 1]
    share = 100 * float(joined.sum()) / max(txs.num_addresses, 1)
    clusters = (1000 * len(joined) / number, share, float(sizes.max()))
    return rates | dict(zip(CLUSTERS, clusters, strict=True))


def _shapes(txs: Transactions) -> tuple[BoolArray, BoolArray, BoolArray]:
    """Per transaction: the shape of `change` and `round_value`, that of `forced_merge`, all input values known."""
    inputs, outputs = np.diff(txs.input_offsets()), np.diff(txs.output_offsets())
    payers, payees = _distinct(txs.inputs, len(txs)), _distinct(txs.outputs, len(txs))
    both = _distinct(pd.concat([txs.inputs[["tx", "address"]], txs.outputs[["tx", "address"]]]), len(txs))
    two = (outputs == 2) & (payees == 2)
    unknown = txs.inputs.loc[txs.inputs["value"] < 0, "tx"].to_numpy()
    valued = np.ones(len(txs), dtype=bool)
    valued[unknown] = False
    return (inputs == 1) & two & (both == 3), (inputs >= 2) & (payers == inputs) & two, valued


def _distinct(table: pd.DataFrame, number: int) -> npt.NDArray[np.int64]:
    """Distinct known addresses per transaction."""
    known = table.loc[table["address"] >= 0, ["tx", "address"]].drop_duplicates()
    return np.bincount(known["tx"], minlength=number).astype(np.int64)
