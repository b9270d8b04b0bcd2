"""How real chain data enters: raw blocks, bitcoin-etl exports, Bitcoin Core, Dumplings, the released dataset.

Each reader parses into plain columns, a part at a time, and `assemble` makes the container of them with array
operations. `READERS` lists the readers of transactions by name, and `sniff` tells which of them a path is for.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from btcnb.data.readers.assemble import DroppedLinksWarning, MissingOutputsWarning, RepeatedTransactionsWarning
from btcnb.data.readers.blocks import (
    RewardWarning,
    SideBranchWarning,
    is_node_file,
    looks_like_blocks,
    read_blocks,
)
from btcnb.data.readers.core import attach_wallets, looks_like_bitcoin_core, read_bitcoin_core
from btcnb.data.readers.dumplings import looks_like_dumplings, read_dumplings
from btcnb.data.readers.etl import looks_like_etl, read_etl
from btcnb.data.readers.etl_write import SUFFIX, write_etl
from btcnb.data.readers.files import members
from btcnb.data.readers.labels import attach_labels, read_labels
from btcnb.data.readers.node import Node
from btcnb.data.readers.release import find_tables, read_release, release_splits, write_release
from btcnb.data.transactions import Transactions
from btcnb.errors import DataError

__all__ = [
    "READERS",
    "RELEASE",
    "DroppedLinksWarning",
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
    "read_release",
    "release_splits",
    "sniff",
    "write_etl",
    "write_release",
]

RELEASE = "release"
_ENOUGH = 200  # files that are looked into


class Reader(NamedTuple):
    """`fits` looks at the first bytes of a file; `read` takes a path."""

    fits: Callable[[bytes], bool]
    read: Callable[[str], Transactions]


READERS: dict[str, Reader] = {
    "dumplings": Reader(looks_like_dumplings, read_dumplings),
    "core": Reader(looks_like_bitcoin_core, read_bitcoin_core),
    "etl": Reader(looks_like_etl, read_etl),
    "blocks": Reader(looks_like_blocks, read_blocks),
}


def sniff(path: str | Path) -> str:
    """`release`, or the name of the reader that the path's files are for; `DataError` when none fits."""
    found = members(path)
    if any(table.role == "nodes" for table in find_tables(found)):
        return RELEASE
    if any(is_node_file(member.name) for member in found):  # by name: an obfuscated file looks like nothing
        return "blocks"
    for member in [member for member in found if not member.name.endswith(SUFFIX)][:_ENOUGH]:
        head = member.head()
        for name, reader in READERS.items():
            if reader.fits(head):
                return name
    kinds = ", ".join([RELEASE, *READERS])
    raise DataError(path, "format", "is of no kind that btcnb reads", f"give files of one of these kinds: {kinds}")
