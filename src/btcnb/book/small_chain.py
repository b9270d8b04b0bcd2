"""A handful of payments written down by hand, as the tables that everything else works on.

small_chain([({"a": 50, "b": 30}, {"shop": 60, "rest": 20})])     # amounts in satoshi, one block a payment
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from btcnb import gates
from btcnb.data import SCRIPT_TYPES, Transactions
from btcnb.errors import ParameterError

_TYPE = SCRIPT_TYPES.index("witness_v0_keyhash")
_FINAL = 0xFFFFFFFF

Amounts = Mapping[str, int]


def small_chain(payments: Sequence[tuple[Amounts, Amounts]], first_block: int = 700_000) -> Transactions:
    """Payments (inputs, outputs), each a dictionary from the name of an address to satoshi; all of one script type.

    Every input is a coin from outside, so payments are not tied by who spends whose output. What goes in and does not
    come out is the fee.
    """
    first = gates.whole("first_block", first_block, "[0, 2000000000]")
    ids: dict[str, int] = {}
    tables: dict[str, list[dict[str, Any]]] = {"transactions": [], "inputs": [], "outputs": []}
    for tx, (given, made) in enumerate(gates.items("payments", payments)):
        fee = sum(given.values()) - sum(made.values())
        if fee < 0:
            raise ParameterError(f"payment {tx} pays out {-fee} satoshi more than it takes in.")
        tables["transactions"].append(_transaction(tx, first + tx, len(given), len(made), fee))
        tables["inputs"] += [_input(tx, *row) for row in _rows(given, ids)]
        tables["outputs"] += [_place(tx, *row) for row in _rows(made, ids)]
    transactions, inputs, outputs = (pd.DataFrame(rows) for rows in tables.values())
    names = np.array(list(ids), dtype=object)
    return Transactions.checked(transactions, inputs, outputs, addresses=names, source="written by hand")


def _rows(amounts: Amounts, ids: dict[str, int]) -> list[tuple[int, int, int]]:
    """(position, address, value) of each entry; new names get the next number."""
    entries = enumerate(amounts.items())
    return [(position, ids.setdefault(name, len(ids)), value) for position, (name, value) in entries]


def _transaction(tx: int, block: int, inputs: int, outputs: int, fee: int) -> dict[str, Any]:
    size = 11 + 68 * inputs + 31 * outputs  # vbytes of a plain SegWit payment
    return {
        "hash": hashlib.sha256(f"payment {tx}".encode()).hexdigest(),
        "block_number": block,
        "block_timestamp": 1_600_000_000 + 600 * tx,
        "index": 1,
        "is_coinbase": False,
        "version": 2,
        "lock_time": 0,
        "size": size,
        "virtual_size": size,
        "fee": fee,
    }


def _place(tx: int, position: int, address: int, value: int) -> dict[str, Any]:
    return {"tx": tx, "index": position, "address": address, "value": value, "script_type": _TYPE}


def _input(tx: int, position: int, address: int, value: int) -> dict[str, Any]:
    outside = hashlib.sha256(f"outside {tx} {position}".encode()).hexdigest()
    spent = {"spent_output": -1, "spent_transaction_hash": outside, "spent_output_index": 0, "sequence": _FINAL}
    return {**_place(tx, position, address, value), **spent}
