"""What a CoinJoin protocol is to the detectors: a name, and one rule of each rule set."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from btcnb.data.coinjoin.fitted import Fitted
from btcnb.data.coinjoin.shape import BoolArray, Shape

Conditions = dict[str, BoolArray]
"""What a rule misses where it does not fire, in a few words -> who meets it, one bool per transaction."""


class Published(NamedTuple):
    """A published rule, and when its turn comes: of the rules that fire, the lowest precedence names a transaction."""

    precedence: int
    fires: Callable[[Shape], BoolArray]


class Improved(NamedTuple):
    """A rule of ours: it fires where all its conditions are met, and where it does not, it can say why."""

    precedence: int
    conditions: Callable[[Shape, Fitted], Conditions]

    def fires(self, shape: Shape, fitted: Fitted) -> BoolArray:
        return np.logical_and.reduce(list(self.conditions(shape, fitted).values()))


class Protocol(NamedTuple):
    """One protocol."""

    name: str  # what `detect_coinjoins` says
    published: Published  # of the paper's graph-construction pipeline, as published
    improved: Improved  # ours
    rate: str | None = None  # field of `CoinJoinRates` that says how often it is simulated; None: it is not
