"""Part I: transactions, heuristics, and the address graph."""

from btcnb.data.address_graph import AddressGraph
from btcnb.data.transactions import SCRIPT_TYPES, Transactions, Truth

__all__ = ["SCRIPT_TYPES", "AddressGraph", "Transactions", "Truth"]
