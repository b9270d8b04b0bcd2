"""From rules to names: one protocol per transaction, the first in the rule set's order that fires."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.data.coinjoin import improved, published
from btcnb.data.coinjoin.shape import Shape
from btcnb.data.transactions import Transactions
from btcnb.errors import ParameterError

PROTOCOLS = ("joinmarket", "wasabi1.0", "wasabi1.1", "wasabi2", "whirlpool", "whirlpool-tx0")
"""The names that `detect_coinjoins` gives. A Tx0 prepares one user's coins for a mix; the others join several users."""

RULE_SETS: dict[str, dict[str, Callable[[Shape], npt.NDArray[np.bool_]]]] = {
    "published": published.RULES,
    "improved": improved.RULES,
}


def detect_coinjoins(txs: Transactions, rules: str = "improved") -> npt.NDArray[Any]:
    """One name out of `PROTOCOLS` per transaction, "" for none (object array of str).

    rules: `published` for the rules of the paper's pipeline, narrowest first; `improved` for ours.
    """
    fires = coinjoin_rules(txs, rules)
    names = np.full(len(txs), "", dtype=object)
    for name in reversed(fires.columns):  # earlier rules overwrite later ones
        names[fires[name].to_numpy()] = name
    return names


def coinjoin_rules(txs: Transactions, rules: str = "improved") -> pd.DataFrame:
    """Which rules fire, before precedence: one row per transaction, one bool column per rule in order of evaluation."""
    if rules not in RULE_SETS:
        raise ParameterError(f"unknown CoinJoin rule set {rules!r}; known are {', '.join(RULE_SETS)}.")
    shape = Shape.of(txs)
    return pd.DataFrame({name: rule(shape) for name, rule in RULE_SETS[rules].items()})
