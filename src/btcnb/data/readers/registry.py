"""The readers of transactions by name, and which of them a path is for. A new reader is one more line of `READERS`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from btcnb.data._release_tables import find_tables
from btcnb.data.readers.archives import Member, members
from btcnb.data.readers.bitcoin_core import read_bitcoin_core
from btcnb.data.readers.dumplings import read_dumplings
from btcnb.data.readers.etl import read_etl
from btcnb.data.transactions import Transactions
from btcnb.errors import DataError

RELEASE = "release"
_HEAD = 1 << 16  # bytes in which a file shows what it is


class Reader(NamedTuple):
    """`fits` looks at the first bytes of a file; `read` takes a path."""

    fits: Callable[[bytes], bool]
    read: Callable[[str], Transactions]


READERS: dict[str, Reader] = {
    "dumplings": Reader(lambda head: b":::" in head.partition(b"\n")[0], read_dumplings),
    "core": Reader(lambda head: b'"tx"' in head and b'"hash"' in head, read_bitcoin_core),
    "etl": Reader(lambda head: head.startswith(b"PAR1") or b'"outputs"' in head, read_etl),
}


def sniff(path: str | Path) -> str:
    """`release`, or the name of the reader that the path's files are for; `DataError` when none fits."""
    found = members(path)
    if any(table.role == "nodes" for table in find_tables(found)):
        return RELEASE
    heads = [_head(member) for member in found[:50]]
    for name, reader in READERS.items():
        if any(reader.fits(head) for head in heads):
            return name
    known = ", ".join([RELEASE, *READERS])
    raise DataError(path, "format", "is of no kind that btcnb reads", f"give one of {known}")


def _head(member: Member) -> bytes:
    with member.open() as stream:
        return stream.read(_HEAD)
