"""Parquet in the bitcoin-etl schema, nested, to raw columns; flattened by Arrow, without a Python loop a row."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from btcnb.data.readers.archives import Member
from btcnb.data.readers.builder import FINAL_SEQUENCE, Raw
from btcnb.data.readers.etl_columns import Where, flags, output_owners, required_text, times, type_codes, whole
from btcnb.data.transactions import UNKNOWN
from btcnb.errors import DataError

ROWS_A_PART = 50_000


def read_parquet(member: Member, unit: int) -> Iterator[Raw]:
    """The transactions of one file, a part at a time."""
    try:
        file = pq.ParquetFile(member.path if member.inner is None else io.BytesIO(member.read()))
        wanted = [name for name in file.schema_arrow.names if name not in ("script_asm", "block_hash")]
        for column in ("hash", "block_number", "outputs"):
            if column not in wanted:
                raise DataError(member.source, column, "column is missing", "export nested transactions")
        first = 0
        for batch in file.iter_batches(ROWS_A_PART, columns=wanted):
            yield _raw(batch, member.source, first, unit)
            first += len(batch)
    except pa.ArrowException as error:
        raise DataError(member.source, "Parquet", f"is broken or cut short ({error})", "fetch it again") from error


class _Columns:
    """The columns of a record batch or of a nested side, each as values or as whole numbers."""

    def __init__(self, arrays: dict[str, Any], rows: int, where: Where, prefix: str = "") -> None:
        self.arrays, self.rows, self._where, self._prefix = arrays, rows, where, prefix

    def __contains__(self, name: str) -> bool:
        return name in self.arrays

    def at(self, name: str) -> Where:
        def where(row: int) -> tuple[str, str]:
            place, field = self._where(row)
            return place, f"{field}{self._prefix}{name}"

        return where

    def values(self, name: str) -> list[Any]:
        return self.arrays[name].to_pylist() if name in self.arrays else [None] * self.rows

    def text(self, name: str) -> Any:
        """Object array of str or None."""
        return np.array([*self.values(name), None], dtype=object)[:-1]

    def whole(self, name: str, default: int | None = None, unit: int = 1, low: int | None = 0) -> Any:
        array = self.arrays.get(name)
        if array is not None and pa.types.is_integer(array.type) and (default is not None or not array.null_count):
            numbers = array.cast(pa.int64()).fill_null(default or 0).to_numpy(zero_copy_only=False)
            present = array.is_valid().to_numpy(zero_copy_only=False)
            if low is None or not (numbers[present] < low).any():
                return np.where(present, numbers * unit, numbers)
        return whole(self.values(name), self.at(name), default, unit, low)

    def times(self, name: str) -> Any:
        array = self.arrays.get(name)
        if array is not None and pa.types.is_timestamp(array.type):
            zone = pa.timestamp("s", array.type.tz)
            return array.cast(zone, safe=False).cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        return times(self.values(name), self.at(name))


def _raw(batch: Any, source: str, first: int, unit: int) -> Raw:
    rows = len(batch)
    head = _Columns(
        dict(zip(batch.schema.names, batch.columns, strict=True)), rows, lambda r: (_place(source, first, r), "")
    )
    inputs, input_tx = _side(head, "inputs", source, first)
    outputs, output_tx = _side(head, "outputs", source, first)
    hashes = required_text(head.values("hash"), head.at("hash"))
    size = head.whole("size", default=0)
    virtual = head.whole("virtual_size", default=0)
    told = flags(head.values("is_coinbase"), head.at("is_coinbase"))
    spends = np.zeros(rows, dtype=bool)
    spent_hash = inputs.text("spent_transaction_hash")
    spends[input_tx[spent_hash != None]] = True  # noqa: E711  # element by element
    coinbase = np.array([not spends[tx] if flag is None else flag for tx, flag in enumerate(told)], dtype=bool)
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
        "fee": head.whole("fee", default=UNKNOWN, unit=unit, low=None),
    }
    into = {
        "tx": input_tx,
        "index": _positions(inputs, input_tx),
        "spent_transaction_hash": spent_hash,
        "spent_output_index": inputs.whole("spent_output_index", default=UNKNOWN),
        "address": _joined(inputs),
        "value": inputs.whole("value", default=UNKNOWN, unit=unit),
        "script_type": type_codes(inputs.values("type")),
        "sequence": inputs.whole("sequence", default=FINAL_SEQUENCE),
    }
    kept = ~coinbase[input_tx]
    index = _positions(outputs, output_tx)
    address, types = output_owners(
        _joined(outputs),
        outputs.text("script_hex"),
        type_codes(outputs.values("type")),
        lambda row: f"{hashes[output_tx[row]]}:{index[row]}",
    )
    out = {
        "tx": output_tx,
        "index": index,
        "address": address,
        "value": outputs.whole("value", unit=unit),
        "script_type": types,
    }
    return Raw(transactions, {name: values[kept] for name, values in into.items()}, out)


def _place(source: str, first: int, row: int) -> str:
    return f"{source}, row {first + row}"


def _side(head: _Columns, name: str, source: str, first: int) -> tuple[_Columns, Any]:
    """The nested rows of `inputs` or `outputs`, and the transaction of each."""
    if name not in head:
        return _Columns({}, 0, head.at(name)), np.zeros(0, dtype=np.int64)
    array = head.arrays[name]
    if pa.types.is_struct(array.type) and array.type.num_fields == 1:
        array = array.field(0)  # some exports wrap the list into a record `list`
    if not pa.types.is_list(array.type) and not pa.types.is_large_list(array.type):
        raise DataError(source, name, f"holds {array.type}, not a list of records", "export nested transactions")
    tx = pc.list_parent_indices(array).to_numpy().astype(np.int64)
    items = pc.list_flatten(array)
    if pa.types.is_struct(items.type) and items.type.num_fields == 1:
        items = items.field(0)  # … and each item into a record `element`
    fields = {field.name: items.field(position) for position, field in enumerate(items.type)}
    positions = np.arange(len(tx)) - np.searchsorted(tx, tx)
    return _Columns(
        fields, len(tx), lambda row: (_place(source, first, int(tx[row])), f"{name}[{positions[row]}]"), "."
    ), tx


def _positions(side: _Columns, tx: Any) -> Any:
    """The items' own `index`, or their place in the list."""
    if "index" in side and not side.arrays["index"].null_count:
        return side.whole("index")
    return np.arange(len(tx)) - np.searchsorted(tx, tx)


def _joined(side: _Columns) -> Any:
    """One string an item: its only address, the addresses of a bare multisig joined by commas, None without any."""
    if "addresses" not in side:
        return side.text("address")
    array = side.arrays["addresses"]
    if pa.types.is_struct(array.type) and array.type.num_fields == 1:
        array = array.field(0)
        array = pa.array([[item["element"] for item in items] if items else items for items in array.to_pylist()])
    joined = pc.binary_join(array, ",").to_pylist()
    return np.array([text or None for text in joined] + [None], dtype=object)[:-1]
