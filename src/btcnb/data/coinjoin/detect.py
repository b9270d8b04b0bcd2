"""From rules to names: one protocol per transaction, the first in the rule set's order that fires.

`published`: the detectors of the paper's graph-construction pipeline, rule by rule as published, the narrowest first
(the JoinMarket rule also fires on most mixes of the others). All ask for distinct output addresses; OP_RETURN outputs,
which have no address, are not counted as outputs.

`improved`: ours. What is added is not finer thresholds but structure that the software cannot avoid: the order in which
outputs are written, the one script type that a protocol's participants share, the number of change outputs that n
participants can have, and that every participant must have brought the amount that it takes out. What is not known of
an input never speaks against a mix. Each rule is a list of conditions with names, so that it can say what it misses.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.data.coinjoin.fitted import FITTED, Fitted
from btcnb.data.coinjoin.joinmarket import JOINMARKET
from btcnb.data.coinjoin.protocol import Protocol
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


def detect_coinjoins(txs: Transactions, rules: str = "improved", fitted: Fitted = FITTED) -> npt.NDArray[Any]:
    """One name out of `PROTOCOLS` per transaction, "" for none (object array of str).

    rules:  `published` for the rules of the paper's pipeline, `improved` for ours
    fitted: what the improved rules learnt from real mixes; another one shows what they owe to a file (see `fit`)
    """
    return _names(coinjoin_rules(txs, rules, fitted))


def coinjoin_rules(txs: Transactions, rules: str = "improved", fitted: Fitted = FITTED) -> pd.DataFrame:
    """Which rules fire, before precedence: one row per transaction, one bool column per rule in order of evaluation."""
    instance("txs", txs, Transactions)
    choice("rules", rules, RULE_SETS)
    instance("fitted", fitted, Fitted)
    return _fires(Shape.of(txs), rules, fitted)


def coinjoin_refusals(txs: Transactions, fitted: Fitted = FITTED) -> pd.DataFrame:
    """Why the improved rules do not give the name that the published ones give.

    One row per such transaction and reason: `tx` (its id), `published` (the name it is refused), `improved` (the name
    it gets instead, "" for none), `reason` (a condition of the improved rule of the refused name that it does not meet,
    or that another rule comes first). Every such transaction has at least one.
    """
    instance("txs", txs, Transactions)
    instance("fitted", fitted, Fitted)
    shape = Shape.of(txs)
    published, improved = (_names(_fires(shape, rules, fitted)) for rules in RULE_SETS)
    rows = []
    for protocol in REGISTRY:
        refused = np.flatnonzero((published == protocol.name) & (improved != protocol.name))
        unmet = {why: ~met[refused] for why, met in protocol.improved.conditions(shape, fitted).items()}
        unmet["another rule comes first"] = ~np.logical_or.reduce(list(unmet.values()))
        for why, here in unmet.items():
            rows += [(int(tx), protocol.name, str(improved[tx]), why) for tx in refused[here]]
    return pd.DataFrame(sorted(rows), columns=["tx", "published", "improved", "reason"])


def _fires(shape: Shape, rules: str, fitted: Fitted) -> pd.DataFrame:
    """One column per rule, those first that name first."""
    if rules == "published":
        order = sorted(REGISTRY, key=lambda protocol: protocol.published.precedence)
        return pd.DataFrame({protocol.name: protocol.published.fires(shape) for protocol in order})
    order = sorted(REGISTRY, key=lambda protocol: protocol.improved.precedence)
    return pd.DataFrame({protocol.name: protocol.improved.fires(shape, fitted) for protocol in order})


def _names(fires: pd.DataFrame) -> npt.NDArray[Any]:
    names = np.full(len(fires), "", dtype=object)
    for name in reversed(fires.columns):  # earlier rules overwrite later ones
        names[fires[name].to_numpy()] = name
    return names
