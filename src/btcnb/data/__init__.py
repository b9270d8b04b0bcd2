"""Part I: transactions, heuristics, and the address graph."""

from btcnb.data.coinjoin import PROTOCOLS, coinjoin_refusals, coinjoin_rules, detect_coinjoins
from btcnb.data.features import edge_features, feature_names, features
from btcnb.data.graph import AddressGraph
from btcnb.data.graph_construction import build_graph
from btcnb.data.heuristics import DEFAULT_RULES, HeuristicConfig, heuristic_clusters, heuristic_merges, linked_twice
from btcnb.data.landmarks import landmark_nodes, landmarks
from btcnb.data.readers import (
    MissingOutputsWarning,
    Node,
    attach_labels,
    attach_wallets,
    read_bitcoin_core,
    read_blocks,
    read_dumplings,
    read_etl,
    read_labels,
    read_release,
    write_etl,
    write_release,
)
from btcnb.data.readers.fetch import fetch_blocks, fetch_release
from btcnb.data.sampling import sample_around, sample_from_coinbase
from btcnb.data.simulator import CoinJoinRates, SimulationConfig, simulate
from btcnb.data.sources import (
    ROLES,
    Source,
    load_clusters,
    load_graph,
    load_graphs,
    load_linked_twice,
    load_transactions,
    real_source,
)
from btcnb.data.transactions import SCRIPT_TYPES, Transactions, Truth

__all__ = [
    "DEFAULT_RULES",
    "PROTOCOLS",
    "ROLES",
    "SCRIPT_TYPES",
    "AddressGraph",
    "CoinJoinRates",
    "HeuristicConfig",
    "MissingOutputsWarning",
    "Node",
    "SimulationConfig",
    "Source",
    "Transactions",
    "Truth",
    "attach_labels",
    "attach_wallets",
    "build_graph",
    "coinjoin_refusals",
    "coinjoin_rules",
    "detect_coinjoins",
    "edge_features",
    "feature_names",
    "features",
    "fetch_blocks",
    "fetch_release",
    "heuristic_clusters",
    "heuristic_merges",
    "landmark_nodes",
    "landmarks",
    "linked_twice",
    "load_clusters",
    "load_graph",
    "load_graphs",
    "load_linked_twice",
    "load_transactions",
    "read_bitcoin_core",
    "read_blocks",
    "read_dumplings",
    "read_etl",
    "read_labels",
    "read_release",
    "real_source",
    "sample_around",
    "sample_from_coinbase",
    "simulate",
    "write_etl",
    "write_release",
]
