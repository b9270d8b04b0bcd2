"""Transactions as Bitcoin Core's `getblock` would print their blocks, for tests of the readers that take them in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from btcnb.data import SCRIPT_TYPES, Transactions


def bitcoin(satoshi: int) -> float:
    """As the node prints it: a JSON number. Python's shortest form of the nearest double is the node's decimal."""
    return satoshi / 100_000_000


def blocks(txs: Transactions, verbosity: int = 2) -> list[dict[str, Any]]:
    """The blocks in order of height, chained by their hashes."""
    transactions = [_transaction(txs, tx, verbosity) for tx in range(len(txs))]
    found: dict[int, dict[str, Any]] = {}
    for row, printed in zip(txs.transactions.itertuples(), transactions, strict=True):
        block = found.setdefault(
            row.block_number,
            {
                "hash": f"{row.block_number:064x}",
                "height": row.block_number,
                "time": row.block_timestamp,
                "previousblockhash": f"{row.block_number - 1:064x}",
                "tx": [],
            },
        )
        block["tx"].append(printed)
    return list(found.values())


def save(told: list[dict[str, Any]], folder: Path) -> Path:
    """One file a block, `block_<height>.json`; a repeated height gets a name of its own."""
    folder.mkdir()
    for position, block in enumerate(told):
        file = folder / f"block_{block.get('height', 'x')}.json"
        (folder / f"again_{position}.json" if file.exists() else file).write_text(json.dumps(block))
    return folder


def _transaction(txs: Transactions, tx: int, verbosity: int) -> dict[str, Any]:
    row = txs.transactions.iloc[tx]
    inputs = txs.inputs.iloc[slice(*txs.input_offsets()[tx : tx + 2])]
    outputs = txs.outputs.iloc[slice(*txs.output_offsets()[tx : tx + 2])]
    printed = {
        "txid": row["hash"],
        "version": int(row["version"]),
        "size": int(row["size"]),
        "vsize": int(row["virtual_size"]),
        "locktime": int(row["lock_time"]),
        "vin": [{"coinbase": "00", "sequence": 0}]
        if row["is_coinbase"]
        else [_input(txs, item, verbosity) for item in inputs.to_dict("records")],
        "vout": [_output(txs, item) for item in outputs.to_dict("records")],
    }
    return printed if row["is_coinbase"] else printed | {"fee": bitcoin(int(row["fee"]))}


def _input(txs: Transactions, item: dict[str, Any], verbosity: int) -> dict[str, Any]:
    spent = txs.outputs.iloc[item["spent_output"]]
    printed = {
        "txid": txs.transactions["hash"].iloc[int(spent["tx"])],
        "vout": int(spent["index"]),
        "sequence": int(item["sequence"]),
    }
    return printed if verbosity < 3 else printed | {"prevout": _output(txs, spent.to_dict())}


def _output(txs: Transactions, item: dict[str, Any]) -> dict[str, Any]:
    kind = SCRIPT_TYPES[int(item["script_type"])]
    script = {"hex": "6a00" if kind == "nulldata" else "ab", "type": kind}
    if item["address"] >= 0:
        script["address"] = txs.addresses[int(item["address"])]
    return {"value": bitcoin(int(item["value"])), "n": int(item["index"]), "scriptPubKey": script}
