"""Raw blocks against the same blocks as `getblock` JSON (verbosity 2), on one core.

    python benchmarks/blocks.py                          # the real blocks at hand, mainnet-blocks/ of the real data
    python benchmarks/blocks.py --folder my/blocks --dry # other HEIGHT-HASH.bin files; print, write nothing

To reach: 15,000 transactions per second, and three times the speed of JSON. The JSON is written to a temporary folder
first, as a node prints it (ids, sizes, scripts in hex and disassembled, witnesses, the transaction in hex). The size of
the result itself is measured too: what the reader needs beyond it is `peak_mb` - `start_mb` - `result_mb`.
Writes results/benchmarks/blocks.json.
"""

from __future__ import annotations

import argparse
import io
import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

from _measure import in_child, rows, show, stage, write
from embit.compact import read_from
from embit.transaction import Transaction

from btcnb import book
from btcnb.data import read_bitcoin_core, read_blocks
from btcnb.data.readers import scripts

RATE = 15_000  # transactions a second
RATIO = 3.0
SATOSHI = 10**8


def as_json(file: Path) -> dict[str, Any]:
    """A block as `getblock HASH 2` prints it, read by another parser than the one that is measured."""
    content = file.read_bytes()
    stream = io.BytesIO(content)
    header = stream.read(80)
    height, name = file.stem.split("-")
    listed = [_transaction(Transaction.read_from(stream), first=number == 0) for number in range(read_from(stream))]
    return {
        "hash": name,
        "height": int(height),
        "version": int.from_bytes(header[:4], "little"),
        "previousblockhash": header[4:36][::-1].hex(),
        "merkleroot": header[36:68][::-1].hex(),
        "time": int.from_bytes(header[68:72], "little"),
        "nTx": len(listed),
        "size": len(content),
        "tx": listed,
    }


def _transaction(tx: Transaction, first: bool) -> dict[str, Any]:
    whole = tx.serialize()
    stripped = sum(len(one.serialize()) for one in (*tx.vin, *tx.vout)) + 8 + _width(len(tx.vin)) + _width(len(tx.vout))
    return {
        "txid": tx.txid().hex(),
        "version": tx.version,
        "size": len(whole),
        "vsize": (3 * stripped + len(whole) + 3) // 4,
        "weight": 3 * stripped + len(whole),
        "locktime": tx.locktime,
        "vin": [_input(one, first) for one in tx.vin],
        "vout": [_output(one, number) for number, one in enumerate(tx.vout)],
        "hex": whole.hex(),
    }


def _width(number: int) -> int:
    return 1 if number < 253 else 3 if number < 2**16 else 5


def _input(one: Any, first: bool) -> dict[str, Any]:
    witness = {"txinwitness": [item.hex() for item in one.witness.items]} if one.witness.items else {}
    if first:
        return {"coinbase": one.script_sig.data.hex(), **witness, "sequence": one.sequence}
    script = {"asm": disassembled(one.script_sig.data), "hex": one.script_sig.data.hex()}
    return {"txid": one.txid.hex(), "vout": one.vout, "scriptSig": script, **witness, "sequence": one.sequence}


def _output(one: Any, number: int) -> dict[str, Any]:
    script = one.script_pubkey.data.hex()
    kind = scripts.SCRIPT_TYPES[scripts.script_type(one.script_pubkey.data)]
    told: dict[str, Any] = {"asm": disassembled(one.script_pubkey.data), "hex": script, "type": kind}
    if kind not in ("pubkey", "multisig", "nulldata", "nonstandard"):
        told["address"] = one.script_pubkey.address()
    return {"value": one.value / SATOSHI, "n": number, "scriptPubKey": told}


def disassembled(script: bytes) -> str:
    """Pushes in hex, operations by their number."""
    words, at = [], 0
    while at < len(script):
        code, width = script[at], {76: 1, 77: 2, 78: 4}.get(script[at], 0)
        size = int.from_bytes(script[at + 1 : at + 1 + width], "little") if width else code if code < 76 else 0
        words.append(script[at + 1 + width :][:size].hex() if 0 < code <= 78 else f"OP_{code}")
        at += 1 + width + size
    return " ".join(words)


def read(kind: str, folder: str) -> dict[str, Any]:
    reader = {"raw": read_blocks, "json": read_bitcoin_core}[kind]
    warnings.simplefilter("ignore")
    with stage("read"):
        txs = reader(folder, missing="ignore", progress=False)
    size = sum(table.memory_usage(deep=True).sum() for table in (txs.transactions, txs.inputs, txs.outputs))
    size += sum(map(len, txs.addresses)) + 57 * len(txs.addresses)  # a text has 49 bytes and its pointer 8 beside it
    return {
        "transactions": len(txs),
        "inputs": len(txs.inputs),
        "outputs": len(txs.outputs),
        "addresses": txs.num_addresses,
        "result_mb": round(float(size) / 2**20, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="folder of HEIGHT-HASH.bin (default: mainnet-blocks/ at hand)")
    parser.add_argument("--most", type=int, help="read the first so many blocks only")
    parser.add_argument("--dry", action="store_true", help="print, write nothing")
    options = parser.parse_args()
    folder = options.folder or book.real_data("mainnet-blocks")
    if folder is None:
        raise SystemExit("No real blocks are at hand: give --folder, or set BTCNB_REAL_DATA.")
    files = sorted(Path(folder).glob("*-*.bin"))[: options.most]
    records: list[dict[str, Any]] = []
    rate: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as place:
        for kind in ("raw", "json"):
            for part, some in (("all", files), ("one", files[:1])):
                (Path(place) / kind / part).mkdir(parents=True)
                for file in some:
                    target = Path(place) / kind / part / (file.name if kind == "raw" else f"{file.stem}.json")
                    target.write_bytes(file.read_bytes() if kind == "raw" else json.dumps(as_json(file)).encode())
        for kind in ("raw", "json"):
            warm_up = (read, kind, str(Path(place) / kind / "one"))
            run = in_child(read, kind, str(Path(place) / kind / "all"), warm_up=warm_up)
            found = dict(run.value or {})
            if found:
                rate[kind] = found["transactions"] / run["read"].cpu_seconds
                found["transactions_a_second"] = round(rate[kind])
            if len(rate) == 2 or kind == "raw":
                found["reached"] = rate["raw"] >= RATE and (kind == "raw" or rate["raw"] >= RATIO * rate["json"])
            records += rows("blocks", run, task="read blocks", format=kind, blocks=len(files), **found)
    print(f"{rate['raw']:,.0f} transactions a second, {rate['raw'] / rate['json']:.1f} times as many as from JSON")
    show(records, ["format", "stage", "seconds", "cpu_seconds", "start_mb", "peak_mb", "result_mb", "addresses"])
    if not options.dry:
        write("blocks", records)


if __name__ == "__main__":
    main()
