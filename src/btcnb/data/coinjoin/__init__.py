"""CoinJoin detectors: which transactions were made by several users together, and under which protocol."""

from btcnb.data.coinjoin.detect import PROTOCOLS, REGISTRY, RULE_SETS, coinjoin_rules, detect_coinjoins

__all__ = ["PROTOCOLS", "REGISTRY", "RULE_SETS", "coinjoin_rules", "detect_coinjoins"]
