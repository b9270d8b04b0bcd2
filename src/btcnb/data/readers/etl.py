"""The bitcoin-etl schema: what BigQuery's `crypto_bitcoin`, the AWS public dataset and the bitcoin-etl tool export."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from btcnb.data.readers.archives import Member, members
from btcnb.data.readers.builder import Missing, Raw, assemble
from btcnb.data.readers.etl_columns import SATOSHI_PER
from btcnb.data.readers.etl_json import read_json
from btcnb.data.readers.etl_parquet import read_parquet
from btcnb.data.readers.guard import guarded
from btcnb.data.readers.sidecar import SUFFIX, restore, sidecar_of
from btcnb.data.transactions import Transactions
from btcnb.errors import DataError, ParameterError

_KEYS = re.compile(rb'"(block_number|spent_transaction_hash)"\s*:')


@guarded("path")
def read_etl(
    path: str | Path,
    *,
    pattern: str = "*",
    unit: Literal["satoshi", "btc"] = "satoshi",
    missing: Missing = "warn",
) -> Transactions:
    """Transactions from JSON lines (also gzipped) or Parquet; `path` is a file, or a folder or zip of parts.

    pattern: which files of a folder or zip to read
    unit:    of `value` and `fee`: the schema says satoshi, the AWS public dataset holds bitcoin
    missing: what to do about inputs without address or value whose previous output is not in the data either

    The content decides the format, not the name. Transactions are sorted by (block_number, index); without `index` the
    order of the file counts inside a block. `hash`, `block_number`, `outputs` and each output's `value` are required;
    what else is absent becomes: version 1, lock_time 0, sizes 0, time 0, sequence final, fee = inputs - outputs.
    Where `write_etl` left a sidecar, address ids and truth are restored from it.
    """
    if unit not in SATOSHI_PER:
        raise ParameterError(f"unit: {unit!r} is not one of {', '.join(SATOSHI_PER)}.")
    found = [member for member in members(path, pattern) if not member.name.endswith(SUFFIX)]
    if not found:
        raise DataError(path, "files", "there are none", "check the path and the pattern")
    parts = [part for member in found for part in _parts(member, SATOSHI_PER[unit])]
    txs = assemble(parts, str(path), missing)
    sidecar = sidecar_of(path)
    return restore(txs, sidecar) if sidecar.exists() else txs


def looks_like_etl(head: bytes) -> bool:
    """Whether a file starts like Parquet, or like JSON with the schema's own keys."""
    return head.startswith(b"PAR1") or (head.lstrip()[:1] in (b"{", b"[") and _KEYS.search(head) is not None)


def _parts(member: Member, unit: int) -> Iterator[Raw]:
    return read_parquet(member, unit) if member.head(4) == b"PAR1" else read_json(member, unit)
