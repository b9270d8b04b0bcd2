"""Values as bitcoin-etl exports write them (numbers, strings, decimals, times) to the container's columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.data.readers import scripts
from btcnb.errors import DataError

Where = Callable[[int], tuple[str, str]]
"""Row -> (place, field), for messages."""

SATOSHI_PER = {"satoshi": 1, "btc": 100_000_000}
_NULLDATA = scripts.TYPE_CODE["nulldata"]


def whole(
    values: Sequence[Any], where: Where, default: int | None = None, unit: int = 1, low: int | None = 0
) -> npt.NDArray[np.int64]:
    """Whole numbers, times `unit`; `default` stands for None. None without a default, or below `low`, is an error."""
    if set(map(type, values)) <= {int}:
        try:
            found = np.array(values, dtype=np.int64) * unit
        except OverflowError:
            found = np.fromiter((_whole(v, where, row, default, unit) for row, v in enumerate(values)), dtype=np.int64)
        absent = np.zeros(len(found), dtype=bool)
    else:
        numbers = [_whole(value, where, row, default, unit) for row, value in enumerate(values)]
        found = np.array(numbers, dtype=np.int64)
        absent = np.fromiter((value is None for value in values), dtype=bool, count=len(values))
    bad = ~absent & (found < low) if low is not None else np.zeros(len(found), dtype=bool)
    if bad.any():
        row = int(bad.argmax())
        raise DataError(*where(row), f"{values[row]} is negative", f"it is at least {low}")
    return found


def _whole(value: Any, where: Where, row: int, default: int | None, unit: int) -> int:
    if value is None:
        if default is None:
            raise DataError(*where(row), "is missing", "every row needs it")
        return default
    try:
        number = Decimal(str(value)) * unit
        if isinstance(value, bool) or number != int(number) or abs(number) >= 2**63:
            raise ValueError
    except (InvalidOperation, ValueError, OverflowError):
        remedy = "amounts are in satoshi; pass unit='btc' if these are bitcoin" if unit == 1 else "check the unit"
        shown = str(value) if isinstance(value, Decimal) else repr(value)
        raise DataError(*where(row), f"{shown} is not a whole number", remedy) from None
    return int(number)


def flags(values: Sequence[Any], where: Where) -> list[bool | None]:
    """True, False or None, also written as text."""
    known = {True: True, False: False, None: None, "true": True, "false": False, "True": True, "False": False}
    for row, value in enumerate(values):
        if value not in known:
            raise DataError(*where(row), f"{value!r} is neither true nor false", "write true or false")
    return [known[value] for value in values]


def times(values: Sequence[Any], where: Where) -> npt.NDArray[np.int64]:
    """Unix seconds from epoch numbers (seconds to nanoseconds, by magnitude) or ISO text; None becomes 0."""
    seen: dict[Any, int] = {None: 0}
    for row, value in enumerate(values):
        if value not in seen:
            seen[value] = _time(value, where, row)
    return np.fromiter((seen[value] for value in values), dtype=np.int64, count=len(values))


def _time(value: Any, where: Where, row: int) -> int:
    try:
        number = Decimal(str(value))
        while number > 10**11:  # milliseconds, microseconds, nanoseconds: a block time in seconds has ten digits
            number /= 1000
        return int(number)
    except InvalidOperation:
        pass
    try:
        moment = datetime.fromisoformat(str(value).replace(" UTC", "+00:00"))
    except ValueError:
        raise DataError(*where(row), f"{value!r} is not a time", "write unix seconds or ISO 8601") from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def required_text(values: Sequence[Any], where: Where) -> npt.NDArray[Any]:
    """An object array of non-empty strings."""
    for row, value in enumerate(values):
        if not isinstance(value, str) or not value:
            raise DataError(*where(row), f"{value!r} stands where text belongs", "every transaction needs it")
    return np.fromiter(values, dtype=object, count=len(values))


def type_codes(names: Sequence[Any]) -> npt.NDArray[np.int8]:
    """Positions in `SCRIPT_TYPES`; a name it does not have, or None, is "unknown"."""
    codes, distinct = pd.factorize(np.array([*names, None], dtype=object)[:-1])
    table = np.array([scripts.TYPE_CODE.get(name, scripts.UNKNOWN_TYPE) for name in distinct] + [scripts.UNKNOWN_TYPE])
    return table.astype(np.int8)[codes]


def output_owners(
    addresses: npt.NDArray[Any], hexes: npt.NDArray[Any], types: npt.NDArray[np.int8], outpoints: Callable[[int], str]
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int8]]:
    """Address (None for nulldata) and type of each output.

    Where an export has no address, the script's hex stands for it, and where it has neither, the outpoint. Exports of
    some years call every unusual script `nonstandard` and invent an address of that name: the script tells what it is.
    """
    addresses, types = addresses.copy(), types.copy()
    vague = np.isin(types, [scripts.UNKNOWN_TYPE, scripts.TYPE_CODE["nonstandard"]])
    for row in np.flatnonzero(vague & ~pd.isna(hexes)):
        if hexes[row]:
            types[row] = scripts.script_type(hexes[row])
    for row in np.flatnonzero(types == _NULLDATA):
        if addresses[row] is not None and addresses[row].startswith("nonstandard"):
            addresses[row] = None
    for row in np.flatnonzero(pd.isna(addresses) & (types != _NULLDATA)):
        addresses[row] = hexes[row] or outpoints(int(row))
    return addresses, types
