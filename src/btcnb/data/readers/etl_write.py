"""The bitcoin-etl schema, and transactions written in it: nested, as JSON lines or Parquet.

A sidecar holds what the schema has no field for: the order of address ids, the truth, and the source's name.
"""

from __future__ import annotations

import contextlib
import gzip
import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from btcnb.data.readers.files import MISSHAPEN, Member, path_of, reading, replacing
from btcnb.data.tables import UNKNOWN
from btcnb.data.transactions import SCRIPT_TYPES, Transactions, Truth
from btcnb.errors import ParameterError
from btcnb.gates import flag, instance

IntArray = npt.NDArray[np.int64]

_TEXT, _NUMBER = pa.string(), pa.int64()
OUTPUT: dict[str, Any] = {
    "index": _NUMBER,
    "script_asm": _TEXT,
    "script_hex": _TEXT,
    "required_signatures": _NUMBER,
    "type": _TEXT,
    "addresses": pa.list_(_TEXT),
    "value": _NUMBER,
}
INPUT: dict[str, Any] = {
    "index": _NUMBER,
    "spent_transaction_hash": _TEXT,
    "spent_output_index": _NUMBER,
    "script_asm": _TEXT,
    "script_hex": _TEXT,
    "sequence": _NUMBER,
    **{name: OUTPUT[name] for name in ("required_signatures", "type", "addresses", "value")},
}
SCHEMA = pa.schema(
    {
        "hash": _TEXT,
        **dict.fromkeys(("size", "virtual_size", "version", "lock_time", "block_number", "block_timestamp"), _NUMBER),
        "is_coinbase": pa.bool_(),
        "index": _NUMBER,
        "block_hash": _TEXT,
        "inputs": pa.list_(pa.struct(INPUT)),
        "outputs": pa.list_(pa.struct(OUTPUT)),
        **dict.fromkeys(("input_count", "output_count", "input_value", "output_value", "fee"), _NUMBER),
    }
)
"""Transactions with nested inputs and outputs; amounts in satoshi, times in unix seconds."""

SUFFIX = ".truth.json.gz"
"""Ending of the sidecar that `write_etl` leaves beside a file."""
ROWS_A_GROUP = 20_000
_JSON = (".json", ".jsonl", ".ndjson")
_TRUTH_IDS = ("owner", "change")


def write_etl(txs: Transactions, path: str | Path, sidecar: bool | None = None) -> Path:
    """Write `.jsonl`, `.json` or `.ndjson` (also `.gz`), or `.parquet`; the file appears whole or not at all.

    `read_etl` gives the same tables back. The schema has no place for address ids that do not follow first appearance
    nor for truth: they go to a sidecar `<path>.truth.json.gz` (None: where there is truth; True: always; False: never,
    and ids are then numbered by first appearance). Columns that a source added to the contract's are not written.
    """
    instance("txs", txs, Transactions)
    target = path_of(path)
    *_, kind, packing = ["", "", *(suffix.lower() for suffix in target.suffixes)]
    if packing != ".gz":
        kind, packing = packing, ""
    if kind not in _JSON and (kind, packing) != (".parquet", ""):
        problem = "ends neither in .jsonl, .json, .ndjson (or these with .gz) nor .parquet"
        raise ParameterError(f"path: {target.name} {problem}.")
    with_sidecar = txs.truth is not None if sidecar is None else flag("sidecar", sidecar)
    groups = (_table(txs, first, min(first + ROWS_A_GROUP, len(txs))) for first in range(0, len(txs), ROWS_A_GROUP))
    with replacing(target) as part, contextlib.ExitStack() as stack:
        if with_sidecar:
            stack.enter_context(replacing(sidecar_of(target))).write_bytes(_sidecar(txs))
        if kind == ".parquet":
            with pq.ParquetWriter(part, SCHEMA, write_page_checksum=True) as writer:
                for group in groups:
                    writer.write_table(group)
        else:
            with gzip.open(part, "wt") if packing else part.open("w") as stream:
                for group in groups:
                    stream.writelines(json.dumps(record, separators=(",", ":")) + "\n" for record in group.to_pylist())
    if not with_sidecar:
        sidecar_of(target).unlink(missing_ok=True)  # one from an earlier write would no longer fit
    return target


def _table(txs: Transactions, first: int, last: int) -> Any:
    """Transactions first..last-1 as an Arrow table of `SCHEMA`; what is not told is null."""
    head = txs.transactions.iloc[first:last]
    into, out = txs.input_offsets()[first : last + 1], txs.output_offsets()[first : last + 1]
    inputs, outputs = txs.inputs.iloc[into[0] : into[-1]], txs.outputs.iloc[out[0] : out[-1]]
    into, out = into - into[0], out - out[0]
    columns = {
        **{name: head[name].to_numpy() for name in SCHEMA.names if name in head},
        "inputs": pa.ListArray.from_arrays(
            pa.array(into, pa.int32()), _struct(INPUT, len(inputs), _inputs(txs, inputs))
        ),
        "outputs": pa.ListArray.from_arrays(
            pa.array(out, pa.int32()), _struct(OUTPUT, len(outputs), _outputs(txs, outputs))
        ),
        "input_count": np.diff(into),
        "output_count": np.diff(out),
        "input_value": _sums(inputs["value"].to_numpy(), into),
        "output_value": _sums(outputs["value"].to_numpy(), out),
        "fee": _known(head["fee"].to_numpy()),
    }
    return pa.table([columns.get(name, pa.nulls(len(head))) for name in SCHEMA.names], schema=SCHEMA)


def _struct(fields: Mapping[str, Any], rows: int, told: Mapping[str, Any]) -> Any:
    """An array of records with the given fields, null where nothing is told."""
    arrays = [pa.array(told[name], kind) if name in told else pa.nulls(rows, kind) for name, kind in fields.items()]
    return pa.StructArray.from_arrays(arrays, names=list(fields))


def _inputs(txs: Transactions, inputs: pd.DataFrame) -> dict[str, Any]:
    spent = inputs["spent_output"].to_numpy()
    inside = spent >= 0
    hashes = inputs["spent_transaction_hash"].astype(object).to_numpy(copy=True)
    hashes[inputs["spent_transaction_hash"].isna().to_numpy()] = None
    hashes[inside] = txs.transactions["hash"].to_numpy(dtype=object)[txs.outputs["tx"].to_numpy()[spent[inside]]]
    owner = [txs.addresses[a] if a >= 0 else None for a in inputs["address"].to_numpy()]
    return {
        "index": inputs["index"].to_numpy(),
        "spent_transaction_hash": hashes,
        "spent_output_index": _known(inputs["spent_output_index"].to_numpy()),
        "sequence": inputs["sequence"].to_numpy(),
        "type": np.array(SCRIPT_TYPES, dtype=object)[inputs["script_type"].to_numpy()],
        "addresses": [text.split(",") if text else [] for text in owner],
        "value": _known(inputs["value"].to_numpy()),
    }


def _outputs(txs: Transactions, outputs: pd.DataFrame) -> dict[str, Any]:
    owner = [txs.addresses[a] if a >= 0 else None for a in outputs["address"].to_numpy()]
    script = [_is_hex(text) for text in owner]
    return {
        "index": outputs["index"].to_numpy(),
        "script_hex": [text if is_hex else None for text, is_hex in zip(owner, script, strict=True)],
        "type": np.array(SCRIPT_TYPES, dtype=object)[outputs["script_type"].to_numpy()],
        "addresses": [
            text.split(",") if text and not is_hex else [] for text, is_hex in zip(owner, script, strict=True)
        ],
        "value": outputs["value"].to_numpy(),
    }


def _is_hex(text: str | None) -> bool:
    """Whether an owner is a script's hex, not an address: long, even, and of hexadecimal digits only."""
    return text is not None and len(text) >= 40 and len(text) % 2 == 0 and not text.strip("0123456789abcdef")


def _known(values: IntArray) -> Any:
    return pa.array(values, mask=values < 0)


def _sums(values: IntArray, offsets: IntArray) -> Any:
    """Sum of each group; null where a value is unknown."""
    total = np.diff(np.concatenate([[0], np.cumsum(values)])[offsets])
    unknown = np.diff(np.concatenate([[0], np.cumsum(values < 0)])[offsets]) > 0
    return pa.array(total, mask=unknown)


def sidecar_of(path: str | Path) -> Path:
    """The sidecar that belongs to a file or folder of transactions."""
    place = Path(path)
    return place.with_name(place.name + SUFFIX)


def _sidecar(txs: Transactions) -> bytes:
    """Addresses in id order, truth and source, as gzipped JSON."""
    truth = (
        None if txs.truth is None else {field.name: _plain(getattr(txs.truth, field.name)) for field in fields(Truth)}
    )
    content = {"source": txs.source, "addresses": txs.addresses.tolist(), "truth": truth}
    return gzip.compress(json.dumps(content).encode(), mtime=0)


def restored(txs: Transactions, path: Path) -> Transactions:
    """`txs` with the address ids, the truth and the source that the sidecar tells."""
    with reading(path, "sidecar", "does not fit its transactions", "delete it or write both again", MISSHAPEN):
        content = json.loads(Member(path.name, path).read())
        number = {address: position for position, address in enumerate(content["addresses"])}
        new_id = np.array([number[address] for address in txs.addresses] + [UNKNOWN], dtype=np.int64)
        told = content.get("truth")
        truth = None if told is None else Truth(**{name: _array(name, values) for name, values in told.items()})
        sides = (txs.inputs, txs.outputs)
        inputs, outputs = (table.assign(address=new_id[table["address"].to_numpy()]) for table in sides)
        return Transactions.checked(
            txs.transactions, inputs, outputs, content["addresses"], truth, content.get("source", txs.source)
        )


def _plain(values: Any) -> Any:
    return values.to_dict("list") if isinstance(values, pd.DataFrame) else None if values is None else values.tolist()


def _array(name: str, values: Any) -> Any:
    if name == "entities":
        return pd.DataFrame(values)
    if values is not None and name in _TRUTH_IDS and not set(map(type, values)) <= {int}:
        raise ValueError(f"truth.{name} is no list of whole numbers")  # of 1.5, true and "1" numpy would make 1
    return None if values is None else np.array(values, dtype=np.int64 if name in _TRUTH_IDS else object)
