"""JSON lines in the bitcoin-etl schema, one transaction a line, to raw parts.

Python's own parser, not Arrow's: that of pyarrow 26 ends the whole process on a line that says `null`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from itertools import islice
from typing import IO, Any

import numpy as np

from btcnb.data.contract import TRANSACTION_COLUMNS
from btcnb.data.readers.archives import Member
from btcnb.data.readers.builder import Raw
from btcnb.data.readers.etl_columns import Columns, Side, part
from btcnb.errors import DataError

LINES_A_PART = 5_000
_DECODER = json.JSONDecoder(parse_float=Decimal)
_ITEM = ("index", "addresses", "address", "value", "type")
_SIDES = {
    "inputs": (*_ITEM, "spent_transaction_hash", "spent_output_index", "sequence"),
    "outputs": (*_ITEM, "script_hex"),
}

Line = tuple[int, dict[str, Any]]


def read_json(member: Member, unit: int) -> Iterator[Raw]:
    """The transactions of one file, a part at a time; lines that describe blocks are passed over."""
    source = member.source
    with member.open() as stream:
        lines = _transactions(stream, source)
        while some := list(islice(lines, LINES_A_PART)):
            yield _part(some, source, unit)


def _part(lines: list[Line], source: str, unit: int) -> Raw:
    columns = {name: [record.get(name) for _, record in lines] for name in (*TRANSACTION_COLUMNS, *_SIDES)}
    head = Columns(columns, len(lines), lambda row, name: (f"{source}, line {lines[row][0]}", name))
    return part(head, _side(head, "inputs"), _side(head, "outputs"), unit)


def _transactions(stream: IO[bytes], source: str) -> Iterator[Line]:
    for number, content in enumerate(stream, start=1):
        if not content.strip():
            continue
        where = f"{source}, line {number}"
        try:
            record = _DECODER.decode(content.decode())
        except (ValueError, RecursionError) as error:
            raise DataError(where, "JSON", f"is broken or cut short ({error})", "fix it") from error
        for one in record if isinstance(record, list) else [record]:
            if not isinstance(one, dict):
                raise DataError(where, "JSON", "is not a transaction", "write one object a line")
            if one.get("type") == "block" or "merkle_root" in one:
                continue
            if "outputs" not in one:
                raise DataError(where, "outputs", "is missing", "export whole transactions")
            yield number, one


def _side(head: Columns, side: str) -> Side:
    """The nested items of all lines."""
    items: list[dict[str, Any]] = []
    owners: list[int] = []
    for tx, listed in enumerate(head.values(side)):
        if listed is not None and (not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed)):
            raise head.error(tx, side, "is not a list of objects", "export nested records")
        items += listed or []
        owners += [tx] * len(listed or [])
    columns = {name: [item.get(name) for item in items] for name in _SIDES[side]}
    return head.nested(side, columns, np.array(owners, dtype=np.int64))
