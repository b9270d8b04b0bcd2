"""What a CoinJoin protocol is to the detectors: a name, and one rule of each rule set."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from btcnb.data.coinjoin.shape import BoolArray, Shape


class Detector(NamedTuple):
    """A rule, and when its turn comes: of the rules that fire, the one of lowest precedence names the transaction."""

    precedence: int
    fires: Callable[[Shape], BoolArray]


class Protocol(NamedTuple):
    """One protocol."""

    name: str  # what `detect_coinjoins` says
    published: Detector  # of the paper's graph-construction pipeline, as published
    improved: Detector  # ours
    rate: str | None = None  # field of `CoinJoinRates` that says how often it is simulated; None: it is not
