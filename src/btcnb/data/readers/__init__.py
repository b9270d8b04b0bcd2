"""The doors through which real chain data enters: raw blocks, bitcoin-etl exports, Bitcoin Core, Dumplings.

Each reader parses into plain columns, a part at a time, and `builder.assemble` makes the container of them with array
operations; raw blocks, parsed by compiled code, have a join of their own in `blocks`. Measured on one core, in
inputs and outputs a second: raw blocks 250,000, JSON lines 50,000, Parquet 240,000, `getblock` files 75,000, Dumplings
60,000; a transaction has five to seven.
"""

from btcnb.data.readers.bitcoin_core import read_bitcoin_core
from btcnb.data.readers.blocks import RewardWarning, SideBranchWarning, read_blocks
from btcnb.data.readers.builder import MissingOutputsWarning, RepeatedTransactionsWarning
from btcnb.data.readers.dumplings import read_dumplings
from btcnb.data.readers.etl import read_etl
from btcnb.data.readers.etl_write import write_etl
from btcnb.data.readers.labels import attach_labels, read_labels
from btcnb.data.readers.registry import READERS, sniff
from btcnb.data.readers.rpc import Node
from btcnb.data.readers.wallets import attach_wallets, read_wallet_owners

__all__ = [
    "READERS",
    "MissingOutputsWarning",
    "Node",
    "RepeatedTransactionsWarning",
    "RewardWarning",
    "SideBranchWarning",
    "attach_labels",
    "attach_wallets",
    "read_bitcoin_core",
    "read_blocks",
    "read_dumplings",
    "read_etl",
    "read_labels",
    "read_wallet_owners",
    "sniff",
    "write_etl",
]
