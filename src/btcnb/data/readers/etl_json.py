"""JSON lines in the bitcoin-etl schema, one transaction a line, to raw parts.

Arrow reads a file that keeps to the schema to the letter. What it refuses (numbers as text, times in words, amounts in
bitcoin, records of blocks, and every fault) is read line by line, which takes it or names the line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from itertools import islice
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pj

from btcnb.data.readers.archives import Member
from btcnb.data.readers.builder import Raw
from btcnb.data.readers.etl_columns import Columns, Side, part
from btcnb.data.readers.etl_parquet import arrow_part
from btcnb.errors import DataError

LINES_A_PART = 5_000
BYTES_A_PART = 2**24
_DECODER = json.JSONDecoder(parse_float=Decimal)
_NUMBERS = ("block_number", "block_timestamp", "index", "version", "lock_time", "size", "virtual_size", "fee")
_ITEM = {"index": pa.int64(), "addresses": pa.list_(pa.string()), "address": pa.string(), "value": pa.int64()}
_INPUT = {"spent_transaction_hash": pa.string(), "spent_output_index": pa.int64(), "sequence": pa.int64()}
_SIDES = {
    "inputs": _ITEM | _INPUT | {"type": pa.string()},
    "outputs": _ITEM | {"script_hex": pa.string(), "type": pa.string()},
}
_SCHEMA = pa.schema(
    {"hash": pa.string(), "is_coinbase": pa.bool_(), "type": pa.string(), "merkle_root": pa.string()}
    | {name: pa.int64() for name in _NUMBERS}
    | {side: pa.list_(pa.struct(fields)) for side, fields in _SIDES.items()}
)

Line = tuple[int, dict[str, Any]]


def read_json(member: Member, unit: int) -> Iterator[Raw]:
    """The transactions of one file, a part at a time; lines that describe blocks are passed over."""
    try:
        yield from list(_by_arrow(member, unit))
    except (pa.ArrowException, DataError):
        yield from _by_line(member, unit)


def _by_arrow(member: Member, unit: int) -> Iterator[Raw]:
    with member.open() as stream:
        options = pj.ParseOptions(explicit_schema=_SCHEMA, unexpected_field_behavior="ignore")
        for batch in pj.open_json(stream, pj.ReadOptions(use_threads=False, block_size=BYTES_A_PART), options):
            if batch["outputs"].null_count or batch["merkle_root"].null_count < len(batch):
                raise pa.ArrowInvalid("not transactions only")
            yield arrow_part(batch.drop_columns(["type", "merkle_root"]), member.source, 0, unit)


def _by_line(member: Member, unit: int) -> Iterator[Raw]:
    with member.open() as stream:
        lines = _transactions(stream, member.source)
        while some := list(islice(lines, LINES_A_PART)):
            numbers = [number for number, _ in some]
            columns = {name: [record.get(name) for _, record in some] for name in _SCHEMA.names}
            head = Columns(columns, len(some), lambda row, name, n=numbers: (f"{member.source}, line {n[row]}", name))  # type: ignore[misc]
            yield part(head, _side(head, "inputs"), _side(head, "outputs"), unit)


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
