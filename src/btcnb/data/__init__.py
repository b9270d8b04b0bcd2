"""Part I: transactions, heuristics, and the address graph."""

from btcnb.data.address_graph import AddressGraph
from btcnb.data.coinjoin import PROTOCOLS, coinjoin_rules, detect_coinjoins
from btcnb.data.heuristics import DEFAULT_RULES, HeuristicConfig, heuristic_clusters, heuristic_merges
from btcnb.data.sampling import sample_around, sample_from_coinbase
from btcnb.data.transactions import SCRIPT_TYPES, Transactions, Truth

__all__ = [
    "DEFAULT_RULES",
    "PROTOCOLS",
    "SCRIPT_TYPES",
    "AddressGraph",
    "HeuristicConfig",
    "Transactions",
    "Truth",
    "coinjoin_rules",
    "detect_coinjoins",
    "heuristic_clusters",
    "heuristic_merges",
    "sample_around",
    "sample_from_coinbase",
]
