"""CoinJoin detectors: which transactions were made by several users together, and under which protocol."""

from btcnb.data.coinjoin.rules import (
    FITTED,
    PROTOCOLS,
    RULE_SETS,
    Fitted,
    coinjoin_refusals,
    coinjoin_rules,
    detect_coinjoins,
)

__all__ = [
    "FITTED",
    "PROTOCOLS",
    "RULE_SETS",
    "Fitted",
    "coinjoin_refusals",
    "coinjoin_rules",
    "detect_coinjoins",
]
