"""Columns of the bitcoin-etl schema, read as what they should hold, however an export writes it.

A column is an Arrow array (Parquet) or a plain list (JSON): numbers may be text or decimals, times may be epochs or ISO
text, lists may be wrapped into records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, DecimalException
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from btcnb.data.readers import scripts
from btcnb.data.tables import UNKNOWN
from btcnb.errors import DataError

IntArray = npt.NDArray[np.int64]

_SECONDS = 10**11  # a block time in seconds has ten digits
_FINER = 3  # other units of time: milliseconds, microseconds, nanoseconds
_FLAGS = {"true": True, "false": False, "1": True, "0": False}


@dataclass
class Columns:
    """Columns of equal length, read as what they should hold; a `DataError` names place and field.

    place: row -> where it stands, for messages
    """

    columns: Mapping[str, Any]
    rows: int
    place: Callable[[int], str]

    def nested(self, side: str, columns: Mapping[str, Any], tx: IntArray) -> Side:
        """The items of `side`; `tx` is the row that each belongs to."""
        position = np.arange(len(tx)) - np.searchsorted(tx, tx)
        return Side(columns, len(tx), lambda row: self.place(int(tx[row])), side, tx, position)

    def error(self, row: int, name: str, problem: str, remedy: str) -> DataError:
        """An error that names the row's place and the field."""
        return DataError(self.place(row), name, problem, remedy)

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
        for row in _not_unicode(values):
            raise self.error(row, name, f"{_short(values[row])} is no Unicode text", "write text")
        return np.fromiter((value or None for value in values), dtype=object, count=self.rows)

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

    def times(self, name: str) -> IntArray:
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


@dataclass
class Side(Columns):
    """Inputs or outputs (`side`): `tx` is the transaction of each row, `position` its place there."""

    side: str
    tx: IntArray
    position: IntArray

    def error(self, row: int, name: str, problem: str, remedy: str) -> DataError:
        return DataError(self.place(row), f"{self.side}[{self.position[row]}].{name}", problem, remedy)

    def index(self) -> IntArray:
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


def _not_unicode(values: list[Any]) -> list[int]:
    """Rows whose text has half of a surrogate pair, which JSON can write and no file can hold."""
    try:
        "".join(value for value in values if value).encode()
    except UnicodeEncodeError:
        return [
            row for row, value in enumerate(values) if value and any("\ud800" <= sign <= "\udfff" for sign in value)
        ]
    return []


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
