"""JSON lines in the bitcoin-etl schema, one transaction a line, to raw columns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from itertools import islice
from typing import IO, Any

import numpy as np

from btcnb.data.readers.archives import Member
from btcnb.data.readers.builder import FINAL_SEQUENCE, Raw
from btcnb.data.readers.etl_columns import Where, flags, output_owners, required_text, times, type_codes, whole
from btcnb.data.transactions import UNKNOWN
from btcnb.errors import DataError

LINES_A_PART = 5_000
_DECODER = json.JSONDecoder(parse_float=Decimal)

_TRANSACTION = (
    "hash",
    "block_number",
    "block_timestamp",
    "index",
    "is_coinbase",
    "version",
    "lock_time",
    "size",
    "virtual_size",
    "fee",
)
_INPUT = ("index", "spent_transaction_hash", "spent_output_index", "addresses", "value", "type", "sequence", "address")
_OUTPUT = ("index", "script_hex", "addresses", "value", "type", "address")

Line = tuple[int, dict[str, Any]]
Side = dict[str, list[Any]]


def read_json(member: Member, unit: int) -> Iterator[Raw]:
    """The transactions of one file, a part at a time; lines that describe blocks are passed over."""
    with member.open() as stream:
        lines = _transactions(stream, member.source)
        while part := list(islice(lines, LINES_A_PART)):
            yield _raw(part, member.source, unit)


def _transactions(stream: IO[bytes], source: str) -> Iterator[Line]:
    for number, content in enumerate(stream, start=1):
        if not content.strip():
            continue
        try:
            record = _DECODER.decode(content.decode())
        except ValueError as error:
            raise DataError(
                f"{source}, line {number}", "JSON", f"is broken or cut short ({error})", "fix it"
            ) from error
        records = record if isinstance(record, list) else [record]
        for one in records:
            if not isinstance(one, dict):
                raise DataError(f"{source}, line {number}", "JSON", "is not a transaction", "write one object a line")
            if one.get("type") != "block" and "merkle_root" not in one:
                yield number, one


def _raw(lines: list[Line], source: str, unit: int) -> Raw:
    numbers = [number for number, _ in lines]
    for number, record in lines:
        if "outputs" not in record:
            raise DataError(f"{source}, line {number}", "outputs", "is missing", "export whole transactions")
    inputs, outputs = (_side(lines, side, names, source) for side, names in (("inputs", _INPUT), ("outputs", _OUTPUT)))

    def at(field: str) -> Where:
        return lambda row: (f"{source}, line {numbers[row]}", field)

    head = {name: [record.get(name) for _, record in lines] for name in _TRANSACTION}
    size = whole(head["size"], at("size"), default=0)
    told = flags(head["is_coinbase"], at("is_coinbase"))
    coinbase = _coinbases(told, inputs)
    columns = {
        "hash": required_text(head["hash"], at("hash")),
        "block_number": whole(head["block_number"], at("block_number")),
        "block_timestamp": times(head["block_timestamp"], at("block_timestamp")),
        "index": whole(head["index"], at("index"), default=UNKNOWN),
        "is_coinbase": coinbase,
        "version": whole(head["version"], at("version"), default=1, low=None),
        "lock_time": whole(head["lock_time"], at("lock_time"), default=0),
        "size": size,
        "virtual_size": whole([v or s for v, s in zip(head["virtual_size"], size, strict=True)], at("virtual_size")),
        "fee": whole(head["fee"], at("fee"), default=UNKNOWN, unit=unit, low=None),
    }
    into = _inputs(inputs, source, numbers, unit)
    kept = ~coinbase[into["tx"]]
    into = {name: values[kept] for name, values in into.items()}
    return Raw(columns, into, _outputs(outputs, columns["hash"], source, numbers, unit))


def _side(lines: list[Line], side: str, names: tuple[str, ...], source: str) -> Side:
    """The nested items of all lines, a list for each name, with the transaction and the place in it of each item."""
    items: list[dict[str, Any]] = []
    owners: list[int] = []
    positions: list[int] = []
    for tx, (number, record) in enumerate(lines):
        listed = record.get(side) or []
        if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
            raise DataError(f"{source}, line {number}", side, "is not a list of objects", "export nested records")
        items += listed
        owners += [tx] * len(listed)
        positions += range(len(listed))
    return {"tx": owners, "position": positions} | {name: [item.get(name) for item in items] for name in names}


def _coinbases(told: list[bool | None], inputs: Side) -> Any:
    """As told; where not told, a transaction that spends nothing."""
    spends = np.zeros(len(told), dtype=bool)
    for tx, spent in zip(inputs["tx"], inputs["spent_transaction_hash"], strict=True):
        spends[tx] |= spent is not None
    return np.array([not spends[tx] if flag is None else flag for tx, flag in enumerate(told)], dtype=bool)


def _inputs(side: Side, source: str, numbers: list[int], unit: int) -> dict[str, Any]:
    def at(field: str) -> Where:
        return lambda row: (f"{source}, line {numbers[side['tx'][row]]}", f"inputs[{side['position'][row]}].{field}")

    return {
        "tx": np.array(side["tx"], dtype=np.int64),
        "index": whole(_or_position(side), at("index")),
        "spent_transaction_hash": np.array([*side["spent_transaction_hash"], None], dtype=object)[:-1],
        "spent_output_index": whole(side["spent_output_index"], at("spent_output_index"), default=UNKNOWN),
        "address": _joined(side),
        "value": whole(side["value"], at("value"), default=UNKNOWN, unit=unit),
        "script_type": type_codes(side["type"]),
        "sequence": whole(side["sequence"], at("sequence"), default=FINAL_SEQUENCE),
    }


def _outputs(side: Side, hashes: Any, source: str, numbers: list[int], unit: int) -> dict[str, Any]:
    def at(field: str) -> Where:
        return lambda row: (f"{source}, line {numbers[side['tx'][row]]}", f"outputs[{side['position'][row]}].{field}")

    index = whole(_or_position(side), at("index"))
    address, types = output_owners(
        _joined(side),
        np.array([*side["script_hex"], None], dtype=object)[:-1],
        type_codes(side["type"]),
        lambda row: f"{hashes[side['tx'][row]]}:{index[row]}",
    )
    return {
        "tx": np.array(side["tx"], dtype=np.int64),
        "index": index,
        "address": address,
        "value": whole(side["value"], at("value"), unit=unit),
        "script_type": types,
    }


def _or_position(side: Side) -> list[Any]:
    return [p if index is None else index for index, p in zip(side["index"], side["position"], strict=True)]


def _joined(side: Side) -> Any:
    """One string an item: its only address, the addresses of a bare multisig joined by commas, None without any."""
    joined = [
        ",".join(several) if several else one for several, one in zip(side["addresses"], side["address"], strict=True)
    ]
    return np.array([*joined, None], dtype=object)[:-1]
