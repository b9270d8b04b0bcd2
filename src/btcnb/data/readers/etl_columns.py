"""Columns as bitcoin-etl exports write them (numbers, texts, decimals, times, lists) to a raw part.

Parquet and JSON end here alike: a column is an Arrow array or a plain list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal, DecimalException
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from btcnb.data.contract import UNKNOWN
from btcnb.data.readers import scripts
from btcnb.data.readers.builder import FINAL_SEQUENCE, Raw
from btcnb.errors import DataError

Where = Callable[[int, str], tuple[str, str]]
"""Row and column -> (place, field), for messages."""

SATOSHI_PER = {"satoshi": 1, "btc": 100_000_000}
_NULLDATA = scripts.TYPE_CODE["nulldata"]
_SECONDS = 10**11  # a block time in seconds has ten digits
_FINER = 3  # units it may be told in otherwise: milliseconds, microseconds, nanoseconds
_NO_TRANSACTION = "0" * 64  # what some exports let a coinbase spend
_FLAGS = {"true": True, "false": False, "1": True, "0": False}


class Columns:
    """Columns of equal length, read as what they should hold; a `DataError` names place and field."""

    def __init__(self, columns: Mapping[str, Any], rows: int, where: Where) -> None:
        self.columns, self.rows, self.where = columns, rows, where

    def nested(self, side: str, columns: Mapping[str, Any], tx: npt.NDArray[np.int64]) -> Side:
        """The items of `side`; `tx` is the row that each belongs to."""
        position = np.arange(len(tx)) - np.searchsorted(tx, tx)

        def where(row: int, name: str) -> tuple[str, str]:
            return self.where(int(tx[row]), "")[0], f"{side}[{position[row]}].{name}"

        return Side(columns, tx, position, where)

    def values(self, name: str) -> list[Any]:
        column = self.columns.get(name)
        if column is None:
            return [None] * self.rows
        return column if isinstance(column, list) else column.to_pylist()

    def texts(self, name: str) -> npt.NDArray[Any]:
        """Object array of str or None; an empty text counts as None."""
        values = self.values(name)
        if not set(map(type, values)) <= {str, type(None)}:
            row = next(row for row, value in enumerate(values) if not isinstance(value, str | None))
            raise self.error(row, name, f"{_short(values[row])} stands where text belongs", "write text")
        return np.fromiter((value or None for value in values), dtype=object, count=self.rows)

    def required_texts(self, name: str) -> npt.NDArray[Any]:
        found = self.texts(name)
        absent = pd.isna(found)
        if absent.any():
            raise self.error(int(absent.argmax()), name, "text is missing", "every transaction needs it")
        return found

    def whole(self, name: str, default: int | None = None, unit: int = 1, low: int | None = 0) -> Any:
        """Whole numbers, times `unit`; `default` stands for None. None without one, or below `low`, is an error."""
        column = self.columns.get(name)
        numbers, known = _integers(column)
        if numbers is not None and (default is not None or known.all()):
            limit = (2**63 - 1) // unit
            fits = (numbers >= (-limit if low is None else low)) & (numbers <= limit)
            if fits[known].all():
                return np.where(known, numbers * unit, default or 0)
        found = (self._whole(value, row, name, default, unit, low) for row, value in enumerate(self.values(name)))
        return np.fromiter(found, dtype=np.int64, count=self.rows)

    def _whole(self, value: Any, row: int, name: str, default: int | None, unit: int, low: int | None) -> int:
        if value is None and default is None:
            raise self.error(row, name, "is missing", "every row needs it")
        if value is None:
            return default or 0
        try:
            number = Decimal(value if type(value) is int else str(value)) * unit
            if isinstance(value, bool) or abs(number) >= 2**63 or number != int(number):
                raise ValueError
        except (DecimalException, ValueError, OverflowError):
            remedy = "amounts are in satoshi; pass unit='btc' if these are bitcoin" if unit == 1 else "check the unit"
            raise self.error(row, name, f"{_short(value)} is not a whole number", remedy) from None
        if low is not None and number < low:
            raise self.error(row, name, f"{_short(value)} is negative", f"it is at least {low}")
        return int(number)

    def flags(self, name: str) -> list[bool | None]:
        """True, False or None, also written as text or as 1 and 0."""
        values = self.values(name)
        if set(map(type, values)) <= {bool, type(None)}:
            return values
        found: list[bool | None] = []
        for row, value in enumerate(values):
            flag = None if value is None else _FLAGS.get(str(value).lower())
            if flag is None and value is not None:
                raise self.error(row, name, f"{_short(value)} is neither true nor false", "write true or false")
            found.append(flag)
        return found

    def times(self, name: str) -> npt.NDArray[np.int64]:
        """Unix seconds from epoch numbers (seconds to nanoseconds, by magnitude) or ISO text; None becomes 0."""
        column = self.columns.get(name)
        if column is not None and not isinstance(column, list) and pa.types.is_timestamp(column.type):
            seconds = column.cast(pa.timestamp("s", column.type.tz), safe=False)
            return seconds.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        numbers, known = _integers(column)
        if numbers is not None:
            for _ in range(_FINER):
                numbers = np.where(numbers > _SECONDS, numbers // 1000, numbers)
            return np.where(known, numbers, 0)
        seen: dict[str, int | None] = {"": 0}
        texts = ["" if value is None else str(value) for value in self.values(name)]
        for row, text in enumerate(texts):
            if seen.setdefault(text, _time(text)) is None:
                raise self.error(row, name, f"{_short(text)} is not a time", "write unix seconds or ISO 8601")
        return np.fromiter((seen[text] for text in texts), dtype=np.int64, count=len(texts))

    def types(self, name: str) -> npt.NDArray[np.int8]:
        """Positions in `SCRIPT_TYPES`; a name it does not have, or None, is "unknown"."""
        codes, distinct = pd.factorize(self.texts(name))
        table = [scripts.TYPE_CODE.get(one, scripts.UNKNOWN_TYPE) for one in distinct] + [scripts.UNKNOWN_TYPE]
        return np.array(table, dtype=np.int8)[codes]

    def error(self, row: int, name: str, problem: str, remedy: str) -> DataError:
        return DataError(*self.where(row, name), problem, remedy)


class Side(Columns):
    """Inputs or outputs: `tx` is the transaction of each row, `position` its place there."""

    def __init__(self, columns: Mapping[str, Any], tx: Any, position: Any, where: Where) -> None:
        super().__init__(columns, len(tx), where)
        self.tx, self.position = tx, position

    def index(self) -> npt.NDArray[np.int64]:
        """The items' own `index`, or their place in the list."""
        told = self.whole("index", default=UNKNOWN)
        return np.where(told < 0, self.position, told)

    def addresses(self) -> npt.NDArray[Any]:
        """One text an item: its only address, those of a bare multisig joined by commas, None without any.

        `addresses` is a list of texts, or one text, which is one address; where it is empty, `address` counts.
        """
        column = self.columns.get("addresses")
        one = self.texts("address")
        if column is None:
            return one
        if _lists_of_text(column):
            joined = pc.binary_join(column, ",").to_pylist()
        else:
            joined = [self._joined(value, row) for row, value in enumerate(self.values("addresses"))]
        return np.fromiter(map(lambda several, single: several or single, joined, one), dtype=object, count=self.rows)

    def _joined(self, value: Any, row: int) -> str | None:
        several = _unwrapped(value)
        several = [several] if isinstance(several, str) else [] if several is None else several
        several = [_unwrapped(one) for one in several] if isinstance(several, list) else [several]
        if not all(isinstance(one, str) for one in several):
            raise self.error(row, "addresses", f"{_short(value)} is no list of texts", "list addresses as text")
        return ",".join(several) or None


def part(head: Columns, inputs: Side, outputs: Side, unit: int) -> Raw:
    """A raw part of transactions and their nested sides; amounts are in `unit` satoshi."""
    hashes = head.required_texts("hash")
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
        types[row] = scripts.script_type(hexes[row])
    for row in np.flatnonzero((types == _NULLDATA) & ~pd.isna(addresses)):
        if addresses[row].startswith("nonstandard"):
            addresses[row] = None
    for row in np.flatnonzero(pd.isna(addresses) & (types != _NULLDATA)):
        addresses[row] = hexes[row] or outpoint(int(row))
    return addresses, types


def _integers(column: Any) -> tuple[Any, Any]:
    """Numbers and which of them are told, if the column plainly holds integers; else None twice."""
    try:
        if column is None:
            return None, None
        if isinstance(column, list):
            if set(map(type, column)) <= {int}:
                return np.array(column, dtype=np.int64), np.ones(len(column), dtype=bool)
        elif pa.types.is_integer(column.type):
            numbers = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
            return numbers, column.is_valid().to_numpy(zero_copy_only=False)
    except (OverflowError, pa.ArrowInvalid):
        pass
    return None, None


def _lists_of_text(column: Any) -> bool:
    if isinstance(column, list) or not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
        return False
    return pa.types.is_string(column.type.value_type) and not column.flatten().null_count


def _unwrapped(value: Any) -> Any:
    """Some exports wrap a list into a record `list`, and each item into a record `element`."""
    return next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else value


def _time(text: str) -> int | None:
    try:
        number = Decimal(text)
        for _ in range(_FINER):
            number = number / 1000 if number > _SECONDS else number
        return int(number) if abs(number) <= _SECONDS else None
    except (DecimalException, OverflowError):
        pass
    try:
        moment = datetime.fromisoformat(text.replace(" UTC", "+00:00"))
    except ValueError:
        return None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def _short(value: Any) -> str:
    text = str(value) if isinstance(value, Decimal | int) else repr(value)
    return text if len(text) <= 60 else f"{text[:40]}…{text[-12:]}"
