"""From rules to names: one protocol per transaction, the first in the rule set's order that fires.

`published`: the detectors of the paper's graph-construction pipeline, rule by rule as published, the narrowest first
(the JoinMarket rule also fires on most mixes of the others). All ask for distinct output addresses; OP_RETURN outputs,
which have no address, are not counted as outputs.

`improved`: ours. What is added is not finer thresholds but structure that the software cannot avoid: the order in which
outputs are written, the one script type that a protocol's participants share, the number of change outputs that n
participants can have, and that every participant must have brought the amount that it takes out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.data.coinjoin.joinmarket import JOINMARKET
from btcnb.data.coinjoin.protocol import Detector, Protocol
from btcnb.data.coinjoin.shape import Shape
from btcnb.data.coinjoin.wasabi1 import WASABI10, WASABI11
from btcnb.data.coinjoin.wasabi2 import WASABI2
from btcnb.data.coinjoin.whirlpool import WHIRLPOOL, WHIRLPOOL_TX0
from btcnb.data.transactions import Transactions
from btcnb.gates import choice, instance

REGISTRY: tuple[Protocol, ...] = (JOINMARKET, WASABI10, WASABI11, WASABI2, WHIRLPOOL, WHIRLPOOL_TX0)
"""All protocols. To add one, write its file and name it here."""

PROTOCOLS = tuple(protocol.name for protocol in REGISTRY)
"""The names that `detect_coinjoins` gives. A Tx0 prepares one user's coins for a mix; the others join several users."""

RULE_SETS = ("published", "improved")


def detect_coinjoins(txs: Transactions, rules: str = "improved") -> npt.NDArray[Any]:
    """One name out of `PROTOCOLS` per transaction, "" for none (object array of str).

    rules: `published` for the rules of the paper's pipeline, `improved` for ours.
    """
    fires = coinjoin_rules(txs, rules)
    names = np.full(len(txs), "", dtype=object)
    for name in reversed(fires.columns):  # earlier rules overwrite later ones
        names[fires[name].to_numpy()] = name
    return names


def coinjoin_rules(txs: Transactions, rules: str = "improved") -> pd.DataFrame:
    """Which rules fire, before precedence: one row per transaction, one bool column per rule in order of evaluation."""
    instance("txs", txs, Transactions)
    choice("rules", rules, RULE_SETS)
    shape = Shape.of(txs)
    detectors: dict[str, Detector] = {protocol.name: getattr(protocol, rules) for protocol in REGISTRY}
    order = sorted(detectors, key=lambda name: detectors[name].precedence)
    return pd.DataFrame({name: detectors[name].fires(shape) for name in order})
