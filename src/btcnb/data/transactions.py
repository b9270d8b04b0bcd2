"""The container every data source ends in: transactions, their inputs and their outputs, as columns.

Three pandas tables linked by integer ids, plus the address book. An id is a row position: transaction `t` is row `t` of
`transactions`, address `a` is `addresses[a]`. Names follow the bitcoin-etl schema wherever that schema has one. Amounts
are int64 satoshi. Transactions stand in chain order, by `(block_number, index)`; nothing is spent before it is made.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from btcnb.data.tables import (
    INPUT_COLUMNS,
    OUTPUT_COLUMNS,
    SCRIPT_TYPES,
    TRANSACTION_COLUMNS,
    UNKNOWN,
    content_hash,
    gate,
    plain,
    require,
    texts,
    writable,
)
from btcnb.errors import DataError, ParameterError

__all__ = ["INPUT_COLUMNS", "OUTPUT_COLUMNS", "SCRIPT_TYPES", "TRANSACTION_COLUMNS", "UNKNOWN", "Transactions", "Truth"]

IntArray = npt.NDArray[np.int64]

PER_ADDRESS = {"owner": "iu", "label": "OUT"}
PER_TRANSACTION = {"coinjoin": "OUT", "change": "iu", "mechanism": "OUT"}
"""Arrays of `Truth`, and NumPy's letters of the types they may have."""


@dataclass(frozen=True)
class Truth:
    """What only a simulator (or a wallet's owner) knows. Every array is aligned with the ids of its `Transactions`.

    owner:     int64 per address, the entity that controls it (-1 unknown)
    entities:  one row per entity id: `kind` (exchange, pool, merchant, user, …) and `name`
    label:     object/str per address, the entity name where the address is publicly labelled, "" elsewhere
    coinjoin:  str per transaction, the protocol name as in `detect_coinjoins`, "" for none
    change:    int64 per transaction, the output `index` that is change, -1 where there is none or more than one
    mechanism: str per transaction, the way to mislead heuristics that wrote it, "" for an ordinary one
    """

    owner: IntArray
    entities: pd.DataFrame = field(default_factory=lambda: pd.DataFrame({"kind": [], "name": []}))
    label: npt.NDArray[Any] | None = None
    coinjoin: npt.NDArray[Any] | None = None
    change: IntArray | None = None
    mechanism: npt.NDArray[Any] | None = None

    def select(self, addresses: IntArray, transactions: IntArray) -> Truth:
        """What is known about the addresses and transactions of these ids."""
        kept = dict.fromkeys(PER_ADDRESS, addresses) | dict.fromkeys(PER_TRANSACTION, transactions)
        told: dict[str, Any] = {name: getattr(self, name) for name in kept}
        part: dict[str, Any] = {name: None if told[name] is None else told[name][ids] for name, ids in kept.items()}
        return replace(self, **part)


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
            _table(transactions, TRANSACTION_COLUMNS, source, "transactions"),
            _table(inputs, INPUT_COLUMNS, source, "inputs"),
            _table(outputs, OUTPUT_COLUMNS, source, "outputs"),
            addresses=texts(addresses, source, "addresses"),
            truth=truth,
            source=plain(source),
        )
        txs._check()
        return txs

    def __len__(self) -> int:
        return len(self.transactions)

    @property
    def num_addresses(self) -> int:
        return len(self.addresses)

    def known_truth(self) -> Truth:
        """The truth; raises `DataError` where the source does not tell it."""
        if self.truth is None:
            raise DataError(self.source, "truth", "is missing", "simulate, or attach owners")
        return self.truth

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
        return Cutter.of(self).cut(_ids(keep, len(self))).txs

    def fingerprint(self) -> str:
        """A hash of the tables, the addresses and the truth: equal for equal content, also across processes."""
        truth = self.truth
        known = [] if truth is None else [getattr(truth, name) for name in (*PER_ADDRESS, *PER_TRANSACTION)]
        entities = [] if truth is None else [truth.entities]
        return content_hash([self.transactions, self.inputs, self.outputs, *entities], self.addresses, *known)

    def _check(self) -> None:
        """Ids, order and spends; what may stand in a single cell, `gate` has seen to."""
        disorder = _disorder(self.transactions, "block_number")
        if disorder is not None:
            raise DataError(
                self.source,
                "block_number, index",
                f"row {disorder} is out of chain order",
                "sort by block and position, and keep one row per position",
            )
        for name, table in (("inputs", self.inputs), ("outputs", self.outputs)):
            self._require_ids(name, "tx", 0, len(self))
            self._require_ids(name, "address", UNKNOWN, self.num_addresses)
            if _disorder(table, "tx") is not None:
                raise DataError(
                    self.source, f"{name}.tx", "rows are not grouped in transaction order", "sort by tx, then index"
                )
        if self.transactions["is_coinbase"].to_numpy()[self.inputs["tx"].to_numpy()].any():
            raise DataError(self.source, "inputs.tx", "a coinbase has inputs", "a coinbase spends nothing: drop them")
        self._check_spends()
        self._check_truth()

    def _require_ids(self, name: str, column: str, low: int, high: int) -> None:
        values = getattr(self, name)[column].to_numpy()
        fits = (values >= low) & (values < high)
        require(fits, values, self.source, f"{name}.{column}", f"expected at least {low} and below {high}")

    def _check_spends(self) -> None:
        self._require_ids("inputs", "spent_output", UNKNOWN, len(self.outputs))
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
        """Arrays of the right length and type, owners among the entities, change among the outputs."""
        truth = self.truth
        if truth is None:
            return
        for names, number in ((PER_ADDRESS, self.num_addresses), (PER_TRANSACTION, len(self))):
            for name, kinds in names.items():
                where, array = f"truth.{name}", getattr(truth, name)
                if array is None and name != "owner":
                    continue
                if np.shape(array) != (number,):
                    problem = f"holds {np.size(array)} entries"
                    raise DataError(self.source, where, problem, f"expected one for each of {number}")
                if number and array.dtype.kind not in kinds:
                    remedy = "expected ids" if kinds == "iu" else "expected text"
                    raise DataError(self.source, where, f"holds {array.dtype}", remedy)
                if kinds != "iu":
                    writable(array, self.source, where)
        gate(truth.entities, {"kind": "str", "name": "str"}, self.source, "truth.entities")
        fits = (truth.owner >= UNKNOWN) & (truth.owner < len(truth.entities))
        require(fits, truth.owner, self.source, "truth.owner", f"expected -1 or one of {len(truth.entities)} entities")
        if truth.change is not None:
            there = self.outputs["tx"].to_numpy() * 2**32 + self.outputs["index"].to_numpy()
            named = truth.change.clip(UNKNOWN, 2**32 - 1)
            fits = (truth.change == UNKNOWN) | np.isin(np.arange(len(self)) * 2**32 + named, there)
            require(fits, truth.change, self.source, "truth.change", "expected -1 or the index of an output")


class Piece(NamedTuple):
    """Some transactions as a chain of their own; ids in `txs` are positions in the two arrays."""

    txs: Transactions
    transactions: IntArray  # ids in the whole chain, ascending
    addresses: IntArray  # ids in the whole chain, ascending


@dataclass(frozen=True)
class Cutter:
    """A chain, prepared once, from which pieces are cut at the cost of what the piece holds."""

    txs: Transactions
    in_start: IntArray  # (T+1,)
    out_start: IntArray  # (T+1,)
    maker: IntArray  # per output row: the transaction that makes it
    hashes: npt.NDArray[Any]  # (T,)

    @classmethod
    def of(cls, txs: Transactions) -> Cutter:
        return cls(
            txs,
            txs.input_offsets(),
            txs.output_offsets(),
            txs.outputs["tx"].to_numpy(),
            txs.transactions["hash"].to_numpy(dtype=object),
        )

    def cut(self, ids: IntArray) -> Piece:
        """The transactions of these ids, ascending and distinct, as a chain of their own; see `Transactions.select`."""
        in_rows, in_tx = rows_of(self.in_start, ids)
        out_rows, out_tx = rows_of(self.out_start, ids)
        inputs = self.txs.inputs.take(in_rows).reset_index(drop=True)
        outputs = self.txs.outputs.take(out_rows).reset_index(drop=True)
        used = np.unique(np.append(inputs["address"].to_numpy(), outputs["address"].to_numpy()))
        used = used[used >= 0]
        for table, tx in ((inputs, in_tx), (outputs, out_tx)):
            table["tx"] = tx
            table["address"] = _places(used, table["address"].to_numpy())
        spent = inputs["spent_output"].to_numpy()
        inputs["spent_output"] = inside = _places(out_rows, spent)
        lost = (spent >= 0) & (inside < 0)
        if lost.any():
            told = inputs["spent_transaction_hash"].to_numpy(dtype=object, copy=True)
            told[lost] = self.hashes[self.maker[spent[lost]]]
            inputs["spent_transaction_hash"] = pd.Series(told, dtype="str")
        piece = replace(
            self.txs,
            transactions=self.txs.transactions.take(ids).reset_index(drop=True),
            inputs=inputs,
            outputs=outputs,
            addresses=self.txs.addresses[used],
            truth=None if self.txs.truth is None else self.txs.truth.select(used, ids),
        )
        return Piece(piece, ids, used)


def rows_of(starts: IntArray, groups: IntArray) -> tuple[IntArray, IntArray]:
    """Rows of the given groups, and for each row the place of its group in `groups`.

    starts: CSR offsets, the rows of group g are starts[g]:starts[g+1]. Costs what the groups hold, not the table.
    """
    length = starts[groups + 1] - starts[groups]
    position = np.repeat(np.arange(len(groups)), length)
    within = np.arange(len(position)) - np.repeat(np.cumsum(length) - length, length)
    return starts[groups][position] + within, position


def _ids(keep: npt.NDArray[Any], number: int) -> IntArray:
    """Ids, or a mask, of `number` transactions as ascending ids."""
    wanted = np.asarray(keep)
    if wanted.dtype == bool:
        if wanted.shape != (number,):
            raise ParameterError(f"keep: a mask of shape {wanted.shape} does not fit {number} transactions.")
        return np.flatnonzero(wanted)
    if wanted.size and (wanted.dtype.kind not in "iu" or wanted.min() < 0 or wanted.max() >= number):
        raise ParameterError(f"keep: transaction ids must lie in 0..{number - 1}.")
    return np.unique(wanted).astype(np.int64)


def _places(sorted_ids: IntArray, ids: IntArray) -> IntArray:
    """Position of each id among the sorted ones, -1 where it is not there."""
    if not len(sorted_ids):
        return np.full(len(ids), UNKNOWN, dtype=np.int64)
    place = np.minimum(np.searchsorted(sorted_ids, ids), len(sorted_ids) - 1)
    return np.where(sorted_ids[place] == ids, place, UNKNOWN)


def _offsets(groups: IntArray, number: int) -> IntArray:
    return np.searchsorted(groups, np.arange(number + 1)).astype(np.int64)


def _disorder(table: pd.DataFrame, group: str) -> int | None:
    """The first row that does not come after the one before it, by (group, index)."""
    step = np.diff(table[group].to_numpy())
    bad = (step < 0) | ((step == 0) & (np.diff(table["index"].to_numpy()) <= 0))
    return int(bad.argmax()) + 1 if bad.any() else None


def _table(table: pd.DataFrame, columns: dict[str, str], source: str, name: str) -> pd.DataFrame:
    passed = gate(table, columns, source, name)
    try:
        return pd.DataFrame({column: pd.Series(passed[column], dtype=kind) for column, kind in columns.items()})  # type: ignore[call-overload]
    except (ValueError, UnicodeError) as error:
        raise DataError(source, name, f"does not make a table ({error})", "fix the columns") from error
