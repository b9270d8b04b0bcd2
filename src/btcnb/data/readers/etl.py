"""Reading the bitcoin-etl schema, which BigQuery's `crypto_bitcoin`, the AWS public dataset and bitcoin-etl export.

`etl_write.SCHEMA` is its one description. Exports differ in how they write a value; `etl_columns` reads them all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from btcnb.data.readers import scripts
from btcnb.data.readers.assemble import FINAL_SEQUENCE, Missing, Raw, assemble
from btcnb.data.readers.etl_columns import Columns, Side
from btcnb.data.readers.etl_write import INPUT, OUTPUT, SCHEMA, SUFFIX, restored, sidecar_of
from btcnb.data.readers.files import Member, members, reading
from btcnb.data.tables import UNKNOWN
from btcnb.data.transactions import Transactions
from btcnb.errors import DataError, ParameterError

IntArray = npt.NDArray[np.int64]

SATOSHI_PER = {"satoshi": 1, "btc": 100_000_000}
ROWS_A_PART = 50_000
LINES_A_PART = 5_000
_KEYS = re.compile(rb'"(block_number|spent_transaction_hash)"\s*:')
_DECODER = json.JSONDecoder(parse_float=Decimal)
_UNUSED = ("script_asm", "block_hash", "input_count", "output_count", "input_value", "output_value")
_SIDES = {"inputs": (*INPUT, "address"), "outputs": (*OUTPUT, "address")}
_NO_TRANSACTION = "0" * 64  # what some exports let a coinbase spend


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
    if not isinstance(unit, str) or unit not in SATOSHI_PER:
        raise ParameterError(f"unit: {unit!r:.80} is not one of {', '.join(SATOSHI_PER)}.")
    found = [member for member in members(path, pattern) if not member.name.endswith(SUFFIX)]
    if not found:
        raise DataError(path, "files", "there are none", "check the path and the pattern")
    parts = [part for member in found for part in _parts(member, SATOSHI_PER[unit])]
    txs = assemble(parts, str(path), missing)
    sidecar = sidecar_of(path)
    return restored(txs, sidecar) if sidecar.exists() else txs


def looks_like_etl(head: bytes) -> bool:
    """Whether a file starts like Parquet, or like JSON with the schema's own keys."""
    return head.startswith(b"PAR1") or (head.lstrip()[:1] in (b"{", b"[") and _KEYS.search(head) is not None)


def _parts(member: Member, unit: int) -> Iterator[Raw]:
    return _read_parquet(member, unit) if member.head(4) == b"PAR1" else _read_json(member, unit)


# Files to columns ----------------------------------------------------------------------------------------------------


def _read_json(member: Member, unit: int) -> Iterator[Raw]:
    """The transactions of a file of JSON lines, a part at a time; lines that describe blocks are passed over.

    Python's own parser, not Arrow's: that of pyarrow 26 ends the whole process on a line that says `null`.
    """
    with member.open() as stream:
        lines = _records(stream, member.source)
        while some := list(islice(lines, LINES_A_PART)):
            numbers = [number for number, _ in some]
            names = [name for name in SCHEMA.names if name not in _UNUSED]
            columns = {name: [record.get(name) for _, record in some] for name in names}
            head = Columns(columns, len(some), lambda row, numbers=numbers: f"{member.source}, line {numbers[row]}")  # type: ignore[misc]
            yield _part(head, _listed(head, "inputs"), _listed(head, "outputs"), unit)


def _records(stream: IO[bytes], source: str) -> Iterator[tuple[int, dict[str, Any]]]:
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
                raise DataError(where, "JSON", "is not a transaction", "write one object per line")
            if one.get("type") == "block" or "merkle_root" in one:
                continue
            if "outputs" not in one:
                raise DataError(where, "outputs", "is missing", "export whole transactions")
            yield number, one


def _listed(head: Columns, side: str) -> Side:
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


def _read_parquet(member: Member, unit: int) -> Iterator[Raw]:
    """The transactions of one Parquet file, a part at a time."""
    with reading(member.source, "Parquet", "is broken or cut short", "fetch it again"):
        file = member.parquet()
        wanted = [name for name in file.schema_arrow.names if name in SCHEMA.names and name not in _UNUSED]
        for column in ("hash", "block_number", "outputs"):
            if column not in wanted:
                raise DataError(member.source, column, "column is missing", "export nested transactions")
        first = 0
        for batch in file.iter_batches(ROWS_A_PART, columns=wanted):
            batch.validate(full=True)  # offsets and texts of a damaged file may point anywhere
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            head = Columns(columns, len(batch), lambda row, first=first: f"{member.source}, row {first + row}")  # type: ignore[misc]
            yield _part(head, _flattened(head, "inputs"), _flattened(head, "outputs"), unit)
            first += len(batch)


def _flattened(head: Columns, name: str) -> Side:
    """The nested rows of `inputs` or `outputs`."""
    array = head.columns.get(name)
    if array is None or pa.types.is_null(array.type):
        return head.nested(name, {}, np.zeros(0, dtype=np.int64))
    if pa.types.is_struct(array.type) and array.type.num_fields == 1:
        array = array.field(0)  # some exports wrap the list into a record `list`
    if not pa.types.is_list(array.type) and not pa.types.is_large_list(array.type):
        raise head.error(0, name, f"holds {array.type}, not a list of records", "export nested transactions")
    tx = pc.list_parent_indices(array).to_numpy().astype(np.int64)
    items = pc.list_flatten(array)
    if pa.types.is_struct(items.type) and items.type.num_fields == 1 and pa.types.is_struct(items.type.field(0).type):
        items = items.field(0)  # … and each item into a record `element`
    if items.null_count or not (pa.types.is_struct(items.type) or not len(items)):
        raise head.error(0, name, "is not a list of records", "export nested transactions")
    fields = [] if pa.types.is_null(items.type) else items.type
    return head.nested(name, {field.name: items.field(position) for position, field in enumerate(fields)}, tx)


# Columns to a part ---------------------------------------------------------------------------------------------------


def _part(head: Columns, inputs: Side, outputs: Side, unit: int) -> Raw:
    """A raw part of transactions and their nested sides; amounts are in `unit` satoshi."""
    hashes = head.texts("hash")
    if pd.isna(hashes).any():
        raise head.error(int(pd.isna(hashes).argmax()), "hash", "text is missing", "every transaction needs it")
    size, virtual = head.whole("size", default=0), head.whole("virtual_size", default=0)
    spent = inputs.texts("spent_transaction_hash")
    spends = np.zeros(head.rows, dtype=bool)
    spends[inputs.tx[~pd.isna(spent) & (spent != _NO_TRANSACTION)]] = True
    told = head.flags("is_coinbase")
    coinbase = np.array([not spends[tx] if flag is None else flag for tx, flag in enumerate(told)], dtype=bool)
    wrong = coinbase & spends
    if wrong.any():
        row = int(wrong.argmax())
        raise head.error(row, "is_coinbase", "is true, but the transaction spends others", "a coinbase spends nothing")
    transactions = {
        "hash": hashes,
        "block_number": head.whole("block_number"),
        "block_timestamp": head.times("block_timestamp"),
        "index": head.whole("index", default=UNKNOWN),
        "is_coinbase": coinbase,
        "version": head.whole("version", default=1, low=None),
        "lock_time": head.whole("lock_time", default=0),
        "size": size,
        "virtual_size": np.where(virtual > 0, virtual, size),
        # an export without previous outputs states fees below zero
        "fee": np.maximum(head.whole("fee", default=UNKNOWN, unit=unit, low=None), UNKNOWN),
    }
    into = {
        "tx": inputs.tx,
        "index": inputs.index(),
        "spent_transaction_hash": spent,
        "spent_output_index": inputs.whole("spent_output_index", default=UNKNOWN),
        "address": inputs.addresses(),
        "value": inputs.whole("value", default=UNKNOWN, unit=unit),
        "script_type": inputs.types("type"),
        "sequence": inputs.whole("sequence", default=FINAL_SEQUENCE),
    }
    kept = ~coinbase[inputs.tx]
    out = {"tx": outputs.tx, "index": outputs.index(), "value": outputs.whole("value", unit=unit)}
    address, types = _owners(outputs, lambda row: f"{hashes[outputs.tx[row]]}:{out['index'][row]}")
    return Raw(
        transactions,
        {name: values[kept] for name, values in into.items()},
        out | {"address": address, "script_type": types},
    )


def _owners(outputs: Side, outpoint: Callable[[int], str]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int8]]:
    """Address (None for nulldata) and type of each output.

    Where an export has no address, the script's hex stands for it, and where it has neither, the outpoint. Exports of
    some years call every unusual script `nonstandard` and invent an address of that name: the script tells what it is.
    """
    addresses, hexes, types = outputs.addresses(), outputs.texts("script_hex"), outputs.types("type")
    vague = np.isin(types, [scripts.UNKNOWN_TYPE, scripts.TYPE_CODE["nonstandard"]])
    for row in np.flatnonzero(vague & ~pd.isna(hexes)):
        types[row] = scripts.type_of_hex(hexes[row])
    for row in np.flatnonzero((types == scripts.NULLDATA) & ~pd.isna(addresses)):
        if addresses[row].startswith("nonstandard"):
            addresses[row] = None
    for row in np.flatnonzero(pd.isna(addresses) & (types != scripts.NULLDATA)):
        addresses[row] = hexes[row] or outpoint(int(row))
    return addresses, types
