"""CoinJoin detectors: which transactions were made by several users together, and under which protocol."""

from btcnb.data.coinjoin.rules import (
    PROTOCOLS,
    RULE_SETS,
    coinjoin_refusals,
    coinjoin_rules,
    detect_coinjoins,
)
from btcnb.data.coinjoin.shape import FITTED, Fitted

__all__ = [
    "FITTED",
    "PROTOCOLS",
    "RULE_SETS",
    "Fitted",
    "coinjoin_refusals",
    "coinjoin_rules",
    "detect_coinjoins",
]
