"""CoinJoin detectors: which transactions were made by several users together, and under which protocol."""

from btcnb.data.coinjoin.detect import (
    PROTOCOLS,
    REGISTRY,
    RULE_SETS,
    coinjoin_refusals,
    coinjoin_rules,
    detect_coinjoins,
)
from btcnb.data.coinjoin.fitted import FITTED, Fitted, fit

__all__ = [
    "FITTED",
    "PROTOCOLS",
    "REGISTRY",
    "RULE_SETS",
    "Fitted",
    "coinjoin_refusals",
    "coinjoin_rules",
    "detect_coinjoins",
    "fit",
]
