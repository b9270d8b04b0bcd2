"""Thresholds of the merging rules."""

from __future__ import annotations

import math
from dataclasses import dataclass

from btcnb.data.checks import choices, positive, whole
from btcnb.data.coinjoin import PROTOCOLS, RULE_SETS
from btcnb.data.intervals import FIRST, SATOSHI_PER_BITCOIN
from btcnb.gates import choice, flag


@dataclass(frozen=True)
class HeuristicConfig:
    """Thresholds of the rules; defaults are those of the pipeline's example configuration."""

    price_usd: float = FIRST.price_usd
    """USD per bitcoin near the start of the interval (default: the paper's first)."""
    round_usd: float = 1.0
    """x of the round-value rule: a round amount ends with floor(log10(x USD in satoshi)) zeros."""
    round_slack: int = 1
    """j of the round-value rule: the change must not even end with j zeros fewer."""
    deposit_min_inputs: int = 25
    """Distinct input addresses from which on a sweep to one address counts as a service's deposits."""
    exclude_coinjoins: bool = True
    """Whether detected CoinJoins are left out by every rule."""
    coinjoin_rules: str = "published"
    """Which detectors say what a CoinJoin is: `published` (the paper's pipeline) or `improved`."""
    excluded_protocols: tuple[str, ...] = PROTOCOLS
    """Which detected protocols are left out. A Whirlpool Tx0 has one owner: drop it here to let the rules see it."""
    end_block: int | None = None
    """Last block in which receiving again counts as reuse; None: the last block at hand."""

    def __post_init__(self) -> None:
        positive("price_usd", self.price_usd, " of USD")
        positive("round_usd", self.round_usd, " of USD")
        whole("round_slack", self.round_slack)
        whole("deposit_min_inputs", self.deposit_min_inputs, 1)
        flag("exclude_coinjoins", self.exclude_coinjoins)
        choice("coinjoin_rules", self.coinjoin_rules, RULE_SETS)
        choices("excluded_protocols", self.excluded_protocols, PROTOCOLS)
        if self.end_block is not None:
            whole("end_block", self.end_block)

    @property
    def round_zeros(self) -> int:
        """i = floor(log10(x / price of one satoshi)): the trailing zeros, in satoshi, that make an amount round."""
        satoshi = self.round_usd * SATOSHI_PER_BITCOIN / self.price_usd
        return math.floor(math.log10(min(max(satoshi, 1.0), 1e18)))  # no amount has more zeros
