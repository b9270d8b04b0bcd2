"""Tiny transaction builders, so that a test of the data part reads as a scenario.

    from builders import BTC, chain, groups, ids

    txs = (
        chain()
        .coinbase(to="pool", value=50 * BTC)  # block 100
        .pay("pool", {"alice": 20 * BTC, "pool2": 30 * BTC})  # block 101, fee 0: what goes in comes out
        .pay(["alice", "a2"], {"shop": 21 * BTC}, fee=500)  # block 102; a2 has no coin, so it is funded from outside
        .build()
    )

- **Addresses are names.** A name is the address string; ids follow first appearance (inputs before outputs).
  `ids(txs)["alice"]` is the id.
- **Amounts are whole satoshi.** `3` is three satoshi; write `3 * BTC` for bitcoin.
- **An input is a name**: it spends the oldest unspent output of that address. Name it twice to spend two.
  A name without a coin is funded from outside the table (`spent_output` -1) with what is missing to outputs + fee,
  shared evenly. `("a", 7)` is an outside coin of 7, whatever `a` owns.
- **Outputs** are a dict name -> value, or a list of (name, value) pairs where an address receives twice; the name
  `None` is an OP_RETURN output.
- **Every transaction opens a new block**, unless told `block="same"` or `block=<height>`.
- **Fee**: if every input is a coin of known value, the fee is what is left over; otherwise `fee=` (default 0).
- **Truth**: `.owners(alice="a a2", shop=["s"])`, `pay(..., coinjoin="wasabi2", change=1)`; without any of them
  `truth` is None.
- `groups(txs, labels)` turns one label per address into a set of frozensets of names, to compare partitions by hand.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from btcnb.data import SCRIPT_TYPES, Transactions, Truth
from btcnb.data.transactions import INPUT_COLUMNS, OUTPUT_COLUMNS, TRANSACTION_COLUMNS

BTC = 100_000_000
FINAL = 0xFFFFFFFF  # sequence number without RBF or relative lock
RBF = 0xFFFFFFFD

Outputs = Mapping[Any, int] | Sequence[tuple[Any, int]]
Input = str | tuple[str, int]


def chain(
    start_block: int = 100, types: Mapping[str, str] | None = None, default_type: str = "witness_v0_keyhash"
) -> Chain:
    """An empty chain. `types` maps address names to script types (see `SCRIPT_TYPES`); others get `default_type`."""
    return Chain(start_block, dict(types or {}), default_type)


def ids(txs: Transactions) -> dict[str, int]:
    """Address name -> id."""
    return {name: position for position, name in enumerate(txs.addresses)}


def groups(txs: Transactions, labels: Iterable[int]) -> set[frozenset[str]]:
    """The partition that `labels` (one per address) stands for, as sets of address names."""
    members: defaultdict[int, set[str]] = defaultdict(set)
    for name, label in zip(txs.addresses, labels, strict=True):
        members[int(label)].add(name)
    return {frozenset(names) for names in members.values()}


class Chain:
    """See the module's docstring. Methods return the chain, so that calls can be strung together."""

    def __init__(self, start_block: int, types: dict[str, str], default_type: str) -> None:
        self._block, self._index = start_block - 1, 0
        self._types, self._default_type = types, default_type
        self._rows: dict[str, list[dict[str, Any]]] = {"transactions": [], "inputs": [], "outputs": []}
        self._ids: dict[str, int] = {}
        self._coins: defaultdict[str, deque[int]] = defaultdict(deque)  # address -> rows of its unspent outputs
        self._owner: dict[str, str] = {}
        self._truth = False

    def coinbase(
        self, to: str | Outputs = "miner", value: int = 50 * BTC, block: int | None = None, **fields: Any
    ) -> Chain:
        """A coinbase, first of a new block, paying `value` to one address or a dict of outputs."""
        outputs = {to: value} if isinstance(to, str) else to
        self._transaction([], outputs, 0, block, coinbase=True, **fields)
        return self

    def pay(
        self,
        inputs: str | Sequence[Input],
        outputs: Outputs,
        fee: int = 0,
        block: int | str | None = None,
        **fields: Any,
    ) -> Chain:
        """A transaction; `fields`: version, lock_time, sequence, size, virtual_size, hash, coinjoin, change."""
        self._transaction([inputs] if isinstance(inputs, str) else inputs, outputs, fee, block, **fields)
        return self

    def sweep(self, names: str | Sequence[str], to: str, fee: int = 0, **fields: Any) -> Chain:
        """Spend every coin of the named addresses to one address."""
        names = [names] if isinstance(names, str) else names
        coins = [name for name in names for _ in self._coins[name]]
        total = sum(self._rows["outputs"][row]["value"] for name in set(names) for row in self._coins[name])
        return self.pay(coins, {to: total - fee}, **fields)

    def owners(self, **owners: str | Sequence[str]) -> Chain:
        """Who owns which addresses; names in one string are separated by spaces."""
        for owner, names in owners.items():
            for name in names.split() if isinstance(names, str) else names:
                self._owner[name] = owner
        return self

    def build(self, source: str = "scenario") -> Transactions:
        """The transactions so far, checked."""
        tables = [
            pd.DataFrame(self._rows[name], columns=list(columns))
            for name, columns in (
                ("transactions", TRANSACTION_COLUMNS),
                ("inputs", INPUT_COLUMNS),
                ("outputs", OUTPUT_COLUMNS),
            )
        ]
        addresses = np.array([*self._ids, None], dtype=object)[:-1]
        return Transactions.checked(*tables, addresses=addresses, truth=self._known_truth(), source=source)

    def _known_truth(self) -> Truth | None:
        if not (self._owner or self._truth):
            return None
        entities = list(dict.fromkeys(self._owner.values()))
        owner = [entities.index(self._owner[name]) if name in self._owner else -1 for name in self._ids]
        rows = self._rows["transactions"]
        return Truth(
            owner=np.array(owner, dtype=np.int64),
            entities=pd.DataFrame({"kind": ["user"] * len(entities), "name": entities}),
            coinjoin=np.array([row["coinjoin"] for row in rows] + [None], dtype=object)[:-1],
            change=np.array([row["change"] for row in rows], dtype=np.int64),
        )

    def _transaction(
        self,
        inputs: Sequence[Input],
        outputs: Outputs,
        fee: int,
        block: int | str | None,
        coinbase: bool = False,
        version: int = 2,
        lock_time: int = 0,
        sequence: int = FINAL,
        size: int = 0,
        virtual_size: int = 0,
        hash: str | None = None,
        coinjoin: str = "",
        change: int = -1,
    ) -> None:
        tx = len(self._rows["transactions"])
        self._place(block, coinbase)
        pairs = list(outputs.items()) if isinstance(outputs, Mapping) else list(outputs)
        paid = sum(value for _, value in pairs)
        rows = self._spend(tx, inputs, paid + fee, sequence)
        received = sum(row["value"] for row in rows)
        if not coinbase and received < paid:
            raise ValueError(f"inputs hold {received}, outputs need {paid}")
        self._rows["inputs"] += rows
        for position, (name, value) in enumerate(pairs):
            self._receive(tx, position, name, value)
        virtual = virtual_size or 11 + 68 * len(rows) + 31 * len(pairs)
        self._rows["transactions"].append(
            {
                "hash": hash or hashlib.sha256(f"transaction {tx}".encode()).hexdigest(),
                "block_number": self._block,
                "block_timestamp": 1_600_000_000 + 600 * self._block,
                "index": self._index,
                "is_coinbase": coinbase,
                "version": version,
                "lock_time": lock_time,
                "size": size or virtual,
                "virtual_size": virtual,
                "fee": 0 if coinbase else received - paid,
                "coinjoin": coinjoin,
                "change": change,
            }
        )
        self._truth |= bool(coinjoin) or change >= 0

    def _place(self, block: int | str | None, coinbase: bool) -> None:
        if block == "same":
            self._index += 1
            return
        height = self._block + 1 if block is None else int(block)
        same = height == self._block
        if height < self._block or (same and coinbase):
            raise ValueError(f"block {height} is not after block {self._block}")
        self._index = self._index + 1 if same else 0 if coinbase else 1
        self._block = height

    def _spend(self, tx: int, inputs: Sequence[Input], needed: int, sequence: int) -> list[dict[str, Any]]:
        rows = []
        for position, given in enumerate(inputs):
            name, value = given if isinstance(given, tuple) else (given, None)
            coin = self._coins[name].popleft() if value is None and self._coins[name] else -1
            spent = self._rows["outputs"][coin] if coin >= 0 else None
            outside = hashlib.sha256(f"outside {tx} {position}".encode()).hexdigest()
            rows.append(
                {
                    "tx": tx,
                    "index": position,
                    "spent_output": coin,
                    "spent_transaction_hash": None if spent else outside,
                    "spent_output_index": spent["index"] if spent else 0,
                    "address": self._ids.setdefault(name, len(self._ids)),
                    "value": spent["value"] if spent else value,
                    "script_type": self._type(name),
                    "sequence": sequence,
                }
            )
        unfunded = [row for row in rows if row["value"] is None]
        missing = needed - sum(row["value"] or 0 for row in rows)
        for position, row in enumerate(unfunded):
            row["value"] = max(missing, 0) // len(unfunded) + (position < max(missing, 0) % len(unfunded))
        return rows

    def _receive(self, tx: int, position: int, name: str | None, value: int) -> None:
        row = len(self._rows["outputs"])
        address = -1 if name is None else self._ids.setdefault(name, len(self._ids))
        kind = SCRIPT_TYPES.index("nulldata") if name is None else self._type(name)
        self._rows["outputs"].append(
            {"tx": tx, "index": position, "address": address, "value": value, "script_type": kind}
        )
        if name is not None:
            self._coins[name].append(row)

    def _type(self, name: str) -> int:
        return SCRIPT_TYPES.index(self._types.get(name, self._default_type))
