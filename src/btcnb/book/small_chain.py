"""A handful of payments written down by hand, as the tables that everything else works on.

small_chain([({"a": 50, "b": 30}, {"shop": 60, "rest": 20})])     # amounts in satoshi, one block a payment
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from btcnb.data import SCRIPT_TYPES, Transactions
from btcnb.errors import ParameterError

Amounts = Mapping[str, int]


def small_chain(payments: Sequence[tuple[Amounts, Amounts]], first_block: int = 700_000) -> Transactions:
    """Payments (inputs, outputs), each a dictionary from the name of an address to satoshi; all of one script type.

    Every input is a coin from outside, so payments are not tied by who spends whose output. What goes in and does not
    come out is the fee.
    """
    ids: dict[str, int] = {}
    transactions: list[dict[str, Any]] = []
    ends: tuple[list[dict[str, Any]], list[dict[str, Any]]] = ([], [])
    for tx, payment in enumerate(payments):
        given, made = payment
        fee = sum(given.values()) - sum(made.values())
        if fee < 0:
            raise ParameterError(f"payment {tx} pays out {-fee} satoshi more than it takes in.")
        name = hashlib.sha256(f"payment {tx}".encode()).hexdigest()
        size = 11 + 68 * len(given) + 31 * len(made)  # vbytes of a plain SegWit payment
        transactions.append({"hash": name, "block_number": first_block + tx, "fee": fee, "size": size})
        for rows, amounts in zip(ends, payment, strict=True):
            for position, (address, value) in enumerate(amounts.items()):
                number = ids.setdefault(address, len(ids))  # new names get the next number
                rows.append({"tx": tx, "index": position, "address": number, "value": value})
    frame = pd.DataFrame(transactions)
    time = 1_600_000_000 + 600 * np.arange(len(frame))
    frame = frame.assign(block_timestamp=time, index=1, is_coinbase=False, version=2, lock_time=0)
    inputs, outputs = (pd.DataFrame(rows).assign(script_type=SCRIPT_TYPES.index("witness_v0_keyhash")) for rows in ends)
    coins = zip(inputs["tx"], inputs["index"], strict=True)
    spent = [hashlib.sha256(f"outside {tx} {position}".encode()).hexdigest() for tx, position in coins]
    inputs = inputs.assign(spent_output=-1, spent_transaction_hash=spent, spent_output_index=0, sequence=0xFFFFFFFF)
    names = np.array(list(ids), dtype=object)
    frame = frame.assign(virtual_size=frame["size"])
    return Transactions.checked(frame, inputs, outputs, addresses=names, source="written by hand")
