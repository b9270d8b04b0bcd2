"""The gate that every table of transactions and of graphs passes, and the columns of `Transactions`.

Limits are Bitcoin's own: heights, positions, times and sequence numbers are 32-bit, no amount exceeds 21 million coins.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.errors import DataError

SCRIPT_TYPES = (
    "pubkey",
    "pubkeyhash",
    "scripthash",
    "witness_v0_keyhash",
    "witness_v0_scripthash",
    "witness_v1_taproot",
    "multisig",
    "nulldata",
    "nonstandard",
    "unknown",
)
"""Bitcoin Core's names of output script types; a `script_type` column holds the position in this tuple (int8)."""

UNKNOWN = -1
"""Stands for an address, transaction, output or value that the source does not tell."""

TRANSACTION_COLUMNS: dict[str, str] = {
    "hash": "str",
    "block_number": "int64",
    "block_timestamp": "int64",  # unix seconds
    "index": "int64",  # position in the block; 0 is the coinbase
    "is_coinbase": "bool",
    "version": "int64",
    "lock_time": "int64",
    "size": "int64",  # bytes
    "virtual_size": "int64",  # vbytes
    "fee": "int64",  # satoshi; 0 for a coinbase; -1 where an input's value is unknown and the source does not tell it
}
INPUT_COLUMNS: dict[str, str] = {
    "tx": "int64",  # the spending transaction; a coinbase has no row here
    "index": "int64",  # position among the transaction's inputs
    "spent_output": "int64",  # row of `outputs` that is spent, -1 where that output lies outside the table
    "spent_transaction_hash": "str",  # missing where spent_output >= 0: it is then the hash of the output's transaction
    "spent_output_index": "int64",
    "address": "int64",  # id, -1 where unknown
    "value": "int64",  # satoshi, -1 where unknown
    "script_type": "int8",
    "sequence": "int64",
}
OUTPUT_COLUMNS: dict[str, str] = {
    "tx": "int64",
    "index": "int64",
    "address": "int64",  # id; -1 only for outputs nobody can spend (nulldata)
    "value": "int64",
    "script_type": "int8",
}

MAX_MONEY = 21_000_000 * 100_000_000
"""Satoshi that will ever be."""
_WORD = 2**32 - 1
RANGES: dict[str, tuple[int, int]] = {
    "block_number": (0, _WORD),
    "block_timestamp": (0, _WORD),
    "index": (0, _WORD),
    "version": (-(2**31), _WORD),  # told as a signed number, or as an unsigned one
    "lock_time": (0, _WORD),
    "size": (0, _WORD),
    "virtual_size": (0, _WORD),
    "fee": (UNKNOWN, 2**63 - 1),  # the difference of sums
    "spent_output_index": (UNKNOWN, _WORD),
    "inputs.value": (UNKNOWN, MAX_MONEY),
    "value": (0, MAX_MONEY),
    "script_type": (0, len(SCRIPT_TYPES) - 1),
    "sequence": (0, _WORD),
}
"""Column, or table.column, -> least and greatest value."""


def gate(
    table: Mapping[str, Any] | pd.DataFrame,
    kinds: Mapping[str, str],
    source: str,
    name: str,
    unnumbered: bool = False,
) -> dict[str, npt.NDArray[Any]]:
    """The columns that `kinds` names, as arrays of these types, every value inside its range.

    Kinds are NumPy's names of types, "str" (an array of objects), "number" (finite, at least 0), "number or missing",
    and "id or name" (any type). `unnumbered` admits an unknown `index`.
    Raises `DataError` with table, column, row and value otherwise.
    """
    passed = {}
    for column, kind in kinds.items():
        where = f"{name}.{column}"
        if list(table.keys()).count(column) != 1:
            problem = "column stands twice" if column in table else "column is missing"
            raise DataError(source, where, problem, f"expected columns {', '.join(kinds)}")
        missing = np.asarray(pd.isna(table[column]))
        if kind not in ("str", "number or missing") and missing.any():
            raise DataError(source, where, f"row {int(missing.argmax())} is empty or NaN", "fill it in")
        try:
            values = passed[column] = _cast(table[column], kind)
        except (TypeError, ValueError, OverflowError) as error:
            raise DataError(source, where, f"cannot be read as {kind} ({error})", "fix the values") from error
        if kind.startswith("number"):
            require(
                missing | ((values >= 0) & (values < np.inf)), values, source, where, "write finite numbers from 0 on"
            )
        if kind == "id or name":
            require(
                ~pd.Series(values).isin(["", np.inf, -np.inf]).to_numpy(),
                values,
                source,
                where,
                "write a number or a name",
            )
        low, high = RANGES.get(where) or RANGES.get(column) or (None, None)
        if low is not None and high is not None:
            low = UNKNOWN if unnumbered and column == "index" else low
            require(values >= low, values, source, where, f"expected at least {low}")
            require(values <= high, values, source, where, f"expected at most {high}")
        if column in ("value", "fee") and np.maximum(values, 0).sum(dtype=np.float64) >= 2**63:
            raise DataError(source, where, "the sum of all does not fit 64 bits", "check the unit of the amounts")
    return passed


def require(fits: npt.NDArray[Any], values: npt.NDArray[Any], source: str, where: str, remedy: str) -> None:
    """Raise `DataError` with the first row that does not fit."""
    if not fits.all():
        row = int(np.argmin(fits))
        raise DataError(source, where, f"row {row} holds {values[row]}", remedy)


def require_spent_once(inputs: Mapping[str, npt.NDArray[Any]], outside: npt.NDArray[np.bool_], source: str) -> None:
    """Refuse two inputs that spend one output outside the table; of those inside, `Transactions.checked` knows."""
    told = pd.DataFrame({name: inputs[name][outside] for name in ("spent_transaction_hash", "spent_output_index")})
    told = told[told["spent_transaction_hash"].notna()]
    again = told.duplicated()
    if again.any():
        name, number = told[again].iloc[0]
        problem = f"output {number} of {name} is spent twice"
        raise DataError(source, "inputs.spent_output_index", problem, "drop the duplicate transaction")


def content_hash(tables: Iterable[pd.DataFrame], *parts: Any) -> str:
    """A hash of tables, arrays and plain values: equal for equal content, also across processes."""
    digest = hashlib.sha256()
    for table in tables:
        for name in table.columns:
            digest.update(str(name).encode())
            digest.update(pd.util.hash_pandas_object(table[name], index=False).to_numpy().tobytes())
    for part in parts:
        digest.update(pd.util.hash_array(part).tobytes() if isinstance(part, np.ndarray) else repr(part).encode())
    return digest.hexdigest()[:16]


def texts(values: Any, source: str, where: str) -> npt.NDArray[Any]:
    """An object array of strings that can be written down, none of them empty."""
    array = np.asarray(values, dtype=object)
    if array.ndim != 1:
        raise DataError(source, where, f"has {array.ndim} dimensions", "give a list of texts")
    if not (set(map(type, array)) <= {str} and all(array)):  # all at once; one by one only to name the row
        fits = np.fromiter((type(value) is str and value != "" for value in array), dtype=bool, count=len(array))
        require(fits, array, source, where, "expected text")
    return writable(array, source, where)


def writable(values: Any, source: str, where: str) -> npt.NDArray[Any]:
    """An object array of strings that can be written down; they may be empty."""
    array = np.asarray(values, dtype=object)
    if not set(map(type, array)) <= {str, np.str_}:
        fits = np.fromiter((isinstance(value, str) for value in array), dtype=bool, count=len(array))
        require(fits, array, source, where, "expected text")
    try:
        "".join(array).encode()
    except UnicodeEncodeError as error:
        raise DataError(source, where, f"holds text that is no Unicode ({error.reason})", "fix the text") from error
    return array


def plain(text: Any) -> str:
    """Text from data for one line of a message or page: what cannot be printed becomes a blank."""
    told = str(text)
    return told if told.isprintable() else "".join(letter if letter.isprintable() else " " for letter in told)


def _cast(values: Any, kind: str) -> npt.NDArray[Any]:
    """`values` as `kind`, refusing what a plain cast would silently change: fractions, overflow, "False" as True."""
    series = pd.Series(values, dtype=getattr(values, "dtype", None))  # objects stay objects: no detour over Arrow
    if kind == "str":
        array = series.astype(object).where(series.notna(), None).to_numpy()
        _require_types(array, str, type(None))
        return array
    if kind == "bool":
        if not series.isin([True, False]).all():
            raise ValueError("only true and false are allowed")
        return series.to_numpy(dtype=bool)
    if kind == "id or name":
        return series.to_numpy()
    if kind.startswith("number"):
        if series.dtype.kind not in "iuf":
            raise TypeError(f"{series.dtype} are not numbers")
        return series.to_numpy() if isinstance(series.dtype, np.dtype) else series.to_numpy(np.float64, na_value=np.nan)
    if series.dtype == object:
        _require_types(series, int, np.integer)
    elif series.dtype.kind not in "iuf":
        raise TypeError(f"{series.dtype} are not numbers")
    elif series.dtype.kind == "f" and (series % 1 != 0).any():  # true for infinity too
        raise ValueError(f"{series[series % 1 != 0].iloc[0]} is not a whole number")
    limits = np.iinfo(kind)
    if len(series) and not limits.min <= int(series.min()) <= int(series.max()) <= limits.max:
        raise ValueError(f"{series.min()} to {series.max()} is out of range")
    return series.to_numpy(dtype=kind)


def _require_types(values: Any, *types: type) -> None:
    for found in set(map(type, values)):
        if not issubclass(found, types) or found is bool:
            raise TypeError(f"{found.__name__} among them")
