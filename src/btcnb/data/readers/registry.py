"""The readers of transactions by name, and which of them a path is for. A new reader is one more line of `READERS`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from btcnb.data._release_tables import find_tables
from btcnb.data.readers.archives import members
from btcnb.data.readers.bitcoin_core import looks_like_bitcoin_core, read_bitcoin_core
from btcnb.data.readers.blocks import is_node_file, looks_like_blocks, read_blocks
from btcnb.data.readers.dumplings import looks_like_dumplings, read_dumplings
from btcnb.data.readers.etl import looks_like_etl, read_etl
from btcnb.data.readers.guard import guarded
from btcnb.data.readers.sidecar import SUFFIX
from btcnb.data.transactions import Transactions
from btcnb.errors import DataError

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


@guarded("path")
def sniff(path: str | Path) -> str:
    """`release`, or the name of the reader that the path's files are for; `DataError` when none fits."""
    found = members(path)
    if any(table.role == "nodes" for table in find_tables(found)):
        return RELEASE
    if any(is_node_file(member.name) for member in found):  # by name: what a node obfuscates looks like nothing
        return "blocks"
    for member in [member for member in found if not member.name.endswith(SUFFIX)][:_ENOUGH]:
        head = member.head()
        for name, reader in READERS.items():
            if reader.fits(head):
                return name
    kinds = ", ".join([RELEASE, *READERS])
    raise DataError(path, "format", "is of no kind that btcnb reads", f"give files of one of these kinds: {kinds}")
