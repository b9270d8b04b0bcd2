"""The container every data source ends in: transactions, their inputs and their outputs, as columns.

Three pandas tables linked by integer ids, plus the address book. An id is a row position: transaction `t` is row `t` of
`transactions`, address `a` is `addresses[a]`. Names follow the bitcoin-etl schema wherever that schema has one. Amounts
are int64 satoshi. Transactions stand in chain order, by `(block_number, index)`; nothing is spent before it is made.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.errors import DataError
from btcnb.store import storable

IntArray = npt.NDArray[np.int64]

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


@storable("truth")
@dataclass(frozen=True)
class Truth:
    """What only a simulator (or a wallet's owner) knows. Every array is aligned with the ids of its `Transactions`.

    owner:     int64 per address, the entity that controls it (-1 unknown)
    entities:  one row per entity id: `kind` (exchange, pool, merchant, user, …) and `name`
    label:     object/str per address, the entity name where the address is publicly labelled, "" elsewhere
    coinjoin:  str per transaction, the protocol name as in `detect_coinjoins`, "" for none
    change:    int64 per transaction, the output `index` that is change, -1 where there is none or more than one
    """

    owner: IntArray
    entities: pd.DataFrame = field(default_factory=lambda: pd.DataFrame({"kind": [], "name": []}))
    label: npt.NDArray[Any] | None = None
    coinjoin: npt.NDArray[Any] | None = None
    change: IntArray | None = None


@storable("transactions")
@dataclass(frozen=True)
class Transactions:
    """Transactions in columns. Build one with `Transactions.checked`, which validates; treat the tables as read-only.

    A source may add columns of its own to the right of the contract's (Dumplings adds `file`); they follow `select`.
    """

    transactions: pd.DataFrame
    inputs: pd.DataFrame
    outputs: pd.DataFrame
    addresses: npt.NDArray[Any]  # object array of str, position = id
    truth: Truth | None = None
    source: str = "unknown"  # where it came from, shown in provenance; starts with "simulated" for simulated data

    @classmethod
    def checked(
        cls,
        transactions: pd.DataFrame,
        inputs: pd.DataFrame,
        outputs: pd.DataFrame,
        addresses: npt.NDArray[Any],
        truth: Truth | None = None,
        source: str = "unknown",
    ) -> Transactions:
        """Cast columns to the contract's types, check ids, order and amounts; raise `DataError` on the first breach.

        Columns that the contract does not name are dropped.
        """
        txs = cls(
            _typed(transactions, TRANSACTION_COLUMNS, source, "transactions"),
            _typed(inputs, INPUT_COLUMNS, source, "inputs"),
            _typed(outputs, OUTPUT_COLUMNS, source, "outputs"),
            addresses=np.asarray(addresses, dtype=object),
            truth=truth,
            source=source,
        )
        txs._check()
        return txs

    def __len__(self) -> int:
        return len(self.transactions)

    @property
    def num_addresses(self) -> int:
        return len(self.addresses)

    def spent_by(self) -> IntArray:
        """Per output row: the id of the transaction that spends it, -1 while unspent."""
        spender = np.full(len(self.outputs), UNKNOWN, dtype=np.int64)
        spent = self.inputs["spent_output"].to_numpy()
        inside = spent >= 0
        spender[spent[inside]] = self.inputs["tx"].to_numpy()[inside]
        return spender

    def input_offsets(self) -> IntArray:
        """CSR offsets: the inputs of transaction t are rows offsets[t]:offsets[t+1] of `inputs`."""
        return _offsets(self.inputs["tx"].to_numpy(), len(self))

    def output_offsets(self) -> IntArray:
        """CSR offsets: the outputs of transaction t are rows offsets[t]:offsets[t+1] of `outputs`."""
        return _offsets(self.outputs["tx"].to_numpy(), len(self))

    def select(self, keep: npt.NDArray[Any]) -> Transactions:
        """The transactions with the given ids (or boolean mask), in chain order, with ids renumbered from 0.

        Addresses that no longer occur are dropped. An input whose spent output falls away keeps its address and value
        and gets the spent transaction's hash. Truth follows its addresses and transactions.
        """
        from btcnb.data._select import select

        return select(self, keep)

    def fingerprint(self) -> str:
        """A hash of the content: equal for equal bytes, also across processes."""
        digest = hashlib.sha256()
        for table in (self.transactions, self.inputs, self.outputs):
            for name in table.columns:
                column = table[name]
                digest.update(name.encode())
                digest.update(
                    np.ascontiguousarray(pd.util.hash_pandas_object(column, index=False).to_numpy()).tobytes()
                )
        digest.update(pd.util.hash_array(self.addresses).tobytes())
        return digest.hexdigest()[:16]

    def with_source(self, source: str) -> Transactions:
        return replace(self, source=source)

    def _check(self) -> None:
        self._check_order()
        number = len(self.transactions)
        for name, table in (("inputs", self.inputs), ("outputs", self.outputs)):
            self._check_ids(name, table, "tx", 0, number)
            self._check_ids(name, table, "address", UNKNOWN, len(self.addresses))
            self._check_ids(name, table, "value", UNKNOWN if name == "inputs" else 0, None)
            self._check_ids(name, table, "script_type", 0, len(SCRIPT_TYPES))
            tx, index = table["tx"].to_numpy(), table["index"].to_numpy()
            step = np.diff(tx)
            if ((step < 0) | ((step == 0) & (np.diff(index) <= 0))).any():
                raise DataError(
                    self.source, f"{name}.tx", "rows are not grouped in transaction order", "sort by tx, then index"
                )
        self._check_spends()
        self._check_truth()

    def _check_order(self) -> None:
        order = self.transactions[["block_number", "index"]].to_numpy()
        step = np.diff(order[:, 0])
        bad = (step < 0) | ((step == 0) & (np.diff(order[:, 1]) <= 0))
        if bad.any():
            raise DataError(
                self.source,
                "block_number, index",
                f"row {int(bad.argmax()) + 1} is out of chain order",
                "sort by block and position, and keep one row per position",
            )

    def _check_spends(self) -> None:
        self._check_ids("inputs", self.inputs, "spent_output", UNKNOWN, len(self.outputs))
        rows = np.flatnonzero(self.inputs["spent_output"].to_numpy() >= 0)
        spent = self.inputs["spent_output"].to_numpy()[rows]
        values, counts = np.unique(spent, return_counts=True)
        if (counts > 1).any():
            raise DataError(
                self.source,
                "inputs.spent_output",
                f"output row {values[counts > 1][0]} is spent twice",
                "drop the duplicate transaction",
            )
        early = self.outputs["tx"].to_numpy()[spent] >= self.inputs["tx"].to_numpy()[rows]
        if early.any():
            raise DataError(
                self.source,
                "inputs.spent_output",
                f"input row {rows[early.argmax()]} spends an output that is not made yet",
                "put the spending transaction after the one it spends from",
            )

    def _check_truth(self) -> None:
        if self.truth is None:
            return
        per_address, per_transaction = self.num_addresses, len(self)
        lengths = {
            "owner": per_address,
            "label": per_address,
            "coinjoin": per_transaction,
            "change": per_transaction,
        }
        for name, number in lengths.items():
            array = getattr(self.truth, name)
            if array is not None and len(array) != number:
                raise DataError(
                    self.source, f"truth.{name}", f"holds {len(array)} entries", f"expected one for each of {number}"
                )

    def _check_ids(self, name: str, table: pd.DataFrame, column: str, low: int, high: int | None) -> None:
        values = table[column].to_numpy()
        bad = values < low
        if high is not None:
            bad |= values >= high
        if bad.any():
            row = int(bad.argmax())
            raise DataError(
                self.source,
                f"{name}.{column}",
                f"row {row} holds {values[row]}",
                f"expected at least {low}" + (f" and below {high}" if high is not None else ""),
            )


def _offsets(groups: IntArray, number: int) -> IntArray:
    return np.searchsorted(groups, np.arange(number + 1)).astype(np.int64)


def _typed(table: pd.DataFrame, columns: dict[str, str], source: str, name: str) -> pd.DataFrame:
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise DataError(source, f"{name}.{missing[0]}", "column is missing", f"expected columns {', '.join(columns)}")
    typed = {}
    for column, kind in columns.items():
        values = table[column]
        if kind != "str" and values.isna().any():
            raise DataError(
                source,
                f"{name}.{column}",
                f"row {int(values.isna().to_numpy().argmax())} is empty or NaN",
                f"fill it with {kind} values",
            )
        try:
            typed[column] = _cast(values, kind)
        except (TypeError, ValueError, OverflowError) as error:
            raise DataError(
                source, f"{name}.{column}", f"cannot be read as {kind} ({error})", "fix the values"
            ) from error
    return pd.DataFrame(typed).reset_index(drop=True)


def _cast(values: pd.Series, kind: str) -> pd.Series:
    """`values` as `kind`, refusing what a plain cast would silently change: fractions, overflow, "False" as True."""
    if kind == "str":
        return values.astype("str")
    if kind == "bool":
        if not values.isin([True, False]).all():
            raise ValueError("only true and false are allowed")
        return values.astype(bool)
    if pd.api.types.is_float_dtype(values) and (values % 1 != 0).any():
        raise ValueError(f"{values[values % 1 != 0].iloc[0]} is not a whole number")
    cast = values.astype("int64")
    if kind == "int8":
        if ((cast < -128) | (cast > 127)).any():
            raise ValueError(f"{cast.abs().max()} is out of range")
        return cast.astype("int8")
    return cast
